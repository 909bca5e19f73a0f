/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * intf.h - the one ABI between the policy compiler, the daemon and the kernel program.
 *
 * Included by the BPF program, by its native build and (through BTF) by the Rust side: the
 * skeleton turns every struct below into a Rust type, and kernel/abi.rs asserts that the
 * compiler's own layout constants (crates/policy/src/image/mod.rs) equal it.
 *
 * A policy reaches the kernel as ONE value, struct policy_image. It is immutable once published:
 * a reload fills another one and swaps a pointer. Both sides distrust it: the compiler checks
 * every offset when it writes, and the kernel program masks every index when it reads, so that a
 * bad image can pick a wrong rule but can never read out of bounds.
 *
 * Rules of this file: fixed-width types only, no implicit padding (checked by -Wpadded and the
 * static assertions at the end), units last in names, every sentinel explained where it stands.
 */
#ifndef TWOPOOL_INTF_H
#define TWOPOOL_INTF_H

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic error "-Wpadded"
#endif

#ifndef TWOPOOL_HAVE_TYPES /* kernel.h supplies the types before it includes this file */
#include <stdint.h>
typedef uint8_t u8;
typedef int8_t s8;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
#endif

/* Bumped with every change of struct policy_image or of what its tables mean. */
#define IMAGE_ABI 1

/* ---- limits: each is named once here and quoted by the compiler's `limit-exceeded` ---------- */

enum limits {
	MAX_RULES = 256,
	RULE_SLOTS = 512,	/* power of two above MAX_RULES + 1; slot 0 is the default pool */
	MAX_ALTS = 512,		/* alternatives, after `any` and `not` are expanded */
	MAX_ROW_WORDS = 8,	/* MAX_ALTS / 64 */
	MAX_PLANE_WORDS = 24,	/* three planes of MAX_ROW_WORDS */
	MAX_EXACT_NAMES = 16384,
	MAX_BOUNDS = 4096,	/* entries of one range table (user, group, hint) */
	BOUND_STEPS = 12,	/* log2(MAX_BOUNDS) */
	MAX_DFAS = 4,		/* automata per dimension */
	MAX_NAME_UNITS = 48,	/* bit-parallel units per name dimension, 64 positions each */
	MAX_PATH_UNITS = 16,	/* the same for cgroup paths */
	MAX_UNITS = 64,		/* power of two at or above both, for masking */
	UNIT_SHIFTS = 6,	/* distinct follow distances in one unit */
	POOL_WORDS = 1 << 19,	/* u64s in the table pool: 4 MiB */
	NAME_LEN = 16,		/* TASK_COMM_LEN: 15 bytes and a NUL */
	CGROUP_NAME_LEN = 256,	/* NAME_MAX + 1: one component of a cgroup path */
	MAX_CPUS = 1024,	/* possible CPU ids served; the loader refuses hosts with more */
	CPU_WORDS = 16,		/* MAX_CPUS / 64 */
	MAX_LLCS = 64,		/* last-level caches told apart; further ones share the last */
	WAIT_BUCKETS = 128,	/* of the wait histogram, see wait_bucket() in stats.h */
};

enum pool_id {
	POOL_CRITICAL = 0,
	POOL_BACKGROUND = 1,
	NR_POOLS = 2,
};

/* Thread-name dimensions that share struct name_dim and the exact-name table. */
enum name_dim_id {
	DIM_THREAD = 0,
	DIM_PROCESS = 1,
	NR_NAME_DIMS = 2,
};

