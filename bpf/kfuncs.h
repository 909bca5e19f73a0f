/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kfuncs.h - the kernel's functions and enum values, under one name whatever its version.
 *
 * The part of kernel.h that knows versions; included by it and by nothing else.
 */
#ifndef TWOPOOL_KFUNCS_H
#define TWOPOOL_KFUNCS_H

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
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) __ksym;
const struct cpumask *scx_bpf_get_idle_cpumask(void) __ksym;
const struct cpumask *scx_bpf_get_idle_smtmask(void) __ksym;
void scx_bpf_put_idle_cpumask(const struct cpumask *idle_mask) __ksym;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
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
bool scx_bpf_dispatch_from_dsq(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq_id,
			       u64 enq_flags) __ksym __weak;
u32 scx_bpf_reenqueue_local(void) __ksym __weak;

/* From 6.12; nothing fails without them. */
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __ksym __weak;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym __weak;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym __weak;

/* From 6.13. */
void scx_bpf_dsq_insert___v1(struct task_struct *p, u64 dsq_id, u64 slice,
			     u64 enq_flags) __ksym __weak;
void scx_bpf_dsq_insert_vtime___v1(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
				   u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local___v1(u64 dsq_id) __ksym __weak;
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq_id,
		      u64 enq_flags) __ksym __weak;

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
void scx_bpf_reenqueue_local___v2___new(void) __ksym __weak;

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

/* Moves all threads of one queue to another, where the kernel can. Not with a runqueue locked: from
 * cpu_offline, for example. */
static inline void k_move_all(u64 from, u64 to)
{
	struct task_struct *p;

	if (!bpf_ksym_exists(bpf_iter_scx_dsq_new))
		return;
	bpf_for_each(scx_dsq, p, from, 0) {
		if (bpf_ksym_exists(scx_bpf_dsq_move))
			scx_bpf_dsq_move(&___it, p, to, 0);
		else if (bpf_ksym_exists(scx_bpf_dispatch_from_dsq))
			scx_bpf_dispatch_from_dsq(&___it, p, to, 0);
	}
}

/* Enqueues anew what stands in this CPU's local queue. From cpu_release alone, on kernels that lack the
 * next one. */
static inline void k_reenqueue_local(void)
{
	if (bpf_ksym_exists(scx_bpf_reenqueue_local))
		scx_bpf_reenqueue_local();
}

/* The same once the CPU has switched threads, and from anywhere. */
static inline void k_reenqueue_local_soon(void)
{
	if (bpf_ksym_exists(scx_bpf_reenqueue_local___v2___new))
		scx_bpf_reenqueue_local___v2___new();
}

static inline void k_set_slice(struct task_struct *p, u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice);
	else
		p->scx.slice = slice;
}

/* From init alone (sleepable). Negative on failure. */
#define k_create_dsq(dsq, node) scx_bpf_create_dsq(dsq, node)

/* ---- CPUs and time ------------------------------------------------------------------------- */

/* ns. Cached per runqueue where the kernel can: a stamp is exact only for its own CPU. */
static inline u64 k_now(void)
{
	return bpf_ksym_exists(scx_bpf_now) ? scx_bpf_now() : bpf_ktime_get_ns();
}

#define k_kick(cpu, flags) scx_bpf_kick_cpu(cpu, flags)
#define k_test_and_clear_idle(cpu) scx_bpf_test_and_clear_cpu_idle(cpu)
#define k_task_cpu(p) scx_bpf_task_cpu(p)
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

#endif /* TWOPOOL_KFUNCS_H */
