/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sizing.h - which CPUs belong to which pool.
 *
 * Ownership is soft: it says where a pool's threads look first, so that work which belongs
 * together stays in the same caches. Either pool borrows the other's idle CPUs, and the critical
 * pool may preempt on any.
 *
 * The split follows the weights, within the policy's `cpus` bounds (minima win over maxima, and
 * with two CPUs each pool owns one). The critical pool takes whole cores in cpu_order, which fills
 * one cache after the other. Recomputed when a new image is first seen and when a CPU comes or
 * goes; demand plays no part yet.
 */
#ifndef TWOPOOL_SIZING_H
#define TWOPOOL_SIZING_H

#include "pools.h"

static u32 cpus_bound(u32 bound, u32 total)
{
	u32 count = bound;

	if (bound & CPUS_PERCENT)
		count = ((bound & ~CPUS_PERCENT) * total + 99) / 100;
	return count < total ? count : total;
}

/* How many CPUs the critical pool is to own, 0..=total. */
static u32 critical_target(const struct policy_image *img, u32 total)
{
	const struct pool_settings *crit = &img->pools[POOL_CRITICAL];
	const struct pool_settings *back = &img->pools[POOL_BACKGROUND];
	u64 weights = pool_weight(img, POOL_CRITICAL) + pool_weight(img, POOL_BACKGROUND);
	u32 target = (total * pool_weight(img, POOL_CRITICAL) + weights / 2) / weights;
	u32 least = cpus_bound(crit->cpus_min, total);
	u32 most = cpus_bound(crit->cpus_max, total);
	u32 leave_least = cpus_bound(back->cpus_min, total);
	u32 leave_most = cpus_bound(back->cpus_max, total);

	if (target > most)
		target = most;
	if (total - target > leave_most)
		target = total - leave_most;
	if (total - target < leave_least)
		target = total - leave_least;
	if (target < least)
		target = least;
	if (total >= 2 && target == 0)
		target = 1;
	if (total >= 2 && target == total)
		target = total - 1;
	return target;
}

/* In memory rather than in registers: the verifier follows a register's value from one turn of a
 * loop to the next ("The sequence of 8193 jumps is too complex"), and takes memory for unknown. */
struct sizing_walk {
	u32 taken;		/* CPUs given to the critical pool so far */
	u32 last_core;		/* of the last one */
};
struct sizing_walk sizing_walk;

/* A started core is finished, unless that would take the last CPU. */
static bool goes_to_critical(u32 cpu, u32 target)
{
	struct sizing_walk *walk = &sizing_walk;
	bool same_core = cpu_core[cpu] == walk->last_core;

	if (walk->taken >= target && !(same_core && walk->taken + 1 < nr_online))
		return false;
	walk->taken++;
	walk->last_core = cpu_core[cpu];
	return true;
}

static void sizing_apply(const struct policy_image *img)
{
	u32 target = critical_target(img, nr_online);
	u32 i;

	sizing_walk.taken = 0;
	sizing_walk.last_core = ~0u;
	k_for(i, 0, nr_ordered) {
		u32 cpu = cpu_order[i & (MAX_CPUS - 1)] & (MAX_CPUS - 1);
		u64 bit = cpu_bit(cpu);
		u32 w = cpu_word(cpu);
		u32 pool = POOL_BACKGROUND;

		if ((online[w] & bit) && goes_to_critical(cpu, target))
			pool = POOL_CRITICAL;
		k_fetch_or(&owned[pool][w], bit);
		k_fetch_and(&owned[other_pool(pool)][w], ~bit);
	}
}

/* Called from ticks: the first CPU to see a new image applies its sizes. */
static void sizing_follow(const struct policy_image *img)
{
	u32 seen = sized_epoch;

	if (seen == img->epoch || k_cmpxchg(&sized_epoch, seen, img->epoch) != seen)
		return;
	sizing_apply(img);
}

#endif /* TWOPOOL_SIZING_H */
