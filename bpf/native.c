/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * native.c - the classification of the kernel program, built for the host.
 *
 * What a test of millions of threads needs: the same source under the same masks, without a kernel.
 * Threads come as strings and numbers (native_classify), or through a tree of cgroups with their
 * caches, so that the cache's publication meets real memory (native_classify_in).
 */
#define TWOPOOL_NATIVE
#include "kernel.h"
#include "maps.h"
#include "classify.h"
#include "probe.h"

#include <stdlib.h>

/* ---- threads from strings ---- */

/* `path_len` is at most PROBE_PATH_LEN. False if the image cannot be used. */
bool native_classify(const struct policy_image *img, const struct probe_thread *thread,
		     struct thread_class *class)
{
	struct scratch *s = k_map_value(scratches, SCRATCH_PROBE);

	class_fallback(class);
	if (!image_usable(img))
		return false;
	probe_class(img, s, thread, class);
	return true;
}

/* ---- threads in cgroups ---- */

struct native_cgroup {
	struct cgroup cgrp;		/* first: the two are one address */
	struct kernfs_node kn;
	struct native_cgroup *parent;
	struct cgroup_cache cache;
	char name[CGROUP_NAME_LEN];
};

struct native_cgroup *native_cgroup_new(struct native_cgroup *parent, const char *name, u64 id)
{
	struct native_cgroup *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	strncpy(c->name, name, sizeof(c->name) - 1);
	c->parent = parent;
	c->kn.name = c->name;
	c->kn.id = id;
	c->cgrp.kn = &c->kn;
	c->cgrp.level = parent ? parent->cgrp.level + 1 : 0;
	return c;
}

void native_cgroup_free(struct native_cgroup *c)
{
	free(c);
}

/* Epoch of the cached row; 0 = none. */
u32 native_cgroup_epoch(struct native_cgroup *c)
{
	return k_read_once(c->cache.epoch);
}

struct cgroup *k_cgroup_ancestor(struct cgroup *cgrp, int level)
{
	struct native_cgroup *c = (struct native_cgroup *)cgrp;

	while (c && c->cgrp.level > level)
		c = c->parent;
	return c ? &c->cgrp : NULL;
}

void *native_cgroup_storage(const void *map, struct cgroup *cgrp, u64 size, bool create)
{
	return &((struct native_cgroup *)cgrp)->cache;
}

bool native_classify_in(const struct policy_image *img, struct native_cgroup *c,
			const struct thread_key *key, struct thread_class *class)
{
	struct scratch *s = k_map_value(scratches, SCRATCH_SCHED);

	class_fallback(class);
	if (!image_usable(img))
		return false;
	return classify(img, s, &c->cgrp, key, class);
}

/* ---- a thread that changes ---- */

/* classify_refresh() on a thread made of these values; `t` keeps its class from call to call. */
bool native_refresh(const struct policy_image *img, struct native_cgroup *c,
		    const struct thread_key *is, struct task_ctx *t)
{
	struct css_set cgroups = { .dfl_cgrp = &c->cgrp };
	struct cred cred = { .euid = { is->uid }, .egid = { is->gid } };
	struct task_struct leader = { .pid = 1, .tgid = 1 };
	u32 sched = is->bits >> KEY_SCHED_SHIFT & 3;
	struct task_struct p = {
		.pid = is->bits & KEY_LEADER ? 1 : 2,
		.tgid = 1,
		.flags = is->bits & KEY_KTHREAD ? PF_KTHREAD : 0,
		.static_prio = (int)(is->bits >> KEY_NICE_SHIFT & KEY_NICE_MASK) - 20 + DEFAULT_PRIO,
		.policy = sched == 1 ? SCHED_BATCH : sched == 2 ? SCHED_IDLE : 0,
		.real_cred = &cred,
		.cgroups = &cgroups,
		.group_leader = &leader,
	};

	memcpy(p.comm, is->thread, sizeof(p.comm));
	memcpy(leader.comm, is->process, sizeof(leader.comm));
	return classify_refresh(&p, t, img);
}

/* ---- what Rust says of the layout, C confirms ---- */

struct native_field {
	const char *name;
	u64 offset;
	u64 size;
};

#define IMAGE_FIELD(field)                                                                         \
	{ #field, offsetof(struct policy_image, field), sizeof(((struct policy_image *)0)->field) }
#define SIZE_OF(type) { #type, 0, sizeof(struct type) }
#define VALUE_OF(constant) { #constant, 0, constant }

static const struct native_field fields[] = {
	IMAGE_FIELD(abi),
	IMAGE_FIELD(epoch),
	IMAGE_FIELD(words),
	IMAGE_FIELD(rule_count),
	IMAGE_FIELD(plane_rows),
	IMAGE_FIELD(rows),
	IMAGE_FIELD(names),
	IMAGE_FIELD(name_slots),
	IMAGE_FIELD(name_displacements),
	IMAGE_FIELD(name_seed),
	IMAGE_FIELD(name_dims),
	IMAGE_FIELD(cgroup),
	IMAGE_FIELD(user),
	IMAGE_FIELD(group),
	IMAGE_FIELD(hint),
	IMAGE_FIELD(nice_row),
	IMAGE_FIELD(flags_row),
	IMAGE_FIELD(alt_rule),
	IMAGE_FIELD(rules),
	IMAGE_FIELD(pools),
	IMAGE_FIELD(steal_ns),
	IMAGE_FIELD(sizing_interval_ns),
	IMAGE_FIELD(background_wait_ns),
	IMAGE_FIELD(hint_boost_ns),
	IMAGE_FIELD(hint_share_permille),
	IMAGE_FIELD(pool_used),
	IMAGE_FIELD(pool),
};

static const struct native_field sizes[] = {
	SIZE_OF(dfa),	       SIZE_OF(unit),	       SIZE_OF(automata),
	SIZE_OF(name_entry),   SIZE_OF(name_dim),      SIZE_OF(ranges),
	SIZE_OF(rule_settings), SIZE_OF(pool_settings), SIZE_OF(policy_image),
};

static const struct native_field constants[] = {
	VALUE_OF(IMAGE_ABI),	   VALUE_OF(MAX_RULES),	      VALUE_OF(RULE_SLOTS),
	VALUE_OF(MAX_ALTS),	   VALUE_OF(MAX_ROW_WORDS),   VALUE_OF(MAX_EXACT_NAMES),
	VALUE_OF(MAX_BOUNDS),	   VALUE_OF(MAX_DFAS),	      VALUE_OF(MAX_NAME_UNITS),
	VALUE_OF(MAX_PATH_UNITS),  VALUE_OF(UNIT_SHIFTS),     VALUE_OF(POOL_WORDS),
	VALUE_OF(STEAL_OFF),	   VALUE_OF(CPUS_PERCENT),    VALUE_OF(RULE_HINTS),
};

/* Table `table` (0: fields of struct policy_image, 1: struct sizes, 2: constants) as C sees it. */
const struct native_field *native_layout(u32 table, u64 *count)
{
#define TABLE(t) (*count = sizeof(t) / sizeof((t)[0]), (t))
	return table == 0 ? TABLE(fields) : table == 1 ? TABLE(sizes) : TABLE(constants);
}

_Static_assert(sizeof(struct task_ctx) <= 128, "room for a task_ctx on the Rust side");
