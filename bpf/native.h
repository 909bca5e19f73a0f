/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * native.h - the names of kernel.h for code that runs on no kernel: tests today, a simulator of
 * many CPUs later. Included by kernel.h under TWOPOOL_NATIVE, never directly.
 *
 * What can be answered here is; what depends on a modelled machine is declared and supplied by
 * the program that links this (only if the code that it compiles asks for it). The declarations
 * stay together so that a new one is seen.
 *
 * One host thread stands for one CPU: per-CPU maps are thread-local, so that tests may run in
 * parallel. A simulator that runs all its CPUs in one thread shares them, which is right as long
 * as they hold only counters and scratch.
 */
#ifndef TWOPOOL_NATIVE_H
#define TWOPOOL_NATIVE_H

#include <stddef.h>
#include <string.h>

#define SEC(name)
#define __noinline __attribute__((noinline))
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* ---- supplied by the linking program ---- */

void k_insert(struct task_struct *p, u64 dsq, u64 slice, u64 enq_flags);
void k_insert_vtime(struct task_struct *p, u64 dsq, u64 slice, u64 vtime, u64 enq_flags);
bool k_move_to_local(u64 dsq);
void k_move_all(u64 from, u64 to);
void k_reenqueue_local(void);
void k_reenqueue_local_soon(void);
void k_set_slice(struct task_struct *p, u64 slice);
s32 k_create_dsq(u64 dsq, s32 node);
u64 k_now(void);
void k_kick(s32 cpu, u64 flags);
bool k_test_and_clear_idle(s32 cpu);
s32 k_task_cpu(const struct task_struct *p);
u32 k_nr_cpu_ids(void);
u32 k_this_cpu(void);
u64 k_idle_word(u32 i);
u64 k_idle_smt_word(u32 i);
u64 k_allowed_word(const struct task_struct *p, u32 i);
struct cgroup *k_cgroup_ancestor(struct cgroup *cgrp, int level);
const struct policy_image *k_image(void);
/* `size` bytes kept for a thread or a cgroup, zeroed when made; NULL if absent or out of memory.
 * `map` tells maps apart. */
void *native_task_storage(const void *map, struct task_struct *p, u64 size, bool create);
void *native_cgroup_storage(const void *map, struct cgroup *cgrp, u64 size, bool create);
void native_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- enum values: as kernel_types.h has them ---- */

#define K_ENQ_WAKEUP ((u64)SCX_ENQ_WAKEUP)
#define K_ENQ_HEAD ((u64)SCX_ENQ_HEAD)
#define K_ENQ_CPU_SELECTED ((u64)SCX_ENQ_CPU_SELECTED)
#define K_ENQ_PREEMPT ((u64)SCX_ENQ_PREEMPT)
#define K_ENQ_REENQ ((u64)SCX_ENQ_REENQ)
#define K_ENQ_LAST ((u64)SCX_ENQ_LAST)
#define K_DEQ_SLEEP ((u64)SCX_DEQ_SLEEP)
#define K_DSQ_GLOBAL ((u64)SCX_DSQ_GLOBAL)
#define K_DSQ_LOCAL ((u64)SCX_DSQ_LOCAL)
#define K_KICK_IDLE ((u64)SCX_KICK_IDLE)
#define K_KICK_PREEMPT ((u64)SCX_KICK_PREEMPT)
#define K_WAKE_SYNC ((u64)SCX_WAKE_SYNC)
#define K_TASK_QUEUED ((u64)SCX_TASK_QUEUED)
#define K_SLICE_DFL ((u64)SCX_SLICE_DFL)
#define K_SLICE_INF ((u64)SCX_SLICE_INF)

/* ---- loops and atomics ---- */

#define k_opaque(x) (x)

#define k_for(i, from, to) for ((i) = (from); (i) < (to); (i)++)

/* Callbacks take their own context type, as in BPF; hence a macro rather than a function. */
#define k_loop(n, cb, ctx)                                                                         \
	({                                                                                         \
		u32 ___i = 0, ___n = (n);                                                          \
		while (___i < ___n && !cb(___i++, ctx))                                            \
			;                                                                          \
		___i;                                                                              \
	})

#define k_read_once(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define k_write_once(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELAXED)
#define k_fetch_add(ptr, v) __sync_fetch_and_add(ptr, v)
#define k_fetch_and(ptr, v) __sync_fetch_and_and(ptr, v)
#define k_fetch_or(ptr, v) __sync_fetch_and_or(ptr, v)
#define k_cmpxchg(ptr, old, new) __sync_val_compare_and_swap(ptr, old, new)
#define k_mb() __sync_synchronize()

static inline u32 k_ctz(u64 x)
{
	return x ? __builtin_ctzll(x) : 0;
}

static inline bool k_migration_disabled(const struct task_struct *p)
{
	return p->migration_disabled != 0;
}

/* ---- maps ---- */

#define K_ARRAY(map, entries, type) static __attribute__((unused)) struct { type value[entries]; } map
#define K_PERCPU_ARRAY(map, entries, type)                                                         \
	static _Thread_local __attribute__((unused)) struct { type value[entries]; } map
#define K_TASK_STORAGE(map, type) static __attribute__((unused)) struct { type *value; } map
#define K_CGROUP_STORAGE(map, type) static __attribute__((unused)) struct { type *value; } map

#define k_map_value(map, index)                                                                    \
	({                                                                                         \
		u64 ___index = (index);                                                            \
		___index < sizeof((map).value) / sizeof((map).value[0]) ? &(map).value[___index] : \
									  NULL;                    \
	})
#define k_task_storage(map, p, create)                                                             \
	((typeof((map).value))native_task_storage(&(map), p, sizeof(*(map).value), create))
#define k_cgroup_storage(map, cgrp, create)                                                        \
	((typeof((map).value))native_cgroup_storage(&(map), cgrp, sizeof(*(map).value), create))

/* ---- cgroups ---- */

#define k_task_cgroup(p) ((p)->cgroups->dfl_cgrp)
#define k_cgroup_release(cgrp) ((void)(cgrp))

static inline u32 k_cgroup_name(struct cgroup *cgrp, char name[CGROUP_NAME_LEN])
{
	size_t n = strnlen(cgrp->kn->name, CGROUP_NAME_LEN - 1);

	memcpy(name, cgrp->kn->name, n);
	name[n] = 0;
	return n;
}

/* ---- programs ---- */

#define OPS(name, args...) name(args)
#define OPS_SLEEPABLE(name, args...) name(args)
#define SHARED(type) static type
#define __arg_nonnull
#define OPS_TABLE
#define LICENSE(text) extern int native_license_unused
#define k_error(format, args...) native_error(format, ##args)
#define k_dump(format, args...) ((void)0)
#define k_record_exit(to, info)                                                                    \
	do {                                                                                       \
		(to)->exit_code = (info)->exit_code;                                               \
		(to)->kind = (info)->kind;                                                         \
	} while (0)

#endif /* TWOPOOL_NATIVE_H */
