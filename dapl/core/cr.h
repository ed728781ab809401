/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cr.h - what sp.c and cr.c share. */
#ifndef DAPL_CR_H
#define DAPL_CR_H
#include "dapl/core/dapl.h"

struct dapl_cr *dapl_cr_new(struct dapl_ia *ia, struct dapl_conn *conn,
			    const struct dapl_request *request);
/* Gives the CR to a service point: its endpoint, its event. False when there is no room;
 * then nothing has happened. */
bool dapl_sp_deliver(struct dapl_sp *sp, struct dapl_cr *cr);
/* A live service point of this IA with that qualifier, and a reference; or NULL. */
struct dapl_sp *dapl_sp_find(struct dapl_ia *ia, DAT_CONN_QUAL qual);

#endif
