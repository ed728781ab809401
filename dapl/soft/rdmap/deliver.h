/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* deliver.h - completes the receive that was taken for a message. Called with qp->lock held. */
#ifndef SOFT_RDMAP_DELIVER_H
#define SOFT_RDMAP_DELIVER_H
#include <infiniband/verbs.h>
#include <stdint.h>
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"

/* The taken receive holds the whole message of `length` bytes: completes it. `op` is that of the message,
 * `word` its immediate data, or the STag to invalidate. Returns a Terminate code or WIRE_TERM_NONE. */
int soft_deliver(struct soft_qp *qp, struct dapl_conn *conn, uint8_t op, uint32_t word,
		 uint32_t length);
/* The taken receive fails. Returns `term`, which goes to the peer. */
int soft_deliver_failed(struct soft_qp *qp, enum ibv_wc_status status, int term);
/* The number of the last Send that certainly finds a receive; without one, of the last Send that arrived. */
uint32_t soft_deliver_ready(const struct dapl_conn *conn);

#endif
