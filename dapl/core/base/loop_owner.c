/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loop_owner.c - decides when the owner of the service loop changes (loop_owner.h). */
#include "dapl/core/base/loop_owner.h"

void loop_owner_woke(struct loop_owner *owner, uint64_t now)
{
	if (now - owner->window_ns > LOOP_WINDOW_NS) {
		owner->window_ns = now;
		owner->wakeups = 0;
	}
	owner->wakeups++;
}

static bool woken_often(const struct loop_owner *owner, uint64_t now)
{
	return owner->wakeups >= LOOP_WAKEUPS && now - owner->window_ns <= LOOP_WINDOW_NS;
}

bool loop_owner_block(struct loop_owner *owner, uint64_t now)
{
	bool alone = !owner->blocked++;

	if (!owner->blocked_thread && alone && !owner->fixed && woken_often(owner, now)) {
		owner->blocked_thread = true;
		owner->wakeups = 0;
		owner->rounds_seen = owner->rounds;
		owner->lease_ns = now + LOOP_LEASE_NS;
	}
	if (!owner->blocked_thread || owner->watched)
		return false;
	owner->watched = true;
	return true;
}

void loop_owner_awake(struct loop_owner *owner, bool watched)
{
	owner->blocked--;
	if (watched)
		owner->watched = false;
	if (owner->blocked && !owner->watched)
		owner->blocked_thread = false;
}

void loop_owner_check(struct loop_owner *owner, uint64_t now)
{
	if (now < owner->lease_ns)
		return;
	if (owner->rounds == owner->rounds_seen)
		owner->blocked_thread = false;
	owner->rounds_seen = owner->rounds;
	owner->lease_ns = now + LOOP_LEASE_NS;
}
