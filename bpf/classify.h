/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * classify.h - which pool a thread is in, and by which rule.
 *
 * A thread's class is a pure function of the policy image and of a fingerprint, struct thread_key.
 * Task storage keeps the fingerprint that the class was computed from. Whoever is about to act on
 * the class compares it with the thread as it is now, a few loads, and classifies again only when
 * something changed. So renames, exec, a leader's rename, cgroup moves, setuid, nice, sched_setattr
 * and reloads are one mechanism, and there is no event to miss.
 *
 * What may race: a name is read while it is written, and half of it is old. The class is computed
 * from the very bytes that are stored, never from a second look, so the next comparison sees the
 * rest of the name and puts it right. Values are compared, never pointers, which can be reused.
 *
 * Classification itself: each dimension maps its value to a row of bits, the alternatives it does
 * not rule out; AND them; the first bit is the rule. The cost does not depend on the number of
 * rules. The cgroup's row is cached in cgroup storage, see cgroup_row().
 */
#ifndef TWOPOOL_CLASSIFY_H
#define TWOPOOL_CLASSIFY_H

#include "kernel.h"
#include "image.h"
#include "maps.h"

/* Scratch is per CPU, so its users must not be preempted by one another. Scheduling callbacks run
 * with interrupts off and do not nest. The others are preemptible and take `busy`. */
enum scratch_user {
	SCRATCH_SCHED = 0,
	SCRATCH_REPORT = 1,
	SCRATCH_PROBE = 2,
	NR_SCRATCH_USERS = 4,
};
K_PERCPU_ARRAY(scratches, NR_SCRATCH_USERS, struct scratch);

/* What a cgroup's path contributes, kept per cgroup.
 *
 * Published as a whole or not at all: a writer takes the lock word, zeroes the epoch, writes, and
 * writes the epoch last; a reader looks at the epoch before and after. Epochs only grow, so a
 * reader that sees the same one twice has read what was written under it. Whoever finds the lock
 * taken uses its own result and goes its way. The key is complete: ids of cgroups are not reused
 * within storage, and a v2 cgroup cannot be renamed. */
struct cgroup_cache {
	u32 lock;
	u32 epoch;			/* of what follows; 0 = nothing valid */
	u32 newest;			/* highest epoch ever written; under the lock */
	u32 pad;
	u64 row[MAX_ROW_WORDS];
	u32 q[MAX_DFAS];
	u64 d[MAX_PATH_UNITS];
	u64 acc[MAX_PLANE_WORDS];
};
K_CGROUP_STORAGE(cgroup_caches, struct cgroup_cache);

/* ---- names and numbers ---- */

/* The bytes of `w` before its first NUL, and zeros. */
static inline u64 until_nul(u64 w)
{
	u64 nul = (w - 0x0101010101010101ull) & ~w & 0x8080808080808080ull;

	/* the lowest marker is exact; those above it may be borrows */
	return w & (((nul & -nul) >> 7) - 1);
}

/* A name as the tables have it. The 16th byte is NUL in the kernel, and here whatever came. */
static inline void normalise(struct name *to, const u64 name[2])
{
	u64 nul = (name[0] - 0x0101010101010101ull) & ~name[0] & 0x8080808080808080ull;

	to->w[0] = until_nul(name[0]);
	to->w[1] = until_nul(name[1] & ~(0xffull << 56)) & (is_zero(nul) ? ~0ull : 0);
}

/* ANDs the row of one name into s->row. `exact` is its plane row as an exact name. */
SHARED(int) apply_name(const struct policy_image *img __arg_nonnull,
		       struct scratch *s __arg_nonnull, const struct name_dim *dim __arg_nonnull,
		       const struct name *name __arg_nonnull, u32 exact)
{
	u64 *text = (u64 *)s->text;
	struct alt_row row = {};
	u32 len;

	if (dim->automata.dfa_count | dim->automata.unit_count) {
		text[0] = name->w[0];
		text[1] = name->w[1];
		for (len = 0; len < NAME_LEN - 1; len++)
			if (!s->text[len])
				break;
		walk_start(img, dim, s);
		walk_text(img, dim, s, len);
		walk_finish(img, dim, s);
	} else {
		load_plane_row(img, &s->acc, dim->init);
	}
	add_plane_row(img, &s->acc, exact);
	resolve_planes(img, &s->acc, &row);
	for (u32 i = 0; i < MAX_ROW_WORDS; i++)
		s->row.w[i] &= row.w[i];
	return 0;
}

