/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * steal.h - finding work for a CPU that has none of its own.
 *
 * Taken in this order, each only if its count says that something waits: the CPU's own queue and
 * its cache's shared queue (in turns, so that neither shuts the other out), own queues of other
 * CPUs in the cache (threads there may be allowed here too), then the shared queues of other
 * caches outward.
 */
#ifndef TWOPOOL_STEAL_H
#define TWOPOOL_STEAL_H

#include "queues.h"

/* Moves the head that this CPU may run from a queue to its local queue. */
static bool take(u32 index, u64 now)
{
	if (!has_work(index) || !k_move_to_local(DSQ_BASE + (u64)index))
		return false;
	queue_at(index)->served_ns = now;
	queue_lap(queue_at(index), now);
	return true;
}

/* For so long a CPU prefers its own queue; then the shared one gets a turn. A default background
 * slice: a thread that is preempted in the middle of its slice is resumed before others start. */
#define OWN_TURN_NS (20 * NSEC_PER_MSEC)

/* The queues that this CPU serves in the first place. */
static bool take_near(struct cpu_state *cs, u32 pool, s32 cpu, u64 now)
{
	u32 own = own_queue(pool, cpu);
	u64 since = cs->own_since_ns[pool & (NR_POOLS - 1)];

	if ((!since || now - since < OWN_TURN_NS) && take(own, now)) {
		if (!since)
			cs->own_since_ns[pool & (NR_POOLS - 1)] = now;
		return true;
	}
	if (take(shared_queue(pool, llc_of(cpu)), now)) {
		cs->own_since_ns[pool & (NR_POOLS - 1)] = 0;
		return true;
	}
	return take(own, now);
}

/* Own queues of the cache's other CPUs. Rare: only threads with a mask land there. */
static bool take_from_siblings(u32 pool, s32 cpu, u64 now)
{
	u32 llc = llc_of(cpu);
	bool taken = false;
	u32 other;

	if (llcs[llc].own_queued <= 0)
		return false;
	k_for(other, 0, nr_cpus) {
		if (llc_of(other) != llc || other == (u32)cpu)
			continue;
		if (take(own_queue(pool, other), now)) {
			taken = true;
			break;
		}
	}
	return taken;
}

static bool take_from_llcs(u32 pool, s32 cpu, u64 now)
{
	u32 home = llc_of(cpu);
	bool taken = false;
	u32 i;

	k_for(i, 1, nr_llcs) {
		if (take(shared_queue(pool, llc_order[home][i & (MAX_LLCS - 1)]), now)) {
			taken = true;
			break;
		}
	}
	if (taken)
		count_event(steals);
	return taken;
}

/* Work of one pool from anywhere this CPU may look. */
static bool take_from_pool(struct cpu_state *cs, u32 pool, s32 cpu, u64 now)
{
	if (clocks[pool & (NR_POOLS - 1)].waiting <= 0)
		return false;
	return take_near(cs, pool, cpu, now) || take_from_siblings(pool, cpu, now) ||
	       take_from_llcs(pool, cpu, now);
}

#endif /* TWOPOOL_STEAL_H */
