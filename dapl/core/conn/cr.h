/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cr.h - connection requests (cr.c) and their delivery (service_point.c). */
#ifndef DAPL_CR_H
#define DAPL_CR_H
#include "dapl/core/dapl.h"

/* Not published yet: no handle of it is good. */
struct dapl_cr *dapl_cr_new(struct dapl_ia *ia, struct dapl_conn *conn,
			    const struct dapl_request *request);
/* Ends one that was not delivered. */
void dapl_cr_discard(struct dapl_cr *cr);
/* Refuses a request that no call can answer any more, since its event is discarded. */
void dapl_cr_refuse(DAT_CR_HANDLE handle);
/* Publishes the CR and gives it to a service point: its endpoint, its event. False when there
 * is no room; then nothing has happened. */
bool dapl_sp_deliver(struct dapl_sp *sp, struct dapl_cr *cr);
/* A live service point of this IA with that qualifier, entered; or NULL. */
struct dapl_sp *dapl_sp_find(struct dapl_ia *ia, DAT_CONN_QUAL qual);

#endif
