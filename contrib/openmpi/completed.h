/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* completed.h - completions of what was sent (completed.c). */
#ifndef BTL_UDAPL_COMPLETED_H
#define BTL_UDAPL_COMPLETED_H

#include "udapl.h"

/* Completes a fragment. The status is OPAL_SUCCESS for a request flushed after a close
 * notification. */
void udapl_send_done(struct udapl_frag *f, int status);
/* Completion of a send or of a write into a ring. */
void udapl_send_completed(struct udapl_frag *f, DAT_DTO_COMPLETION_STATUS status);
/* Completion of a signaled write, which implies the unsignaled ones before it. */
void udapl_staged_completed(struct udapl_conn *c);
void udapl_rdma_completed(struct udapl_rdma *r, DAT_DTO_COMPLETION_STATUS status);

#endif
