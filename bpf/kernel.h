/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel.h - the only file that touches the kernel.
 *
 * Everything else under bpf/ reaches kfuncs, helpers, maps and kernel enums through the k_ and K_
 * names below, so that the same source also builds as native code (TWOPOOL_NATIVE: native.h has
 * the same names) for tests and simulation. No vmlinux.h and no foreign header: kernel_types.h
 * declares what is used.
 *
 * One object file serves 6.12 to 7.3. Each kfunc that came, went or changed is `__weak` and
 * picked at load time by bpf_ksym_exists(); the branch not taken is dead code to the verifier.
 * A suffix after the last `___` is not part of the kernel's name (libbpf cuts it), which is how
 * two prototypes of one kfunc can stand side by side. No enum value is baked in.
 */
#ifndef TWOPOOL_KERNEL_H
#define TWOPOOL_KERNEL_H

#define TWOPOOL_HAVE_TYPES
typedef unsigned char u8;
typedef signed char s8;
typedef unsigned short u16;
typedef short s16;
typedef unsigned int u32;
typedef int s32;
#ifdef TWOPOOL_NATIVE
#include <stdbool.h>
#include <stdint.h>
typedef uint64_t u64; /* as <stdint.h> has it, so that tests may mix the two */
typedef int64_t s64;
#else
#define bool _Bool
#define true 1
#define false 0
#define NULL ((void *)0)
typedef unsigned long long u64;
typedef long long s64;
#endif

#include "intf.h"
#include "kernel_types.h"

#ifdef TWOPOOL_NATIVE
#include "native.h"
#else

/* ---- libbpf's headers, which expect the kernel's names ------------------------------------- */

typedef u8 __u8;
typedef s8 __s8;
typedef u16 __u16;
typedef s16 __s16;
typedef u32 __u32;
typedef s32 __s32;
typedef u64 __u64;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;

struct bpf_iter_num {
	u64 __opaque[1];
};

struct bpf_timer {
	u64 __opaque[2];
} __attribute__((aligned(8)));

struct seq_file {
	u64 count; /* only ever passed on */
} KERNEL_STRUCT;

struct bpf_iter_meta {
	struct seq_file *seq;
} KERNEL_STRUCT;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} KERNEL_STRUCT;

/* linux/bpf.h is not included: a distribution's copy may be older than what is used here. */
enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_MAP_TYPE_CGRP_STORAGE = 32,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* ---- kfuncs --------------------------------------------------------------------------------
 *
 * From 7.1 the kernel hands many of these a hidden last argument, struct bpf_prog_aux *, which its
 * BTF must not show, beside a NAME_impl which shows it. Some builds of 7.1 and 7.2 have that wrong
 * for a handful of kfuncs, another handful in each. The verifier then finds no NAME_impl, so no
 * program can call them; libbpf says "func_proto incompatible" for a strong reference and takes a
 * weak one for missing. Where an older way is left it is used; scx_bpf_create_dsq has none, and a
 * kernel without it cannot run a scheduler that has queues.
 */

/* In every kernel served. */
s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) __ksym;
const struct cpumask *scx_bpf_get_idle_cpumask(void) __ksym;
const struct cpumask *scx_bpf_get_idle_smtmask(void) __ksym;
void scx_bpf_put_idle_cpumask(const struct cpumask *idle_mask) __ksym;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
bool scx_bpf_task_running(const struct task_struct *p) __ksym;
u32 scx_bpf_nr_cpu_ids(void) __ksym;
void scx_bpf_error_bstr(char *fmt, unsigned long long *data, u32 data__sz) __ksym;
void scx_bpf_dump_bstr(char *fmt, unsigned long long *data, u32 data__sz) __ksym;
struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level) __ksym;
void bpf_cgroup_release(struct cgroup *cgrp) __ksym;

/* 6.12 to 6.17. */
void scx_bpf_dispatch(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym __weak;
void scx_bpf_dispatch_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
			    u64 enq_flags) __ksym __weak;
bool scx_bpf_consume(u64 dsq_id) __ksym __weak;

/* From 6.13. */
void scx_bpf_dsq_insert___v1(struct task_struct *p, u64 dsq_id, u64 slice,
			     u64 enq_flags) __ksym __weak;
