/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cm.c - the channel of connection events of a device, and its listeners. conn_event.c handles the events
 * of a connection, mcast.c those of a membership in a group.
 *
 * Threads. The service thread alone reads and handles events, one after the other. It copies and
 * acknowledges an event before it handles it. rdma_destroy_id waits until all events that were read are
 * acknowledged, so a handler may destroy any id, and a thread that destroys a listener's id waits for no
 * handler. The id of an event may not exist any more after the acknowledgement, so its context is read
 * before.
 *
 * Lifetimes. Only the service thread destroys the id of a connection and frees the connection; so an
 * event that was read refers to a live connection until its handler returns. (A connection without an id,
 * whose start failed, is freed by hw_initiator_connect.) Calls from core (accept, reject, disconnect, release) refer
 * to a live connection, because core makes none after release or reject, and these two only queue the task
 * that destroys it. The thread that calls unlisten destroys the listener: its id first, after which no
 * event for it is read; then dapl_service_flush waits for the handler that may be running.
 *
 * Locks, outermost first: a device's `lock` (the list of its connections), a connection's `lock` (its
 * state, and that its queue pair lives: release takes the lock, so a queue pair seen under it is not
 * destroyed before the lock is released). None is held over an upcall, nor while librdmacm waits for
 * something. */
#include "acceptor.h"
#include "cm.h"
#include "conn.h"
#include "conn_event.h"
#include "conn_report.h"
#include "conn_types.h"
#include "hw.h"
#include "mcast.h"
#include "common/address.h"
#include "common/container_of.h"
#include "common/log.h"
#include "common/trace.h"
#include "dapl/core/base/cause.h"
#include "dapl/core/base/diag.h"
#include "dapl/core/base/settings.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	EVENTS_AT_ONCE = 64,		/* handled before other descriptors get their turn */
	PORT_TRIES = 16,		/* for a port that the system chooses: it may be a privileged one */
	FIRST_UNPRIVILEGED_PORT = 1024,
};

static void device_removed(struct dapl_device *dev)
{
	struct ibv_async_event event = { .event_type = IBV_EVENT_DEVICE_FATAL };

	if (dev->removed)
		return;
	dev->removed = true;
	log_report(REPORT_DEVICE_LOST, NULL, "%s port %u: the device was removed", dev->attr.device, dev->attr.port);
	dapl_up_async(dev->ia, &event);
}

static void trace_refused(const struct dapl_listener *listener, struct rdma_cm_id *id,
			  const char *why)
{
	struct sockaddr_storage from;
	char remote[DIAG_ADDRESS];

	address_copy(&from, rdma_get_peer_addr(id));
	trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "sp", listener->sp, NULL,
	      "request from %s refused: %s", dapl_cause_address(&from, remote), why);
}

/* Makes the connection of a request. Returns NULL, or why the request is refused. */
static const char *make_conn(struct dapl_listener *listener, const struct rdma_cm_event *event,
			     const struct hw_pdata *pdata, struct dapl_conn **conn)
{
	int err;

	if (__atomic_load_n(&listener->dead, __ATOMIC_ACQUIRE))
		return "no listener any more";
	if (listener->ud && !pdata->has_self)	/* it could not be answered */
		return "it does not say where its endpoint is";
	err = hw_acceptor_from_request(listener->dev, event->id, listener->ud, pdata, event, conn);
	return err ? strerror(err) : NULL;
}

static void request_event(struct dapl_listener *listener, const struct rdma_cm_event *event,
			  const uint8_t *bytes, size_t len)
{
	struct dapl_device *dev = listener->dev;
	struct dapl_request request = { .ud = listener->ud };
	struct hw_pdata pdata;
	struct dapl_conn *conn;
	enum hw_wire wire = listener->ud ? HW_WIRE_UD :
		dev->attr.iwarp ? HW_WIRE_IWARP : HW_WIRE_IB;
	const char *why;

	hw_pdata_unpack(&pdata, wire, HW_REQUEST, bytes, len);
	why = make_conn(listener, event, &pdata, &conn);
	if (why) {
		trace_refused(listener, event->id, why);
		hw_report_refusal(event->id, wire);
		rdma_destroy_id(event->id);
		return;
	}
	address_copy(&request.local, rdma_get_local_addr(event->id));
	address_copy(&request.remote, rdma_get_peer_addr(event->id));
	request.pdata = pdata.data;
	request.pdata_len = pdata.len;
	dapl_up_request(listener->sp, conn, &request);
}

