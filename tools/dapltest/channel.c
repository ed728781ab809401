/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* channel.c - see channel.h. */
#include "channel.h"
#include "../call.h"
#include "../messages.h"
#include "../names.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

bool complain(const char *fmt, ...)
{
	char line[CAUSE_TEXT + 128];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	fflush(stdout);
	fprintf(stderr, "dapltest: %s\n", line);
	return false;
}

bool succeeded(DAT_RETURN rc, const char *call)
{
	const char *major = "?", *minor = "";

	if (rc == DAT_SUCCESS)
		return true;
	dat_strerror(rc, &major, &minor);
	return complain("%s: %s%s%s", call, major, *minor ? " " : "", minor);
}

bool succeeded_held(DAT_RETURN rc, const char *call)
{
	const char *cause = messages_release(rc != DAT_SUCCESS);

	return cause ? complain("%s: %s", call, cause) : succeeded(rc, call);
}

/* --- adapter and memory ------------------------------------------------------- */

bool adapter_open(struct adapter *a, const char *name)
{
	char call[DAT_NAME_MAX_LENGTH + 32];

	*a = (struct adapter){ .name = name };
	snprintf(call, sizeof call, "dat_ia_open of %s", name);
	return succeeded_call(dat_ia_open((char *)name, 8, &a->async, &a->ia), call) &&
	       succeeded(dat_ia_query(a->ia, NULL, DAT_IA_FIELD_ALL, &a->attr, 0, NULL), "dat_ia_query") &&
	       succeeded(dat_pz_create(a->ia, &a->pz), "dat_pz_create");
}

/* Closes abruptly, which also works after a failure. */
void adapter_close(struct adapter *a)
{
	if (a->ia)
		dat_ia_close(a->ia, DAT_CLOSE_ABRUPT_FLAG);
	a->ia = DAT_HANDLE_NULL;
}

bool region_create(struct region *r, const struct adapter *a, size_t length)
{
	DAT_REGION_DESCRIPTION region;
	DAT_VLEN registered;
	DAT_VADDR address;

	*r = (struct region){ .length = length };
	r->start = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r->start == MAP_FAILED) {
		r->start = NULL;
		return complain("no memory for a buffer of %zu bytes", length);
	}
	region.for_va = r->start;
	return succeeded_call(dat_lmr_create(a->ia, DAT_MEM_TYPE_VIRTUAL, region, length, a->pz,
					     DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &r->lmr, &r->context,
					     &r->remote, &registered, &address),
			      "dat_lmr_create");
}

void region_free(struct region *r)
{
	if (r->lmr)
		dat_lmr_free(r->lmr);
	if (r->start)
		munmap(r->start, r->length);
	*r = (struct region){ 0 };
}

/* --- opening and closing ------------------------------------------------------ */

static bool create_evd(struct channel *c, DAT_COUNT length, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags,
		       DAT_EVD_HANDLE *evd)
{
	return succeeded_call(dat_evd_create(c->adapter->ia, length, cno, flags, evd), "dat_evd_create");
}

static bool create_ep(struct channel *c)
{
	const DAT_IA_ATTR *limit = &c->adapter->attr;
	const struct channel_options *o = &c->options;
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = limit->max_message_size,
		.max_rdma_size = limit->max_rdma_size,
		.qos = o->qos,
		.max_recv_dtos = o->receives, .max_request_dtos = o->requests,
		.max_recv_iov = o->segments, .max_request_iov = o->segments,
		.max_rdma_read_in = 4, .max_rdma_read_out = 4,
		.max_rdma_read_iov = o->segments, .max_rdma_write_iov = o->segments,
	};

	if (attr.max_rdma_read_in > limit->max_rdma_read_per_ep_in)
		attr.max_rdma_read_in = limit->max_rdma_read_per_ep_in;
	if (attr.max_rdma_read_out > limit->max_rdma_read_per_ep_out)
		attr.max_rdma_read_out = limit->max_rdma_read_per_ep_out;
	if (attr.max_rdma_read_iov > limit->max_iov_segments_per_rdma_read)
		attr.max_rdma_read_iov = limit->max_iov_segments_per_rdma_read;
	return succeeded_call(dat_ep_create(c->adapter->ia, c->adapter->pz, c->recv, c->request, c->conn, &attr,
					    &c->ep), "dat_ep_create");
}