void scx_bpf_dsq_insert_vtime___v1(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
				   u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local___v1(u64 dsq_id) __ksym __weak;

/* From 6.14. */
u64 scx_bpf_now(void) __ksym __weak;

/* From 6.19. */
struct scx_bpf_dsq_insert_vtime_args {
	u64 dsq_id;
	u64 slice;
	u64 vtime;
	u64 enq_flags;
};
bool scx_bpf_dsq_insert___v2___new(struct task_struct *p, u64 dsq_id, u64 slice,
				   u64 enq_flags) __ksym __weak;
bool __scx_bpf_dsq_insert_vtime(struct task_struct *p,
				struct scx_bpf_dsq_insert_vtime_args *args) __ksym __weak;
bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) __ksym __weak;
bool scx_bpf_task_set_dsq_vtime(struct task_struct *p, u64 vtime) __ksym __weak;

/* From 7.1. */
bool scx_bpf_dsq_move_to_local___v2___new(u64 dsq_id, u64 enq_flags) __ksym __weak;

/* ---- enum values, as the running kernel has them; 0 where it does not know the name --------- */

#define K_ENUM(type, value)                                                                        \
	(bpf_core_enum_value_exists(enum type, value) ? bpf_core_enum_value(enum type, value) : 0)

#define K_ENQ_WAKEUP K_ENUM(scx_enq_flags, SCX_ENQ_WAKEUP)
#define K_ENQ_HEAD K_ENUM(scx_enq_flags, SCX_ENQ_HEAD)
#define K_ENQ_CPU_SELECTED K_ENUM(scx_enq_flags, SCX_ENQ_CPU_SELECTED)
#define K_ENQ_PREEMPT K_ENUM(scx_enq_flags, SCX_ENQ_PREEMPT)
#define K_ENQ_REENQ K_ENUM(scx_enq_flags, SCX_ENQ_REENQ)
#define K_ENQ_LAST K_ENUM(scx_enq_flags, SCX_ENQ_LAST)
#define K_DEQ_SLEEP K_ENUM(scx_deq_flags, SCX_DEQ_SLEEP)
#define K_DSQ_GLOBAL K_ENUM(scx_dsq_id_flags, SCX_DSQ_GLOBAL)
#define K_DSQ_LOCAL K_ENUM(scx_dsq_id_flags, SCX_DSQ_LOCAL)
#define K_DSQ_LOCAL_ON K_ENUM(scx_dsq_id_flags, SCX_DSQ_LOCAL_ON)
#define K_KICK_IDLE K_ENUM(scx_kick_flags, SCX_KICK_IDLE)
#define K_KICK_PREEMPT K_ENUM(scx_kick_flags, SCX_KICK_PREEMPT)
#define K_WAKE_SYNC K_ENUM(scx_wake_flags, SCX_WAKE_SYNC)
#define K_TASK_QUEUED K_ENUM(scx_ent_flags, SCX_TASK_QUEUED)
#define K_SLICE_DFL K_ENUM(scx_public_consts, SCX_SLICE_DFL)
#define K_SLICE_INF K_ENUM(scx_public_consts, SCX_SLICE_INF)

/* ---- queues -------------------------------------------------------------------------------- */

/* Queues `p` at the tail of `dsq`. The slice is in ns; 0 keeps the current one. */
static inline void k_insert(struct task_struct *p, u64 dsq, u64 slice, u64 enq_flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert___v2___new))
		scx_bpf_dsq_insert___v2___new(p, dsq, slice, enq_flags);
	else if (bpf_ksym_exists(scx_bpf_dsq_insert___v1))
		scx_bpf_dsq_insert___v1(p, dsq, slice, enq_flags);
	else
		scx_bpf_dispatch(p, dsq, slice, enq_flags);
}

