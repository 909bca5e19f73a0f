/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * report.h - a task iterator that tells what the scheduler thinks of each thread.
 *
 * It answers "which pool is this thread in, and would it be the same if it were looked up now",
 * without storing anything: the class it computes is thrown away, the thread finds out by itself.
 * It may look while the thread's own CPU writes its context, so that a line can be half old; the
 * next reading is right, and nothing is decided here.
 */
#ifndef TWOPOOL_REPORT_H
#define TWOPOOL_REPORT_H

#include "classify.h"

/* Puts the struct among the skeleton's types: the loader decodes reports by this very layout. */
const volatile struct task_report report_layout;

static void report_fresh(struct task_report *r, const struct policy_image *img, struct cgroup *cgrp,
			 const struct thread_key *key)
{
	struct scratch *s = k_map_value(scratches, SCRATCH_REPORT);

	if (!image_usable(img) || !s || k_cmpxchg(&s->busy, 0, 1)) {
		r->flags |= REPORT_NO_FRESH;
		return;
	}
	classify(img, s, cgrp, key, &r->fresh);
	k_write_once(s->busy, 0);
}

TASK_ITERATOR(dump_tasks, ctx)
{
	const struct policy_image *img = k_image();
	struct task_struct *p = k_iter_thread(ctx);
	struct task_report r = {};
	struct task_ctx *t;
	struct thread_key key;
	struct cgroup *cgrp;

	if (!p)
		return 0;
	cgrp = k_task_cgroup(p);
	key_read(&key, p, cgrp, img ? img->epoch : 0);
	r.tid = p->pid;
	r.tgid = p->tgid;
	*(u64 *)&r.comm[0] = key.thread[0];
	*(u64 *)&r.comm[8] = key.thread[1];
	r.flags = k_is_ours(p) ? 0 : REPORT_NOT_OURS;
	t = k_task_storage(task_ctxs, p, false);
	if (t) {
		r.flags |= REPORT_HAS_CONTEXT | (key_equal(&t->key, &key) ? 0 : REPORT_STALE);
		r.acting = t->class;
		r.epoch = t->key.epoch;
	}
	report_fresh(&r, img, cgrp, &key);
	k_iter_write(ctx, &r);
	return 0;
}

#endif /* TWOPOOL_REPORT_H */
