/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* async.c - the open IAs and where their asynchronous events go (async.h). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "dapl/core/base/ia_handle.h"
#include "dapl/core/event/async.h"
#include "dapl/core/event/evd_notify.h"

/* All open IAs. The lock also guards every ia->async_evd, and is held while an event is posted to it, so
 * that no event is posted to an EVD that is being freed. It is taken after ep->lock. */
static struct dapl_mutex ias_lock = DAPL_MUTEX_INIT(RANK_IAS);
static struct dapl_ia *ias;

/* Returns the EVD for the errors of this IA: its own, or that of another open of the same adapter. Returns
 * NULL if there is none. */
static struct dapl_evd *async_evd_of(const struct dapl_ia *ia)
{
	if (ia->async_evd)
		return ia->async_evd;
	for (struct dapl_ia *other = ias; other; other = other->next_ia)
		if (other->obj.provider == ia->obj.provider && other->async_evd)
			return other->async_evd;
	return NULL;
}

void dapl_async_post(struct dapl_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE handle, int reason)
{
	struct dapl_evd *evd;
	DAT_EVENT event;

	memset(&event, 0, sizeof event);
	event.event_number = number;
	event.event_data.asynch_error_event_data.dat_handle =
		handle == (DAT_HANDLE)ia ? dapl_ia_handle(ia) : handle;
	event.event_data.asynch_error_event_data.reason = reason;
	dapl_count(ia, DCNT_IA_ASYNC_ERROR);
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ia", ia, NULL, "async event 0x%x handle %p reason %d",
	      number, handle, reason);
	dapl_mutex_lock(&ias_lock);
	evd = async_evd_of(ia);
	if (evd)
		dapl_evd_post(evd, &event);
	dapl_mutex_unlock(&ias_lock);
}

bool dapl_async_offer(struct dapl_ia *ia, const DAT_EVENT *event)
{
	struct dapl_evd *evd;
	bool done;

	dapl_mutex_lock(&ias_lock);
	evd = async_evd_of(ia);
	done = !evd || dapl_evd_offer(evd, event);
	dapl_mutex_unlock(&ias_lock);
	return done;
}

/* Atomic, because dat_evd_free reads it without the lock. */
static void set_async_evd(struct dapl_ia *ia, struct dapl_evd *evd)
{
	__atomic_store_n(&ia->async_evd, evd, __ATOMIC_RELAXED);
}

/* True if the EVD is the asynchronous EVD of an open IA of this adapter. Called with ias_lock held. */
static bool is_async_evd(const DAT_PROVIDER *adapter, const struct dapl_evd *evd)
{
	for (struct dapl_ia *ia = ias; ia; ia = ia->next_ia)
		if (ia->async_evd == evd && ia->obj.provider == adapter)
			return true;
	return false;
}

bool dapl_async_serves(const DAT_PROVIDER *adapter, const struct dapl_evd *evd)
{
	bool serves;

	dapl_mutex_lock(&ias_lock);
	serves = is_async_evd(adapter, evd);
	dapl_mutex_unlock(&ias_lock);
	return serves;
}

DAT_EVD_HANDLE dapl_async_handle(const struct dapl_ia *ia)
{
	DAT_EVD_HANDLE handle;

	dapl_mutex_lock(&ias_lock);
	handle = ia->async_evd ? (DAT_EVD_HANDLE)ia->async_evd : DAT_EVD_OUT_OF_SCOPE;
	dapl_mutex_unlock(&ias_lock);
	return handle;
}

void dapl_async_join(struct dapl_ia *ia)
{
	dapl_mutex_lock(&ias_lock);
	if (!ia->async_ours && ia->async_evd && !is_async_evd(ia->obj.provider, ia->async_evd))
		set_async_evd(ia, NULL);	/* its IA is being closed */
	ia->next_ia = ias;
	ias = ia;
	dapl_mutex_unlock(&ias_lock);
}

void dapl_async_leave(struct dapl_ia *ia)
{
	struct dapl_ia **p;

	dapl_mutex_lock(&ias_lock);
	for (p = &ias; *p && *p != ia; p = &(*p)->next_ia)
		;
	if (*p)
		*p = ia->next_ia;
	for (struct dapl_ia *other = ias; other && ia->async_ours; other = other->next_ia)
		if (other->async_evd == ia->async_evd)
			set_async_evd(other, NULL);
	set_async_evd(ia, NULL);
	dapl_mutex_unlock(&ias_lock);
}

bool dapl_async_enter_ias(struct dapl_object ***objects, size_t *count)
{
	size_t room = 1, n = 0;
	struct dapl_object **all;

	dapl_mutex_lock(&ias_lock);
	for (struct dapl_ia *ia = ias; ia; ia = ia->next_ia)
		room++;
	all = malloc(room * sizeof *all);
	for (struct dapl_ia *ia = ias; all && ia; ia = ia->next_ia)
		if (ia->pid == getpid() && dapl_object_enter((DAT_HANDLE)ia, DAPL_IA))
			all[n++] = &ia->obj;
	dapl_mutex_unlock(&ias_lock);
	*objects = all;
	*count = n;
	return all != NULL;
}

void dapl_async_fork(bool begins)
{
	if (begins)
		dapl_mutex_lock(&ias_lock);
	else
		dapl_mutex_unlock(&ias_lock);
}

bool dapl_async_any_ia(void)
{
	bool any = false;

	dapl_mutex_lock(&ias_lock);
	for (struct dapl_ia *ia = ias; ia; ia = ia->next_ia)
		any |= ia->pid == getpid();
	dapl_mutex_unlock(&ias_lock);
	return any;
}
