/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * select.h - where a thread that woke may run: an idle CPU, or one taken from the other pool.
 *
 * The kernel's own idle masks are the truth. A bit is a claim: k_test_and_clear_idle() takes it,
 * and a CPU whose bit was taken must be used or kicked, or it sleeps while work waits and nobody
 * finds it. So every claim below is returned to a caller that inserts there or kicks.
 *
 * Order: the previous CPU if it is idle, whoever owns it; an idle whole core, then an idle CPU, of
 * our pool, cache by cache outward; the same among the other pool's CPUs. Ownership is a
 * preference about caches: never a reason to wait, nor to leave a warm one.
 */
#ifndef TWOPOOL_SELECT_H
#define TWOPOOL_SELECT_H

#include "pools.h"

/* What one thread may use, gathered once per search. */
struct cpu_choice {
	struct task_struct *p;
	u32 pool;
	bool restricted;	/* its mask may exclude some CPU */
	bool ours;		/* look at CPUs of the thread's pool, or at the other's */
};

/* Does its mask exclude an online CPU? Most masks have all possible CPUs, or fewer than are online;
 * only those between need a look at their words. */
static bool is_restricted(struct task_struct *p)
{
	bool excludes = false;
	u32 w;

	if (p->nr_cpus_allowed >= nr_cpus)
		return false;
	if (p->nr_cpus_allowed < nr_online)
		return true;
	k_for(w, 0, nr_cpu_words) {
		if (online[w & (CPU_WORDS - 1)] & ~k_allowed_word(p, w)) {
			excludes = true;
			break;
		}
	}
	return excludes;
}

/* CPUs of a word that the thread may use. The kernel takes a CPU that went off for idle. */
static u64 allowed_word(const struct cpu_choice *c, u32 word)
{
	u64 allowed = online[word & (CPU_WORDS - 1)];

	return c->restricted ? allowed & k_allowed_word(c->p, word) : allowed;
}

/* Is every online CPU of the cache allowed? Then the thread may use the cache's shared queue. */
static bool covers_llc(struct task_struct *p, u32 llc)
{
	u32 w;
	bool covers = true;

	k_for(w, 0, nr_cpu_words) {
		u64 need = llc_cpus[llc & (MAX_LLCS - 1)][w & (CPU_WORDS - 1)] &
			   online[w & (CPU_WORDS - 1)];

		if (need && (need & ~k_allowed_word(p, w))) {
			covers = false;
			break;
		}
	}
	return covers;
}

/* Claims one idle CPU out of `candidates` of a word, or -1. Others claim at the same time: a lost
 * race moves on to the next candidate, a few times; who still finds none queues like everybody. */
static s32 claim_idle(u32 word, u64 candidates)
{
	for (u32 tries = 0; tries < 4; tries++) {
		s32 cpu;

		if (!candidates)
			return -1;
		cpu = (word << 6) + k_ctz(candidates);
		if (k_test_and_clear_idle(cpu))
			return cpu;
		candidates &= candidates - 1;
	}
	return -1;
}

static s32 pick_idle_in_llc(const struct cpu_choice *c, u32 llc)
{
	u32 w;
	s32 cpu = -1;

	k_for(w, 0, nr_cpu_words) {
		u32 i = w & (CPU_WORDS - 1);
		u64 mine = owned[c->pool & (NR_POOLS - 1)][i];
		u64 scope = llc_cpus[llc & (MAX_LLCS - 1)][i] & (c->ours ? mine : ~mine);
		u64 idle;

		if (!scope)
			continue;
		scope &= k_idle_word(w);
		if (!scope)
			continue;
		scope &= allowed_word(c, w);
		idle = smt_active ? scope & k_idle_smt_word(w) : 0;
		cpu = claim_idle(w, idle);
		if (cpu < 0)
			cpu = claim_idle(w, scope);
		if (cpu >= 0)
			break;
	}
	return cpu;
}

static bool any_idle(void)
{
	u32 w;
	bool found = false;

	k_for(w, 0, nr_cpu_words) {
		if (k_idle_word(w)) {
			found = true;
			break;
		}
	}
	return found;
}