bool channel_open(struct channel *c, const struct adapter *a, const struct channel_options *o)
{
	*c = (struct channel){ .adapter = a, .options = *o, .patience = PATIENCE };
	if (o->wait == WAIT_CNO &&
	    !succeeded_call(dat_cno_create(a->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &c->cno), "dat_cno_create"))
		return false;
	return create_evd(c, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &c->cr) &&
	       create_evd(c, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &c->conn) &&
	       create_evd(c, o->requests, c->cno, DAT_EVD_DTO_FLAG, &c->request) &&
	       create_evd(c, o->receives, c->cno, DAT_EVD_DTO_FLAG, &c->recv) && create_ep(c);
}

void channel_close(struct channel *c)
{
	if (c->psp)
		dat_psp_free(c->psp);
	if (c->rsp)
		dat_rsp_free(c->rsp);
	if (c->ep)
		dat_ep_free(c->ep);
	if (c->recv)
		dat_evd_free(c->recv);
	if (c->request)
		dat_evd_free(c->request);
	if (c->conn)
		dat_evd_free(c->conn);
	if (c->cr)
		dat_evd_free(c->cr);
	if (c->cno)
		dat_cno_free(c->cno);
	*c = (struct channel){ 0 };
}

/* --- connections -------------------------------------------------------------- */

static bool wait_connection_event(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, const char *what, DAT_EVENT *event)
{
	DAT_COUNT more;
	DAT_RETURN rc = dat_evd_wait(evd, timeout, 1, event, &more);

	if (DAT_GET_TYPE(rc) == DAT_TIMEOUT_EXPIRED)
		return complain("%s: nothing within %d s", what, (int)(timeout / 1000000));
	return succeeded(rc, "dat_evd_wait");
}

bool channel_listen(struct channel *c, DAT_CONN_QUAL qualifier, bool reserved, bool *taken)
{
	char call[64];
	DAT_RETURN rc;

	messages_hold();
	rc = reserved ? dat_rsp_create(c->adapter->ia, qualifier, c->ep, c->cr, &c->rsp) :
			dat_psp_create(c->adapter->ia, qualifier, c->cr, DAT_PSP_CONSUMER_FLAG, &c->psp);
	*taken = DAT_GET_TYPE(rc) == DAT_CONN_QUAL_IN_USE;
	if (*taken) {
		messages_release(true);
		return false;
	}
	snprintf(call, sizeof call, "listening at connection qualifier %llu", (unsigned long long)qualifier);
	return succeeded_held(rc, call);
}

static bool check_private_data(DAT_CR_HANDLE cr, const void *expected, DAT_COUNT length)
{
	DAT_CR_PARAM param;

	if (!succeeded(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), "dat_cr_query"))
		return false;
	if (param.private_data_size < length || (length && memcmp(param.private_data, expected, (size_t)length))) {
		dat_cr_reject(cr, 0, NULL);
		return complain("a connection request: %d bytes of private data found, the %d of a dapltest client "
				"expected", (int)param.private_data_size, (int)length);
	}
	return true;
}

