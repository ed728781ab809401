/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* segments.h - checks local segments when a request is posted, on devices that do not tell of a faulty one when it
 * completes: the kernel's rxe and siw. The functions do nothing on objects of other devices.
 *
 * rxe of Linux 6.12 moves the queue pair to the error state before it makes the completion, so that a send from
 * memory that is not registered completes as flushed, with all earlier requests that the peer has not acknowledged,
 * although it may have received them. rxe of 6.1 and siw report an error of the queue pair for an unknown key. So the
 * request is refused before the device sees it: the connection goes on, and the fault has a return code of its
 * own. DTO-42. */
#ifndef SEGMENTS_H
#define SEGMENTS_H
#include <infiniband/verbs.h>

/* errno of a refused post; core makes them DAT_PROTECTION_VIOLATION and DAT_INVALID_PARAMETER. */
#define SEGMENT_NOT_REGISTERED EKEYREJECTED	/* no region of the queue pair's PD has this key */
#define SEGMENT_OUTSIDE ERANGE			/* it is not within its region */

/* Replaces the function of this context that posts sends, after other replacements. Returns 0 or an errno. */
int hw_segments_adopt(struct ibv_context *verbs);
/* The context is about to be closed; its regions are forgotten. */
void hw_segments_release(struct ibv_context *verbs);

/* Returns 0, or the errno with which a post of this request alone is refused, after a line that names the segment. */
int hw_segments_check(const struct ibv_qp *qp, const struct ibv_send_wr *wr);

/* Called with the result of a registration; the first byte of the region has the address `base`. Returns 0 or an errno:
 * that of the registration if `mr` is NULL, or ENOMEM after it has deregistered the region. */
int hw_segments_add(struct ibv_mr *mr, uint64_t base);
/* ibv_dereg_mr, for any region. */
int hw_segments_dereg(struct ibv_mr *mr);

#endif