static void apply_names(const struct policy_image *img, struct scratch *s)
{
	const struct facts *f = &s->facts;
	u64 exact = find_name(img, &f->thread);

	apply_name(img, s, &img->name_dims[DIM_THREAD], &f->thread, exact);
	if ((f->thread.w[0] ^ f->process.w[0]) | (f->thread.w[1] ^ f->process.w[1]))
		exact = find_name(img, &f->process);
	apply_name(img, s, &img->name_dims[DIM_PROCESS], &f->process, exact >> 32);
}

/* The rule of the first alternative in s->row; slot 0, the default pool, if there is none. */
static u32 first_rule(const struct policy_image *img, const struct scratch *s)
{
	u32 words = img->words;

	for (u32 i = 0; i < MAX_ROW_WORDS; i++) {
		if (i >= words)
			break;
		if (s->row.w[i])
			return img->alt_rule[i * 64 + k_ctz(s->row.w[i])];
	}
	return 0;
}

/* The class of a thread with s->facts, whose cgroup's row is in s->cgroup_row. Names come last:
 * they cost most, and often nothing is left for them to decide. */
static void class_of(const struct policy_image *img, struct scratch *s, struct thread_class *class)
{
	const struct facts *f = &s->facts;
	const struct rule_settings *rule;
	u32 slot = 0;

	s->ids.nice = img->nice_row[f->bits >> KEY_NICE_SHIFT & KEY_NICE_MASK];
	s->ids.flags = img->flags_row[f->bits & KEY_FLAGS_MASK];
	s->ids.user = range_row(img, &img->user, f->uid);
	s->ids.group = range_row(img, &img->group, f->gid);
	s->ids.hint = range_row(img, &img->hint, f->bits >> KEY_HINT_SHIFT & KEY_HINT_MASK);
	if (and_number_rows(img, s)) {
		apply_names(img, s);
		slot = first_rule(img, s) & (RULE_SLOTS - 1);
	}
	rule = &img->rules[slot];
	class->slice_ns = rule->slice_ns;
	class->weight = rule->weight;
	class->rule = slot;
	class->pool = rule->pool & (NR_POOLS - 1);
	class->flags = rule->flags;
}

/* ---- cgroups ---- */

/* The root's path is "/", which is not the beginning of "/a": it has a row of its own. */
static void cgroup_row_of_root(const struct policy_image *img, struct scratch *s)
{
	load_plane_row(img, &s->acc, img->cgroup.root);
	resolve_planes(img, &s->acc, &s->cgroup_row);
}

/* Row of the path walked so far. */
static void cgroup_row_of_walk(const struct policy_image *img, struct scratch *s)
{
	walk_finish(img, &img->cgroup, s);
	resolve_planes(img, &s->acc, &s->cgroup_row);
}

/* Takes the row from the cache. False if it is not there. */
static bool cache_load_row(const struct cgroup_cache *c, struct scratch *s, u32 epoch)
{
	if (k_read_once(c->epoch) != epoch)
		return false;
	k_mb();
	for (u32 i = 0; i < MAX_ROW_WORDS; i++)
		s->cgroup_row.w[i] = c->row[i];
	k_mb();
	return k_read_once(c->epoch) == epoch;
}

/* Takes the state from the cache. It goes through `spare`: if the second look at the epoch fails,
 * s->walk must still be the parent's state, from which the caller then walks. */
