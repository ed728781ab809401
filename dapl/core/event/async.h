/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* async.h - asynchronous events: each goes to the asynchronous EVD of its IA, or to that of another open of
 * the same adapter (async.c). Has the list of open IAs. */
#ifndef DAPL_ASYNC_H
#define DAPL_ASYNC_H
#include "dapl/core/dapl.h"

/* Queues one event about `handle` of this IA. If there is no asynchronous EVD, the event is only
 * counted. */
void dapl_async_post(struct dapl_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE handle, int reason);
/* Queues an event of this IA that is no error. Returns false if the EVD is full, true if there is no
 * EVD. */
bool dapl_async_offer(struct dapl_ia *ia, const DAT_EVENT *event);
/* Called when the IA was opened and ia->async_evd was set. Clears async_evd if it belongs to another open
 * that is being closed. */
void dapl_async_join(struct dapl_ia *ia);
/* Called when the IA is being closed. Other IAs that share its EVD have no asynchronous EVD afterwards. */
void dapl_async_leave(struct dapl_ia *ia);
/* Returns true if the EVD is the asynchronous EVD of an open IA of this adapter. */
bool dapl_async_serves(const DAT_PROVIDER *adapter, const struct dapl_evd *evd);
/* Returns the handle of the IA's asynchronous EVD as dat_ia_query does. */
DAT_EVD_HANDLE dapl_async_handle(const struct dapl_ia *ia);
/* Enters all IAs that this process has open, as dapl_object_enter_all. */
bool dapl_async_enter_ias(struct dapl_object ***ias, size_t *count);
/* Called around a fork: takes or releases the lock of the list of IAs. */
void dapl_async_fork(bool begins);
/* Returns true if this process has IAs open. IAs that a parent had open at the fork do not count. */
bool dapl_async_any_ia(void);

#endif
