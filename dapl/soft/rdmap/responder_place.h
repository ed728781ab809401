/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder_place.h - where the payload of a segment goes (responder_place.c). Called with qp->lock held. */
#ifndef SOFT_RDMAP_RESPONDER_PLACE_H
#define SOFT_RDMAP_RESPONDER_PLACE_H
#include <stdint.h>

struct dapl_conn;
struct iovec;
struct soft_qp;
struct soft_region;

/* Fills iov with the places of the next bytes of the segment's payload, `length` bytes at most. Returns the number of
 * iovecs, and in *held the window to pass to soft_mem_done(); or -1 and in *term the Terminate code. */
int soft_responder_place(struct soft_qp *qp, struct dapl_conn *conn, uint32_t length, struct iovec *iov, int max,
			 struct soft_region **held, int *term);
/* The first `length` bytes of these places were written. */
void soft_responder_placed(struct dapl_conn *conn, uint32_t length);

#endif