/* A listener or membership whose creation failed may be freed by now, so `kind` was read before the
 * acknowledgement. */
static void handle(struct dapl_device *dev, struct cm_target *target, enum cm_kind kind,
		   const struct rdma_cm_event *event, const uint8_t *pdata, size_t len)
{
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		request_event(container_of(target, struct dapl_listener, target), event, pdata,
			      len);
		return;
	}
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		device_removed(dev);
	if (kind == CM_MEMBERSHIP)
		hw_mcast_event(target, event);
	if (kind == CM_CONN)
		hw_conn_event(container_of(target, struct dapl_conn, target), event, pdata, len);
}

/* A channel that cannot be read stays ready. It is not watched any more, or the service thread would not rest. */
static void stop_if_lost(struct dapl_device *dev, int err)
{
	if (err == EAGAIN || err == EINTR || err == ENOMEM)
		return;
	log_report(REPORT_DEVICE_LOST, LOG_FIELDS(.err = err), "%s: connection events cannot be read any more: %s",
		   dev->attr.device, strerror(err));
	dapl_watch_stop(&dev->cm_watch);
}

/* Private data and id of other events cannot be relied on: a union has other members for them. */
static bool is_known(const struct rdma_cm_event *event)
{
	return (unsigned)event->event <= RDMA_CM_EVENT_TIMEWAIT_EXIT;	/* the last one of rdma-core 44 */
}

static void cm_ready(struct dapl_watch *watch)
{
	struct dapl_device *dev = container_of(watch, struct dapl_device, cm_watch);
	struct rdma_cm_event *event, copy;
	uint8_t pdata[256];

	for (int i = 0; i < EVENTS_AT_ONCE; i++) {
		struct cm_target *target;
		enum cm_kind kind;
		const void *data;
		size_t len;

		if (rdma_get_cm_event(dev->channel, &event)) {
			stop_if_lost(dev, errno);
			return;
		}
		copy = *event;
		if (!is_known(event)) {
			rdma_ack_cm_event(event);
			dapl_diag_unknown(dev->attr.device, "connection event", copy.event, "ignored");
			continue;
		}
		if (copy.id->ps == RDMA_PS_UDP) {
			data = copy.param.ud.private_data;
			len = copy.param.ud.private_data_len;
		} else {
			data = copy.param.conn.private_data;
			len = copy.param.conn.private_data_len;
		}
		if (data && len)
			memcpy(pdata, data, len);
		else
			len = 0;
		target = (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST ? copy.listen_id :
			  copy.id)->context;
		kind = target->kind;
		rdma_ack_cm_event(event);
		handle(dev, target, kind, &copy, pdata, len);
	}
}

int hw_cm_start(struct dapl_device *dev)
{
	return dapl_watch_start(&dev->cm_watch, dev->channel->fd, cm_ready);
}

static void destroy_connections(struct dapl_task *task)
{
	struct dapl_device *dev = container_of(task, struct dapl_device, close_task);

	while (dev->conns)
		hw_conn_destroy(dev->conns);
}

/* The first flush runs the tasks that release has queued. Connections that are left wait for a peer's
 * answer to a disconnect, or for a time-out. */
void hw_cm_stop(struct dapl_device *dev)
{
	dapl_service_flush();
	dapl_watch_stop(&dev->cm_watch);
	dapl_task_queue(&dev->close_task, destroy_connections);
	dapl_service_flush();
}

