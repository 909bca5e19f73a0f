/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * image.h - reading a policy image: rows, names, numbers and automata, as intf.h lays them out.
 *
 * Invariant: whatever bytes the image holds, no read leaves it and no loop runs away. Every index
 * into it is masked by a power of two, never bounded by a comparison: clang moves the address
 * computation above a check, and the verifier then answers "unbounded memory access". "No entry"
 * is a row id like any other (0), not a special case. Loops over the image's own counts have
 * constant bounds and end early.
 *
 * Branches cost verification time, since each doubles the paths; searches are branch-free.
 */
#ifndef TWOPOOL_IMAGE_H
#define TWOPOOL_IMAGE_H

#include "kernel.h"

#define PLANE_SLOTS 32		/* power of two above MAX_PLANE_WORDS */
#define TEXT_LEN 512		/* power of two above a '/' and one component */

/* Structs rather than arrays: a function that is verified alone knows the size of a struct. */
struct plane_row {
	u64 w[PLANE_SLOTS];
};

struct alt_row {
	u64 w[MAX_ROW_WORDS];
};

struct name {
	u64 w[2];			/* 15 bytes; from the first NUL on all are NUL */
};

/* What rules see of a thread, ready to be looked up. */
struct facts {
	struct name thread;
	struct name process;
	u64 uid;			/* u64: simulated threads may have ids that no thread has */
	u64 gid;
	u32 bits;			/* as thread_key.bits */
	u32 pad;
};

/* The state of one dimension's automata after some bytes of a value. */
struct walk_state {
	u32 q[MAX_DFAS];
	u64 d[MAX_UNITS];		/* bit-parallel units */
	struct plane_row acc;		/* so far, without what the end adds */
};

/* Rows of a thread's numbers. */
struct row_ids {
	u32 nice;
	u32 flags;
	u32 user;
	u32 group;
	u32 hint;
	u32 pad;
};

/* What does not fit a BPF stack. Per CPU and per kind of caller, see enum scratch_user. */
struct scratch {
	u64 busy;			/* taken by a preemptible user */
	struct facts facts;		/* of the thread that is being classified */
	struct row_ids ids;
	u64 text_len;			/* of a component that is being collected, see probe.h */
	struct walk_state walk;
	struct walk_state spare;	/* on its way from a cache */
	struct plane_row acc;		/* of a finished value */
	struct alt_row row;		/* alternatives that nothing has ruled out so far */
	struct alt_row cgroup_row;
	u16 cls[TEXT_LEN];		/* class of each byte of text to the units */
	char text[TEXT_LEN];		/* bytes to walk */
};

/* ---- the pool ---- */

static inline u64 pool_u64(const struct policy_image *img, u32 at)
{
	return img->pool[at & (POOL_WORDS - 1)];
}

static inline u32 pool_u16(const struct policy_image *img, u32 at)
{
	return ((const u16 *)img->pool)[at & (POOL_WORDS * 4 - 1)];
}

/* Sets acc to plane row `id`. Words beyond the rows in use are not touched, here and below. */
SHARED(int) load_plane_row(const struct policy_image *img __arg_nonnull,
			   struct plane_row *acc __arg_nonnull, u32 id)
{
	u32 n = 3 * img->words;
	u32 at = img->plane_rows + id * n;

	for (u32 i = 0; i < MAX_PLANE_WORDS; i++) {
		if (i >= n)
			break;
		acc->w[i] = pool_u64(img, at + i);
	}
	return 0;
}

SHARED(int) or_plane_row(const struct policy_image *img __arg_nonnull,
			 struct plane_row *acc __arg_nonnull, u32 id)
{
	u32 n = 3 * img->words;
	u32 at = img->plane_rows + id * n;

	for (u32 i = 0; i < MAX_PLANE_WORDS; i++) {
		if (i >= n)
			break;
		acc->w[i] |= pool_u64(img, at + i);
	}
	return 0;
}

/* ORs plane row `id` into acc. Row 0 is all zeros, and by far the most frequent: not worth a
 * call. */
static inline void add_plane_row(const struct policy_image *img, struct plane_row *acc, u32 id)
{
	if (id)
		or_plane_row(img, acc, id);
}

/* The row of a plane row: the own condition and that of `any` hold, that of `not` does not. */
SHARED(int) resolve_planes(const struct policy_image *img __arg_nonnull,
			   const struct plane_row *acc __arg_nonnull,
			   struct alt_row *row __arg_nonnull)
{
	u32 words = img->words;

	for (u32 i = 0; i < MAX_ROW_WORDS; i++) {
		if (i >= words)
			break;
		row->w[i] = acc->w[i] & acc->w[(words + i) & (PLANE_SLOTS - 1)] &
			    ~acc->w[(2 * words + i) & (PLANE_SLOTS - 1)];
	}
	return 0;
}

