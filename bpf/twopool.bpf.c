/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twopool.bpf.c - a two-pool scheduler whose policy is data.
 *
 * Every thread belongs to the critical or to the background pool. Which one is a pure function of
 * the policy image and of the thread (classify.h); it is looked up again whenever something that
 * it depends on changed, at the thread's next wake, enqueue or tick. There is no event to miss.
 *
 * The life of a thread here:
 *
 *	select_cpu	it wakes: an idle CPU is claimed and the thread goes there straight away
 *	enqueue		no idle CPU, or it may not move: into a queue, and somebody is told
 *	dispatch	a CPU wants work: own pool order by what is owed, then outward
 *	running		it starts: out of the count of its queue, its wait is recorded
 *	tick		it is charged; it yields to who is owed, overdue, or more important
 *	stopping	it is charged; its wait starts again if it is still runnable
 *
 * Files: pools.h says which pool is due, queues.h which of its threads, select.h where a thread may
 * run, enqueue.h where it waits, steal.h where a CPU finds work, dispatch.h whose turn it is there,
 * sizing.h which CPUs belong to whom, classify.h which pool a thread is in, hotplug.h what becomes of
 * a CPU that goes.
 *
 * Known weaknesses. A thread that may run on one CPU only waits for a real-time thread there. In a shared
 * queue a thread may be passed over by CPUs outside its mask, but only if it may run on all of the
 * queue's own cache. Inside one CPU, own and shared queue of a pool take turns, which is fair to
 * the queues and not exactly to the threads in them.
 */
#include "kernel.h"
#include "maps.h"
#include "stats.h"
#include "classify.h"
#include "pools.h"
#include "queues.h"
#include "select.h"
#include "enqueue.h"
#include "steal.h"
#include "dispatch.h"
#include "sizing.h"
#include "hotplug.h"
#include "probe.h"
#include "report.h"

LICENSE("GPL");

static struct task_ctx *task_ctx_of(struct task_struct *p)
{
	struct task_ctx *t = k_task_storage(task_ctxs, p, false);

	/* init_task makes it; where memory was short then, try again now */
	return t ?: k_task_storage(task_ctxs, p, true);
}

/* Brings the class up to date. True if the thread changed pool. */
static bool refresh_class(struct task_struct *p, struct task_ctx *t, const struct policy_image *img,
			  u64 now)
{
	u8 before = t->class.pool;
	bool first = !t->key.epoch;

	if (!classify_refresh(p, t, img))
		return false;
	if (!t->key.epoch)
		count_event(fallback_no_image);
	count_match(t, now);
	if (!first && before == t->class.pool)
		return false;
	t->home_mark = 0; /* it starts level with whatever queue it comes to */
	return true;
}

s32 OPS(on_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	const struct policy_image *img = k_image();
	struct task_ctx *t = task_ctx_of(p);
	u64 now = k_now();
	s32 cpu;

	if (!img || !t)
		return prev_cpu;
	refresh_class(p, t, img, now);
	cpu = pick_idle(p, t->class.pool, prev_cpu);
	if (cpu < 0)
		return prev_cpu;
	if (owns(t->class.pool, cpu))
		count_event(idle_hits);
	else
		count_event(borrows);
	t->wait_start_ns = now;
	k_insert(p, K_DSQ_LOCAL, t->class.slice_ns, 0);
	return cpu;
}

/* ---- enqueue ---- */

void OPS(on_enqueue, struct task_struct *p, u64 enq_flags)
{
	const struct policy_image *img = k_image();
	struct task_ctx *t = task_ctx_of(p);
	s32 cpu = k_task_cpu(p);
	u64 now = k_now();

	if (!img || !t) {
		/* without memory for it, the thread cannot be counted: let the kernel queue it */
		if (img)
			count_event(fallback_no_context);
		else
			count_event(fallback_no_image);
		k_insert(p, K_DSQ_GLOBAL, K_SLICE_DFL, enq_flags);
		return;
	}
	queue_leave(t);
	t->enqueued_cpu = cpu;
	refresh_class(p, t, img, now);
	if (!t->wait_start_ns)
		t->wait_start_ns = now;
	if (is_bound_kthread(p) && enqueue_bound_kthread(p, t, cpu, now, enq_flags))
		return;
	if (enqueue_preempted(p, t, cpu, now, enq_flags))
		return;
	t->turn_ns = 0;
	if (p->nr_cpus_allowed == 1 || k_migration_disabled(p))
		enqueue_bound(p, t, img, cpu, enq_flags);
	else if ((enq_flags & K_ENQ_WAKEUP) && preempt_here(p, t, img, cpu, enq_flags))
		return; /* select_cpu has just found no idle CPU */
	else if (is_restricted(p) && !covers_llc(p, llc_of(cpu)))
		enqueue_masked(p, t, img, cpu, enq_flags);
	else
		enqueue_shared(p, t, img, cpu, enq_flags);
}

