/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq.h - shared receive queues (srq.c). */
#ifndef DAPL_SRQ_H
#define DAPL_SRQ_H
#include "dapl/core/dapl.h"

/* Ends an SRQ that was killed before. */
void dapl_srq_destroy(struct dapl_srq *srq);
/* The device says that the limit was reached, or that the SRQ failed. */
void dapl_srq_limit(struct dapl_srq *srq);
void dapl_srq_failed(struct dapl_srq *srq);

#endif
