/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.c - see tap.h. A capture belongs to one client, and ends TAP_LEASE_MS after the last request of that
 * client: so a capture ends even if its client is killed. */
#include "dapl/core/ia/tap.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/core/dapl.h"
#include "dapl/core/base/fork.h"
#include "dapl/core/base/tap.h"
#include "dapl/core/event/async.h"

static struct dapl_mutex lock = DAPL_MUTEX_INIT(RANK_TAP_CLIENT);	/* guards what follows */
static uint64_t owner;		/* the client; 0: no capture */
static int descriptor;
static uint64_t began;
static struct dapl_timer lease;

/* Called with the lock held, so that an IA that is opened meanwhile is switched afterwards
 * (dapl_tap_ia_opened). */
static bool switch_all(bool on)
{
	struct dapl_object **ias;
	size_t count;

	assert_held(&lock);
	if (!dapl_async_enter_ias(&ias, &count))
		return false;
	for (size_t i = 0; i < count; i++) {
		dapl_device_ops.tap(((struct dapl_ia *)ias[i])->dev, on);
		dapl_object_leave(ias[i]);
	}
	free(ias);
	return true;
}

/* Called with the lock held. Without memory the devices go on making records, which dapl_tap_put refuses:
 * that costs time only. */
static void end_capture(void)
{
	assert_held(&lock);
	owner = 0;
	dapl_tap_end();
	switch_all(false);
}

static void lease_over(struct dapl_timer *timer)
{
	(void)timer;
	dapl_mutex_lock(&lock);
	if (owner)
		end_capture();
	dapl_tap_release();
	dapl_mutex_unlock(&lock);
}

static uint64_t number_of(const struct json_object *request, const char *key)
{
	const struct json_member *member = json_member(request, key);

	return member && member->is_number ? member->number : 0;
}

/* Called with the lock held. */
static const char *begin_capture(const struct json_object *request, uint64_t client, char *why, size_t size)
{
	uint64_t snap = number_of(request, "snap");

	assert_held(&lock);
	descriptor = dapl_tap_begin(snap < TAP_SNAP_MAX ? (uint32_t)snap : TAP_SNAP_MAX, &began);
	if (descriptor < 0) {
		snprintf(why, size, "it has no memory for a capture: %s%s", strerror(-descriptor),
			 descriptor == -EFBIG ? " (its limit RLIMIT_FSIZE)" : "");
		return why;
	}
	owner = client;
	if (switch_all(true))
		return NULL;
	end_capture();
	return "no memory";
}

const char *dapl_tap_verb(const struct json_object *request, struct json_writer *json, char *why, size_t size)
{
	uint64_t client = number_of(request, "client");
	const char *failed = NULL;

	if (!dapl_device_ops.tap)
		return "its provider library does not show messages";
	if (!client)
		return "\"client\" is missing";
	dapl_mutex_lock(&lock);
	if (owner && owner != client) {
		failed = "another capture of its messages runs";
	} else if (number_of(request, "end")) {
		if (owner)
			end_capture();
		else
			dapl_tap_release();
	} else {
		failed = owner ? NULL : begin_capture(request, client, why, size);
		if (!failed) {
			dapl_timer_start(&lease, TAP_LEASE_MS * 1000, lease_over);
			json_write_number(json, "descriptor", descriptor);
			json_write_count(json, "began", began);
		}
	}
	dapl_mutex_unlock(&lock);
	return failed;
}

static void before_fork(void)
{
	dapl_mutex_lock(&lock);
}

static void parent_after_fork(void)
{
	dapl_mutex_unlock(&lock);
}

static void child_after_fork(void)
{
	owner = 0;
	lease = (struct dapl_timer){ .due_ns = 0 };
	dapl_mutex_unlock(&lock);
}

void dapl_tap_client_init(void)
{
	static struct dapl_fork_part part = { .rank = RANK_TAP_CLIENT, .before = before_fork,
		.parent = parent_after_fork, .child = child_after_fork };

	dapl_fork_register(&part);
}

void dapl_tap_ia_closed(void)
{
	if (dapl_async_any_ia())
		return;
	dapl_mutex_lock(&lock);
	if (owner)
		end_capture();
	dapl_mutex_unlock(&lock);
	dapl_timer_drain(&lease);
}

void dapl_tap_ia_opened(struct dapl_ia *ia)
{
	if (!dapl_device_ops.tap)
		return;
	dapl_mutex_lock(&lock);
	if (owner)
		dapl_device_ops.tap(ia->dev, true);
	dapl_mutex_unlock(&lock);
}