static bool owns(u32 pool, s32 cpu)
{
	return owned[pool & (NR_POOLS - 1)][cpu_word(cpu)] & cpu_bit(cpu);
}

/* A whole core is better than the sibling of a busy CPU, if the search can find one. */
static bool prev_is_best(s32 prev)
{
	return !smt_active || (k_idle_smt_word((u32)prev >> 6) & cpu_bit(prev));
}

/* An idle CPU for the thread, claimed, or -1. `prev` is a CPU that it may use. */
static s32 pick_idle(struct task_struct *p, u32 pool, s32 prev)
{
	struct cpu_choice c = { .p = p, .pool = pool, .restricted = is_restricted(p), .ours = true };
	u32 home = llc_of(prev);
	s32 cpu = -1;
	u32 i;

	if (prev_is_best(prev) && (allowed_word(&c, cpu_word(prev)) & cpu_bit(prev)) &&
	    k_test_and_clear_idle(prev))
		return prev;
	if (!any_idle())
		return -1;
	k_for(i, 0, 2 * nr_llcs) {
		u32 step = i < nr_llcs ? i : i - nr_llcs;

		c.ours = i < nr_llcs;
		cpu = pick_idle_in_llc(&c, llc_order[home][step & (MAX_LLCS - 1)]);
		if (cpu >= 0)
			break;
	}
	return cpu;
}

/* ---- preemption ---- */

/* Of the CPUs in `candidates`, the one whose thread ran longest; looks at eight at most. */
static s32 longest_running(u32 word, u64 candidates)
{
	s32 best = -1;
	u64 best_start_ns = 0;

	for (u32 looked = 0; looked < 8; looked++) {
		s32 cpu;
		u64 start_ns;

		if (!candidates)
			break;
		cpu = (word << 6) + k_ctz(candidates);
		candidates &= candidates - 1;
		start_ns = cpu_state(cpu)->run_start_ns;
		if (best < 0 || (s64)(start_ns - best_start_ns) < 0) {
			best = cpu;
			best_start_ns = start_ns;
		}
	}
	return best;
}

static s32 victim_in_llc(const struct cpu_choice *c, u32 llc)
{
	u32 w;
	s32 cpu = -1;

	k_for(w, 0, nr_cpu_words) {
		u32 i = w & (CPU_WORDS - 1);
		u64 scope = llc_cpus[llc & (MAX_LLCS - 1)][i] &
			    preemptible[other_pool(c->pool)][i];

		if (!scope)
			continue;
		cpu = longest_running(w, scope & allowed_word(c, w));
		if (cpu >= 0)
			break;
	}
	return cpu;
}

/* May a thread of `pool` that finds no idle CPU take one from the other pool? */
static bool may_preempt(const struct policy_image *img, u32 pool)
{
	if (!(img->pools[pool & (NR_POOLS - 1)].flags & POOL_PREEMPT))
		return false;
	/* The critical pool is served first anyway, unless it owes. The background pool is not,
	 * so a CPU that it took would be given back at once, unless it is owed. */
	if (pool == POOL_CRITICAL)
		return !is_owed(img, POOL_BACKGROUND);
	return is_owed(img, POOL_BACKGROUND);
}

/* A CPU of the other pool for the thread, claimed (it must be kicked), or -1. */
static s32 pick_victim(struct task_struct *p, u32 pool, s32 prev)
{
	struct cpu_choice c = { .p = p, .pool = pool, .restricted = is_restricted(p) };
	u32 other = other_pool(pool);
	u32 home = llc_of(prev);
	s32 cpu = -1;
	u32 i;

	k_for(i, 0, nr_llcs) {
		cpu = victim_in_llc(&c, llc_order[home][i & (MAX_LLCS - 1)]);
		if (cpu < 0)
			continue;
		if (clear_preemptible(other, cpu))
			break;
		cpu = -1; /* another waker was faster; the next cache, not this one for ever */
	}
	return cpu;
}

#endif /* TWOPOOL_SELECT_H */
