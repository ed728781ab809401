/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cm_channel.c - see cm_channel.h. */
#include "common/address.h"
#include "dapl/verbs/cm.h"
#include "dapl/verbs/conn_event.h"
#include "dapl/verbs/mcast.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/cm_channel.h"

enum { CHANNEL_FD = 77 };

struct rdma_cm_event queue[MANY_EVENTS];
int queued, acked;
uint8_t arrived[256];
int watch_result, channel_error;
void (*during_flush)(void), (*during_ack)(void);
int handled;
const void *handler;
struct rdma_cm_event event_told;
uint8_t bytes_told[256];
size_t length_told;
struct dapl_listener listener;
struct rdma_cm_id listen_id;
int ia, sp;
struct dapl_request request_told;

static int taken;
static void (*ready)(struct dapl_watch *);

int rdma_get_cm_event(struct rdma_event_channel *on, struct rdma_cm_event **out)
{
	assert_ptr_equal(on, dev.channel);
	assert_int_equal(taken, acked);
	errno = channel_error ? channel_error : EAGAIN;
	if (taken == queued)
		return -1;
	*out = &queue[taken++];
	return 0;
}

/* Afterwards the event and its private data are freed. */
int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	assert_ptr_equal(event, &queue[acked]);
	acked++;
	memset(event, 0xee, sizeof *event);
	memset(arrived, 0xee, sizeof arrived);
	if (during_ack)
		during_ack();
	return 0;
}

/* --- in place of the service thread, other files and core -------------------------------------------------- */

REPLACE(dapl_watch_start, dapl_watch_stop, dapl_service_flush, hw_conn_event, hw_mcast_event)

int __wrap_dapl_watch_start(struct dapl_watch *watch, int fd, void (*run)(struct dapl_watch *))
{
	assert_ptr_equal(watch, &dev.cm_watch);
	assert_int_equal(fd, CHANNEL_FD);
	ready = run;
	return watch_result;
}

void __wrap_dapl_watch_stop(struct dapl_watch *watch)
{
	assert_ptr_equal(watch, &dev.cm_watch);
	step("unwatch");
}

void __wrap_dapl_service_flush(void)
{
	step("flush");
	if (during_flush)
		during_flush();
	if (task_is_queued())
		run_task();
}

static void told(const void *to, const struct rdma_cm_event *event, const uint8_t *bytes, size_t length)
{
	assert_int_equal(acked, taken);
	handler = to;
	handled++;
	event_told = *event;
	length_told = length;
	if (length)
		memcpy(bytes_told, bytes, length);
}

void __wrap_hw_conn_event(struct dapl_conn *of, const struct rdma_cm_event *event, const uint8_t *bytes, size_t length)
{
	told(of, event, bytes, length);
}

void __wrap_hw_mcast_event(struct cm_target *of, const struct rdma_cm_event *event) { told(of, event, NULL, 0); }

void dapl_up_request(void *to, struct dapl_conn *of, const struct dapl_request *request)
{
	assert_ptr_equal(to, &sp);
	assert_int_equal(acked, taken);
	assert_int_equal(of->lock.state, MUTEX_FREE);
	assert_int_equal(of->state, CONN_REQUESTED);
	conn = of;
	request_told = *request;
	length_told = request->pdata_len;
	memcpy(bytes_told, request->pdata, length_told);
	step("up:request");
}

void dapl_up_async(void *to, const struct ibv_async_event *event)
{
	assert_ptr_equal(to, &ia);
	assert_int_equal(event->event_type, IBV_EVENT_DEVICE_FATAL);
	step("up:async");
}

/* --- fixture ------------------------------------------------------------------------------------------------- */

int channel_begin(void **state)
{
	sides_begin(state);
	dev.ia = &ia;
	dev.attr.port = PORT;
	dev.channel->fd = CHANNEL_FD;
	queued = taken = acked = handled = 0;
	handler = NULL;
	length_told = 0;
	memset(&request_told, 0, sizeof request_told);
	listener = (struct dapl_listener){ .target.kind = CM_LISTENER, .dev = &dev, .id = &listen_id, .sp = &sp };
	listen_id.context = &listener.target;
	during_flush = during_ack = NULL;
	watch_result = 0;
	ready = NULL;
	return hw_cm_start(&dev);
}

void channel_begin_on(void **state, enum hw_wire wire)
{
	assert_int_equal(sides_end(state), 0);
	channel_begin(state);
	dev.attr.iwarp = wire == HW_WIRE_IWARP;
	listener.ud = wire == HW_WIRE_UD;
	id.ps = listener.ud ? RDMA_PS_UDP : RDMA_PS_TCP;
}

void read_channel(void) { ready(&dev.cm_watch); }

/* An event of the id, which carries the data that have arrived. */
void event_comes(enum rdma_cm_event_type type, size_t length)
{
	struct rdma_cm_event event = { .id = &id, .event = type, .status = STATUS };

	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		event.listen_id = &listen_id;
	if (id.ps == RDMA_PS_UDP) {
		event.param.ud.private_data = arrived;
		event.param.ud.private_data_len = (uint8_t)length;
	} else {
		event.param.conn.private_data = arrived;
		event.param.conn.private_data_len = (uint8_t)length;
	}
	queue[queued++] = event;
}

/* A request with the data "hello", and the address of the peer. */
void request_comes(void)
{
	enum hw_wire wire = listener.ud ? HW_WIRE_UD : dev.attr.iwarp ? HW_WIRE_IWARP : HW_WIRE_IB;
	struct hw_ud_self self = { .qpn = PEER_QP_NUMBER };

	ids = 1;			/* the event brings one */
	event_comes(RDMA_CM_EVENT_CONNECT_REQUEST,
		    (size_t)hw_pdata_pack(arrived, wire, HW_REQUEST, "hello", 5, 0, false, &self));
}