/* ---- dispatch ---- */

void OPS(on_dispatch, s32 cpu, struct task_struct *prev)
{
	const struct policy_image *img = k_image();
	struct cpu_state *cs = cpu_state(cpu);
	u64 now = k_now();
	u32 keep = NR_POOLS, due = NR_POOLS;

	if (!img)
		return;
	if (prev && (prev->scx.flags & K_TASK_QUEUED))
		keep = cs->pool;
	/* a grant whose thread never started, or is at the end of its slice, is over */
	if (cs->grant > GRANT_DUE)
		grant_release(cs, POOL_BACKGROUND);
	if (dispatch_overdue(img, cs, cpu, now))
		return;
	if (keep != NR_POOLS && is_behind(prev, img, cs, keep, cpu, now))
		due = keep;
	if (dispatch_owed(img, cs, prev, keep, due, cpu, now))
		return;
	if (due != POOL_CRITICAL && take_from_pool(cs, POOL_CRITICAL, cpu, now))
		return;
	if (keep != POOL_CRITICAL && due != POOL_BACKGROUND &&
	    take_from_pool(cs, POOL_BACKGROUND, cpu, now))
		return;
	if (keep != NR_POOLS) {
		stay(cs, prev, cpu, now);
		return;
	}
	/* idle: no longer a CPU to be preempted */
	clear_preemptible(POOL_CRITICAL, cpu);
	clear_preemptible(POOL_BACKGROUND, cpu);
}

/* ---- on the CPU ---- */

void OPS(on_running, struct task_struct *p)
{
	struct task_ctx *t = k_task_storage(task_ctxs, p, false);
	s32 cpu = k_task_cpu(p);
	struct cpu_state *cs = cpu_state(cpu);
	u64 now = k_now();
	s64 waited_ns = 0;
	u32 pool;

	if (!t) {
		cs->pool = NR_POOLS;
		cs->bound_kthread = false;
		return;
	}
	pool = t->class.pool & (NR_POOLS - 1);
	if (t->wait_start_ns) {
		waited_ns = now - t->wait_start_ns; /* another CPU's clock may be ahead */
		count_wait(pool, waited_ns > 0 ? waited_ns : 0);
	}
	queue_serve(p, t, waited_ns);
	tell_cpu_that_goes(t->enqueued_cpu, cpu);
	t->wait_start_ns = 0;
	t->exec_start_ns = p->se.sum_exec_runtime;
	cs->run_start_ns = now;
	cs->slice_ns = t->class.slice_ns;
	cs->pool = pool;
	cs->preempted = false;
	cs->brief = waited_ns > (s64)LONGEST_WAIT_NS;
	cs->bound_kthread = is_bound_kthread(p);
	if (cs->grant == GRANT_TAKEN && pool == POOL_BACKGROUND) {
		cs->grant = GRANT_RUNNING;
		k_set_slice(p, GRANT_SLICE_NS);
		clear_preemptible(pool, cpu);
	} else if (cs->bound_kthread) {
		clear_preemptible(pool, cpu);
	} else {
		set_preemptible(pool, cpu);
	}
	clear_preemptible(other_pool(pool), cpu);
	if (cs->brief && p->scx.slice > GRANT_SLICE_NS)
		k_set_slice(p, GRANT_SLICE_NS); /* there are many like it, or it is very light */
}

void OPS(on_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *t = k_task_storage(task_ctxs, p, false);
	s32 cpu = k_task_cpu(p);
	struct cpu_state *cs = cpu_state(cpu);

	if (!t)
		return;
	charge(p, t, k_image(), cs, false);
	if (cs->grant == GRANT_RUNNING)
		grant_release(cs, POOL_BACKGROUND);
	if (!runnable)
		return;
	t->wait_start_ns = k_now();
	if (!p->scx.slice)
		return;
	/* slice left: a higher scheduling class takes the CPU, where no kick of ours would help; for how
	 * long, nobody knows */
	clear_preemptible(t->class.pool, cpu);
	if (p->nr_cpus_allowed > 1)
		k_reenqueue_local_soon();
}

