/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * enqueue.h - where a thread that is runnable waits, and who is told of it.
 *
 * A thread goes straight to a CPU's local queue only if that CPU runs it next: it is idle, or it
 * gives way. Everything else waits in a queue of its pool: its cache's shared one if all CPUs
 * there may take it, else the own one of a CPU that may. A thread that was preempted visits the
 * own queue of the CPU that it was on, to go on where its caches are warm.
 */
#ifndef TWOPOOL_ENQUEUE_H
#define TWOPOOL_ENQUEUE_H

#include "select.h"

static bool is_bound_kthread(struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1;
}

static void insert_into(struct task_struct *p, struct task_ctx *t, u32 queue, u64 enq_flags)
{
	u64 key = queue_vtime(p, t, queue);

	queue_enter(t, queue);
	queue_reach(queue_at(queue), key, t->class.slice_ns);
	k_insert_vtime(p, DSQ_BASE + (u64)queue, t->class.slice_ns, key, enq_flags);
}

/* One that was preempted for the other pool comes before all others in its CPU's own queue, for the
 * rest of its slice. Not for a new one: a CPU that is preempted all the time would go round among
 * the threads that it ever had, whatever their weights. */
static bool enqueue_preempted(struct task_struct *p, struct task_ctx *t, s32 cpu, u64 now,
			      u64 enq_flags)
{
	u32 queue = own_queue(t->class.pool, cpu);
	u64 slice = t->class.slice_ns;
	u64 used = t->turn_ns + now - cpu_state(cpu)->run_start_ns;

	if (!cpu_state(cpu)->preempted || (enq_flags & K_ENQ_WAKEUP) || used >= slice)
		return false;
	t->turn_ns = used;
	queue_enter(t, queue);
	k_insert_vtime(p, DSQ_BASE + (u64)queue, slice - used, queue_at(queue)->vtime_now - slice,
		       enq_flags);
	return true;
}

/* `pool` takes a CPU that it claimed from the other one. */
static void mark_preempted(s32 cpu, u32 pool)
{
	struct pool_counters *c = k_map_value(pool_stats, pool);

	if (c)
		c->preemptions++;
	cpu_state(cpu)->preempted = true;
}

static void take_over(s32 cpu, u32 pool)
{
	mark_preempted(cpu, pool);
	k_kick(cpu, K_KICK_PREEMPT);
}

/* Takes the CPU on whose runqueue the thread is, if it runs the other pool's work. Straight into
 * the local queue: the kernel then reschedules at once, where a kick would travel as an interrupt
 * first, even to itself. */
static bool preempt_here(struct task_struct *p, struct task_ctx *t, const struct policy_image *img,
			 s32 cpu, u64 enq_flags)
{
	u32 pool = t->class.pool;

	if (!may_preempt(img, pool) || !clear_preemptible(other_pool(pool), cpu))
		return false;
	mark_preempted(cpu, pool);
	k_insert(p, K_DSQ_LOCAL, t->class.slice_ns, enq_flags | K_ENQ_PREEMPT);
	return true;
}

/* The thread may run on this CPU alone. */
static void enqueue_bound(struct task_struct *p, struct task_ctx *t, const struct policy_image *img,
			  s32 cpu, u64 enq_flags)
{
	u32 pool = t->class.pool;

	if (k_test_and_clear_idle(cpu)) {
		k_insert(p, K_DSQ_LOCAL, t->class.slice_ns, enq_flags);
		k_kick(cpu, K_KICK_IDLE);
		return;
	}
	if (preempt_here(p, t, img, cpu, enq_flags))
		return;
	count_event(own_queue);
	insert_into(p, t, own_queue(pool, cpu), enq_flags);
}

/* The thread's mask cuts through its cache: it waits in the own queue of the CPU that is to run
 * it, so choose that one first. */
static void enqueue_masked(struct task_struct *p, struct task_ctx *t, const struct policy_image *img,
			   s32 cpu, u64 enq_flags)
{
	u32 pool = t->class.pool;
	s32 idle = pick_idle(p, pool, cpu);
	s32 victim = idle < 0 && may_preempt(img, pool) ? pick_victim(p, pool, cpu) : -1;
	s32 target = idle >= 0 ? idle : victim >= 0 ? victim : cpu;

	count_event(own_queue);
	insert_into(p, t, own_queue(pool, target), enq_flags);
	if (idle >= 0)
		k_kick(idle, K_KICK_IDLE);
	else if (victim >= 0)
		take_over(victim, pool);
}

/* Insert first, then look for a CPU: one that goes idle in between has either seen the count or
 * is found by this look. */
static void enqueue_shared(struct task_struct *p, struct task_ctx *t, const struct policy_image *img,
			   s32 cpu, u64 enq_flags)
{
	u32 pool = t->class.pool;
	s32 target;

	insert_into(p, t, shared_queue(pool, llc_of(cpu)), enq_flags);
	target = pick_idle(p, pool, cpu);
	if (target >= 0) {
		k_kick(target, K_KICK_IDLE);
		return;
	}
	if (!may_preempt(img, pool))
		return;
	target = pick_victim(p, pool, cpu);
	if (target >= 0)
		take_over(target, pool);
}

/* Its CPU depends on it. One that woke runs at once; one that another of its kind cut short is next;
 * one that used up its slice queues like others. */
static bool enqueue_bound_kthread(struct task_struct *p, struct task_ctx *t, s32 cpu, u64 now,
				  u64 enq_flags)
{
	struct cpu_state *cs = cpu_state(cpu);
	bool cut_short = cs->bound_kthread && (s64)(now - cs->run_start_ns) < (s64)t->class.slice_ns;

	if (enq_flags & K_ENQ_WAKEUP)
		enq_flags |= K_ENQ_PREEMPT;
	else if (!cut_short)
		return false;
	count_event(kthread_local);
	k_insert(p, K_DSQ_LOCAL, t->class.slice_ns, enq_flags);
	return true;
}

#endif /* TWOPOOL_ENQUEUE_H */