/* ---- rows ------------------------------------------------------------------------------------
 *
 * Every alternative of every rule owns one bit, in rule order: bit a%64 of word a/64. `words` is
 * the number of words in use, 1..=MAX_ROW_WORDS.
 *
 * A *row* is `words` u64s: the alternatives that a value of one dimension does not rule out.
 *
 * Name-like dimensions (thread, process, cgroup) can ask three things of one value at once: the
 * rule's own condition, the condition of an `any` table and the condition of `not`. So they
 * collect a *plane row* of 3 * words u64s while they look the value up:
 *
 *	plane 0 (words 0 .. words-1)		the rule's own condition is met
 *	plane 1 (words .. 2*words-1)		the condition of the alternative's `any` table is met
 *	plane 2 (2*words .. 3*words-1)		the condition of the alternative's `not` is met
 *
 * It starts as the dimension's `init` row, where plane 0 and 1 hold a bit for each alternative
 * that asks nothing there; every pattern and exact name that is met ORs its own plane row in. At
 * the end, row[w] = plane0[w] & plane1[w] & ~plane2[w]. Automata are never complemented.
 *
 * Plane rows are interned: id 0 is all zeros. Rows likewise (id 0: rules out everything).
 */

/* ---- automata -------------------------------------------------------------------------------
 *
 * Offsets into the table pool count units of the table's own type (u16 or u64) from the pool's
 * start; readers mask them with the pool's size.
 */

/* A deterministic automaton over bytes whose states emit when they are entered.
 *
 *	q = start; acc |= plane_row[emit[q]]
 *	for each byte b: q = trans[q * classes + cls[b]]; acc |= plane_row[emit[q]]
 *	at the end of the value: acc |= plane_row[fin[q]]
 */
struct dfa {
	u32 cls;	/* u16[256]: byte -> class, 0..classes-1 */
	u32 trans;	/* u16[states * classes] */
	u32 emit;	/* u16[states]: plane row on every visit, 0 = none */
	u32 fin;	/* u16[states]: plane row if the value ends here, 0 = none */
	u32 classes;	/* 1..=256 */
	u32 start;	/* state before the first byte */
};

/* 64 positions of a bit-parallel position automaton. Bits are positions; a position that stands
 * for "matched here" consumes no byte and is reported at the end.
 *
 *	d = init
 *	for each byte b: a = d & masks[ucls[b]]; d = OR over k of rotl64(a & from[k], by[k])
 *	at the end: for each bit i of d & accept: acc |= plane_row[bits[i]]
 */
struct unit {
	u64 init;
	u64 accept;
	u64 from[UNIT_SHIFTS];	/* positions that have a follower at that distance; used ones come
				 * first, 0 from there on */
	u8 by[8];		/* the distances, 0..63; a negative distance is 64 minus it */
	u32 masks;		/* u64[unit classes]: positions that accept a byte of that class */
	u32 bits;		/* u16[64]: plane row of each accepting position */
};

/* What one dimension walks over its bytes. */
struct automata {
	u32 dfa_count;		/* 0..=MAX_DFAS */
	u32 unit_count;		/* 0..=MAX_NAME_UNITS or MAX_PATH_UNITS */
	u32 unit_cls;		/* u16[256]: byte -> class, shared by all units */
	u32 units;		/* u64 offset of struct unit[unit_count] in the pool */
	struct dfa dfas[MAX_DFAS];
};

/* One exact name: its bytes followed by NULs up to 16 bytes, as two little-endian u64s. The table is a
 * perfect hash of `name_slots` entries, a power of two above the count; an empty one has an all-ones
 * key, which no name has, since its last byte is NUL. With find_name()'s hash of a name, 64 bits of it,
 * d = displacement[hash >> 48 & (slots / 4 - 1)] (the first where there are less than four slots), and
 * the name is at ((u32)hash + d * (hash >> 24 | 1)) & (slots - 1) or nowhere. */
struct name_entry {
	u64 key[2];
	u32 row[NR_NAME_DIMS];	/* plane row for DIM_THREAD and DIM_PROCESS; 0 = not named there */
};

/* A thread name and a process name are walked as they are, at most 15 bytes.
 *
 * A cgroup path is walked as its bytes "/a/b", so that a child's state is its parent's state walked
 * over "/name". The root has the path "/", which is no beginning of "/a": its own row is `root`
 * (already complete, `init` included), and its children start from `init` and the automata's start
 * states. Automata of paths are only right for well-formed paths: a leading slash, no empty
 * component, no trailing slash. */
