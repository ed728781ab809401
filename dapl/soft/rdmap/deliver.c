/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* deliver.c - see deliver.h. */
#include "dapl/soft/rdmap/deliver.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/window.h"
#include "dapl/soft/wire/wire.h"
#include <arpa/inet.h>

int soft_deliver_failed(struct soft_qp *qp, enum ibv_wc_status status, int term)
{
	struct ibv_wc receive = { .opcode = IBV_WC_RECV };

	assert_held(&qp->lock);
	soft_qp_received(qp, status, &receive, false);
	return term;
}

int soft_deliver(struct soft_qp *qp, struct dapl_conn *conn, uint8_t op, uint32_t word, uint32_t length)
{
	struct ibv_wc wc = { .opcode = IBV_WC_RECV, .byte_len = length };
	bool solicited = false;

	assert_held(&qp->lock);
	switch (op) {
	case WIRE_SEND_SE_INV:
		solicited = true;	/* fall through */
	case WIRE_SEND_INV:
		if (soft_mw_invalidate(qp, word) != IBV_WC_SUCCESS)
			return WIRE_TERM_INVALIDATE;
		wc.wc_flags = IBV_WC_WITH_INV;
		wc.invalidated_rkey = word;
		break;
	case WIRE_SEND_SE_IMM:
		solicited = true;	/* fall through */
	case WIRE_SEND_IMM:
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = htonl(word);
		break;
	case WIRE_IMMEDIATE_SE:
		solicited = true;	/* fall through */
	case WIRE_IMMEDIATE:
		wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = htonl(word);
		break;
	case WIRE_SEND_SE:
		solicited = true;
		break;
	}
	conn->stream.delivered++;
	soft_qp_received(qp, IBV_WC_SUCCESS, &wc, solicited);
	return WIRE_TERM_NONE;
}

/* Receives of a shared queue do not count, since other QPs may take them. While messages wait for a
 * receive there is none. */
uint32_t soft_deliver_ready(const struct dapl_conn *conn)
{
	const struct soft_qp *qp = conn->qp;
	uint32_t come = conn->stream.rx.msn_send - 1;

	if (!qp || !TAILQ_EMPTY(&conn->stream.unexpected))
		return come;
	return come + conn->stream.rx.send_open + (qp->rq.tail - qp->rq.head);
}