/* Sets s->row to what s->cgroup_row and the rows of the numbers leave. False if that is nothing. */
SHARED(int) and_number_rows(const struct policy_image *img __arg_nonnull,
			    struct scratch *s __arg_nonnull)
{
	u32 words = img->words, rows = img->rows;
	u32 nice = rows + s->ids.nice * words, flags = rows + s->ids.flags * words;
	u32 user = rows + s->ids.user * words, group = rows + s->ids.group * words;
	u32 hint = rows + s->ids.hint * words;
	u64 any = 0;

	for (u32 i = 0; i < MAX_ROW_WORDS; i++) {
		u64 w;

		if (i >= words)
			break;
		w = s->cgroup_row.w[i] & pool_u64(img, nice + i) & pool_u64(img, flags + i) &
		    pool_u64(img, user + i) & pool_u64(img, group + i) & pool_u64(img, hint + i);
		s->row.w[i] = w;
		any |= w;
	}
	return any != 0;
}

/* ---- searches ---- */

/* 1 if a < b, else 0, from the borrow of a - b: BPF has no set-on-condition, so that `a < b` would
 * be a branch, and fourteen of them in a search are 2^14 paths. */
static inline u64 below(u64 a, u64 b)
{
	return k_opaque(((~a & b) | ((~a | b) & (a - b))) >> 63);
}

static inline u64 is_zero(u64 x)
{
	return k_opaque(~(x | -x) >> 63);
}

/* Row id of `value` in a range table. */
SHARED(u32) range_row(const struct policy_image *img __arg_nonnull,
		      const struct ranges *r __arg_nonnull, u64 value)
{
	u32 at = 0, step = r->slots;

	for (u32 i = 0; i < BOUND_STEPS; i++) {
		step >>= 1;
		if (!step)
			break;
		at += step & ((u32)below(value, pool_u64(img, r->starts + at + step)) - 1);
	}
	return pool_u16(img, r->rows + at);
}

/* Plane rows of an exact name: for DIM_THREAD in the low half, for DIM_PROCESS in the high one; 0
 * if the name is not in the table. */
SHARED(u64) find_name(const struct policy_image *img __arg_nonnull,
		      const struct name *name __arg_nonnull)
{
	u32 slots = img->name_slots, step, entry;
	u64 hash = (name->w[0] ^ img->name_seed) * 0x9e3779b97f4a7c15ull;

	/* twice more: a multiplication carries nothing down, and names often differ in their last byte */
	hash = (hash ^ (hash >> 32) ^ name->w[1]) * 0xd6e8feb86659fd93ull;
	hash = (hash ^ (hash >> 32)) * 0x9e3779b97f4a7c15ull;
	hash ^= hash >> 32;
	step = (u32)(hash >> 24) | 1;
	/* a table of less than four slots has one displacement: the mask is then 0 */
	step *= pool_u16(img, img->name_displacements + ((u32)(hash >> 48) & ((slots - 1) >> 2)));
	entry = img->names + 3 * (((u32)hash + step) & (slots - 1));
	return pool_u64(img, entry + 2) & -is_zero((name->w[0] ^ pool_u64(img, entry)) |
						   (name->w[1] ^ pool_u64(img, entry + 1)));
}

/* ---- automata ---- */

struct walk {
	const struct policy_image *img;
	const struct automata *automata;
	struct scratch *s;
	u32 len;			/* bytes of s->text */
};

struct unit_walk {
	const struct policy_image *img;
	const struct scratch *s;
	u64 d;
	u32 at;				/* u64 offset of the struct unit */
	u32 masks;
};

/* Where the parts of struct unit are, in u64s. */
enum unit_word {
	UNIT_INIT = 0,
	UNIT_ACCEPT = 1,
	UNIT_FROM = 2,
	UNIT_BY = 8,
	UNIT_MASKS_BITS = 9,
	UNIT_WORDS = 10,
};

static inline u64 rotate(u64 x, u32 by)
{
	return x << (by & 63) | x >> (-by & 63);
}

/* A byte through one unit. Ends the loop when no position is alive. */
static int unit_step(u32 i, struct unit_walk *u)
{
	u32 cls = u->s->cls[i & (TEXT_LEN - 1)];
	u64 alive = u->d & pool_u64(u->img, u->masks + cls);
	u64 by = pool_u64(u->img, u->at + UNIT_BY);
	u64 d = 0;

	for (u32 k = 0; k < UNIT_SHIFTS; k++) {
		u64 from = pool_u64(u->img, u->at + UNIT_FROM + k);

		if (!from)
			break;
		d |= rotate(alive & from, by);
		by >>= 8;
	}
	u->d = d;
	return d == 0;
}

