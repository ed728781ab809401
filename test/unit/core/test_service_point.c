/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_service_point.c - requests that come while a service point begins to listen: the device has its port,
 * and core does not know it yet; requests that are refused without the program, and counted; what is printed if the
 * device does not listen. */
#include "dapl/core/conn/conn.h"
#include "dapl/core/conn/cr.h"
#include "dapl/core/conn/service_point.h"
#include "dapl/core/event/calls.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/ia/counters.h"
#include "test/unit/core/core_device.h"
#include "test/unit/printed.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static struct dapl_evd *evd;

static int set_up(void **state)
{
	core_device = (struct core_device){ .polling = NULL };
	dapl_ep_conn_start();
	ia = core_ia_new();
	evd = core_evd_new(ia, 8, DAT_EVD_CR_FLAG);
	return dapl_service_get();
}

UNIT_FIXTURE(tear_down)
{
	core_evd_free(evd);
	core_ia_free(ia);
	dapl_service_put();
}

/* A request arrives, and what the service thread does because of it is done. */
static void request_at_once(void *sp, uint16_t port)
{
	struct dapl_request request = { .pdata_len = 0 };
	struct sockaddr_in *local = (struct sockaddr_in *)&request.local;

	local->sin_family = AF_INET;
	local->sin_port = htons(port);
	dapl_up_request(sp, NULL, &request);
	dapl_service_flush();
}

/* Takes the event of the request, and rejects it. Returns the qualifier that it names. */
static DAT_CONN_QUAL take_request(void)
{
	DAT_EVENT event;

	assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
	assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	assert_int_equal(dapl_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL), DAT_SUCCESS);
	return event.event_data.cr_arrival_event_data.conn_qual;
}

UNIT_CASE(early_request_names_the_chosen_port)
{
	DAT_CONN_QUAL qual = 0;
	DAT_PSP_HANDLE psp;

	core_device.listening = request_at_once;
	assert_int_equal(dapl_psp_create_any((DAT_IA_HANDLE)ia, &qual, (DAT_EVD_HANDLE)evd, DAT_PSP_CONSUMER_FLAG,
					     &psp), DAT_SUCCESS);
	assert_int_equal(qual, CORE_PORT);
	assert_int_equal(take_request(), CORE_PORT);
	assert_int_equal(dapl_psp_free(psp), DAT_SUCCESS);
	assert_int_equal(core_device.listeners, 0);
}

UNIT_CASE(rsp_that_was_used_early_stops_listening)
{
	DAT_RSP_HANDLE rsp;

	core_device.listening = request_at_once;
	assert_int_equal(dapl_rsp_create((DAT_IA_HANDLE)ia, 7, DAT_HANDLE_NULL, (DAT_EVD_HANDLE)evd, &rsp),
			 DAT_SUCCESS);
	assert_int_equal(core_device.listeners, 0);
	assert_int_equal(take_request(), 7);
	assert_int_equal(dapl_rsp_free(rsp), DAT_SUCCESS);
}

static void fail_to_listen(void *qual)
{
	DAT_PSP_HANDLE psp;

	assert_int_not_equal(dapl_psp_create((DAT_IA_HANDLE)ia, *(DAT_CONN_QUAL *)qual, (DAT_EVD_HANDLE)evd,
					     DAT_PSP_CONSUMER_FLAG, &psp), DAT_SUCCESS);
}

static const char *printed_at(DAT_CONN_QUAL qual, int err)
{
	core_device.listen_error = err;
	return printed_by(fail_to_listen, &qual);
}

UNIT_CASE(port_that_needs_a_capability_is_told)
{
	static const char line[] = "listening at port 1023: ports below 1024 need CAP_NET_BIND_SERVICE: take a larger "
				   "one";

	assert_int_equal(times_in(printed_at(1023, EACCES), line), 1);
	assert_string_equal(printed_at(1024, EACCES), "");
	assert_string_equal(printed_at(1023, EADDRINUSE), "");
}

UNIT_CASE(lost_address_of_a_listener_is_told)
{
	struct sockaddr_in *own = (struct sockaddr_in *)&ia->attr.address;

	*own = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xcb00714d) };
	assert_int_equal(times_in(printed_at(7, EADDRNOTAVAIL),
				  "listening: 203.0.113.77 is no address of this host any more"), 1);
	own->sin_addr.s_addr = htonl(INADDR_LOOPBACK);		/* nothing is wrong with it now */
	assert_string_equal(printed_at(7, EADDRNOTAVAIL), "");
}

/* --- refused requests ------------------------------------------------------------------------ */

struct counter {
	const char *name;
	uint64_t value;
};

static void find_counter(void *arg, const char *name, uint64_t value)
{
	struct counter *counter = arg;

	if (!strcmp(name, counter->name))
		counter->value = value;
}

static uint64_t count_of(const char *name)
{
	struct counter counter = { name, UINT64_MAX };

	dapl_counters_each(&ia->obj, find_counter, &counter);
	return counter.value;
}

static DAT_PSP_HANDLE listen_at_7(void)
{
	DAT_PSP_HANDLE psp;

	assert_int_equal(dapl_psp_create((DAT_IA_HANDLE)ia, 7, (DAT_EVD_HANDLE)evd, DAT_PSP_CONSUMER_FLAG, &psp),
			 DAT_SUCCESS);
	return psp;
}

UNIT_CASE(requests_that_find_a_full_evd_are_counted)
{
	enum { REQUESTS = 100 };
	DAT_PSP_HANDLE psp = listen_at_7();
	unsigned arrived = 0;

	for (int i = 0; i < REQUESTS; i++)
		request_at_once((void *)psp, 7);
	assert_int_equal(count_of("CM_REQ_RX"), REQUESTS);
	assert_in_range(count_of("CM_ERR_REJ_TX"), 1, REQUESTS - 8);
	while (arrived < REQUESTS - count_of("CM_ERR_REJ_TX")) {
		take_request();
		arrived++;
	}
	assert_int_not_equal(DAT_SUCCESS, dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &(DAT_EVENT){ 0 }));
	assert_int_equal(dapl_psp_free(psp), DAT_SUCCESS);
}

UNIT_CASE(request_whose_evd_is_freed_is_counted)
{
	DAT_PSP_HANDLE psp = listen_at_7();

	request_at_once((void *)psp, 7);
	assert_int_equal(dapl_psp_free(psp), DAT_SUCCESS);
	assert_int_equal(count_of("CM_ERR_REJ_TX"), 0);
	assert_int_equal(dapl_evd_free((DAT_EVD_HANDLE)evd), DAT_SUCCESS);
	evd = core_evd_new(ia, 8, DAT_EVD_CR_FLAG);
	assert_int_equal(count_of("CM_ERR_REJ_TX"), 1);
}

UNIT_MAIN(NULL, NULL)
