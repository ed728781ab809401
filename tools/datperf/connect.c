/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.c - connections of a link, and of probes beside it (link.h). Each side tells the other as
 * private data where its memory is. */
#include "link.h"
#include "../cli.h"
#include "../names.h"
#include <endian.h>
#include <stdio.h>
#include <string.h>

/* What each side tells the other as private data. Network byte order. */
struct hello {
	uint32_t magic;
	uint32_t context;
	uint64_t target;
};
enum { MAGIC = 0x64706632 };

static void create_endpoint(struct link *l)
{
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = LINK_BLOCK,
		.max_rdma_size = LINK_BLOCK,
		.qos = DAT_QOS_BEST_EFFORT,
		.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.max_recv_dtos = LINK_DEPTH,
		.max_request_dtos = LINK_DEPTH,
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.max_rdma_read_in = l->reads,
		.max_rdma_read_out = l->reads,
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = 1,
	};

	good(dat_ep_create(l->ia, l->pz, l->recv, l->request, l->conn, &attr, &l->ep),
	     "dat_ep_create");
	for (int i = 0; i < LINK_DEPTH; i++)
		link_post_receive(l);
}

static struct hello our_hello(struct link *l)
{
	return (struct hello){ .magic = htobe32(MAGIC),
			       .context = htobe32(l->rmr_context),
			       .target = htobe64((uintptr_t)l->target - l->base) };
}

/* Why the peer's private data is none of datperf's; NULL if it is. */
static const char *take_hello(struct link *l, const void *data, DAT_COUNT size)
{
	struct hello h;

	if (!data || size < (DAT_COUNT)sizeof h)
		return "the peer is not datperf: its private data is too short";
	memcpy(&h, data, sizeof h);
	if (be32toh(h.magic) != MAGIC)
		return "the peer is not datperf, or another version of it";
	l->peer_context = be32toh(h.context);
	l->peer_target = be64toh(h.target);
	return NULL;
}

static DAT_EVENT wait_on(DAT_EVD_HANDLE conn, DAT_EVENT_NUMBER expected, const char *what)
{
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_RETURN rc = dat_evd_wait(conn, LINK_TIMEOUT * 1000000, 1, &event, &more);

	if (DAT_GET_TYPE(rc) == DAT_TIMEOUT_EXPIRED)
		fail("%s: no answer within %d s", what, LINK_TIMEOUT);
	good(rc, what);
	if (event.event_number != expected) {
		const char *hint = connection_hint(event.event_number);

		fail("%s: %s%s%s%s", what, event_name(event.event_number), *hint ? " (" : "", hint,
		     *hint ? ")" : "");
	}
	return event;
}

static DAT_EVENT wait_connection(struct link *l, DAT_EVENT_NUMBER expected, const char *what)
{
	return wait_on(l->conn, expected, what);
}

void link_listen(struct link *l, DAT_CONN_QUAL port)
{
	good(dat_psp_create(l->ia, port, l->cr, DAT_PSP_CONSUMER_FLAG, &l->psp), "dat_psp_create");
}

void link_accept(struct link *l)
{
	struct hello ours = our_hello(l);
	DAT_CR_PARAM cr;
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_CR_HANDLE handle;
	const char *fault;

	create_endpoint(l);
	good(dat_evd_wait(l->cr, DAT_TIMEOUT_INFINITE, 1, &event, &more), "dat_evd_wait");
	handle = event.event_data.cr_arrival_event_data.cr_handle;
	good(dat_cr_query(handle, DAT_CR_FIELD_ALL, &cr), "dat_cr_query");
	fault = take_hello(l, cr.private_data, cr.private_data_size);
	if (fault) {
		char address[ADDRESS_TEXT];

		address_text((const struct sockaddr *)cr.remote_ia_address_ptr, address);
		good(dat_cr_reject(handle, 0, NULL), "dat_cr_reject");
		fail("request from %s rejected: %s", address, fault);
	}
	good(dat_cr_accept(handle, l->ep, sizeof ours, &ours), "dat_cr_accept");
	wait_connection(l, DAT_CONNECTION_EVENT_ESTABLISHED, "accept");
}

void link_connect(struct link *l, const struct sockaddr *to, DAT_CONN_QUAL port)
{
	struct hello ours = our_hello(l);
	char address[ADDRESS_TEXT], what[ADDRESS_TEXT + 64];
	const char *fault;
	DAT_EVENT event;

	create_endpoint(l);
	snprintf(what, sizeof what, "connect to %s port %llu", address_text(to, address),
		 (unsigned long long)port);
	good(dat_ep_connect(l->ep, (DAT_IA_ADDRESS_PTR)to, port, LINK_TIMEOUT * 1000000,
			    sizeof ours, &ours, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
	     "dat_ep_connect");
	event = wait_connection(l, DAT_CONNECTION_EVENT_ESTABLISHED, what);
	fault = take_hello(l, event.event_data.connect_event_data.private_data,
			   event.event_data.connect_event_data.private_data_size);
	if (fault)
		fail("%s: %s", what, fault);
}

static void drain(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS)
		;
}

static void free_endpoint(struct link *l)
{
	good(dat_ep_free(l->ep), "dat_ep_free");
	l->ep = DAT_HANDLE_NULL;
	drain(l->recv);
	drain(l->request);
	l->unfinished = 0;
}

void link_disconnect(struct link *l)
{
	good(dat_ep_disconnect(l->ep, DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
	wait_connection(l, DAT_CONNECTION_EVENT_DISCONNECTED, "disconnect");
	free_endpoint(l);
}

void link_drop(struct link *l)
{
	if (!l->ep)
		return;
	free_endpoint(l);
	drain(l->conn);
}

/* --- probes ------------------------------------------------------------------ */

static DAT_EP_HANDLE create_probe(struct link *l)
{
	DAT_EP_HANDLE ep;

	good(dat_ep_create(l->ia, l->pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, l->probe_conn, NULL,
			   &ep),
	     "dat_ep_create");
	return ep;
}

double link_probe(struct link *l, const struct sockaddr *to, DAT_CONN_QUAL port)
{
	struct hello ours = our_hello(l);
	DAT_EP_HANDLE ep = create_probe(l);
	double start = now(), took;

	good(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)to, port, LINK_TIMEOUT * 1000000, sizeof ours,
			    &ours, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
	     "dat_ep_connect");
	wait_on(l->probe_conn, DAT_CONNECTION_EVENT_ESTABLISHED, "connect");
	took = now() - start;
	good(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
	wait_on(l->probe_conn, DAT_CONNECTION_EVENT_DISCONNECTED, "disconnect");
	good(dat_ep_free(ep), "dat_ep_free");
	return took;
}

void link_accept_probe(struct link *l)
{
	DAT_EP_HANDLE ep = create_probe(l);
	DAT_EVENT event;
	DAT_COUNT more;

	timed_out(dat_evd_wait(l->cr, LINK_TIMEOUT * 1000000, 1, &event, &more), "dat_evd_wait",
		  "connection request");
	good(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL),
	     "dat_cr_accept");
	wait_on(l->probe_conn, DAT_CONNECTION_EVENT_ESTABLISHED, "accept");
	wait_on(l->probe_conn, DAT_CONNECTION_EVENT_DISCONNECTED, "disconnect");
	good(dat_ep_free(ep), "dat_ep_free");
}