struct name_dim {
	u32 init;		/* plane row to start from */
	u32 root;		/* cgroup: complete plane row of the path "/"; names: 0, unused */
	struct automata automata;
};

/* A piecewise constant function of a number: row[i] holds from start[i] up to start[i+1].
 * start[0] is 0; padded with all-ones starts that repeat the last row to `slots`, a power of two
 * not below the count. Searched as the names are. */
struct ranges {
	u32 starts;		/* u64[slots] */
	u32 rows;		/* u16[slots]: row ids */
	u32 slots;		/* power of two, 1..=MAX_BOUNDS */
	u32 pad;
};

/* ---- settings ------------------------------------------------------------------------------ */

enum pool_flags {
	POOL_PREEMPT = 1,	/* a waking thread may take a CPU from the other pool */
	POOL_PACK = 2,		/* placement = "pack" */
	POOL_PERF_SET = 4,	/* perf_permille holds a cpufreq target */
};

struct pool_settings {
	u64 slice_ns;
	u32 weight;		/* 1..=10000 */
	u32 flags;		/* enum pool_flags */
	u32 cpus_min;		/* a count, or CPUS_PERCENT | percentage */
	u32 cpus_max;
	u32 util_low_permille;
	u32 util_high_permille;
	u32 perf_permille;
	u32 pad;
};
#define CPUS_PERCENT 0x80000000u

enum rule_flags {
	RULE_HINTS = 1,		/* threads that this rule takes at level 0 may send hints */
};

struct rule_settings {
	u64 slice_ns;		/* resolved: the rule's own or its pool's */
	u32 weight;		/* 1..=10000, weight of the thread inside its pool, 100 = neutral */
	u16 flags;		/* enum rule_flags */
	u8 pool;		/* enum pool_id */
	u8 pad;
};

/* Distances of the steal section and of the topology. */
enum distance {
	DIST_SMT = 0,
	DIST_LLC = 1,
	DIST_NODE = 2,
	DIST_MACHINE = 3,
	NR_DISTANCES = 4,
};
#define STEAL_OFF 0xffffffffffffffffull	/* steal_ns: never search at this distance */

/* ---- the image ----------------------------------------------------------------------------- */

struct policy_image {
	u32 abi;		/* IMAGE_ABI; anything else makes every thread take the default pool */
	u32 epoch;		/* 1.. ; written by the loader; 0 never occurs in a published image */
	u32 words;		/* 1..=MAX_ROW_WORDS */
	u32 rule_count;		/* rules are slots 1..=rule_count */
	u32 plane_rows;		/* u64 offset: plane row i is at plane_rows + i * 3 * words */
	u32 rows;		/* u64 offset: row i is at rows + i * words */
	u32 names;		/* u64 offset of struct name_entry[name_slots] (3 u64s each) */
	u32 name_slots;		/* power of two, 1..=2 * MAX_EXACT_NAMES */
	u32 name_displacements;	/* u16[] in the pool, in u16s: one for each four slots, at least one */
	u32 name_seed;

	struct name_dim name_dims[NR_NAME_DIMS];
	struct name_dim cgroup;
	struct ranges user;	/* over u64: an effective uid, or 2^32.. for a name that no uid has */
	struct ranges group;
	struct ranges hint;	/* levels 0..=1023 */
	u16 nice_row[64];	/* index: nice + 20 */
	u16 flags_row[16];	/* index: enum key_flags, as packed in struct thread_key */
	u16 alt_rule[MAX_ALTS];	/* alternative -> rule slot */

	struct rule_settings rules[RULE_SLOTS];	/* slot 0: the default pool */
	struct pool_settings pools[NR_POOLS];
	u64 steal_ns[NR_DISTANCES];
	u64 sizing_interval_ns;
	u64 background_wait_ns;
	u64 hint_boost_ns;
	u32 hint_share_permille;
	u32 pool_used;		/* u64s of the pool in use; the rest is zero */