static bool cache_load_walk(const struct cgroup_cache *c, struct scratch *s, u32 epoch)
{
	if (!cache_load_row(c, s, epoch))
		return false;
	for (u32 i = 0; i < MAX_DFAS; i++)
		s->spare.q[i] = c->q[i];
	for (u32 i = 0; i < MAX_PATH_UNITS; i++)
		s->spare.d[i] = c->d[i];
	for (u32 i = 0; i < MAX_PLANE_WORDS; i++)
		s->spare.acc.w[i] = c->acc[i];
	k_mb();
	if (k_read_once(c->epoch) != epoch)
		return false;
	for (u32 i = 0; i < MAX_DFAS; i++)
		s->walk.q[i] = s->spare.q[i];
	for (u32 i = 0; i < MAX_PATH_UNITS; i++)
		s->walk.d[i] = s->spare.d[i];
	s->walk.acc = s->spare.acc;
	return true;
}

static void cache_store(struct cgroup_cache *c, const struct scratch *s, u32 epoch)
{
	if (k_cmpxchg(&c->lock, 0, 1))
		return;
	/* a program that still runs under the previous image must not undo a later one's work */
	if ((s32)(epoch - c->newest) >= 0) {
		k_write_once(c->epoch, 0);
		k_mb();
		c->newest = epoch;
		for (u32 i = 0; i < MAX_ROW_WORDS; i++)
			c->row[i] = s->cgroup_row.w[i];
		for (u32 i = 0; i < MAX_DFAS; i++)
			c->q[i] = s->walk.q[i];
		for (u32 i = 0; i < MAX_PATH_UNITS; i++)
			c->d[i] = s->walk.d[i];
		for (u32 i = 0; i < MAX_PLANE_WORDS; i++)
			c->acc[i] = s->walk.acc.w[i];
		k_mb();
		k_write_once(c->epoch, epoch);
	}
	k_mb();
	k_write_once(c->lock, 0);
}

/* One level down: from the parent's state in s->walk to that of `cgrp`, and its row. */
static void cgroup_step(const struct policy_image *img, struct scratch *s, struct cgroup *cgrp)
{
	struct cgroup_cache *c = k_cgroup_storage(cgroup_caches, cgrp, true);

	if (c && cache_load_walk(c, s, img->epoch))
		return;
	s->text[0] = '/';
	walk_text(img, &img->cgroup, s, 1 + k_cgroup_name(cgrp, s->text + 1));
	cgroup_row_of_walk(img, s);
	if (c)
		cache_store(c, s, img->epoch);
}

/* Puts the row of a thread's cgroup into s->cgroup_row. The path is never built: a child's state is
 * its parent's walked over "/name". About 45 instructions a byte where nothing is cached, once per
 * cgroup and image. Not inlined: its stack must not add to that of class_of(). */
static __noinline int cgroup_row(const struct policy_image *img, struct scratch *s,
				 struct cgroup *cgrp)
{
	struct cgroup_cache *c;
	s32 depth = cgrp->level, level;

	if (depth <= 0) {
		cgroup_row_of_root(img, s);
		return 0;
	}
	c = k_cgroup_storage(cgroup_caches, cgrp, false);
	if (c && cache_load_row(c, s, img->epoch))
		return 0;
	walk_start(img, &img->cgroup, s);
	k_for(level, 1, depth + 1) {
		struct cgroup *at = k_cgroup_ancestor(cgrp, level);

		if (!at)
			break;
		cgroup_step(img, s, at);
		k_cgroup_release(at);
	}
	return 0;
}

/* ---- threads ---- */

/* Two bits for each SCHED_* policy: 1 for batch, 2 for idle, 0 for everything else. */
#define SCHED_CODES (1u << 2 * SCHED_BATCH | 2u << 2 * SCHED_IDLE)

