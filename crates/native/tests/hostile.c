/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hostile.c - classification under images that no compiler wrote. Built by hostile.rs with address
 * and undefined-behaviour sanitizers: a read outside the image, the scratch or the thread aborts.
 *
 * usage: hostile SEED ROUNDS
 */
#include "native.c"

#include <stdio.h>

static u64 state;

/* SplitMix64 */
static u64 next(void)
{
	u64 z = state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static void fill(void *to, u64 bytes, u64 mask)
{
	u64 *words = to;

	for (u64 i = 0; i < bytes / sizeof(u64); i++)
		words[i] = next() & mask;
}

/* Rows that let threads through to the rules: planes 0 and 1 mostly ones, plane 2 mostly zeros. */
static void fill_planes(u64 *to, u64 count, u32 words)
{
	for (u64 i = 0; i < count; i++) {
		u64 ones = next() | next() | next();

		to[i] = words && i / words % 3 == 2 ? ~ones : ones;
	}
}

/* Random everywhere; in most rounds with counts and offsets of a plausible size, so that the walks
 * go deep instead of ending at once. */
static void make_image(struct policy_image *img)
{
	u64 masks[] = { ~0ull, 0x000f000f000f000full, 0x0000000700000007ull, 0x00ff00ff00ff00ffull };
	bool matching = next() % 2;

	fill(img, offsetof(struct policy_image, pool), masks[matching ? 1 + next() % 2 : next() % 4]);
	fill(img->alt_rule, sizeof(img->alt_rule), ~0ull);
	/* a stretch of the pool is enough, at both ends, since offsets wrap */
	fill(img->pool, 1 << 16, masks[next() % 4]);
	fill(&img->pool[POOL_WORDS - (1 << 13)], 1 << 16, masks[next() % 4]);
	img->abi = IMAGE_ABI;
	img->epoch = 1 + next() % 1000;
	if (next() % 4)
		img->words = next() % 10;
	if (matching) {
		img->rows = img->plane_rows = 0;
		fill_planes(img->pool, 1 << 13, img->words);
	} else if (next() % 2) {
		img->names = img->rows = img->plane_rows = POOL_WORDS - 1;
	}
}

static void make_thread(struct probe_thread *t)
{
	static const u32 lengths[] = { 0, 1, 2, 3, 30, 255, 256, 511, 512, 513, 100000, ~0u };

	fill(t, sizeof(*t), ~0ull);
	t->path_len = lengths[next() % (sizeof(lengths) / sizeof(lengths[0]))];
	/* lengths beyond the buffer wrap; the longest would only take long */
	if (t->path_len > 1u << 20)
		t->path_len = 4096;
	/* without a slash, the whole path is one component, longer than any that exists */
	for (u32 i = 0; i < PROBE_PATH_LEN && next() % 8; i += 1 + next() % 400)
		t->path[i] = '/';
}

int main(int argc, char **argv)
{
	struct policy_image *img = calloc(1, sizeof(*img));
	struct native_cgroup *leaf = native_cgroup_new(NULL, "", 1);
	u64 rounds, rules = 0;

	if (argc != 3 || !img)
		return 2;
	state = strtoull(argv[1], NULL, 10);
	rounds = strtoull(argv[2], NULL, 10);
	for (u64 i = 0; i < 4; i++)
		leaf = native_cgroup_new(leaf, i % 2 ? "x" : "a-rather-long-name.service", i + 2);
	for (u64 i = 0; i < rounds; i++) {
		struct thread_class class;
		struct probe_thread thread;
		struct thread_key key;

		make_image(img);
		for (u32 k = 0; k < 8; k++) {
			make_thread(&thread);
			native_classify(img, &thread, &class);
			if (class.pool >= NR_POOLS || class.rule >= RULE_SLOTS)
				return 1;
			rules += class.rule != 0;
			fill(&key, sizeof(key), ~0ull);
			native_classify_in(img, leaf, &key, &class);
			if (class.pool >= NR_POOLS || class.rule >= RULE_SLOTS)
				return 1;
		}
	}
	while (leaf) {
		struct native_cgroup *parent = leaf->parent;

		native_cgroup_free(leaf);
		leaf = parent;
	}
	free(img);
	/* a round that never got past the default would test little */
	printf("%llu\n", (unsigned long long)rules);
	return 0;
}
