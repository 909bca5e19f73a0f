/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pools.h - who is due: the clocks of the two pools, what they owe each other, and the queues.
 *
 * The critical pool is served first. That alone would starve the background pool, so each pool
 * has a clock: the CPU time of all its threads over its weight. While both pools have threads
 * waiting, the difference of the clocks is what one owes the other. Once the background pool is
 * owed more than a bound, one CPU after the other gives it a *grant*: a turn that no waking
 * thread may preempt. A grant is charged to the clock before it runs, so that CPUs which look at
 * the same moment do not all pay the same debt, and corrected when it ends.
 *
 * A pool that has nobody waiting is owed nothing: its clock is pulled up to the other's. So the
 * background pool's use of idle CPUs earns the critical pool no credit, and neither can save up.
 *
 * What may race, and why that is fine: the clocks are read without locks, and pulling one up may
 * lose another CPU's concurrent charge. The error is one slice, once, and the next charge is
 * measured against the result; shares are held by feedback, not by exact sums.
 *
 * Weakness: the clocks are the machine's, not a CPU's. A pinned background thread behind a pinned
 * critical one, on a machine whose other CPUs do background work, is not owed anything by this
 * account; `limits.background_wait` is what it gets.
 */
#ifndef TWOPOOL_POOLS_H
#define TWOPOOL_POOLS_H

#include "maps.h"
#include "stats.h"

#define NSEC_PER_MSEC 1000000ull

/* A grant lasts to the first tick after this. At HZ=250 that is 4 to 8 ms, 6 on average. */
#define GRANT_SLICE_NS (4 * NSEC_PER_MSEC)

/* CPU time per CPU that a pool may be behind before it is served first. It must exceed two ticks:
 * a grant cannot be shorter, and a debt smaller than one grant would be overpaid for ever. */
#define DEBT_BOUND_NS (8 * NSEC_PER_MSEC)

/* The most CPU time per CPU that a pool can be owed, in time of the lighter pool. A pool that could
 * not be paid (its threads are pinned elsewhere) would otherwise save up and take the machine when
 * it can. Not in the owed pool's own time: a light pool's grants that overrun by a tick on each CPU
 * put the heavy one behind by its weight times that, and what a cap forgives is no longer a share. */
#define DEBT_CAP_NS (32 * NSEC_PER_MSEC)

/* Nobody waits much longer than this, whatever the policy says. The kernel's own threads wait in these
 * queues too: RCU calls a grace period that took 21 s a stall, and it needs several turns; the worker
 * that tells sched_ext's watchdog that all is well has no longer. Either would end the scheduler. */
#define LONGEST_WAIT_NS (1000 * NSEC_PER_MSEC)

/* Time run on a CPU is added to the pool's clock in portions of this, to keep the clocks' cache
 * lines from bouncing at every switch. */
#define CHARGE_PORTION_NS (1 * NSEC_PER_MSEC)

static struct cpu_state *cpu_state(s32 cpu)
{
	return &cpus[cpu & (MAX_CPUS - 1)];
}

static u32 llc_of(s32 cpu)
{
	return cpu_llc[cpu & (MAX_CPUS - 1)] & (MAX_LLCS - 1);
}

static u32 other_pool(u32 pool)
{
	return (pool ^ 1) & (NR_POOLS - 1);
}

static u64 cpu_bit(s32 cpu)
{
	return 1ull << (cpu & 63);
}

static u32 cpu_word(s32 cpu)
{
	return ((u32)cpu >> 6) & (CPU_WORDS - 1);
}

/* ---- clocks ---- */

static u64 pool_weight(const struct policy_image *img, u32 pool)
{
	u32 weight = img->pools[pool & (NR_POOLS - 1)].weight;

	return weight ? weight : 1; /* the compiler never writes 0; a division must not trust it */
}

/* CPU time of a pool in units of its clock. */
static s64 to_clock(const struct policy_image *img, u32 pool, u64 time_ns)
{
	return time_ns * CLOCK_SCALE / pool_weight(img, pool);
}

/* How far `pool` is behind the other, in units of the clocks. */
static s64 behind(u32 pool)
{
	return clocks[other_pool(pool)].vt - clocks[pool & (NR_POOLS - 1)].vt;
}

static bool is_owed(const struct policy_image *img, u32 pool)
{
	pool &= NR_POOLS - 1;
	return clocks[pool].waiting > 0 &&
	       behind(pool) > to_clock(img, pool, DEBT_BOUND_NS * nr_online);
}

