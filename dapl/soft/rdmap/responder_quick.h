/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder_quick.h - the common case of receiving (responder_quick.c). */
#ifndef SOFT_RDMAP_RESPONDER_QUICK_H
#define SOFT_RDMAP_RESPONDER_QUICK_H
#include <stdbool.h>

struct dapl_conn;
struct soft_message;
struct soft_qp;

/* qp->lock held. Executes a small Send or write of one segment. Returns false, with nothing done, for any other
 * message. */
bool soft_responder_quick(struct soft_qp *qp, struct dapl_conn *conn, const struct soft_message *message);

#endif
