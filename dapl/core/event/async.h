/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* async.h - asynchronous events: each goes to the asynchronous EVD of its IA, or to that of another
 * open of the same adapter (async.c). Keeps the list of open IAs for that. */
#ifndef DAPL_ASYNC_H
#define DAPL_ASYNC_H
#include "dapl/core/dapl.h"

/* Queues one event about `handle` of this IA. Without an asynchronous EVD it is only counted. */
void dapl_async_post(struct dapl_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE handle, int reason);
/* Queues an event of this IA that is no error. False if the EVD is full; true without an EVD. */
bool dapl_async_offer(struct dapl_ia *ia, const DAT_EVENT *event);
/* The IA was opened, and ia->async_evd is set. An EVD of another open that is being closed is
 * dropped. */
void dapl_async_join(struct dapl_ia *ia);
/* The IA is being closed. Other IAs that share its EVD have none afterwards. */
void dapl_async_leave(struct dapl_ia *ia);
/* True if it is the asynchronous EVD of an open IA of this adapter. */
bool dapl_async_serves(const DAT_PROVIDER *adapter, const struct dapl_evd *evd);
/* The IA's asynchronous EVD as dat_ia_query gives it. */
DAT_EVD_HANDLE dapl_async_handle(const struct dapl_ia *ia);
/* Enters all IAs that this process has open, as dapl_object_enter_all. */
bool dapl_async_enter_ias(struct dapl_object ***ias, size_t *count);
/* Around a fork: keeps other threads from changing the list of IAs. */
void dapl_async_fork(bool begins);
/* True if this process has IAs open. IAs that a parent had open at the fork do not count. */
bool dapl_async_any_ia(void);

#endif
