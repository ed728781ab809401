/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ia.c - asynchronous events of a device: which DAT events they become, which object they are about, and that a
 * device is lost once. */
#include <dat/dat_net_extensions.h>
#include "common/log.h"
#include "dapl/core/conn/conn.h"
#include "dapl/core/ep/srq.h"
#include "dapl/core/event/calls.h"
#include "dapl/core/ia/net_watch.h"
#include "test/unit/core/core_device.h"
#include "test/unit/printed.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static struct dapl_evd *evd, *async_evd;

UNIT_FIXTURE(set_up)
{
	core_device = (struct core_device){ .attr = { .mtu = 1500, .port_active = true, .port = 2 } };
	assert_int_equal(dapl_service_get(), 0);
	ia = core_ia_new();
	ia->attr = core_device.attr;
	evd = core_evd_new(ia, 8, DAT_EVD_DTO_FLAG);
	async_evd = core_async_evd_new(ia);
}

UNIT_FIXTURE(tear_down)
{
	dapl_net_forget(ia);
	ia->async_evd = NULL;
	core_evd_free(async_evd);
	core_evd_free(evd);
	core_ia_free(ia);
	dapl_service_put();
}

static void up(enum ibv_event_type type, struct ibv_cq *cq)
{
	struct ibv_async_event event = { .event_type = type, .element.cq = cq };

	dapl_up_async(ia, &event);
}

static void up_port(enum ibv_event_type type, int port)
{
	struct ibv_async_event event = { .event_type = type, .element.port_num = port };

	dapl_up_async(ia, &event);
}

static int next_event(DAT_EVENT *event)
{
	if (dapl_evd_dequeue((DAT_EVD_HANDLE)async_evd, event) != DAT_SUCCESS)
		return 0;
	return (int)event->event_number;
}

UNIT_CASE(failed_cq_is_an_overflow_of_its_evd)
{
	DAT_EVENT event;

	up(IBV_EVENT_CQ_ERR, evd->cq);
	assert_int_equal(next_event(&event), DAT_ASYNC_ERROR_EVD_OVERFLOW);
	assert_ptr_equal(event.event_data.asynch_error_event_data.dat_handle, evd);
	assert_int_equal(event.event_data.asynch_error_event_data.reason, DAT_EVD_OVERFLOW_ERROR);
	assert_int_equal(ia->counters[DCNT_IA_ASYNC_CQ_ERROR], 1);
	assert_int_equal(next_event(&event), 0);
}

/* --- events of endpoints and SRQs: what is called for which object ----------------------------- */

static struct {
	int broken, established, limit, failed;
	const void *object;
	unsigned code;
} called;

REPLACE(dapl_ep_broken, dapl_ep_comm_established, dapl_srq_limit, dapl_srq_failed)

void __wrap_dapl_ep_broken(struct dapl_ep *ep, enum dapl_code_kind kind, unsigned code, const char *text)
{
	assert_int_equal(kind, DAPL_CODE_ASYNC);
	assert_null(text);
	called.broken++;
	called.code = code;
	called.object = ep;
}

bool __wrap_dapl_ep_comm_established(struct dapl_ep *ep)
{
	called.established++;
	called.object = ep;
	return true;
}

void __wrap_dapl_srq_limit(struct dapl_srq *srq)
{
	called.limit++;
	called.object = srq;
}

void __wrap_dapl_srq_failed(struct dapl_srq *srq)
{
	called.failed++;
	called.object = srq;
}

static void up_qp(enum ibv_event_type type, void **ep)
{
	struct ibv_qp qp = { .qp_context = ep };
	struct ibv_async_event event = { .event_type = type, .element.qp = &qp };

	memset(&called, 0, sizeof called);
	dapl_up_async(ia, &event);
	assert_ptr_equal(called.object, ep);
}

static void up_srq(enum ibv_event_type type, void **srq)
{
	struct ibv_srq of_device = { .srq_context = srq };
	struct ibv_async_event event = { .event_type = type, .element.srq = &of_device };

	memset(&called, 0, sizeof called);
	dapl_up_async(ia, &event);
	assert_ptr_equal(called.object, srq);
}

UNIT_CASE(failed_queue_pair_breaks_its_endpoint)
{
	static const enum ibv_event_type types[] = { IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR,
						     IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_PATH_MIG_ERR };

	for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
		up_qp(types[i], state);
		assert_int_equal(called.broken, 1);
		assert_int_equal(called.code, types[i]);
		assert_int_equal(ia->counters[DCNT_IA_ASYNC_QP_ERROR], i + 1);
	}
}

