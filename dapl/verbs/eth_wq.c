/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_wq.c - work queues for receives, and QPs over tables of them.
 *
 * Groups share work queues, and the receive queue of a QP cannot become one later. So on a device with work
 * queues each raw QP only sends. It receives on a work queue, and its flows lead to a second QP whose table
 * names this queue alone. */
#include "eth_wq.h"
#include "hw.h"
#include <errno.h>

/* --- work queues ---------------------------------------------------------------------------- */

int hw_eth_wq_to_state(struct ibv_wq *wq, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state };

	return hw_errno(ibv_modify_wq(wq, &attr));
}

int hw_eth_wq_create(struct hw_eth_device *eth, struct ibv_wq_init_attr *attr, struct ibv_wq **wq)
{
	int err;

	attr->wq_type = IBV_WQT_RQ;
	*wq = ibv_create_wq(eth->dev->verbs, attr);
	if (!*wq)
		return hw_null_errno();
	err = hw_eth_wq_to_state(*wq, IBV_WQS_RDY);
	if (err) {
		ibv_destroy_wq(*wq);
		*wq = NULL;
	}
	return err;
}

int hw_eth_wq_open(struct hw_eth *q, uint32_t max_wr, uint32_t max_sge)
{
	static const uint8_t no_key[HW_ETH_HASH_KEY];
	struct ibv_wq_init_attr attr = { .max_wr = max_wr, .max_sge = max_sge, .pd = q->qp.pd, .cq = q->cq };
	int err;

	if (q->config.fcs) {
		attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
		attr.create_flags = IBV_WQ_FLAGS_SCATTER_FCS;
	}
	err = hw_eth_wq_create(q->eth, &attr, &q->wq);
	return err ? err : hw_eth_wq_hash_open(q->eth, q->qp.pd, &q->wq, 1, 0, no_key, &q->own);
}

void hw_eth_wq_close(struct hw_eth *q)
{
	hw_eth_wq_hash_close(&q->own);
	if (q->wq)
		ibv_destroy_wq(q->wq);
	q->wq = NULL;
}

/* --- QPs over them -------------------------------------------------------------------------- */

static uint32_t log_of(uint32_t size)
{
	uint32_t log = 0;

	while (size >> log > 1)
		log++;
	return log;
}

/* Moves such a QP to RTR, which mlx4 needs to bind its queues to the port. With mlx5 such a QP has no
 * states. */
static int bring_up(struct ibv_qp *qp, uint8_t port)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = port };
	int err = hw_errno(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT));

	if (err == EOPNOTSUPP || err == ENOSYS)
		return 0;
	attr.qp_state = IBV_QPS_RTR;
	return err ? err : hw_errno(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

int hw_eth_wq_hash_open(struct hw_eth_device *eth, struct ibv_pd *pd, struct ibv_wq **queues, uint32_t size,
			uint64_t fields, const uint8_t key[HW_ETH_HASH_KEY], struct hw_hash *hash)
{
	struct ibv_rwq_ind_table_init_attr table = { .log_ind_tbl_size = log_of(size), .ind_tbl = queues };
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_RAW_PACKET, .pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ, .rx_hash_key_len = HW_ETH_HASH_KEY,
			.rx_hash_key = (uint8_t *)key, .rx_hash_fields_mask = fields } };
	int err;

	*hash = (struct hw_hash){ .qp = NULL };
	hash->table = ibv_create_rwq_ind_table(eth->dev->verbs, &table);
	if (!hash->table)
		return hw_null_errno();
	attr.rwq_ind_tbl = hash->table;
	hash->qp = ibv_create_qp_ex(eth->dev->verbs, &attr);
	err = hash->qp ? bring_up(hash->qp, (uint8_t)eth->dev->attr.port) : hw_null_errno();
	if (err)
		hw_eth_wq_hash_close(hash);
	return err;
}

void hw_eth_wq_hash_close(struct hw_hash *hash)
{
	if (hash->qp)
		ibv_destroy_qp(hash->qp);
	if (hash->table)
		ibv_destroy_rwq_ind_table(hash->table);
	*hash = (struct hw_hash){ .qp = NULL };
}
