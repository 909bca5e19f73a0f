/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel.h - the only file that touches the kernel.
 *
 * Everything else under bpf/ reaches kfuncs, helpers, maps and kernel enums through the k_ and K_
 * names below, so that the same source also builds as native code (TWOPOOL_NATIVE: native.h has
 * the same names) for tests and simulation. No vmlinux.h and no foreign header: kernel_types.h
 * declares the types that are used, kfuncs.h the functions; both belong to this file.
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

struct bpf_iter_scx_dsq {
	u64 __opaque[6];
} __attribute__((aligned(8)));

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

#include "kfuncs.h"

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
/* A program that the kernel runs for every thread when its file is read; k_iter_thread() is NULL at the
 * end. */
#define TASK_ITERATOR(name, ctx) SEC("iter/task") int name(struct bpf_iter__task *ctx)
#define k_iter_thread(ctx) ((ctx)->task)
#define k_iter_write(ctx, from) bpf_seq_write((ctx)->meta->seq, from, sizeof(*(from)))
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