/* Queues `p` by `vtime`. Never into a built-in queue, nor into one that holds FIFO entries. */
static inline void k_insert_vtime(struct task_struct *p, u64 dsq, u64 slice, u64 vtime,
				  u64 enq_flags)
{
	struct scx_bpf_dsq_insert_vtime_args args = {
		.dsq_id = dsq, .slice = slice, .vtime = vtime, .enq_flags = enq_flags
	};

	if (bpf_ksym_exists(__scx_bpf_dsq_insert_vtime))
		__scx_bpf_dsq_insert_vtime(p, &args);
	else if (bpf_ksym_exists(scx_bpf_dsq_insert_vtime___v1))
		scx_bpf_dsq_insert_vtime___v1(p, dsq, slice, vtime, enq_flags);
	else
		scx_bpf_dispatch_vtime(p, dsq, slice, vtime, enq_flags);
}

/* Moves the first thread of `dsq` that may run here to this CPU's local queue. From dispatch. */
static inline bool k_move_to_local(u64 dsq)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___new))
		return scx_bpf_dsq_move_to_local___v2___new(dsq, 0);
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v1))
		return scx_bpf_dsq_move_to_local___v1(dsq);
	return scx_bpf_consume(dsq);
}

static inline void k_set_slice(struct task_struct *p, u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice);
	else
		p->scx.slice = slice;
}

static inline void k_set_vtime(struct task_struct *p, u64 vtime)
{
	if (bpf_ksym_exists(scx_bpf_task_set_dsq_vtime))
		scx_bpf_task_set_dsq_vtime(p, vtime);
	else
		p->scx.dsq_vtime = vtime;
}

/* Both from init alone (sleepable) and from anywhere. Negative on failure. */
#define k_create_dsq(dsq, node) scx_bpf_create_dsq(dsq, node)
#define k_dsq_nr_queued(dsq) scx_bpf_dsq_nr_queued(dsq)

/* ---- CPUs and time ------------------------------------------------------------------------- */

/* ns. Cached per runqueue where the kernel can: a stamp is exact only for its own CPU. */
static inline u64 k_now(void)
{
	return bpf_ksym_exists(scx_bpf_now) ? scx_bpf_now() : bpf_ktime_get_ns();
}

#define k_kick(cpu, flags) scx_bpf_kick_cpu(cpu, flags)
#define k_test_and_clear_idle(cpu) scx_bpf_test_and_clear_cpu_idle(cpu)
#define k_task_cpu(p) scx_bpf_task_cpu(p)
#define k_task_running(p) scx_bpf_task_running(p)
#define k_nr_cpu_ids() scx_bpf_nr_cpu_ids()
#define k_this_cpu() bpf_get_smp_processor_id()

/* Word `i` of a mask, at a variable index: a plain load from a kernel struct must have a constant
 * offset. The caller keeps i below CPU_WORDS and asks only for words below nr_cpu_ids. */
static inline u64 k_mask_word(const struct cpumask *mask, u32 i)
{
	u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (const char *)mask + (u64)i * sizeof(u64));
	return word;
}

/* Words of the built-in idle tracking: bit set = idle. In the SMT mask, whole idle cores. */
static inline u64 k_idle_word(u32 i)
{
	const struct cpumask *mask = scx_bpf_get_idle_cpumask();
	/* word 0 is all there is on most machines, and a plain load */
	u64 word = i ? k_mask_word(mask, i) : mask->bits[0];

	scx_bpf_put_idle_cpumask(mask);
	return word;
}

static inline u64 k_idle_smt_word(u32 i)
{
	const struct cpumask *mask = scx_bpf_get_idle_smtmask();
	u64 word = k_mask_word(mask, i);

	scx_bpf_put_idle_cpumask(mask);
	return word;
}

#define k_allowed_word(p, i) k_mask_word((p)->cpus_ptr, i)

/* The program's own prologue disables migration of the current thread (always before 6.18), so a
 * count of 1 on it says nothing. Taking it for "may migrate" is safe: a queue skips a thread for
 * a CPU that it must not move to. */
static inline bool k_migration_disabled(struct task_struct *p)
{
	if (!bpf_core_field_exists(p->migration_disabled))
		return false;
	if (p->migration_disabled == 1)
		return p != bpf_get_current_task_btf();
	return p->migration_disabled != 0;
}

/* True if sched_ext runs this thread: not real-time nor deadline, nor left to the fair class. The
 * enabled state moved between two enums. */