static int walk_unit(u32 i, struct walk *w)
{
	struct walk_state *state = &w->s->walk;
	struct unit_walk u = { .img = w->img, .s = w->s, .d = state->d[i & (MAX_UNITS - 1)] };

	u.at = w->automata->units + i * UNIT_WORDS;
	u.masks = pool_u64(w->img, u.at + UNIT_MASKS_BITS);
	k_loop(w->len, unit_step, &u);
	state->d[i & (MAX_UNITS - 1)] = u.d;
	return 0;
}

/* A byte through all DFAs; remembers its class for the units. */
static int walk_byte(u32 i, struct walk *w)
{
	const struct automata *a = w->automata;
	const struct policy_image *img = w->img;
	struct walk_state *state = &w->s->walk;
	u32 b = (u8)w->s->text[i & (TEXT_LEN - 1)];

	for (u32 k = 0; k < MAX_DFAS; k++) {
		const struct dfa *dfa = &a->dfas[k];
		u32 q;

		if (k >= a->dfa_count)
			break;
		q = pool_u16(img, dfa->trans + state->q[k] * dfa->classes +
					  pool_u16(img, dfa->cls + b));
		state->q[k] = q;
		add_plane_row(img, &state->acc, pool_u16(img, dfa->emit + q));
	}
	if (a->unit_count)
		w->s->cls[i & (TEXT_LEN - 1)] = pool_u16(img, a->unit_cls + b);
	return 0;
}

/* Units in use. The bound is for images that nobody checked: no loop longer than d[]. */
static inline u32 unit_count(const struct automata *a)
{
	return a->unit_count < MAX_UNITS ? a->unit_count : MAX_UNITS;
}

static int start_unit(u32 i, struct walk *w)
{
	w->s->walk.d[i & (MAX_UNITS - 1)] =
		pool_u64(w->img, w->automata->units + i * UNIT_WORDS + UNIT_INIT);
	return 0;
}

/* The state before the first byte of a value. */
SHARED(int) walk_start(const struct policy_image *img __arg_nonnull,
		       const struct name_dim *dim __arg_nonnull, struct scratch *s __arg_nonnull)
{
	const struct automata *a = &dim->automata;
	struct walk w = { .img = img, .automata = a, .s = s };

	load_plane_row(img, &s->walk.acc, dim->init);
	for (u32 k = 0; k < MAX_DFAS; k++) {
		if (k >= a->dfa_count)
			break;
		s->walk.q[k] = a->dfas[k].start;
		add_plane_row(img, &s->walk.acc, pool_u16(img, a->dfas[k].emit + s->walk.q[k]));
	}
	if (a->unit_count)
		k_loop(unit_count(a), start_unit, &w);
	return 0;
}

/* `len` bytes of s->text on. */
SHARED(int) walk_text(const struct policy_image *img __arg_nonnull,
		      const struct name_dim *dim __arg_nonnull, struct scratch *s __arg_nonnull,
		      u32 len)
{
	struct walk w = { .img = img, .automata = &dim->automata, .s = s, .len = len };

	if (!(w.automata->dfa_count | w.automata->unit_count))
		return 0;
	k_loop(len, walk_byte, &w);
	if (w.automata->unit_count)
		k_loop(unit_count(w.automata), walk_unit, &w);
	return 0;
}

/* Adds the rows of one unit's accepting positions. A plain loop, for the depth of calls: BPF allows
 * eight frames in all. */
static int finish_unit(u32 i, struct walk *w)
{
	u32 at = w->automata->units + i * UNIT_WORDS;
	u64 left = w->s->walk.d[i & (MAX_UNITS - 1)] & pool_u64(w->img, at + UNIT_ACCEPT);
	u32 bits = pool_u64(w->img, at + UNIT_MASKS_BITS) >> 32;

	for (u32 k = 0; k < 64; k++) {
		if (!left)
			break;
		or_plane_row(w->img, &w->s->acc, pool_u16(w->img, bits + k_ctz(left)));
		left &= left - 1;
	}
	return 0;
}

/* If the value ends here: its plane row, in s->acc. The state stays as it is. */
SHARED(int) walk_finish(const struct policy_image *img __arg_nonnull,
			const struct name_dim *dim __arg_nonnull, struct scratch *s __arg_nonnull)
{
	const struct automata *a = &dim->automata;
	struct walk w = { .img = img, .automata = a, .s = s };

	u32 n = 3 * img->words;

	for (u32 i = 0; i < MAX_PLANE_WORDS; i++) {
		if (i >= n)
			break;
		s->acc.w[i] = s->walk.acc.w[i];
	}
	for (u32 k = 0; k < MAX_DFAS; k++) {
		if (k >= a->dfa_count)
			break;
		add_plane_row(img, &s->acc, pool_u16(img, a->dfas[k].fin + s->walk.q[k]));
	}
	if (a->unit_count)
		k_loop(unit_count(a), finish_unit, &w);
	return 0;
}

#endif /* TWOPOOL_IMAGE_H */
