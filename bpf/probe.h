/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * probe.h - classification of made-up threads, for tests: the very functions that classify real
 * ones, behind a program that can be run on demand.
 *
 * The loader leaves `probe` out unless a test asks for it. A path comes as a string and is walked
 * component by component, as cgroup_row() walks from parent to child, without the cache.
 */
#ifndef TWOPOOL_PROBE_H
#define TWOPOOL_PROBE_H

#include "classify.h"

struct path_walk {
	const struct policy_image *img;
	struct scratch *s;
	const char *path;		/* PROBE_PATH_LEN bytes */
};

/* The length is kept in the map and not on the stack: the verifier would follow a counter that it
 * knows through every iteration. */
static int path_byte(u32 i, struct path_walk *w)
{
	char b = w->path[i & (PROBE_PATH_LEN - 1)];
	u64 len = w->s->text_len;

	if (b == '/' && len) {
		walk_text(w->img, &w->img->cgroup, w->s, len);
		len = 0;
	}
	w->s->text[len & (TEXT_LEN - 1)] = b;
	w->s->text_len = len + 1;
	return 0;
}

/* Puts the row of a path into s->cgroup_row. */
static void path_row(const struct policy_image *img, struct scratch *s, const char *path, u32 len)
{
	struct path_walk w = { .img = img, .s = s, .path = path };

	if (len <= 1) {
		cgroup_row_of_root(img, s);
		return;
	}
	walk_start(img, &img->cgroup, s);
	s->text_len = 0;
	k_loop(len, path_byte, &w);
	walk_text(img, &img->cgroup, s, s->text_len);
	cgroup_row_of_walk(img, s);
}

static void probe_class(const struct policy_image *img, struct scratch *s,
			const struct probe_thread *t, struct thread_class *class)
{
	struct facts *f = &s->facts;

	normalise(&f->thread, t->thread);
	normalise(&f->process, t->process);
	f->uid = t->uid;
	f->gid = t->gid;
	f->bits = t->bits;
	path_row(img, s, t->path, t->path_len);
	class_of(img, s, class);
}

#ifndef TWOPOOL_NATIVE
K_ARRAY(probe_threads, PROBE_BATCH, struct probe_thread);
K_ARRAY(probe_classes, PROBE_BATCH, struct thread_class);

struct probe_run {
	const struct policy_image *img;
	struct scratch *s;
};

static int probe_one(u32 i, struct probe_run *r)
{
	struct probe_thread *t = k_map_value(probe_threads, i);
	struct thread_class *class = k_map_value(probe_classes, i);

	if (t && class)
		probe_class(r->img, r->s, t, class);
	return 0;
}

SEC("?syscall")
int probe(struct probe_args *args)
{
	struct probe_run r = { .img = k_image(), .s = k_map_value(scratches, SCRATCH_PROBE) };

	if (!image_usable(r.img) || !r.s || k_cmpxchg(&r.s->busy, 0, 1))
		return 1;
	k_loop(args->count, probe_one, &r);
	k_write_once(r.s->busy, 0);
	return 0;
}
#endif

#endif /* TWOPOOL_PROBE_H */
