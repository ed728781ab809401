/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* acceptor.h - the passive side of a connection (acceptor.c). hw_accept and hw_reject are in hw.h. */
#ifndef HW_ACCEPTOR_H
#define HW_ACCEPTOR_H
#include "cm.h"

/* A connection for an id that a request brought. The id is the caller's on failure. */
int hw_conn_from_request(struct dapl_device *dev, struct rdma_cm_id *id, bool ud,
			 const struct hw_pdata *pdata, const struct rdma_cm_event *event,
			 struct dapl_conn **conn);

#endif