bool channel_accept(struct channel *c, const void *private_data, DAT_COUNT length, DAT_TIMEOUT timeout)
{
	char failure[CAUSE_TEXT];
	DAT_EVENT event = { 0 };
	DAT_CR_HANDLE cr;

	if (!wait_connection_event(c->cr, timeout, "waiting for a connection request", &event))
		return false;
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	if (!check_private_data(cr, private_data, length))
		return false;
	if (!succeeded_call(dat_cr_accept(cr, c->rsp ? DAT_HANDLE_NULL : c->ep, 0, NULL), "dat_cr_accept") ||
	    !wait_connection_event(c->conn, PATIENCE * 1000000, "accepting", &event))
		return false;
	if (event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED)
		return complain("%s", connection_failure(&event, "accepting", failure));
	c->connected = true;
	return true;
}

bool channel_connect(struct channel *c, const struct sockaddr *to, DAT_CONN_QUAL qualifier,
		     const void *private_data, DAT_COUNT length)
{
	char address[ADDRESS_TEXT], what[ADDRESS_TEXT + 64], failure[CAUSE_TEXT];
	DAT_EVENT event = { 0 };

	snprintf(what, sizeof what, "connect to %s port %llu", address_text(to, address),
		 (unsigned long long)qualifier);
	if (!succeeded_call(dat_ep_connect(c->ep, (DAT_IA_ADDRESS_PTR)to, qualifier, PATIENCE * 1000000, length,
					   (void *)private_data, c->options.qos, DAT_CONNECT_DEFAULT_FLAG),
			    "dat_ep_connect") ||
	    !wait_connection_event(c->conn, DAT_TIMEOUT_INFINITE, "connecting", &event))
		return false;
	if (event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED)
		return complain("%s", connection_failure(&event, what, failure));
	c->connected = true;
	return true;
}

/* If the connection has broken before, reports that and returns false. */
bool channel_disconnect(struct channel *c, DAT_CLOSE_FLAGS flags)
{
	char failure[CAUSE_TEXT];
	DAT_EVENT event = { 0 };

	if (!c->connected)
		return true;
	c->connected = false;
	dat_ep_disconnect(c->ep, flags);
	if (!wait_connection_event(c->conn, PATIENCE * 1000000, "disconnecting", &event))
		return false;
	if (event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED)
		return complain("%s", connection_failure(&event, "disconnecting", failure));
	return true;
}

static void empty(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS)
		;
}

bool channel_reset(struct channel *c)
{
	bool good = succeeded(dat_ep_reset(c->ep), "dat_ep_reset");

	empty(c->recv);
	empty(c->request);
	empty(c->conn);
	return good;
}

/* --- posting ------------------------------------------------------------------ */

static DAT_DTO_COOKIE no_cookie(void)
{
	return (DAT_DTO_COOKIE){ .as_64 = 0 };
}

static void segments_of(DAT_LMR_TRIPLET triplets[MAX_SEGMENTS], const struct region *r, size_t offset, struct layout l)
{
	for (DAT_COUNT i = 0; i < l.segments; i++)
		triplets[i] = (DAT_LMR_TRIPLET){
			.virtual_address = (DAT_VADDR)(uintptr_t)(r->start + offset + (size_t)i * l.stride),
			.segment_length = l.size,
			.lmr_context = r->context,
		};
}

bool channel_post_receive(struct channel *c, const struct region *r, size_t offset, struct layout l)
{
	DAT_LMR_TRIPLET triplets[MAX_SEGMENTS];

	segments_of(triplets, r, offset, l);
	return succeeded(dat_ep_post_recv(c->ep, l.segments, triplets, no_cookie(), DAT_COMPLETION_DEFAULT_FLAG),
			 "dat_ep_post_recv");
}

bool channel_post_send(struct channel *c, const struct region *r, size_t offset, struct layout l)
{
	DAT_LMR_TRIPLET triplets[MAX_SEGMENTS];

	segments_of(triplets, r, offset, l);
	return succeeded(dat_ep_post_send(c->ep, l.segments, triplets, no_cookie(), DAT_COMPLETION_DEFAULT_FLAG),
			 "dat_ep_post_send");
}

