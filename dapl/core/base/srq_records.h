/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq_records.h - the records of the buffers of a shared receive queue (srq_records.c). Buffers complete in
 * any order, so the records form a free list. A record is occupied from the post until its completion is
 * dequeued. srq.c posts buffers, event.c completes them. */
#ifndef DAPL_SRQ_RECORDS_H
#define DAPL_SRQ_RECORDS_H
#include "dapl/core/dapl.h"

/* Allocates `n` more records. Returns 0 or ENOMEM. */
int dapl_srq_add_records(struct dapl_srq *srq, uint32_t n);
/* Called with srq->lock held. Returns the record for the next buffer, or NULL if srq->max buffers are
 * posted. */
struct dapl_dto *dapl_srq_take(struct dapl_srq *srq);
/* Called with srq->lock held. Gives back a record whose buffer was not posted. */
void dapl_srq_take_back(struct dapl_srq *srq, struct dapl_dto *dto);
/* Gives back the record of a buffer whose completion was dequeued, or never will be. */
void dapl_srq_give_back(struct dapl_dto *dto);
/* A post with a stale handle finds no room from now on. */
void dapl_srq_shut_records(struct dapl_srq *srq);
/* Frees the memory of all records. */
void dapl_srq_free_records(struct dapl_srq *srq);

#endif