static inline bool k_is_ours(struct task_struct *p)
{
	u32 state = p->scx.flags & K_ENUM(scx_ent_flags, SCX_TASK_STATE_MASK);

	if (bpf_core_enum_value_exists(enum scx_ent_flags, SCX_TASK_ENABLED))
		return state == bpf_core_enum_value(enum scx_ent_flags, SCX_TASK_ENABLED);
	return state >> K_ENUM(scx_ent_flags, SCX_TASK_STATE_SHIFT) ==
	       K_ENUM(scx_task_state, SCX_TASK_ENABLED___state);
}

/* ---- loops and atomics --------------------------------------------------------------------- */

/* The same value, of which the compiler knows nothing: keeps it from turning masks into branches
 * (each doubles the paths to verify) and from dropping a mask that the verifier needs. */
#define k_opaque(x)                                                                                \
	({                                                                                         \
		typeof(x) ___x = (x);                                                              \
		asm("" : "+r"(___x));                                                              \
		___x;                                                                              \
	})

/* k_for(i, from, to) { .. }: i is proved to be in [from, to). */
#define k_for(i, from, to) bpf_for(i, from, to)

/* Calls cb(index, ctx) n times at most, until it returns 1. */
#define k_loop(n, cb, ctx) bpf_loop(n, cb, ctx, 0)

#define k_read_once(x) (*(volatile typeof(x) *)&(x))
#define k_write_once(x, v) (*(volatile typeof(x) *)&(x) = (v))
#define k_fetch_add(ptr, v) __sync_fetch_and_add(ptr, v)
#define k_fetch_and(ptr, v) __sync_fetch_and_and(ptr, v)
#define k_fetch_or(ptr, v) __sync_fetch_and_or(ptr, v)
#define k_cmpxchg(ptr, old, new) __sync_val_compare_and_swap(ptr, old, new) /* the value before */

/* A full barrier. BPF has no fence; an atomic that returns a value orders everything around it,
 * and the empty asm keeps the compiler from dropping the value (and with it the ordering). */
static inline void k_mb(void)
{
	u64 word = 0, before = __sync_fetch_and_add(&word, 1);

	asm volatile("" : : "r"(before) : "memory");
}

/* Number of trailing zeros, 0..63. BPF has no such instruction: isolate the lowest bit and look its
 * de Bruijn product up. 0 for 0. */
static const u8 debruijn_ctz[64] = {
	0,  1,	48, 2,	57, 49, 28, 3,	61, 58, 50, 42, 38, 29, 17, 4,	62, 55, 59, 36, 53, 51,
	43, 22, 45, 39, 33, 30, 24, 18, 12, 5,	63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21,
	44, 32, 23, 11, 46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9,	13, 8,	7,  6,
};

static inline u32 k_ctz(u64 x)
{
	return debruijn_ctz[((x & -x) * 0x03f79d71b4cb0a89ull) >> 58];
}

/* ---- maps ---------------------------------------------------------------------------------- */

#define K_ARRAY(map, entries, value_type)                                                          \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(max_entries, entries);                                                      \
		__type(key, u32);                                                                  \
		__type(value, value_type);                                                         \
	} map SEC(".maps")

#define K_PERCPU_ARRAY(map, entries, value_type)                                                   \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);                                           \
		__uint(max_entries, entries);                                                      \
		__type(key, u32);                                                                  \
		__type(value, value_type);                                                         \
	} map SEC(".maps")

#define K_LOCAL_STORAGE(map, map_type, value_type)                                                 \
	struct {                                                                                   \
		__uint(type, map_type);                                                            \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                              \
		__type(key, int);                                                                  \
		__type(value, value_type);                                                         \
	} map SEC(".maps")

#define K_TASK_STORAGE(map, value_type) K_LOCAL_STORAGE(map, BPF_MAP_TYPE_TASK_STORAGE, value_type)
#define K_CGROUP_STORAGE(map, value_type)                                                          \
	K_LOCAL_STORAGE(map, BPF_MAP_TYPE_CGRP_STORAGE, value_type)

/* Entry `index` of an array map (this CPU's, if per CPU), or NULL. */
#define k_map_value(map, index)                                                                    \
	({                                                                                         \
		u32 ___index = (index);                                                            \
		(typeof((map).value))bpf_map_lookup_elem(&(map), &___index);                       \
	})