static s64 debt_cap(const struct policy_image *img)
{
	bool lighter = pool_weight(img, POOL_BACKGROUND) < pool_weight(img, POOL_CRITICAL);

	return to_clock(img, lighter ? POOL_BACKGROUND : POOL_CRITICAL, DEBT_CAP_NS * nr_online);
}

static void clock_add(const struct policy_image *img, u32 pool, u64 ran_ns)
{
	struct pool_clock *mine = &clocks[pool & (NR_POOLS - 1)];
	struct pool_clock *other = &clocks[other_pool(pool)];
	u64 added = to_clock(img, pool, ran_ns);
	u64 vt = k_fetch_add(&mine->vt, added) + added;
	s64 lag = vt - other->vt;
	s64 cap = debt_cap(img);

	if (lag > 0 && other->waiting <= 0)
		other->vt = vt;
	else if (lag > cap)
		other->vt = vt - cap;
}

/* Charges what a CPU ran for a pool; in portions, unless `flush`. */
static void charge_pool(const struct policy_image *img, struct cpu_state *cs, u32 pool, u64 ran_ns,
			bool flush)
{
	u64 pending;

	pool &= NR_POOLS - 1;
	pending = cs->pending_ns[pool] + ran_ns;
	if (!flush && pending < CHARGE_PORTION_NS) {
		cs->pending_ns[pool] = pending;
		return;
	}
	cs->pending_ns[pool] = 0;
	clock_add(img, pool, pending);
}

/* ---- grants ---- */

/* Claims a turn for the background pool. Charged now, so that the next CPU to look sees it. */
static void grant_claim(const struct policy_image *img, struct cpu_state *cs, u32 pool)
{
	s64 vt = to_clock(img, pool, GRANT_SLICE_NS);

	cs->grant = GRANT_DUE;
	cs->grant_vt = vt;
	k_fetch_add(&clocks[pool & (NR_POOLS - 1)].vt, vt);
}

/* Takes the advance charge back: the turn is over (and was charged as it ran) or found no taker. */
static void grant_release(struct cpu_state *cs, u32 pool)
{
	k_fetch_add(&clocks[pool & (NR_POOLS - 1)].vt, -cs->grant_vt);
	cs->grant = GRANT_NONE;
	cs->grant_vt = 0;
}

/* ---- queues ---- */

/* Virtual time per nanosecond of a thread of neutral weight (nice 0, rule weight 100). */
#define NEUTRAL_WEIGHT (100 * 100)

/* CPU time of a thread in virtual time. */
static u64 to_vtime(struct task_struct *p, const struct task_ctx *t, u64 time_ns)
{
	u64 weight = (u64)p->scx.weight * t->class.weight;

	return time_ns * NEUTRAL_WEIGHT / (weight ? weight : 1);
}

static u32 shared_queue(u32 pool, u32 llc)
{
	return (pool & (NR_POOLS - 1)) * MAX_LLCS + (llc & (MAX_LLCS - 1));
}

static u32 own_queue(u32 pool, s32 cpu)
{
	return NR_SHARED_QUEUES + (pool & (NR_POOLS - 1)) * MAX_CPUS + (cpu & (MAX_CPUS - 1));
}

static bool is_own_queue(u32 index)
{
	return index >= NR_SHARED_QUEUES;
}

static u32 queue_pool(u32 index)
{
	return is_own_queue(index) ? (index - NR_SHARED_QUEUES) / MAX_CPUS : index / MAX_LLCS;
}

static u32 own_queue_llc(u32 index)
{
	return llc_of((index - NR_SHARED_QUEUES) & (MAX_CPUS - 1));
}

static struct queue *queue_at(u32 index)
{
	return &queues[index & (NR_QUEUES - 1)];
}

static bool has_work(u32 index)
{
	return queue_at(index)->queued > 0;
}

/* The thread's place in a queue. A thread that comes from another queue keeps the distance that it
 * had there. A sleeper runs soon, but is not paid for all the time that it slept; and who was alone
 * on a CPU for a minute does not wait a minute: nobody is further ahead than two slices of its own
 * put it. */
static u64 queue_vtime(struct task_struct *p, struct task_ctx *t, u32 index)
{
	u64 now = queue_at(index)->vtime_now;
	s64 slice = t->class.slice_ns;
	s64 ahead;

	if (t->home_mark && t->home_mark != index + 1)
		t->vtime += now - queue_at(t->home_mark - 1)->vtime_now;
	else if (!t->home_mark)
		t->vtime = now;
	t->home_mark = index + 1;
	ahead = t->vtime - now;
	if (ahead < -slice) {
		t->vtime = now - slice;
	} else if (ahead > 2 * slice) {
		s64 most = to_vtime(p, t, 2 * slice);

		if (ahead > most)
			t->vtime = now + (most > 2 * slice ? most : 2 * slice);
	}
	return t->vtime;
}

