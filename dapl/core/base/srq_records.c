/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq_records.c - the records of the buffers of a shared receive queue (srq_records.h). */
#include <errno.h>
#include <stdlib.h>
#include "dapl/core/base/srq_records.h"

struct dapl_srq_chunk {
	struct dapl_srq_chunk *next;
	struct dapl_dto dto[];
};

int dapl_srq_add_records(struct dapl_srq *srq, uint32_t n)
{
	struct dapl_srq_chunk *chunk = calloc(1, sizeof *chunk + n * sizeof chunk->dto[0]);

	if (!chunk)
		return ENOMEM;
	dapl_post_lock(&srq->lock);
	chunk->next = srq->chunks;
	srq->chunks = chunk;
	for (uint32_t i = n; i-- > 0;) {
		chunk->dto[i].next = srq->free;
		srq->free = &chunk->dto[i];
	}
	srq->records += n;
	dapl_post_unlock(&srq->lock);
	return 0;
}

void dapl_srq_give_back(struct dapl_dto *dto)
{
	struct dapl_srq *srq = dto->srq;

	dapl_post_lock(&srq->lock);
	dapl_srq_take_back(srq, dto);
	dapl_post_unlock(&srq->lock);
}

struct dapl_dto *dapl_srq_take(struct dapl_srq *srq)
{
	struct dapl_dto *dto = srq->posted < srq->max ? srq->free : NULL;

	assert_held(&srq->lock);
	if (dto) {
		srq->free = dto->next;
		srq->posted++;
	}
	return dto;
}

void dapl_srq_take_back(struct dapl_srq *srq, struct dapl_dto *dto)
{
	assert_held(&srq->lock);
	dto->next = srq->free;
	srq->free = dto;
	srq->posted--;
}

void dapl_srq_shut_records(struct dapl_srq *srq)
{
	dapl_post_lock(&srq->lock);
	srq->free = NULL;
	srq->max = 0;
	dapl_post_unlock(&srq->lock);
}

void dapl_srq_free_records(struct dapl_srq *srq)
{
	struct dapl_srq_chunk *chunk;

	while ((chunk = srq->chunks)) {
		srq->chunks = chunk->next;
		free(chunk);
	}
}
