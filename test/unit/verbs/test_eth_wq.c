/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_wq.c - work queues for receives and QPs over tables of them: what the device is asked for, what is undone
 * when a step fails, and what is left after the close. */
#include "dapl/verbs/eth_wq.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/eth_objects.h"

static struct hw_eth q;
static struct ibv_cq receive_cq;
static const uint8_t key[HW_ETH_HASH_KEY] = { 1, 2, 3, [HW_ETH_HASH_KEY - 1] = 40 };
static const uint64_t fields = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4;

static int begin(void **state)
{
	q = (struct hw_eth){ .eth = &eth, .cq = &receive_cq, .qp = { .pd = &objects.pd } };
	return objects_begin(state);
}

static int open_hash(uint32_t size, struct hw_hash *hash)
{
	struct ibv_wq *queues[4] = { &objects.wq, &objects.wq, &objects.wq, &objects.wq };

	return hw_eth_wq_hash_open(&eth, &objects.pd, queues, size, fields, key, hash);
}

#define TEST(name) UNIT_TEST_WITH(name, begin, objects_end)

/* --- work queues -------------------------------------------------------------------------------------------- */

TEST(work_queue_is_made_ready)
{
	struct ibv_wq_init_attr attr = { .max_wr = 7 };
	struct ibv_wq *wq;

	assert_int_equal(hw_eth_wq_create(&eth, &attr, &wq), 0);
	assert_ptr_equal(wq, &objects.wq);
	assert_int_equal(asked_wq.wq_type, IBV_WQT_RQ);
	assert_int_equal(asked_wq.max_wr, 7);
	alive_are("wq:RDY");
	ibv_destroy_wq(wq);
}

TEST(work_queue_that_is_not_ready_is_destroyed)
{
	struct ibv_wq_init_attr attr = { .max_wr = 7 };
	struct ibv_wq *wq = &objects.wq;

	failing = "wq:RDY";
	assert_int_equal(hw_eth_wq_create(&eth, &attr, &wq), ENOBUFS);
	assert_null(wq);
	nothing_is_alive();
}

TEST(refusal_without_a_reason_is_an_error)
{
	struct ibv_wq_init_attr attr = { .max_wr = 7 };
	struct hw_hash hash;
	struct ibv_wq *wq;

	refusal = 0;
	failing = "wq";
	assert_int_equal(hw_eth_wq_create(&eth, &attr, &wq), EIO);
	failing = "table";
	assert_int_equal(open_hash(1, &hash), EIO);
	failing = "hash";
	assert_int_equal(open_hash(1, &hash), EIO);
}

TEST(raw_qp_receives_on_a_queue_of_its_own)
{
	assert_int_equal(hw_eth_wq_open(&q, 100, 3), 0);
	alive_are("wq:RDY table hash:RTR");
	assert_ptr_equal(q.wq, &objects.wq);
	assert_ptr_equal(q.own.qp, &objects.hash);
	assert_ptr_equal(asked_wq.pd, &objects.pd);
	assert_ptr_equal(asked_wq.cq, &receive_cq);
	assert_int_equal(asked_wq.max_wr, 100);
	assert_int_equal(asked_wq.max_sge, 3);
	assert_int_equal(asked_wq.comp_mask, 0);
	assert_int_equal(asked_table_log, 0);
	assert_ptr_equal(asked_queues[0], &objects.wq);
	assert_int_equal(asked_hash.rx_hash_conf.rx_hash_fields_mask, 0);
	hw_eth_wq_close(&q);
	nothing_is_alive();
}

TEST(queue_scatters_the_fcs_if_the_endpoint_wants_it)
{
	q.config.fcs = true;
	assert_int_equal(hw_eth_wq_open(&q, 100, 3), 0);
	assert_int_equal(asked_wq.comp_mask, IBV_WQ_INIT_ATTR_FLAGS);
	assert_int_equal(asked_wq.create_flags, IBV_WQ_FLAGS_SCATTER_FCS);
	hw_eth_wq_close(&q);
}

TEST(failed_opening_leaves_nothing_after_the_close)
{
	static const char *const words[] = { "wq", "wq:RDY", "table", "hash", "hash:INIT", "hash:RTR" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		begin(state);
		failing = words[i];
		assert_int_equal(hw_eth_wq_open(&q, 100, 3), ENOBUFS);
		hw_eth_wq_close(&q);
		nothing_is_alive();
		hw_eth_wq_close(&q);		/* nothing is destroyed twice */
	}
}

/* --- QPs over tables ----------------------------------------------------------------------------------------- */

TEST(table_size_is_given_as_its_logarithm)
{
	static const uint32_t sizes[] = { 1, 2, 4 };
	struct hw_hash hash;

	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(open_hash(sizes[i], &hash), 0);
		assert_int_equal(asked_table_log, i);
		hw_eth_wq_hash_close(&hash);
	}
}

TEST(qp_hashes_the_fields_with_the_key)
{
	struct hw_hash hash;

	assert_int_equal(open_hash(2, &hash), 0);
	assert_ptr_equal(hash.table, &objects.table);
	assert_ptr_equal(hash.qp, &objects.hash);
	assert_int_equal(asked_hash.qp_type, IBV_QPT_RAW_PACKET);
	assert_ptr_equal(asked_hash.pd, &objects.pd);
	assert_ptr_equal(asked_hash.rwq_ind_tbl, &objects.table);
	assert_int_equal(asked_hash.comp_mask,
			 IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH);
	assert_int_equal(asked_hash.rx_hash_conf.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
	assert_int_equal(asked_hash.rx_hash_conf.rx_hash_fields_mask, fields);
	assert_memory_equal(asked_key, key, sizeof key);
	hw_eth_wq_hash_close(&hash);
}

TEST(failed_hash_leaves_nothing)
{
	static const char *const words[] = { "table", "hash", "hash:INIT", "hash:RTR" };
	struct hw_hash hash;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		memset(&hash, 0xee, sizeof hash);
		failing = words[i];
		assert_int_equal(open_hash(2, &hash), ENOBUFS);
		assert_null(hash.qp);
		assert_null(hash.table);
		nothing_is_alive();
	}
}

/* As those of mlx5. Other errors, and any of a QP that has INIT, are failures. */
TEST(qp_without_states_is_up)
{
	static const int reasons[] = { EOPNOTSUPP, ENOSYS, -EOPNOTSUPP };
	struct hw_hash hash;

	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
		refusal = reasons[i];
		failing = "hash:INIT";
		assert_int_equal(open_hash(2, &hash), 0);
		alive_are("table hash");
		hw_eth_wq_hash_close(&hash);
		nothing_is_alive();
	}
	failing = "hash:RTR";
	assert_int_equal(open_hash(2, &hash), EOPNOTSUPP);
}

TEST(closed_hash_is_closed_once)
{
	struct hw_hash hash;

	assert_int_equal(open_hash(2, &hash), 0);
	hw_eth_wq_hash_close(&hash);
	hw_eth_wq_hash_close(&hash);
	assert_null(hash.qp);
	assert_null(hash.table);
}

UNIT_MAIN(NULL, NULL)
