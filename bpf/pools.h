/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pools.h - what the two pools owe each other: their clocks, and the turns that pay.
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