	u64 pool[POOL_WORDS];	/* all tables, by the offsets above */
};

/* ---- what classification depends on --------------------------------------------------------- */

/* thread_key.bits: flags in 0..=3, nice + 20 in 8..=13, hint level in 16..=25 */
enum key_flags {
	KEY_KTHREAD = 1,
	KEY_LEADER = 2,
	KEY_SCHED_SHIFT = 2,	/* two bits: 0 normal (and ext), 1 batch, 2 idle */
	KEY_FLAGS_MASK = 15,
	KEY_NICE_SHIFT = 8,
	KEY_NICE_MASK = 63,
	KEY_HINT_SHIFT = 16,
	KEY_HINT_MASK = 1023,
};

/* The fingerprint of a thread. A thread's class is a pure function of (image, this), the cgroup
 * id standing for its path. Compared as eight u64s. Names are raw task->comm bytes. */
struct thread_key {
	u64 thread[2];
	u64 process[2];
	u64 cgroup_id;
	u32 uid;
	u32 gid;
	u32 bits;		/* see enum key_flags */
	u32 epoch;		/* of the image that classified it; 0 = never classified */
	u64 reserved;		/* 0 */
};

/* The result. */
struct thread_class {
	u64 slice_ns;
	u32 weight;
	u16 rule;		/* slot: 0 = default pool */
	u8 pool;
	u8 flags;		/* enum rule_flags */
};

/* ---- reports --------------------------------------------------------------------------------- */

enum report_flags {
	REPORT_HAS_CONTEXT = 1,	/* `acting` and `epoch` hold what the scheduler acts on */
	REPORT_STALE = 2,	/* the thread changed since; it is seen at its next wake or tick */
	REPORT_NOT_OURS = 4,	/* another scheduling class runs it: real-time, deadline */
	REPORT_NO_FRESH = 8,	/* `fresh` could not be computed: no usable policy */
};

/* One thread, as the task iterator `dump_tasks` writes it. */
struct task_report {
	s32 tid;
	s32 tgid;
	char comm[NAME_LEN];
	struct thread_class acting;
	struct thread_class fresh;	/* by the policy in force, computed now */
	u32 epoch;			/* of the image that gave `acting` */
	enum report_flags flags;	/* any of them together */
};

/* ---- test entry point -------------------------------------------------------------------------- */

#define PROBE_BATCH 64
#define PROBE_PATH_LEN 512

/* A made-up thread for the program `probe`. */
struct probe_thread {
	u64 thread[2];
	u64 process[2];
	u64 uid;
	u64 gid;
	u32 bits;			/* as thread_key.bits */
	u32 path_len;			/* 1..=PROBE_PATH_LEN bytes of path; "/" is the root */
	char path[PROBE_PATH_LEN];
};

/* Argument of `probe`. It answers 0, or 1 if it is busy or there is no policy. */
struct probe_args {
	u32 count;			/* of threads, 0..=PROBE_BATCH */
	u32 pad;
};

#ifndef __bpf__
_Static_assert(sizeof(struct dfa) == 24, "dfa");
_Static_assert(sizeof(struct unit) == 80, "unit");
_Static_assert(sizeof(struct name_entry) == 24, "name_entry");
_Static_assert(sizeof(struct thread_key) == 64, "thread_key");
_Static_assert(sizeof(struct thread_class) == 16, "thread_class");
_Static_assert(sizeof(struct task_report) == 64, "task_report");
_Static_assert(sizeof(struct probe_thread) == 568, "probe_thread");
#endif
_Static_assert(sizeof(struct policy_image) % 8 == 0, "policy_image");

#ifdef __clang__
#pragma clang diagnostic pop
#endif

#endif /* TWOPOOL_INTF_H */