UNIT_CASE(first_message_establishes_its_endpoint)
{
	up_qp(IBV_EVENT_COMM_EST, state);
	assert_int_equal(called.established, 1);
	assert_int_equal(called.broken, 0);
}

UNIT_CASE(limit_and_failure_of_an_srq_are_told_apart)
{
	up_srq(IBV_EVENT_SRQ_LIMIT_REACHED, state);
	assert_true(called.limit == 1 && called.failed == 0);
	up_srq(IBV_EVENT_SRQ_ERR, state);
	assert_true(called.limit == 0 && called.failed == 1);
}

/* --- events of the device and its ports ---------------------------------------------------------- */

UNIT_CASE(lost_device_is_reported_once)
{
	DAT_EVENT event;

	up_port(IBV_EVENT_DEVICE_FATAL, 0);
	up_port(IBV_EVENT_DEVICE_FATAL, 0);
	assert_true(ia->dead);
	assert_int_equal(next_event(&event), DAT_ASYNC_ERROR_IA_CATASTROPHIC);
	assert_int_equal(event.event_data.asynch_error_event_data.reason, DAT_IA_CATASTROPHIC_ERROR);
	assert_int_equal(next_event(&event), 0);
}

UNIT_CASE(lost_device_is_told_to_its_watch_too)
{
	DAT_EVENT event;

	assert_int_equal(dapl_net_watch(ia, DAT_NET_RDMA), DAT_SUCCESS);
	up_port(IBV_EVENT_DEVICE_FATAL, 0);
	assert_int_equal(next_event(&event), DAT_ASYNC_ERROR_IA_CATASTROPHIC);
	assert_int_equal(next_event(&event), DAT_NET_CHANGE_EVENT);
	assert_int_equal(next_event(&event), 0);
}

UNIT_CASE(other_ports_and_unknown_events_make_no_event)
{
	static const enum ibv_event_type types[] = { IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE,
		IBV_EVENT_LID_CHANGE, IBV_EVENT_GID_CHANGE };
	DAT_EVENT event;

	assert_int_equal(dapl_net_watch(ia, DAT_NET_LINK | DAT_NET_MTU), DAT_SUCCESS);
	core_device.attr.port_active = false;	/* a look at the device would find this */
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		up_port(types[i], 1);
	up_port(IBV_EVENT_SM_CHANGE, 2);
	for (int type = IBV_EVENT_WQ_FATAL; type < 64; type++)	/* a newer libibverbs may have more events */
		up_port((enum ibv_event_type)type, 2);
	dapl_service_flush();
	assert_int_equal(next_event(&event), 0);
}

UNIT_CASE(own_port_is_watched)
{
	DAT_NET_CHANGE_DATA data;
	DAT_EVENT event;

	assert_int_equal(dapl_net_watch(ia, DAT_NET_LINK), DAT_SUCCESS);
	core_device.attr.port_active = false;
	up_port(IBV_EVENT_PORT_ERR, 2);
	while (next_event(&event) != DAT_NET_CHANGE_EVENT)
		usleep(1000);	/* the alarm ends it */
	memcpy(&data, &event.event_extension_data, sizeof data);
	assert_int_equal(data.what, DAT_NET_LINK);
	assert_int_equal(data.now, 0);
}

static void happen(void *type) { up(*(enum ibv_event_type *)type, NULL); }

UNIT_CASE(event_that_is_not_known_is_reported_with_its_number)
{
	static const enum ibv_event_type ignored[] = { IBV_EVENT_PATH_MIG, IBV_EVENT_QP_LAST_WQE_REACHED,
		IBV_EVENT_SM_CHANGE, IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_WQ_FATAL };
	enum ibv_event_type unknown = (enum ibv_event_type)(IBV_EVENT_WQ_FATAL + 1);
	char wanted[100];
	DAT_EVENT event;

	log_init("t", NULL, NULL, NULL, 3);
	snprintf(ia->attr.device, sizeof ia->attr.device, "fake0");
	snprintf(wanted, sizeof wanted, "t: fake0: asynchronous event %d is not known to this provider, and is "
		 "ignored\n", unknown);
	assert_string_equal(printed_by(happen, &unknown), wanted);
	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		assert_string_equal(printed_by(happen, (void *)&ignored[i]), "");
	assert_int_equal(next_event(&event), 0);
}

UNIT_MAIN(NULL, NULL)