/* What a map keeps for a thread or a cgroup; NULL if there is nothing or no memory for it. */
#define k_task_storage(map, p, create)                                                             \
	((typeof((map).value))bpf_task_storage_get(                                                \
		&(map), p, NULL, (create) ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0))
#define k_cgroup_storage(map, cgrp, create)                                                        \
	((typeof((map).value))bpf_cgrp_storage_get(                                                \
		&(map), cgrp, NULL, (create) ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0))

/* The policy in force: one slot that a reload replaces as a whole. A program that looks once per
 * callback can never see half of two policies. */
struct policy_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct policy_image);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct policy_map);
} policy SEC(".maps");

static inline const struct policy_image *k_image(void)
{
	u32 zero = 0;
	void *slot = bpf_map_lookup_elem(&policy, &zero);

	return slot ? bpf_map_lookup_elem(slot, &zero) : NULL;
}

/* ---- cgroups ------------------------------------------------------------------------------- */

/* A thread's v2 cgroup, valid until the program returns. */
#define k_task_cgroup(p) ((p)->cgroups->dfl_cgrp)
/* The ancestor at `level`; to be given back. NULL above its own level. */
#define k_cgroup_ancestor(cgrp, level) bpf_cgroup_ancestor(cgrp, level)
#define k_cgroup_release(cgrp) bpf_cgroup_release(cgrp)

/* Copies the last component of the cgroup's path, with a NUL; its length without it. */
static inline u32 k_cgroup_name(struct cgroup *cgrp, char name[CGROUP_NAME_LEN])
{
	long n = bpf_probe_read_kernel_str(name, CGROUP_NAME_LEN, cgrp->kn->name);

	return n > 0 ? (n - 1) & (CGROUP_NAME_LEN - 1) : 0;
}

/* ---- programs ------------------------------------------------------------------------------ */

#define OPS(name, args...) SEC("struct_ops/" #name) BPF_PROG(name, ##args)
#define OPS_SLEEPABLE(name, args...) SEC("struct_ops.s/" #name) BPF_PROG(name, ##args)
/* A function that is verified once by itself, from its prototype, rather than at every call. It
 * returns a scalar, even if nobody wants one, and pointers to structs come tagged __arg_nonnull.
 * Weak, or clang would apply what it knows of one side of the call to the other. */
#define SHARED(type) __weak __noinline type
#define OPS_TABLE SEC(".struct_ops.link")
#define LICENSE(text) char _license[] SEC("license") = text

/* printf into a kfunc that takes a format and an array of u64s. The format must be writable
 * memory to the verifier, hence not const. */
#define K_PRINT(kfunc, format, args...)                                                            \
	({                                                                                         \
		static char ___fmt[] = format;                                                     \
		unsigned long long ___data[___bpf_narg(args) + 1] = {};                            \
		___bpf_fill(___data, args);                                                        \
		kfunc(___fmt, ___data, ___bpf_narg(args) * sizeof(___data[0]));                    \
	})
/* Gives the scheduler up. For broken invariants only. */
#define k_error(format, args...) K_PRINT(scx_bpf_error_bstr, format, ##args)
/* A line of the exit dump; from dump and dump_task. */
#define k_dump(format, args...) K_PRINT(scx_bpf_dump_bstr, format, ##args)

/* Keeps what the kernel says about the end in a struct with these fields. `kind` comes last: a
 * reader that sees it sees all. */
#define k_record_exit(to, info)                                                                    \
	do {                                                                                       \
		bpf_probe_read_kernel_str((to)->reason, sizeof((to)->reason), (info)->reason);     \
		bpf_probe_read_kernel_str((to)->msg, sizeof((to)->msg), (info)->msg);              \
		bpf_probe_read_kernel_str((to)->dump, sizeof((to)->dump), (info)->dump);           \
		(to)->exit_code = (info)->exit_code;                                               \
		k_mb();                                                                            \
		k_write_once((to)->kind, (info)->kind);                                            \
	} while (0)

#endif /* TWOPOOL_NATIVE */
#endif /* TWOPOOL_KERNEL_H */
