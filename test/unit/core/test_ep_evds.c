/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ep_evds.c - the EVDs that an endpoint may have, and what remains of a feed that fails half-way. */
#include "dapl/core/ep/ep_evds.h"
#include "dapl/core/event/evd.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static DAT_PROVIDER other_adapter;
static struct dapl_ia *ia, *again, *stranger;	/* again: another open of the adapter of ia */
static struct dapl_evd *dto, *connection;

UNIT_FIXTURE(set_up)
{
	core_device = (struct core_device){ .polling = NULL };
	ia = core_ia_new();
	again = core_ia_new();
	stranger = core_ia_new();
	stranger->obj.provider = &other_adapter;
	dto = core_evd_new(ia, 8, DAT_EVD_DTO_FLAG);
	connection = core_evd_new(ia, 8, DAT_EVD_CONNECTION_FLAG);
}

UNIT_FIXTURE(tear_down)
{
	core_evd_free(connection);
	core_evd_free(dto);
	core_ia_free(stranger);
	core_ia_free(again);
	core_ia_free(ia);
}

/* Enters three EVDs for an IA, leaves them, and returns the result. */
static DAT_RETURN enter(struct dapl_ia *of, struct dapl_evd *recv, struct dapl_evd *request,
			struct dapl_evd *connect)
{
	DAPL_ENTERED_EVDS struct dapl_evd *evds[3] = { NULL };
	DAT_RETURN ret = dapl_ep_enter_evds(of, (DAT_EVD_HANDLE)recv, (DAT_EVD_HANDLE)request,
					    (DAT_EVD_HANDLE)connect, evds);

	if (ret == DAT_SUCCESS) {
		assert_ptr_equal(evds[0], recv);
		assert_ptr_equal(evds[1], request);
		assert_ptr_equal(evds[2], connect);
	}
	return ret;
}

UNIT_CASE(missing_evds_are_allowed)
{
	assert_int_equal(enter(ia, NULL, NULL, NULL), DAT_SUCCESS);
	assert_int_equal(enter(ia, dto, NULL, connection), DAT_SUCCESS);
}

/* Programs open an adapter twice, and have one EVD for connections. */
UNIT_CASE(connect_evd_may_be_of_another_open)
{
	assert_int_equal(enter(again, NULL, NULL, connection), DAT_SUCCESS);
	assert_int_equal(enter(stranger, NULL, NULL, connection), BAD_HANDLE(EVD_CONN));
	assert_int_equal(enter(again, dto, NULL, NULL), BAD_HANDLE(EVD_RECV));
	assert_int_equal(enter(again, NULL, dto, NULL), BAD_HANDLE(EVD_REQUEST));
}

UNIT_CASE(no_evd_stays_entered)
{
	enter(ia, dto, dto, connection);
	enter(ia, dto, connection, connection);		/* an error after the first */
	assert_int_equal(dto->obj.calls, 0);
	assert_int_equal(connection->obj.calls, 0);
}

static DAT_RETURN feed(struct dapl_evd *recv, struct dapl_evd *request, const DAT_EP_ATTR *attr)
{
	struct dapl_ep *ep = core_ep_new(ia, NULL, 4);
	DAT_RETURN ret = dapl_ep_feed_evds(ep, recv, request, attr);

	core_ep_free(ep);
	return ret;
}

UNIT_CASE(connect_evd_is_in_use_and_held)
{
	assert_int_equal(dapl_ep_pin_connect_evd(connection), DAT_SUCCESS);
	assert_true(dapl_in_use(&connection->obj));
	assert_int_equal(connection->pins, 1);
	dapl_ep_drop_connect_evd(connection);
	assert_false(dapl_in_use(&connection->obj));
	assert_int_equal(connection->pins, 0);
	assert_int_equal(dapl_ep_pin_connect_evd(NULL), DAT_SUCCESS);
	dapl_ep_drop_connect_evd(NULL);
}

/* One EVD cannot notify of all receives, and of solicited ones only. */
UNIT_CASE(feed_that_is_refused_leaves_nothing)
{
	const DAT_EP_ATTR solicited = { .recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG,
		.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG };

	assert_int_not_equal(feed(dto, dto, &solicited), DAT_SUCCESS);
	assert_int_equal(dto->feeds.all, 0);
	assert_int_equal(dto->feeds.solicited, 0);
	assert_false(dapl_in_use(&dto->obj));
}

/* Flags of each post mean nothing for the EVD. */
UNIT_CASE(per_post_flags_do_not_feed)
{
	const DAT_EP_ATTR attr = { .request_completion_flags =
		(DAT_COMPLETION_FLAGS)(DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_SUPPRESS_FLAG) };

	assert_int_equal(feed(NULL, dto, &attr), DAT_SUCCESS);
	assert_int_equal(dto->feeds.solicited, 0);
	assert_int_equal(dto->feeds.all, 1);
	dapl_ep_unfeed_evds(NULL, dto, &attr);
	assert_int_equal(dto->feeds.all, 0);
}

UNIT_MAIN(NULL, NULL)
