/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dispatch.h - whose turn it is on a CPU whose current thread is at its end.
 *
 * In this order: a queue that waited longer than anybody should, the background pool if it is owed a
 * turn, the critical pool, the background pool. Inside a pool the current thread goes on where it is
 * still due; otherwise it makes room for whoever steal.h finds, and goes on if there is nobody.
 */
#ifndef TWOPOOL_DISPATCH_H
#define TWOPOOL_DISPATCH_H

#include "steal.h"

/* Has the current thread used up its slice without getting what it is due? Then it goes on, as it would
 * from the head of its queue; did it queue, it would get every other slice of this CPU at most, whatever
 * its weight. Not if it yields (a slice is left), nor at the end of a turn that only a long wait gave
 * it, nor if its CPU's other queue of the pool has somebody too: those two take turns. */
static bool is_behind(struct task_struct *prev, const struct policy_image *img, struct cpu_state *cs,
		      u32 pool, s32 cpu, u64 now)
{
	u32 own = own_queue(pool, cpu), shared = shared_queue(pool, llc_of(cpu));
	bool is_own = has_work(own);
	u32 home = is_own ? own : shared;
	struct task_ctx *t;

	if (cs->brief || is_own == has_work(shared))
		return false;
	t = k_task_storage(task_ctxs, prev, false);
	if (!t || t->home_mark != home + 1 || t->turn_ns + now - cs->run_start_ns < cs->slice_ns)
		return false;
	charge(prev, t, img, cs, false);
	/* Not by queue_vtime(): the bound of what a sleeper may be behind is not for who waited its turn.
	 * A light thread's slice puts the queue's time far ahead of a heavy one. */
	if ((s64)(t->vtime - queue_at(home)->vtime_now) > 0)
		return false;
	t->turn_ns = 0;
	return true;
}

/* The current thread goes on: a new slice, and its CPU may be preempted again. */
static void stay(struct cpu_state *cs, struct task_struct *prev, s32 cpu, u64 now)
{
	cs->run_start_ns = now;
	if (cs->grant == GRANT_RUNNING) {
		k_set_slice(prev, GRANT_SLICE_NS);
		clear_preemptible(cs->pool, cpu);
		return;
	}
	k_set_slice(prev, cs->slice_ns);
	set_preemptible(cs->pool, cpu);
}

/* Serves the background pool first, if it is owed. `keep`: pool of a current thread that could go
 * on, or NR_POOLS; `due`: the same pool if it should, before others of its pool. */
static bool dispatch_owed(const struct policy_image *img, struct cpu_state *cs,
			  struct task_struct *prev, u32 keep, u32 due, s32 cpu, u64 now)
{
	if (cs->grant != GRANT_DUE) {
		if (!is_owed(img, POOL_BACKGROUND))
			return false;
		if (!has_work_near(POOL_BACKGROUND, cpu) && keep != POOL_BACKGROUND)
			return false;
		grant_claim(img, cs, POOL_BACKGROUND);
	}
	if (due != POOL_BACKGROUND && take_from_pool(cs, POOL_BACKGROUND, cpu, now)) {
		cs->grant = GRANT_TAKEN;
		count_event(grants);
		return true;
	}
	if (keep == POOL_BACKGROUND) {
		cs->grant = GRANT_RUNNING;
		count_event(grants);
		stay(cs, prev, cpu, now);
		return true;
	}
	grant_release(cs, POOL_BACKGROUND);
	return false;
}

/* The turn is the queue's rather than a thread's: those that wake for an instant come before those that
 * never sleep, and were each a turn, a queue that lives on such turns would serve only them. */
static bool dispatch_overdue(const struct policy_image *img, struct cpu_state *cs, s32 cpu, u64 now)
{
	bool goes_on = (s64)(cs->overdue_until_ns - now) > 0;
	s32 index = goes_on ? (s32)cs->overdue_index : overdue_queue(img, cpu, now);

	if (index < 0 || !take(index, now))
		return false;
	if (!goes_on) {
		cs->overdue_index = index;
		cs->overdue_until_ns = now + GRANT_SLICE_NS;
	}
	if (queue_pool(index) == POOL_BACKGROUND && cs->grant == GRANT_NONE)
		cs->grant = GRANT_TAKEN; /* a turn that nobody preempts, charged as it runs */
	count_event(overdue);
	return true;
}

#endif /* TWOPOOL_DISPATCH_H */
