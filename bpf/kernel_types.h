/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel_types.h - the few kernel types that the scheduler reads, and nothing else of them.
 *
 * Two worlds use these declarations. For BPF, CO-RE moves every field access to where the running
 * kernel keeps the field, so only names, kinds (integer, pointer, enum, struct) and the fields
 * that are read matter here, not order or size. For the native build they are ordinary structs.
 *
 * Two rules, both learned from silent failures:
 *  - a struct that stands behind a pointer in a kfunc prototype must be DEFINED, whatever its
 *    body: libbpf takes a forward declaration for another type, and a weak kfunc then counts as
 *    missing without a word;
 *  - a field's kind must agree with the kernel's: an enum is not an int.
 *
 * The numbers of the enums are placeholders: BPF reads the kernel's own (K_ENQ_HEAD and so on in
 * kfuncs.h), because they moved between versions. The native build uses them as they stand.
 */
#ifndef TWOPOOL_KERNEL_TYPES_H
#define TWOPOOL_KERNEL_TYPES_H

#ifdef TWOPOOL_NATIVE
#define KERNEL_STRUCT
#else
#define KERNEL_STRUCT __attribute__((preserve_access_index))
#endif

/* Macros in the kernel, hence in no BTF; part of the user-space ABI or unchanged since 2.6. */
#define PF_KTHREAD 0x00200000
#define SCHED_BATCH 3
#define SCHED_IDLE 5
#define DEFAULT_PRIO 120 /* static_prio of nice 0 */

struct cpumask {
	unsigned long bits[1]; /* really nr_cpu_ids bits: read with k_mask_word() */
} KERNEL_STRUCT;

typedef struct {
	u32 val;
} KERNEL_STRUCT kuid_t;

typedef struct {
	u32 val;
} KERNEL_STRUCT kgid_t;

struct cred {
	kuid_t euid;
	kgid_t egid;
} KERNEL_STRUCT;

struct kernfs_node {
	u64 id;
	const char *name;
} KERNEL_STRUCT;

struct cgroup {
	int level; /* 0: the root */
	struct kernfs_node *kn;
} KERNEL_STRUCT;

struct css_set {
	struct cgroup *dfl_cgrp; /* the cgroup v2 one */
} KERNEL_STRUCT;

struct sched_entity {
	u64 sum_exec_runtime;
} KERNEL_STRUCT;

struct sched_ext_entity {
	u32 flags; /* enum scx_ent_flags */
	u32 weight;
	u64 slice;
	u64 dsq_vtime;
} KERNEL_STRUCT;

struct task_struct {
	unsigned int flags; /* PF_* */
	int static_prio;
	unsigned int policy;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	unsigned short migration_disabled;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	const struct cred *real_cred;
	struct css_set *cgroups;
	struct sched_entity se;
	struct sched_ext_entity scx;
	char comm[NAME_LEN] __attribute__((aligned(8))); /* read as two u64s */
} KERNEL_STRUCT;

enum scx_exit_kind {
	SCX_EXIT_NONE = 0,
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
	char *dump;
} KERNEL_STRUCT;

struct scx_init_task_args {
	bool fork; /* false: the scheduler is being attached */
} KERNEL_STRUCT;

struct scx_exit_task_args {
	bool cancelled; /* the task never ran under us */
} KERNEL_STRUCT;

struct scx_cpu_acquire_args {
	u32 unused;
} KERNEL_STRUCT;

struct scx_cpu_release_args {
	u32 unused;
} KERNEL_STRUCT;

struct scx_dump_ctx {
	u32 unused;
} KERNEL_STRUCT;

enum scx_enq_flags {
	SCX_ENQ_WAKEUP = 1,
	SCX_ENQ_HEAD = 1 << 16,
	SCX_ENQ_CPU_SELECTED = 1 << 20,
	SCX_ENQ_PREEMPT = 1LL << 32,
	SCX_ENQ_REENQ = 1LL << 40,
	SCX_ENQ_LAST = 1LL << 41,
};

enum scx_deq_flags {
	SCX_DEQ_SLEEP = 1,
};

enum scx_dsq_id_flags {
	SCX_DSQ_GLOBAL = (1LL << 63) | 1,
	SCX_DSQ_LOCAL = (1LL << 63) | 2,
	SCX_DSQ_LOCAL_ON = (1LL << 63) | (1LL << 62),
};

enum scx_kick_flags {
	SCX_KICK_IDLE = 1,
	SCX_KICK_PREEMPT = 2,
};

enum scx_wake_flags {
	SCX_WAKE_FORK = 4,
	SCX_WAKE_TTWU = 8,
	SCX_WAKE_SYNC = 16,
};

enum scx_ent_flags {
	SCX_TASK_QUEUED = 1,
	SCX_TASK_STATE_SHIFT = 8,
	SCX_TASK_STATE_MASK = 3 << 8,
	SCX_TASK_ENABLED = 3 << 8, /* shifted where it is in this enum */
};

enum scx_task_state {
	SCX_TASK_ENABLED___state = 3, /* not shifted where it is in this one */
};

enum scx_public_consts {
	SCX_SLICE_DFL = 20 * 1000000,
	SCX_SLICE_INF = -1LL,
};

/* The callbacks and settings that we may use; libbpf matches members by name. A member that the
 * running kernel lacks must be nulled before load. */
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dequeue)(struct task_struct *p, u64 deq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cpumask)(struct task_struct *p, const struct cpumask *cpumask);
	void (*update_idle)(s32 cpu, bool idle);
	void (*cpu_acquire)(s32 cpu, struct scx_cpu_acquire_args *args);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	void (*dump)(struct scx_dump_ctx *ctx);
	void (*dump_cpu)(struct scx_dump_ctx *ctx, s32 cpu, bool idle);
	void (*dump_task)(struct scx_dump_ctx *ctx, struct task_struct *p);
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u32 dispatch_max_batch;
	u64 flags; /* SCX_OPS_*, resolved by the loader from the kernel's BTF */
	u32 timeout_ms;
	u32 exit_dump_len;
	u64 hotplug_seq;
	char name[128];
};

#endif /* TWOPOOL_KERNEL_TYPES_H */
