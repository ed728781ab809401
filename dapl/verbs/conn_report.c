/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_report.c - what a connection reports to core, and to a peer that is refused (conn_report.h). */
#include "conn_report.h"
#include "conn_state.h"
#include "tap.h"
#include "common/address.h"

void hw_report_addresses(struct dapl_conn *conn)
{
	struct sockaddr *local = conn->id ? rdma_get_local_addr(conn->id) : NULL;
	struct sockaddr *remote = conn->id ? rdma_get_peer_addr(conn->id) : NULL;

	assert_held(&conn->lock);
	if (local && address_length(local))
		address_copy(&conn->local, local);
	if (remote && address_length(remote))
		address_copy(&conn->remote, remote);
}

void hw_report_failed(struct dapl_conn *conn, enum dapl_conn_failure why, const void *pdata, size_t len)
{
	assert_held(&conn->lock);
	hw_conn_set_state(conn, CONN_CLOSED);
	dapl_mutex_unlock(&conn->lock);
	dapl_up_failed(conn->owner, conn, why, pdata, len);
}

void hw_report_established(struct dapl_conn *conn, const void *pdata, size_t len,
			   const struct dapl_ud_peer *peer)
{
	struct dapl_established info = { .pdata = pdata, .pdata_len = len, .ud = peer };

	assert_held(&conn->lock);
	hw_report_addresses(conn);
	if (!hw_conn_set_state(conn, CONN_ESTABLISHED)) {	/* it has ended meanwhile */
		dapl_mutex_unlock(&conn->lock);
		return;
	}
	if (conn->active)
		hw_tap_connection(conn);
	info.local = conn->local;
	info.remote = conn->remote;
	dapl_mutex_unlock(&conn->lock);
	dapl_up_established(conn->owner, conn, &info);
}

void hw_report_disconnected(struct dapl_conn *conn, enum conn_state next, bool orderly)
{
	assert_held(&conn->lock);
	hw_conn_set_state(conn, next);
	dapl_mutex_unlock(&conn->lock);
	dapl_up_disconnected(conn->owner, conn, orderly);
}

/* Apart from "consumer", the only reason that librdmacm can send is that of ECE. It tells OFA's provider,
 * too, that no consumer was asked. Older kernels do not support it. */
void hw_report_refusal(struct rdma_cm_id *id, enum hw_wire wire)
{
	uint8_t bytes[256];
	int len = hw_pdata_pack(bytes, wire, HW_REJECT, NULL, 0, 0, true, NULL);

	if (wire != HW_WIRE_IB || rdma_reject_ece(id, bytes, len))
		rdma_reject(id, bytes, len);
}