/* The queue pair has received data before the peer's last handshake message came. That message may be lost,
 * but the connection is established. */
void hw_cm_notify(struct dapl_device *dev, struct ibv_qp *qp)
{
	dapl_mutex_lock(&dev->lock);
	for (struct dapl_conn *c = dev->conns; c; c = c->next) {
		dapl_mutex_lock(&c->lock);
		if (c->qp == qp && c->state == CONN_ACCEPTING)
			rdma_notify(c->id, IBV_EVENT_COMM_EST);
		dapl_mutex_unlock(&c->lock);
	}
	dapl_mutex_unlock(&dev->lock);
}

/* iWARP hardware sends what it has accepted with the type of service of the listener. A failure is ignored, since older
 * kernels lack the option. On InfiniBand and RoCE it is that of the queue pair (hw_qp_set_path). */
static void set_type_of_service(struct rdma_cm_id *id)
{
	uint8_t tos = (uint8_t)dapl_settings.tos;

	if (dapl_settings.tos >= 0)
		rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos);
}

/* Binds and listens. Destroys the id after a failure. */
static int listen_on(struct dapl_listener *l, struct sockaddr *addr, int backlog)
{
	struct dapl_device *dev = l->dev;

	if (rdma_create_id(dev->channel, &l->id, &l->target, l->ud ? RDMA_PS_UDP : RDMA_PS_TCP))
		return errno;
	if (rdma_bind_addr(l->id, addr))
		goto fail;
	if (!l->id->verbs || l->id->port_num != dev->attr.port ||
	    strcmp(ibv_get_device_name(l->id->verbs->device), dev->attr.device) != 0) {
		errno = EADDRNOTAVAIL;	/* of this host, but not of this device */
		goto fail;
	}
	if (address_port(addr) == 0 && ntohs(rdma_get_src_port(l->id)) < FIRST_UNPRIVILEGED_PORT) {
		errno = EAGAIN;
		goto fail;
	}
	if (dev->attr.iwarp)
		set_type_of_service(l->id);
	if (rdma_listen(l->id, backlog))
		goto fail;
	return 0;

fail:	;
	int err = errno;

	rdma_destroy_id(l->id);
	return err;
}

static bool is_any_address(const struct sockaddr *a)
{
	struct sockaddr_storage any = { .ss_family = a->sa_family };

	return address_same_host(a, (struct sockaddr *)&any);
}

int hw_cm_listen(struct dapl_device *dev, const struct sockaddr *addr, uint16_t *port, bool ud,
		 int backlog, void *sp, struct dapl_listener **listener)
{
	struct sockaddr_storage where = dev->attr.address;
	struct dapl_listener *l;
	int err = EAGAIN;

	if (ud && !dev->attr.ud)
		return EOPNOTSUPP;
	if (addr && !address_length(addr))
		return EAFNOSUPPORT;
	if (addr && !is_any_address(addr))
		address_copy(&where, addr);
	address_set_port((struct sockaddr *)&where, *port);
	l = calloc(1, sizeof(*l));
	if (!l)
		return ENOMEM;
	*l = (struct dapl_listener){ .target.kind = CM_LISTENER, .dev = dev, .sp = sp,
		.ud = ud };
	for (int i = 0; i < PORT_TRIES && err == EAGAIN; i++)
		err = listen_on(l, (struct sockaddr *)&where, backlog);
	if (err) {
		free(l);
		if (err == ENODEV && addr && !is_any_address(addr))
			err = EADDRNOTAVAIL;	/* of this host, but of no device just now */
		return err == EAGAIN ? EADDRNOTAVAIL : err;
	}
	*port = ntohs(rdma_get_src_port(l->id));
	*listener = l;
	return 0;
}

void hw_cm_unlisten(struct dapl_listener *listener)
{
	__atomic_store_n(&listener->dead, true, __ATOMIC_RELEASE);
	rdma_destroy_id(listener->id);
	dapl_service_flush();
	free(listener);
}