/* Must the current thread make room before its slice ends? */
static bool must_yield(const struct policy_image *img, struct cpu_state *cs, u32 pool, s32 cpu,
		       u64 now)
{
	if (cs->grant == GRANT_RUNNING || cs->bound_kthread)
		return false;
	if (overdue_queue(img, cpu, now) >= 0)
		return true;
	if (pool == POOL_BACKGROUND) /* a kick may have been lost, or its CPU taken meanwhile */
		return has_work_near(POOL_CRITICAL, cpu) && !is_owed(img, POOL_BACKGROUND);
	if (!has_work_near(POOL_BACKGROUND, cpu) || !is_owed(img, POOL_BACKGROUND))
		return false;
	grant_claim(img, cs, POOL_BACKGROUND);
	return true;
}

void OPS(on_tick, struct task_struct *p)
{
	const struct policy_image *img = k_image();
	struct task_ctx *t = task_ctx_of(p);
	s32 cpu = k_task_cpu(p);
	struct cpu_state *cs = cpu_state(cpu);
	u64 now = k_now();

	if (!img || !t)
		return;
	sizing_follow(img);
	charge(p, t, img, cs, true);
	if (refresh_class(p, t, img, now)) {
		clear_preemptible(cs->pool, cpu);
		if (cs->grant == GRANT_RUNNING)
			grant_release(cs, POOL_BACKGROUND);
		cs->pool = t->class.pool;
		k_set_slice(p, 0);
	}
	cs->slice_ns = t->class.slice_ns;
	if (must_yield(img, cs, t->class.pool, cpu, now))
		k_set_slice(p, 0);
}

/* ---- threads and CPUs come and go ---- */

/* May sleep, so storage is allocated here rather than in a hot path. Failure is no reason to
 * refuse a fork: enqueue tries again. */
s32 OPS_SLEEPABLE(on_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	if (!k_task_storage(task_ctxs, p, true))
		count_event(fallback_no_context);
	return 0;
}

static void forget(struct task_struct *p)
{
	struct task_ctx *t = k_task_storage(task_ctxs, p, false);

	if (t)
		queue_leave(t);
}

void OPS(on_disable, struct task_struct *p)
{
	forget(p);
}

void OPS(on_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	forget(p);
}

/* A real-time thread takes the CPU. Whoever was to run next there looks for another one. Where
 * on_stopping cannot ask for that; the loader sees to it. */
void OPS(on_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	k_reenqueue_local();
}

static s32 create_queues(u32 first, u32 count)
{
	s32 err = 0;
	u32 i;

	k_for(i, first, first + count) {
		err = k_create_dsq(DSQ_BASE + (u64)i, -1);
		if (err)
			break;
	}
	return err;
}

s32 OPS_SLEEPABLE(on_init)
{
	s32 err;

	err = create_queues(shared_queue(POOL_CRITICAL, 0), nr_llcs);
	err = err ?: create_queues(shared_queue(POOL_BACKGROUND, 0), nr_llcs);
	err = err ?: create_queues(own_queue(POOL_CRITICAL, 0), nr_cpus);
	err = err ?: create_queues(own_queue(POOL_BACKGROUND, 0), nr_cpus);
	return err;
}

void OPS(on_exit, struct scx_exit_info *info)
{
	k_record_exit(&exit_report, info);
}

OPS_TABLE struct sched_ext_ops twopool = {
	.select_cpu = (void *)on_select_cpu,
	.enqueue = (void *)on_enqueue,
	.dispatch = (void *)on_dispatch,
	.tick = (void *)on_tick,
	.running = (void *)on_running,
	.stopping = (void *)on_stopping,
	.init_task = (void *)on_init_task,
	.exit_task = (void *)on_exit_task,
	.disable = (void *)on_disable,
	.cpu_release = (void *)on_cpu_release,
	.cpu_online = (void *)on_cpu_online,
	.cpu_offline = (void *)on_cpu_offline,
	.init = (void *)on_init,
	.exit = (void *)on_exit,
	.name = "twopool",
};