/* The fingerprint of a thread as it is now. */
static inline void key_read(struct thread_key *key, struct task_struct *p, struct cgroup *cgrp,
			    u32 epoch)
{
	struct task_struct *leader = p->group_leader;
	const struct cred *cred = p->real_cred;

	key->thread[0] = *(const u64 *)&p->comm[0];
	key->thread[1] = *(const u64 *)&p->comm[8];
	key->process[0] = *(const u64 *)&leader->comm[0];
	key->process[1] = *(const u64 *)&leader->comm[8];
	key->cgroup_id = cgrp->kn->id;
	key->uid = cred->euid.val;
	key->gid = cred->egid.val;
	/* without branches: this runs several times per wake */
	key->bits = (p->flags & PF_KTHREAD ? KEY_KTHREAD : 0) |
		    (u32)is_zero(p->pid ^ p->tgid) * KEY_LEADER |
		    (SCHED_CODES >> (p->policy & 7) * 2 & 3) << KEY_SCHED_SHIFT |
		    ((u32)(p->static_prio - DEFAULT_PRIO + 20) & KEY_NICE_MASK) << KEY_NICE_SHIFT;
	key->epoch = epoch;
	key->reserved = 0;
}

static inline bool key_equal(const struct thread_key *a, const struct thread_key *b)
{
	return !((a->thread[0] ^ b->thread[0]) | (a->thread[1] ^ b->thread[1]) |
		 (a->process[0] ^ b->process[0]) | (a->process[1] ^ b->process[1]) |
		 (a->cgroup_id ^ b->cgroup_id) | (a->uid ^ b->uid) | (a->gid ^ b->gid) |
		 (a->bits ^ b->bits) | (a->epoch ^ b->epoch));
}

static inline void facts_of_key(struct facts *f, const struct thread_key *key)
{
	normalise(&f->thread, key->thread);
	normalise(&f->process, key->process);
	f->uid = key->uid;
	f->gid = key->gid;
	f->bits = key->bits;
	f->pad = 0;
}

/* Where there is no policy to ask: what the pool of everything else has by default. */
static inline void class_fallback(struct thread_class *class)
{
	class->slice_ns = 20 * 1000000;
	class->weight = 100;
	class->rule = 0;
	class->pool = POOL_BACKGROUND;
	class->flags = 0;
}

static inline bool image_usable(const struct policy_image *img)
{
	return img && img->abi == IMAGE_ABI && img->epoch;
}

/* The class that a snapshot gives. */
static inline bool classify(const struct policy_image *img, struct scratch *s,
				struct cgroup *cgrp, const struct thread_key *key,
				struct thread_class *class)
{
	facts_of_key(&s->facts, key);
	cgroup_row(img, s, cgrp);
	class_of(img, s, class);
	return true;
}

/* Takes a new fingerprint and the class that it gives. */
static __noinline bool classify_anew(struct task_struct *p, struct task_ctx *t,
				     const struct policy_image *img)
{
	struct scratch *s = k_map_value(scratches, SCRATCH_SCHED);
	struct cgroup *cgrp = k_task_cgroup(p);
	struct thread_class before = t->class;
	u32 epoch = t->key.epoch;

	key_read(&t->key, p, cgrp, img ? img->epoch : 0);
	if (image_usable(img) && s) {
		classify(img, s, cgrp, &t->key, &t->class);
	} else {
		class_fallback(&t->class);
		t->key.epoch = 0;
	}
	return t->key.epoch != epoch || before.rule != t->class.rule ||
	       before.pool != t->class.pool || before.slice_ns != t->class.slice_ns ||
	       before.weight != t->class.weight;
}

/* Brings t->key and t->class up to date. True if the class changed, or the policy that gave it.
 * Where no image can be used, the class is the background pool's and t->key.epoch stays 0, for
 * the caller to count. From scheduling callbacks alone.
 *
 * The fingerprint is looked at here and taken anew there, so that the look, which is what happens
 * thousands of times a second, needs no memory for it. */
static inline bool classify_refresh(struct task_struct *p, struct task_ctx *t,
				    const struct policy_image *img)
{
	struct thread_key now;

	if (img && t->key.epoch) {
		key_read(&now, p, k_task_cgroup(p), img->epoch);
		if (key_equal(&now, &t->key))
			return false;
	}
	return classify_anew(p, t, img);
}

#endif /* TWOPOOL_CLASSIFY_H */
