/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq_records.h - the records of the buffers of a shared receive queue (srq_records.c). Buffers
 * complete in any order, so the records form a free list. A record is occupied from the post until
 * its completion is dequeued. Posting is srq.c's job, completing event.c's. */
#ifndef DAPL_SRQ_RECORDS_H
#define DAPL_SRQ_RECORDS_H
#include "dapl/core/dapl.h"

/* Allocates `n` more. Returns 0 or ENOMEM. */
int dapl_srq_add_records(struct dapl_srq *srq, uint32_t n);
/* srq->lock held. The record of the next buffer; NULL if srq->max are posted. */
struct dapl_dto *dapl_srq_take(struct dapl_srq *srq);
/* srq->lock held. Gives back a record whose buffer was not posted. */
void dapl_srq_take_back(struct dapl_srq *srq, struct dapl_dto *dto);
/* Gives back the record of a buffer whose completion was dequeued, or never will be. */
void dapl_srq_give_back(struct dapl_dto *dto);
/* From now on a post with a stale handle finds no room. */
void dapl_srq_shut_records(struct dapl_srq *srq);
/* Frees the memory of all records. */
void dapl_srq_free_records(struct dapl_srq *srq);

#endif