/* Counts a thread in, before it is inserted. Its wait has begun. */
static void queue_enter(struct task_ctx *t, u32 index)
{
	struct queue *q = queue_at(index);

	if (k_fetch_add(&q->queued, 1) <= 0)
		q->served_ns = t->wait_start_ns;
	k_fetch_add(&clocks[queue_pool(index) & (NR_POOLS - 1)].waiting, 1);
	if (is_own_queue(index))
		k_fetch_add(&llcs[own_queue_llc(index)].own_queued, 1);
	t->queue_mark = index + 1;
}

/* The queue's virtual time follows what is taken from it. */
static void queue_follow(struct task_struct *p, const struct task_ctx *t)
{
	struct queue *q = queue_at(t->queue_mark - 1);

	if (t->queue_mark && (s64)(p->scx.dsq_vtime - q->vtime_now) > 0)
		q->vtime_now = p->scx.dsq_vtime;
}

/* Counts a thread out: it runs, is queued anew, or leaves the class. */
static void queue_leave(struct task_ctx *t)
{
	u32 index = t->queue_mark - 1;

	if (!t->queue_mark)
		return;
	t->queue_mark = 0;
	k_fetch_add(&queue_at(index)->queued, -1);
	k_fetch_add(&clocks[queue_pool(index) & (NR_POOLS - 1)].waiting, -1);
	if (is_own_queue(index))
		k_fetch_add(&llcs[own_queue_llc(index)].own_queued, -1);
}

/* A thread of the queue runs. If it waited far too long, then who is behind it did so too, and the
 * next turn is overdue as this one was: were the time counted anew from each turn, a queue that lives
 * on such turns would let its tenth thread wait ten times as long. Only then: a queue of many threads
 * that never sleep would otherwise take more than its pool's share for good. */
static void queue_served(const struct task_ctx *t, u64 now)
{
	if (t->queue_mark && t->wait_start_ns && (s64)(now - t->wait_start_ns) > (s64)LONGEST_WAIT_NS)
		queue_at(t->queue_mark - 1)->served_ns = t->wait_start_ns;
}

/* Does `pool` have work that this CPU could take without searching? */
static bool has_work_near(u32 pool, s32 cpu)
{
	return has_work(own_queue(pool, cpu)) || has_work(shared_queue(pool, llc_of(cpu)));
}

static bool is_overdue(const struct policy_image *img, u32 index, u64 now)
{
	u64 most_ns = img->background_wait_ns;

	if (most_ns > LONGEST_WAIT_NS)
		most_ns = LONGEST_WAIT_NS;
	return has_work(index) && (s64)(now - queue_at(index)->served_ns) > (s64)most_ns;
}

static s32 longer_overdue(const struct policy_image *img, s32 best, u32 index, u64 now)
{
	if (!is_overdue(img, index, now))
		return best;
	if (best >= 0 && (s64)(queue_at(best)->served_ns - queue_at(index)->served_ns) <= 0)
		return best;
	return index;
}

/* Of the queues of this CPU and its cache that waited longer than the policy allows the one that
 * waited longest, or -1. */
static s32 overdue_queue(const struct policy_image *img, s32 cpu, u64 now)
{
	u32 llc = llc_of(cpu);
	s32 best = -1;

	best = longer_overdue(img, best, own_queue(POOL_BACKGROUND, cpu), now);
	best = longer_overdue(img, best, own_queue(POOL_CRITICAL, cpu), now);
	best = longer_overdue(img, best, shared_queue(POOL_BACKGROUND, llc), now);
	return longer_overdue(img, best, shared_queue(POOL_CRITICAL, llc), now);
}

/* ---- which CPUs may be preempted ---- */

static void set_preemptible(u32 pool, s32 cpu)
{
	u64 *word = &preemptible[pool & (NR_POOLS - 1)][cpu_word(cpu)];

	if (!(*(volatile u64 *)word & cpu_bit(cpu)))
		k_fetch_or(word, cpu_bit(cpu));
}

/* True if the bit was set: the caller alone has claimed the CPU. */
static bool clear_preemptible(u32 pool, s32 cpu)
{
	u64 *word = &preemptible[pool & (NR_POOLS - 1)][cpu_word(cpu)];

	if (!(*(volatile u64 *)word & cpu_bit(cpu)))
		return false;
	return k_fetch_and(word, ~cpu_bit(cpu)) & cpu_bit(cpu);
}

#endif /* TWOPOOL_POOLS_H */
