/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_conn_report.c - upcalls of a connection: each without its lock and after its state has changed, and what a
 * refused peer gets. Core, the capture and librdmacm are replaced here. */
#include "dapl/verbs/conn_report.h"
#include "dapl/verbs/tap.h"
#include "test/unit/unit.h"

static int owner;
static struct rdma_cm_id id;
static struct dapl_conn conn;

/* What was called; `upcalls` counts those to core. */
static int upcalls, taps, rejects, ece_rejects;
static enum conn_state state_then;		/* during the upcall */
static enum dapl_conn_failure why_told;
static bool orderly_told, ece_is_refused;
static struct dapl_established told;
static size_t pdata_len;
static uint8_t rejected[256];
static int rejected_len;

static void upcall(const void *to, const struct dapl_conn *of)
{
	upcalls++;
	assert_ptr_equal(to, &owner);
	assert_ptr_equal(of, &conn);
	assert_int_equal(conn.lock.state, MUTEX_FREE);
	state_then = conn.state;
}

void dapl_up_failed(void *to, struct dapl_conn *of, enum dapl_conn_failure why, const void *pdata, size_t len)
{
	upcall(to, of);
	why_told = why;
	pdata_len = len;
	if (len)
		assert_memory_equal(pdata, "no", len);
}

void dapl_up_established(void *to, struct dapl_conn *of, const struct dapl_established *info)
{
	upcall(to, of);
	told = *info;
}

void dapl_up_disconnected(void *to, struct dapl_conn *of, bool orderly)
{
	upcall(to, of);
	orderly_told = orderly;
}

void hw_tap_connection(const struct dapl_conn *of)
{
	assert_ptr_equal(of, &conn);
	assert_int_not_equal(conn.lock.state, MUTEX_FREE);
	assert_int_equal(upcalls, 0);		/* or messages before it are not recorded */
	taps++;
}

int rdma_reject(struct rdma_cm_id *of, const void *pdata, uint8_t len)
{
	assert_ptr_equal(of, &id);
	rejects++;
	memcpy(rejected, pdata, len);
	rejected_len = len;
	return 0;
}

int rdma_reject_ece(struct rdma_cm_id *of, const void *pdata, uint8_t len)
{
	ece_rejects++;
	if (ece_is_refused) {
		errno = EINVAL;
		return -1;
	}
	rdma_reject(of, pdata, len);
	rejects--;
	return 0;
}

static void address(struct sockaddr *to, const char *text, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	assert_int_equal(inet_pton(AF_INET, text, &in->sin_addr), 1);
}

UNIT_FIXTURE(begin)
{
	memset(&id, 0, sizeof id);
	address(&id.route.addr.src_addr, "10.0.0.1", 1);
	address(&id.route.addr.dst_addr, "10.0.0.2", 2);
	conn = (struct dapl_conn){ .id = &id, .owner = &owner };
	dapl_mutex_init(&conn.lock, RANK_VERBS_CONN);
	upcalls = taps = rejects = ece_rejects = rejected_len = 0;
	ece_is_refused = orderly_told = false;
	memset(rejected, 0, sizeof rejected);
}

/* As the service thread calls the functions. */
static void lock_in(enum conn_state state)
{
	conn.state = state;
	dapl_mutex_lock(&conn.lock);
}

static void reported(enum conn_state state, int calls)
{
	assert_int_equal(conn.lock.state, MUTEX_FREE);
	assert_int_equal(upcalls, calls);
	if (calls)
		assert_int_equal(state_then, state);
	assert_int_equal(conn.state, state);
}

static bool has_address(const struct sockaddr_storage *ss, const char *text, uint16_t port)
{
	struct sockaddr_storage expected = { 0 };

	address((struct sockaddr *)&expected, text, port);
	return !memcmp(ss, &expected, sizeof(struct sockaddr_in));
}

#define TEST(name) UNIT_TEST_WITH(name, begin, NULL)

TEST(established_connection_has_both_addresses)
{
	lock_in(CONN_CONNECTING);
	hw_report_established(&conn, "hi", 2, NULL);
	reported(CONN_ESTABLISHED, 1);
	assert_int_equal(told.pdata_len, 2);
	assert_memory_equal(told.pdata, "hi", 2);
	assert_null(told.ud);
	assert_true(has_address(&told.local, "10.0.0.1", 1));
	assert_true(has_address(&told.remote, "10.0.0.2", 2));
}

/* The capture of a connection that was accepted began with the accept. */
TEST(active_side_is_captured_from_here_on)
{
	lock_in(CONN_ACCEPTING);
	hw_report_established(&conn, NULL, 0, NULL);
	reported(CONN_ESTABLISHED, 1);
	assert_int_equal(taps, 0);
	begin(state);
	conn.active = true;
	lock_in(CONN_CONNECTING);
	hw_report_established(&conn, NULL, 0, NULL);
	assert_int_equal(taps, 1);
}

TEST(ended_connection_is_not_reported_as_established)
{
	conn.active = true;
	lock_in(CONN_DISCONNECTING);
	hw_report_established(&conn, NULL, 0, NULL);
	reported(CONN_DISCONNECTING, 0);
	assert_int_equal(taps, 0);
}

TEST(disconnect_is_orderly_or_not)
{
	for (int orderly = 0; orderly < 2; orderly++) {
		begin(state);
		orderly_told = !orderly;
		lock_in(CONN_ESTABLISHED);
		hw_report_disconnected(&conn, orderly ? CONN_PEER_CLOSED : CONN_CLOSED, orderly);
		reported(orderly ? CONN_PEER_CLOSED : CONN_CLOSED, 1);
		assert_int_equal(orderly_told, orderly);
	}
}

static void learn_addresses(void)
{
	dapl_mutex_lock(&conn.lock);
	hw_report_addresses(&conn);
	dapl_mutex_unlock(&conn.lock);
}

TEST(unknown_addresses_do_not_replace_known_ones)
{
	learn_addresses();
	memset(&id.route.addr, 0, sizeof id.route.addr);
	learn_addresses();
	assert_true(has_address(&conn.local, "10.0.0.1", 1));
	assert_true(has_address(&conn.remote, "10.0.0.2", 2));
	conn.id = NULL;
	learn_addresses();
	assert_true(has_address(&conn.local, "10.0.0.1", 1));
	assert_true(has_address(&conn.remote, "10.0.0.2", 2));
}

static void refused_message(enum hw_wire wire)
{
	struct hw_pdata pdata;

	hw_pdata_unpack(&pdata, wire, HW_REJECT, rejected, rejected_len);
	assert_true(pdata.exact);
	assert_true(pdata.refused);
	assert_int_equal(pdata.len, 0);
}

TEST(kernel_without_that_reason_rejects)
{
	ece_is_refused = true;
	hw_report_refusal(&id, HW_WIRE_IB);
	assert_int_equal(ece_rejects, 1);
	assert_int_equal(rejects, 1);
	refused_message(HW_WIRE_IB);
}

UNIT_MAIN(NULL, NULL)
