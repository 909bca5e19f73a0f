/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * maps.h - all state of the kernel program: what it keeps about threads, CPUs, queues and pools.
 *
 * Three kinds of state, by who writes it:
 *  - topology (.rodata): the loader writes it once before the program is loaded;
 *  - policy (the map of that name, in kernel.h): the loader swaps it, see struct policy_image;
 *  - everything else: the program alone.
 *
 * The arrays that are indexed by a CPU or a queue have power-of-two sizes, and every access masks
 * its index: the verifier then needs no proof about where an index came from.
 */
#ifndef TWOPOOL_MAPS_H
#define TWOPOOL_MAPS_H

#include "kernel.h"

/* ---- threads ---- */

/* Kept per thread in task storage. The first two members belong to classify.h. Written under the
 * thread's own scheduling callbacks, which the kernel serialises per thread; queue_mark alone is
 * cleared by whichever CPU starts to run the thread, and the kernel orders that after the insert.
 */
struct task_ctx {
	struct thread_key key;		/* what the class was computed from */
	struct thread_class class;
	u64 vtime;			/* CPU time over weight, in its home queue's virtual time */
	u64 exec_start_ns;		/* sum_exec_runtime up to which the thread was charged */
	u64 wait_start_ns;		/* runnable and not running since; 0 = not waiting */
	u64 turn_ns;			/* of its slice, what it used before it was last preempted */
	u32 queue_mark;			/* queue index + 1 while it counts us; 0 = counted nowhere */
	u32 home_mark;			/* index + 1 of the queue in whose virtual time vtime is; 0 = none */
	s32 enqueued_cpu;		/* on whose runqueue it was when it was enqueued */
	u32 pad;
};

K_TASK_STORAGE(task_ctxs, struct task_ctx);

/* ---- queues ----
 *
 * A queue is a DSQ plus a count that says whether looking at it is worth while: an empty look at
 * a DSQ costs 150 to 250 instructions, a load of the count one.
 *
 *  - shared: one per pool and last-level cache, for threads that may run on all its CPUs;
 *  - own: one per pool and CPU, for threads that may not (pinned, migration disabled, a mask
 *    that cuts through the cache). In a shared queue such a thread would be passed over by CPUs
 *    that may not run it, and its wait would be nobody's business. A thread that was preempted
 *    waits here too: it goes on where its cache is warm, unless another CPU has nothing to do.
 *
 * All are made at init, for every possible CPU, so no policy and no hotplug ever needs a new one.
 */
#define NR_SHARED_QUEUES (NR_POOLS * MAX_LLCS)
#define NR_QUEUES 4096		/* power of two above NR_SHARED_QUEUES + NR_POOLS * MAX_CPUS */
#define DSQ_BASE 0x10000u	/* DSQ id = DSQ_BASE + queue index */

struct queue {
	/* May exceed the DSQ's true length for a moment, and is never below it: a thread is
	 * counted before it is inserted, and no longer counted once it runs or leaves the class. */
	s64 queued;
	/* When a thread was last taken, or came to the empty queue; or, where that would hide how
	 * long the others wait, when the last one's wait began. */
	u64 served_ns;
	/* Virtual time of this queue: the highest key that was taken out. Of each queue, not of the
	 * pool: a nice thread that is pinned takes its turns on its CPU and runs far ahead of what
	 * threads elsewhere have, who would all be pulled up to it and lose what they are due. */
	u64 vtime_now;
	u64 furthest;			/* the highest key that was put in */
	u64 lap_start_ns;		/* see queue_lap() */
	u64 lap_end;			/* `furthest` when the lap began */
	u64 longest_ns;			/* longest slice of who came in this lap */
	u64 pad[1];			/* a cache line each: they are hot on different CPUs */
};

struct queue queues[NR_QUEUES];

/* Threads in the own queues of a cache's CPUs: worth scanning them only if not 0. */
struct llc_state {
	s64 own_queued;
	u64 pad[7];
};
struct llc_state llcs[MAX_LLCS];

