/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_qp.h - the queue pair's way to RTS on InfiniBand and RoCE, and what both sides agree on
 * (conn_qp.c). An iWARP driver moves the queue pair itself. */
#ifndef HW_CONN_QP_H
#define HW_CONN_QP_H
#include "conn_types.h"

/* Returns 0 or an errno. *peer_gone becomes true if rdma_cm has no attributes for the queue pair any more,
 * since the peer has given up. */
int hw_qp_to_rts(struct dapl_conn *conn, bool *peer_gone);
/* Sets the service level, hop limit and traffic class that the user asked for. The last two are in the GRH,
 * so they are set only if the address has one. `conn`: the connection, or NULL. */
void hw_qp_set_path(struct ibv_ah_attr *ah, const struct dapl_conn *conn);
/* Retry counts of the connection, else those of the environment. */
uint8_t hw_qp_ack_retry(const struct dapl_conn *conn);
uint8_t hw_qp_rnr_retry(const struct dapl_conn *conn);
/* DAPL_IB_MTU as an enum ibv_mtu; 0: not set. */
uint8_t hw_qp_own_mtu(void);
uint8_t hw_qp_least(uint8_t a, uint8_t b);
/* The smaller of two values of which 0 means "not set". */
uint8_t hw_qp_least_set(uint8_t a, uint8_t b);

#endif