bool channel_post_rdma(struct channel *c, const struct region *r, struct layout l, bool write,
		       const DAT_RMR_TRIPLET *remote)
{
	DAT_LMR_TRIPLET triplets[MAX_SEGMENTS];

	segments_of(triplets, r, 0, l);
	if (write)
		return succeeded(dat_ep_post_rdma_write(c->ep, l.segments, triplets, no_cookie(), remote,
							DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_rdma_write");
	return succeeded(dat_ep_post_rdma_read(c->ep, l.segments, triplets, no_cookie(), remote,
					       DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_rdma_read");
}

/* --- completions -------------------------------------------------------------- */

static bool check(const DAT_EVENT *event, size_t length, const char *what)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	char cause[CAUSE_TEXT];

	if (event->event_number != DAT_DTO_COMPLETION_EVENT)
		return complain("%s: %s", what, event_name(event->event_number));
	if (dto->status != DAT_DTO_SUCCESS && *completion_cause(event, cause))
		return complain("%s: %s%s", what, dto_status_name(dto->status), cause);
	if (dto->status != DAT_DTO_SUCCESS)
		return complain("%s: %s%s", what, dto_status_name(dto->status),
				dto->status == DAT_DTO_ERR_FLUSHED || dto->status == DAT_DTO_ERR_TRANSPORT ?
					"; has the peer ended?" : "");
	if (dto->transfered_length != length)
		return complain("%s: %zu bytes found, %zu expected", what, (size_t)dto->transfered_length, length);
	return true;
}

/* Takes a completion if there is one. Returns false if there is none, or if it is not the expected one
 * (*bad). */
static bool poll_once(struct channel *c, DAT_EVD_HANDLE evd, size_t length, const char *what, bool *bad)
{
	DAT_EVENT event;
	DAT_RETURN rc = dat_evd_dequeue(evd, &event);

	(void)c;
	*bad = false;
	if (DAT_GET_TYPE(rc) == DAT_QUEUE_EMPTY)
		return false;
	*bad = !succeeded(rc, "dat_evd_dequeue") || !check(&event, length, what);
	return !*bad;
}

/* Waits for a notification, at most 1 s. It may be of the other EVD, or of an event that was dequeued
 * before, so the caller polls again. */
static bool wait_cno(struct channel *c)
{
	DAT_EVD_HANDLE evd;
	DAT_RETURN rc = dat_cno_wait(c->cno, 1000000, &evd);

	return DAT_GET_TYPE(rc) == DAT_TIMEOUT_EXPIRED || DAT_GET_TYPE(rc) == DAT_QUEUE_EMPTY ||
	       succeeded(rc, "dat_cno_wait");
}

bool channel_wait(struct channel *c, DAT_EVD_HANDLE evd, size_t length, const char *what)
{
	double deadline = now() + c->patience;
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_RETURN rc;
	bool bad;

	if (c->options.wait == WAIT_BLOCK) {
		rc = dat_evd_wait(evd, c->patience ? (DAT_TIMEOUT)c->patience * 1000000 : DAT_TIMEOUT_INFINITE, 1,
				  &event, &more);
		if (DAT_GET_TYPE(rc) == DAT_TIMEOUT_EXPIRED)
			return complain("%s: no completion within %d s", what, c->patience);
		return succeeded(rc, "dat_evd_wait") && check(&event, length, what);
	}
	while (!poll_once(c, evd, length, what, &bad)) {
		if (bad)
			return false;
		if (c->patience && now() > deadline)
			return complain("%s: no completion within %d s", what, c->patience);
		if (c->options.wait == WAIT_CNO && !wait_cno(c))
			return false;
	}
	return true;
}

bool channel_send(struct channel *c, const struct region *r, size_t offset, size_t length)
{
	return channel_post_send(c, r, offset, (struct layout){ 1, length, length }) &&
	       channel_wait(c, c->request, length, "sending a message");
}

bool channel_receive(struct channel *c, size_t length, const char *what)
{
	return channel_wait(c, c->recv, length, what);
}
