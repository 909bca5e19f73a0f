/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hotplug.h - CPUs come and go.
 *
 * A CPU that goes is asked for no work from the moment on which it is no longer active, which is
 * before we are told. The kernel then waits, without a limit, until its runqueue is empty: until
 * the threads that wait in our queues and were enqueued there run somewhere. It looks only when
 * that CPU reschedules. So nobody may wait in a queue that only this CPU serves, and whoever takes
 * one of its threads must tell it.
 */
#ifndef TWOPOOL_HOTPLUG_H
#define TWOPOOL_HOTPLUG_H

#include "queues.h"

static bool is_online(s32 cpu)
{
	return online[cpu_word(cpu)] & cpu_bit(cpu);
}

/* A thread starts here that was enqueued there: that may have been the last one it waits for. */
static void tell_cpu_that_goes(s32 there, s32 here)
{
	if (there != here && !is_online(there))
		k_kick(there, 0);
}

/* The bits are atomic, the count is not: the kernel serialises hotplug. */
void OPS(on_cpu_online, s32 cpu)
{
	k_fetch_or(&online[cpu_word(cpu)], cpu_bit(cpu));
	nr_online++;
	sized_epoch = 0;
}

/* The kernel's global queue alone still reaches this CPU, for threads that may run nowhere else. Wakers
 * may have told it of work that others can do, so these are all to look. */
void OPS(on_cpu_offline, s32 cpu)
{
	u32 other;

	k_fetch_and(&online[cpu_word(cpu)], ~cpu_bit(cpu));
	if (nr_online > 1)
		nr_online--;
	sized_epoch = 0;
	clear_preemptible(POOL_CRITICAL, cpu);
	clear_preemptible(POOL_BACKGROUND, cpu);
	k_move_all(DSQ_BASE + (u64)own_queue(POOL_CRITICAL, cpu), K_DSQ_GLOBAL);
	k_move_all(DSQ_BASE + (u64)own_queue(POOL_BACKGROUND, cpu), K_DSQ_GLOBAL);
	k_for(other, 0, nr_cpus) {
		if (is_online(other))
			k_kick(other, K_KICK_IDLE);
	}
}

#endif /* TWOPOOL_HOTPLUG_H */
