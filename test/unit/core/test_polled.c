/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_polled.c - operations on the polled completions of an EVD: what they keep, and that the device is
 * polled under the lock of the EVD. */
#include "dapl/core/event/calls.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_feed.h"
#include "dapl/core/event/polled.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static struct dapl_evd *evd;
static struct dapl_ep *ep, *other;
static unsigned polls;

/* A second thread could poll, too, if the lock were free: completions would be lost. */
static void expect_lock(struct ibv_cq *cq)
{
	bool was_free = dapl_spin_try(&evd->lock);

	if (was_free)
		dapl_spin_unlock(&evd->lock);
	assert_false(was_free);
	assert_ptr_equal(cq, evd->cq);
	polls++;
}

UNIT_FIXTURE(set_up)
{
	polls = 0;
	core_device = (struct core_device){ .polling = expect_lock };
	ia = core_ia_new();
	evd = core_evd_new(ia, 64, DAT_EVD_DTO_FLAG);
	ep = core_ep_new(ia, evd, 16);
	other = core_ep_new(ia, evd, 16);
	other->qpn = 18;
}

UNIT_FIXTURE(tear_down)
{
	core_ep_free(other);
	core_ep_free(ep);
	core_evd_free(evd);
	core_ia_free(ia);
}

static void complete(struct dapl_ep *of, int op, unsigned flags, uint64_t cookie, enum ibv_wc_status status)
{
	core_complete(evd, &(struct ibv_wc){ .status = status, .qp_num = of->qpn,
		.opcode = op == DAT_DTO_RECEIVE ? IBV_WC_RECV : IBV_WC_SEND,
		.wr_id = (uintptr_t)core_post(of, op, flags, cookie) });
}

static void expect_cookies(const uint64_t *cookies, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		DAT_EVENT event;

		assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
		assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, cookies[i]);
	}
	assert_int_equal(evd->wc_tail - evd->wc_head, 0);
}

UNIT_CASE(suppressed_successes_are_reaped)
{
	assert_false(dapl_evd_reap_suppressed(evd));
	complete(ep, DAT_DTO_SEND, REQ_SUPPRESS, 1, IBV_WC_SUCCESS);
	complete(ep, DAT_DTO_SEND, REQ_MARKER, 2, IBV_WC_SUCCESS);
	complete(ep, DAT_DTO_SEND, REQ_SUPPRESS, 3, IBV_WC_REM_ACCESS_ERR);	/* makes an event */
	complete(ep, DAT_DTO_SEND, REQ_SUPPRESS, 4, IBV_WC_SUCCESS);	/* waits for that event */
	assert_true(dapl_evd_reap_suppressed(evd));
	assert_int_equal(dapl_queue_count(&ep->sq), 2);
	assert_int_equal(evd->wc_tail - evd->wc_head, 2);
	assert_true(polls > 0);
	assert_true(dapl_spin_try(&evd->lock));	/* it is free again */
	dapl_spin_unlock(&evd->lock);
	evd->wc_head = evd->wc_tail;
}

/* Only events of its own queue hold a suppressed request back. */
UNIT_CASE(suppressed_success_waits_for_its_own_queue_only)
{
	static const uint64_t left[] = { 1, 2 };

	complete(other, DAT_DTO_SEND, 0, 1, IBV_WC_SUCCESS);
	complete(ep, DAT_DTO_RECEIVE, 0, 2, IBV_WC_SUCCESS);
	complete(ep, DAT_DTO_SEND, REQ_SUPPRESS, 3, IBV_WC_SUCCESS);
	assert_true(dapl_evd_reap_suppressed(evd));
	assert_int_equal(dapl_queue_count(&ep->sq), 0);
	expect_cookies(left, 2);
}

static bool has_cookie(const struct dapl_dto *dto, const struct ibv_wc *wc, const void *arg)
{
	return dto->cookie.as_64 == *(const uint64_t *)arg;
}

UNIT_CASE(completions_are_found_where_they_are)
{
	uint64_t cookie;

	for (cookie = 1; cookie <= 3; cookie++)
		complete(ep, DAT_DTO_SEND, 0, cookie, IBV_WC_SUCCESS);
	for (cookie = 0; cookie <= 4; cookie++)
		assert_int_equal(dapl_evd_contains(evd, has_cookie, &cookie), cookie >= 1 && cookie <= 3);
	expect_cookies((const uint64_t[]){ 1, 2, 3 }, 3);
	cookie = 3;
	assert_false(dapl_evd_contains(evd, has_cookie, &cookie));
}

UNIT_CASE(purge_removes_the_endpoint_and_keeps_the_order_of_others)
{
	static const uint64_t left[] = { 1, 3, 5 };

	for (uint64_t cookie = 1; cookie <= 5; cookie++)
		complete(cookie % 2 ? other : ep, DAT_DTO_SEND, 0, cookie, IBV_WC_SUCCESS);
	dapl_evd_purge(evd, ep, &ep->sq);
	assert_int_equal(dapl_queue_count(&ep->sq), 0);
	assert_int_equal(dapl_queue_count(&other->sq), 3);
	expect_cookies(left, 3);
}

/* A purge takes back what the removed completions had counted. */
UNIT_CASE(purge_corrects_the_notices)
{
	dapl_evd_inspect(evd);
	complete(ep, DAT_DTO_SEND, 0, 1, IBV_WC_SUCCESS);
	complete(ep, DAT_DTO_SEND, REQ_NO_NOTIFY, 2, IBV_WC_SUCCESS);
	complete(other, DAT_DTO_SEND, 0, 3, IBV_WC_SUCCESS);
	dapl_spin_lock(&evd->lock);
	dapl_evd_fill(evd);
	assert_int_equal(evd->notices, 2);
	dapl_spin_unlock(&evd->lock);
	dapl_evd_purge(evd, ep, &ep->sq);
	assert_int_equal(evd->notices, 1);
	expect_cookies((const uint64_t[]){ 3 }, 1);
	assert_int_equal(evd->notices, 0);
}

UNIT_MAIN(NULL, NULL)
