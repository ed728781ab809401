/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp_table.h - the endpoints of an IA by QP number (qp_table.c). Endpoints with an SRQ are in it
 * while they have a QP. */
#ifndef DAPL_QP_TABLE_H
#define DAPL_QP_TABLE_H
#include "dapl/core/dapl.h"

/* ep->qpn is set, and stays the same until the endpoint is removed. */
void dapl_qp_table_add(struct dapl_ep *ep);
void dapl_qp_table_remove(struct dapl_ep *ep);
/* Returns NULL if no endpoint has the QP. */
struct dapl_ep *dapl_qp_table_find(struct dapl_ia *ia, uint32_t qpn);

#endif
