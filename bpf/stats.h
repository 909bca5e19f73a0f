/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stats.h - counters. Per CPU and only ever added to, so that counting costs no atomics and a
 * reader may sum at any time. How many threads a rule or a pool holds is not counted here: the
 * loader asks the task iterator (report.h) when somebody wants to know.
 */
#ifndef TWOPOOL_STATS_H
#define TWOPOOL_STATS_H

#include "maps.h"

struct pool_counters {
	u64 cpu_ns;
	u64 wait_ns;			/* sum over the histogram's samples */
	u64 preemptions;		/* CPUs taken from the other pool by a thread that woke */
	u64 wait[WAIT_BUCKETS];		/* runnable to running, by wait_bucket() */
};

/* Two banks, by the parity of the epoch: threads that still run under the previous image are
 * charged to its rules, not to whatever has their number now. The loader reads the old bank after
 * a swap and clears it before the next. */
struct rule_counters {
	u64 matches;			/* classifications that chose this rule */
	u64 cpu_ns;
	u64 last_match_ns;		/* k_now() of the last one */
};
#define RULE_BANKS 2

struct event_counters {
	u64 idle_hits;			/* wakes that found an idle CPU of their pool */
	u64 borrows;			/* ... of the other pool */
	u64 grants;			/* turns given to the pool that was owed time */
	u64 overdue;			/* turns given to a queue that had waited too long */
	u64 own_queue;			/* threads put into a CPU's own queue */
	u64 kthread_local;		/* per-CPU kernel threads run at once */
	u64 steals;			/* threads taken from another cache's queues */
	u64 fallback_no_context;	/* no task storage: the kernel's global queue */
	u64 fallback_no_image;		/* no usable image: background pool */
};

K_PERCPU_ARRAY(pool_stats, NR_POOLS, struct pool_counters);
K_PERCPU_ARRAY(rule_stats, RULE_BANKS * RULE_SLOTS, struct rule_counters);
K_PERCPU_ARRAY(event_stats, 1, struct event_counters);

#define count_event(field)							\
	do {									\
		struct event_counters *ev_ = k_map_value(event_stats, 0);	\
		if (ev_)							\
			ev_->field++;						\
	} while (0)

/* Log-linear buckets: four to each power of two of 256 ns units. Bucket i < 4 holds i units;
 * bucket 4*e + s (e >= 1) holds (4+s) << (e-1) up to the next bucket's start. The last bucket
 * holds everything beyond. */
static u32 wait_bucket(u64 wait_ns)
{
	u64 units = wait_ns >> 8;
	u32 shift = 0;

	if (units >> 33)
		return WAIT_BUCKETS - 1;
	/* halve until 4..7 remain; a binary search for the number of halvings */
	for (u32 step = 16; step; step >>= 1) {
		if (units >> (shift + step + 2))
			shift += step;
	}
	if (units >> (shift + 3))
		shift++;
	return (units < 4 ? units : 4 * (shift + 1) + ((units >> shift) & 3)) & (WAIT_BUCKETS - 1);
}

static void count_wait(u32 pool, u64 wait_ns)
{
	struct pool_counters *c = k_map_value(pool_stats, pool);

	if (!c)
		return;
	c->wait_ns += wait_ns;
	c->wait[wait_bucket(wait_ns)]++;
}

static u32 rule_slot(u32 epoch, u32 rule)
{
	return (epoch & 1) * RULE_SLOTS + (rule & (RULE_SLOTS - 1));
}

static void count_match(const struct task_ctx *t, u64 now)
{
	struct rule_counters *c = k_map_value(rule_stats, rule_slot(t->key.epoch, t->class.rule));

	if (!c)
		return;
	c->matches++;
	c->last_match_ns = now;
}

static void count_cpu_time(const struct task_ctx *t, u64 ran_ns)
{
	struct pool_counters *p = k_map_value(pool_stats, t->class.pool);
	struct rule_counters *r = k_map_value(rule_stats, rule_slot(t->key.epoch, t->class.rule));

	if (p)
		p->cpu_ns += ran_ns;
	if (r)
		r->cpu_ns += ran_ns;
}

#endif /* TWOPOOL_STATS_H */
