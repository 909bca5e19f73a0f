/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * queues.h - who of a pool is next: the queues, their order, and who waited too long.
 *
 * Inside a pool threads run in the order of their virtual time: CPU time over weight. Weights say
 * how much a thread gets and could make it wait for any time: one slice of a thread of nice 19 is
 * two seconds of virtual time, which pass in 25 seconds where 50 others want four CPUs. The kernel
 * takes a scheduler off whose threads wait for 30. So two bounds stand above the order:
 *
 *  - a queue of which nothing was taken for LONGEST_WAIT_NS, or for what the policy says, is
 *    overdue: its next turn comes before all else;
 *  - of those who stand in a queue nobody is passed by others for more than two laps of LAP_NS.
 *
 * Who waited that long runs briefly, so that a bound on waiting is no gift of CPU time.
 */
#ifndef TWOPOOL_QUEUES_H
#define TWOPOOL_QUEUES_H

#include "pools.h"

/* Nobody waits much longer than this, whatever the policy says. The kernel's own threads wait in these
 * queues too: RCU calls a grace period that took 21 s a stall, and it needs several turns; the worker
 * that tells sched_ext's watchdog that all is well has no longer. Either would end the scheduler. */
#define LONGEST_WAIT_NS (1000 * NSEC_PER_MSEC)

/* After two laps whoever still stands in a queue is next. More than LONGEST_WAIT_NS, since a lap costs
 * the order in which weights put threads: where a round of all of them takes a lap, weights are lost. */
#define LAP_NS (2000 * NSEC_PER_MSEC)

/* Virtual time per nanosecond of a thread of neutral weight (nice 0, rule weight 100). */
#define NEUTRAL_WEIGHT (100 * 100)

/* CPU time of a thread in virtual time. */
static u64 to_vtime(struct task_struct *p, const struct task_ctx *t, u64 time_ns)
{
	u64 weight = (u64)p->scx.weight * t->class.weight;

	return time_ns * NEUTRAL_WEIGHT / (weight ? weight : 1);
}

/* Adds what the thread ran since the last look to every account. */
static void charge(struct task_struct *p, struct task_ctx *t, const struct policy_image *img,
		   struct cpu_state *cs, bool flush)
{
	u64 total_ns = p->se.sum_exec_runtime;
	u64 ran_ns = total_ns - t->exec_start_ns;

	if (!t->exec_start_ns)
		ran_ns = 0; /* its context was made after it started: nothing is known */
	t->exec_start_ns = total_ns;
	t->vtime += to_vtime(p, t, ran_ns);
	count_cpu_time(t, ran_ns);
	if (img)
		charge_pool(img, cs, t->class.pool, ran_ns, flush);
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
 * on a CPU for a minute does not wait a minute: nobody is further ahead than two turns of its own
 * put it. A turn is a slice, or a tick where that is longer: what it really ran must count. */
static u64 queue_vtime(struct task_struct *p, struct task_ctx *t, u32 index)
{
	u64 now = queue_at(index)->vtime_now;
	s64 slice = t->class.slice_ns;
	s64 turn = slice > (s64)tick_ns ? slice : tick_ns;
	s64 ahead;

	if (t->home_mark && t->home_mark != index + 1)
		t->vtime += now - queue_at(t->home_mark - 1)->vtime_now;
	else if (!t->home_mark)
		t->vtime = now;
	t->home_mark = index + 1;
	ahead = t->vtime - now;
	if (ahead < -slice) {
		t->vtime = now - slice;
	} else if (ahead > 2 * turn) {
		s64 most = to_vtime(p, t, 2 * turn);

		if (ahead > most)
			t->vtime = now + (most > 2 * turn ? most : 2 * turn);
	}
	return t->vtime;
}

/* Inserts race, and of two keys the lower one must not hide the higher: who has it would wait for
 * ever. Five threads at once on one queue are left to the next insert. */
static void queue_reach(struct queue *q, u64 key, u64 slice_ns)
{
	if (slice_ns > q->longest_ns)
		q->longest_ns = slice_ns; /* a race is mended by the thread's next insert */
	for (u32 tries = 0; tries < 4; tries++) {
		u64 seen = q->furthest;

		if ((s64)(key - seen) <= 0 || k_cmpxchg(&q->furthest, seen, key) == seen)
			return;
	}
}

/* Ends a lap that is over. Who stood in the queue when it began has run by now, or is passed: virtual
 * time goes on behind all of them. So far behind that whoever comes from now on stands behind them
 * too, though a sleeper comes up to a slice before virtual time; else a heavy thread with a long
 * slice would pass them for as long as that slice lasts in its time. That costs the others at most
 * the order of one round, since among threads that are served virtual times are a slice apart. */
static void queue_lap(struct queue *q, u64 now)
{
	u64 began = q->lap_start_ns;
	u64 behind_all;

	if ((s64)(now - began) < (s64)LAP_NS || k_cmpxchg(&q->lap_start_ns, began, now) != began)
		return;
	behind_all = q->lap_end + q->longest_ns;
	if ((s64)(behind_all - q->vtime_now) > 0)
		q->vtime_now = behind_all;
	q->lap_end = q->furthest;
	q->longest_ns = 0;
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

/* A thread of the queue runs, and the queue's virtual time follows what is taken from it. If it waited
 * far too long, then who is behind it did so too, and the next turn is overdue as this one was: were
 * the time counted anew from each turn, a queue that lives on such turns would let its tenth thread
 * wait ten times as long. Only then: a queue of many threads that never sleep would otherwise take
 * more than its pool's share for good. */
static void queue_serve(struct task_struct *p, struct task_ctx *t, s64 waited_ns)
{
	struct queue *q = queue_at(t->queue_mark - 1);

	if (!t->queue_mark)
		return;
	if (waited_ns > (s64)LONGEST_WAIT_NS)
		q->served_ns = t->wait_start_ns;
	if ((s64)(p->scx.dsq_vtime - q->vtime_now) > 0)
		q->vtime_now = p->scx.dsq_vtime;
	queue_leave(t);
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

#endif /* TWOPOOL_QUEUES_H */