/* ---- CPUs ---- */

struct cpu_state {
	u64 run_start_ns;		/* when the current thread started, or was given a new slice */
	u64 slice_ns;			/* the current thread's slice, to give again when it stays */
	u64 pending_ns[NR_POOLS];	/* run here, not yet added to the pool's clock */
	u64 own_since_ns[NR_POOLS];	/* when its own queue's turn began; 0 = not yet, see steal.h */
	u64 overdue_until_ns;		/* an overdue queue's turn lasts till then */
	u64 grant_vt;			/* charged to a pool in advance for the grant below; 0 = none */
	u8 grant;			/* enum grant_state */
	u8 pool;			/* pool of the current thread; NR_POOLS = none of ours */
	u8 preempted;			/* the current thread was told to go for one of the other pool */
	u8 bound_kthread;		/* the current thread is one; it keeps the CPU for its slice */
	u8 brief;			/* the current thread waited too long: it runs to the next tick only */
	u8 pad;
	u16 overdue_index;		/* whose turn that is */
};

enum grant_state {
	GRANT_NONE = 0,
	GRANT_DUE = 1,			/* the tick cut the current thread; dispatch is to honour it */
	GRANT_TAKEN = 2,		/* dispatch took a thread for it, which has not started yet */
	GRANT_RUNNING = 3,		/* it runs, and nobody may preempt it */
};

struct cpu_state cpus[MAX_CPUS];

/* CPUs that run a thread of the pool and may be preempted for the other one. A bit is cleared by
 * whoever claims the CPU (so two wakers take two CPUs) and set again when a thread starts. */
u64 preemptible[NR_POOLS][CPU_WORDS];
u64 owned[NR_POOLS][CPU_WORDS];		/* soft ownership, see sizing.h */
u64 online[CPU_WORDS];			/* the loader's view at load, then kept by cpu_online/offline */
u32 nr_online;

/* ---- pools ---- */

/* The clock of a pool: CPU time of all its threads times CLOCK_SCALE over its weight. Compared as
 * signed differences, so that it may wrap. */
struct pool_clock {
	u64 vt;
	s64 waiting;			/* threads in its queues, counted as struct queue counts */
	u64 pad[6];
};
#define CLOCK_SCALE 1024

struct pool_clock clocks[NR_POOLS];
u32 sized_epoch;			/* epoch whose settings sizing.h applied last */

/* ---- topology, written by the loader before load ---- */

const volatile u64 tick_ns = 4000000;	/* between two looks of the kernel at a slice */
const volatile u32 nr_cpus = 1;		/* highest possible CPU id + 1, at most MAX_CPUS */
const volatile u32 nr_cpu_words = 1;	/* (nr_cpus + 63) / 64 */
const volatile u32 nr_llcs = 1;		/* 1..=MAX_LLCS */
const volatile bool smt_active;		/* some core has several threads online */
const volatile u16 cpu_llc[MAX_CPUS];	/* CPU -> cache, 0..nr_llcs-1 */
const volatile u16 cpu_core[MAX_CPUS];	/* CPU -> core, any numbering unique in the machine */
const volatile u16 cpu_order[MAX_CPUS];	/* possible CPUs by node, cache, core: the order of growth */
const volatile u32 nr_ordered;		/* entries of cpu_order */
const volatile u64 llc_cpus[MAX_LLCS][CPU_WORDS];
const volatile u16 llc_order[MAX_LLCS][MAX_LLCS];	/* itself, then nearer caches first */

/* ---- reports ---- */

#define EXIT_DUMP_LEN 65536

/* Filled by ops.exit; kind stays 0 while the scheduler is attached. */
struct exit_report {
	s64 exit_code;
	u32 kind;			/* the kernel's enum scx_exit_kind */
	u32 pad;
	char reason[128];
	char msg[1024];
	char dump[EXIT_DUMP_LEN];
};
struct exit_report exit_report;

#endif /* TWOPOOL_MAPS_H */
