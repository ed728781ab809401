/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_harness.c - the record of upcalls of device_harness.h. */
#include "test/unit/device_harness.h"
#include "dapl/core/base/service.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void (*upcall_observer)(const struct upcall *up);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t recorded = PTHREAD_COND_INITIALIZER;
static struct upcall *first, **end = &first;	/* in the order of arrival; under lock */

static void demand(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "device_harness: %s\n", what);
	abort();
}

/* --- upcalls ------------------------------------------------------------------------------- */

static void record(const struct upcall *up)
{
	struct upcall *kept = malloc(sizeof *kept);

	demand(kept, "no memory");
	*kept = *up;
	kept->next = NULL;
	pthread_mutex_lock(&lock);
	*end = kept;
	end = &kept->next;
	pthread_cond_broadcast(&recorded);
	pthread_mutex_unlock(&lock);
}

static void take_upcall(struct upcall *up, const void *pdata, size_t length)
{
	demand(dapl_service_here(), "an upcall does not run on the service thread");
	demand(length <= sizeof up->pdata, "an upcall has more private data than fits a frame");
	up->length = length;
	if (length)
		memcpy(up->pdata, pdata, length);
	(upcall_observer ? upcall_observer : record)(up);
}

void dapl_up_request(void *sp, struct dapl_conn *conn, const struct dapl_request *request)
{
	struct upcall up = { .kind = REQUEST, .owner = sp, .conn = conn, .ud = request->ud,
			     .local = request->local, .remote = request->remote };

	take_upcall(&up, request->pdata, request->pdata_len);
}

void dapl_up_established(void *owner, struct dapl_conn *conn, const struct dapl_established *info)
{
	struct upcall up = { .kind = ESTABLISHED, .owner = owner, .conn = conn, .ud = info->ud,
			     .local = info->local, .remote = info->remote };

	if (info->ud)
		up.peer = *info->ud;
	take_upcall(&up, info->pdata, info->pdata_len);
}

void dapl_up_failed(void *owner, struct dapl_conn *conn, enum dapl_conn_failure why,
		    const void *pdata, size_t length)
{
	struct upcall up = { .kind = FAILED, .owner = owner, .conn = conn, .failure = why };

	take_upcall(&up, pdata, length);
}

bool dapl_up_has_requests(void *owner, const struct dapl_conn *conn)
{
	(void)owner, (void)conn;
	return false;
}

void dapl_up_disconnected(void *owner, struct dapl_conn *conn, bool orderly)
{
	struct upcall up = { .kind = orderly ? CLOSED : BROKEN, .owner = owner, .conn = conn };

	take_upcall(&up, NULL, 0);
}

void dapl_up_released(void *owner)
{
	struct upcall up = { .kind = RELEASED, .owner = owner };

	take_upcall(&up, NULL, 0);
}

void dapl_up_joined(void *owner, struct dapl_membership *membership, int err,
		    const struct dapl_ud_peer *to)
{
	struct upcall up = { .kind = JOINED, .owner = owner, .err = err };

	demand(membership, "a joined group has no membership");
	if (!err)
		up.peer = *to;
	take_upcall(&up, NULL, 0);
}

void dapl_up_async(void *ia, const struct ibv_async_event *event)
{
	struct upcall up = { .kind = ASYNC, .owner = event->element.cq,
			     .event = event->event_type };

	demand(ia, "an asynchronous event has no IA");
	take_upcall(&up, NULL, 0);
}

/* --- the record ---------------------------------------------------------------------------- */

static bool matches(const struct upcall *up, enum upcall_kind kind, const void *owner)
{
	return up->kind == kind && (!owner || up->owner == owner);
}

/* Called with the lock held. Returns the link to the first match, or to the end. */
static struct upcall **find(enum upcall_kind kind, const void *owner)
{
	struct upcall **at = &first;

	while (*at && !matches(*at, kind, owner))
		at = &(*at)->next;
	return at;
}

static void unlink_upcall(struct upcall **at)
{
	struct upcall *up = *at;

	*at = up->next;
	if (!*at)
		end = at;
	free(up);
}

static struct timespec in_ms(unsigned ms)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += ms % 1000 * 1000000L;
	t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static bool await(enum upcall_kind kind, const void *owner, unsigned ms, struct upcall *out,
		  bool take)
{
	struct timespec until = in_ms(ms);
	struct upcall **at;
	int err = 0;
	bool found;

	pthread_mutex_lock(&lock);
	while (!*(at = find(kind, owner)) && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&recorded, &lock, &until);
	found = *at != NULL;
	if (found) {
		*out = **at;
		if (take)
			unlink_upcall(at);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

bool upcall_take(enum upcall_kind kind, const void *owner, unsigned ms, struct upcall *out)
{
	return await(kind, owner, ms, out, true);
}

bool upcall_wait(enum upcall_kind kind, const void *owner, unsigned ms, struct upcall *out)
{
	return await(kind, owner, ms, out, false);
}

unsigned upcall_count(enum upcall_kind kind, const void *owner)
{
	unsigned n = 0;

	pthread_mutex_lock(&lock);
	for (const struct upcall *up = first; up; up = up->next)
		n += matches(up, kind, owner);
	pthread_mutex_unlock(&lock);
	return n;
}

void upcalls_drop(const void *owner)
{
	pthread_mutex_lock(&lock);
	for (struct upcall **at = &first; *at;)
		if (!owner || (*at)->owner == owner)
			unlink_upcall(at);
		else
			at = &(*at)->next;
	pthread_mutex_unlock(&lock);
}
