/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tester.c - see tester.h. */
#include "tester.h"
#include "../call.h"
#include "../cli.h"
#include "../messages.h"
#include "../names.h"
#include <dat/dat_ib_extensions.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	PRIVATE_DATA = 48,	/* bytes */
	IMMEDIATE = 0x7777,	/* any number */
	UNSIGNALED = 8,	/* requests under way beside a burst, such as notes */
};

static bool client(const struct tester *t)
{
	return t->o->host;
}

#define TIMED(t, field, call) do { \
		double start_ = now(); \
		good_call((call), #field); \
		(t)->times.field += now() - start_; \
	} while (0)

/* --- opening and closing ------------------------------------------------------ */

static void query_immediate(struct tester *t)
{
	DAT_PROVIDER_ATTR attr;

	good(dat_ia_query(t->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr), "dat_ia_query");
	for (int i = 0; i < attr.num_provider_specific_attr; i++) {
		const DAT_NAMED_ATTR *named = &attr.provider_specific_attr[i];

		if (t->o->verbose)
			printf("%ld attribute %s = %s\n", (long)getpid(), named->name, named->value);
		if (!strcmp(named->name, DAT_IB_ATTR_IMMED_DATA) && !strcmp(named->value, "TRUE"))
			t->immediate = true;
	}
}

static void *memory(size_t length, int fill)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		fail("no memory for a buffer of %zu bytes; -b SIZE makes it smaller", length);
	return memset(p, fill, length);
}

static void create_lmr(struct tester *t, void *start, size_t length, DAT_LMR_HANDLE *lmr,
		       DAT_LMR_CONTEXT *context, DAT_RMR_CONTEXT *remote)
{
	DAT_REGION_DESCRIPTION region = { .for_va = start };
	DAT_VLEN registered;
	DAT_VADDR address;

	TIMED(t, lmr_create, dat_lmr_create(t->ia, DAT_MEM_TYPE_VIRTUAL, region, length, t->pz,
					    remote ? DAT_MEM_PRIV_ALL_FLAG : DAT_MEM_PRIV_LOCAL_READ_FLAG |
					    DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DAT_VA_TYPE_VA, lmr, context,
					    remote, &registered, &address));
}

static DAT_EVD_HANDLE create_evd(struct tester *t, DAT_COUNT length, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	TIMED(t, evd_create, dat_evd_create(t->ia, length, cno, flags, &evd));
	return evd;
}

static void create_ep(struct tester *t)
{
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_rdma_size = 65536,
		.qos = DAT_QOS_BEST_EFFORT,
		.max_recv_dtos = DTEST_MESSAGES + DTEST_NOTES,
		.max_request_dtos = (DAT_COUNT)t->o->signal_rate + UNSIGNALED,
		.max_recv_iov = 1, .max_request_iov = 1,
		.max_rdma_read_in = 4, .max_rdma_read_out = 4,
		.max_rdma_read_iov = 1, .max_rdma_write_iov = 1,
	};

	if (t->o->length > attr.max_rdma_size)
		attr.max_rdma_size = t->o->length;
	attr.max_message_size = attr.max_rdma_size;
	TIMED(t, ep_create, dat_ep_create(t->ia, t->pz, t->recv, t->request, t->conn, &attr, &t->ep));
}

static void post_note_receive(struct tester *t, int i)
{
	DAT_LMR_TRIPLET into = { (DAT_VADDR)(uintptr_t)&t->notes[i], sizeof *t->notes, t->note_context };
	DAT_DTO_COOKIE cookie = { .as_64 = (DAT_UINT64)i };

	good(dat_ep_post_recv(t->ep, 1, &into, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
}

void tester_open(struct tester *t, const struct dtest_options *o)
{
	double start = now();

	*t = (struct tester){ .o = o };
	open_ia(o->ia, &t->async, &t->ia);
	t->times.open = now() - start;
	query_immediate(t);
	TIMED(t, pz_create, dat_pz_create(t->ia, &t->pz));
	t->in = memory(o->length, 'a');
	t->out = memory(o->length, 'b');
	t->notes = memory((DTEST_NOTES + 1) * sizeof *t->notes, 0);
	create_lmr(t, (void *)t->in, o->length, &t->in_lmr, &t->in_context, &t->in_remote);
	create_lmr(t, t->out, o->length, &t->out_lmr, &t->out_context, NULL);
	create_lmr(t, t->notes, (DTEST_NOTES + 1) * sizeof *t->notes, &t->note_lmr, &t->note_context, NULL);
	t->notes[DTEST_NOTES] = (struct note){
		.address = htobe64((uintptr_t)t->in),
		.length = htobe32((uint32_t)o->length),
		.context = htobe32(t->in_remote),
	};
	if (o->cno)
		good_call(dat_cno_create(t->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &t->cno), "dat_cno_create");
	t->cr = create_evd(t, 10, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG);
	t->conn = create_evd(t, 10, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG);
	t->request = create_evd(t, (DAT_COUNT)o->signal_rate + UNSIGNALED, t->cno, DAT_EVD_DTO_FLAG);
	t->recv = create_evd(t, DTEST_MESSAGES + DTEST_NOTES, t->cno, DAT_EVD_DTO_FLAG);
	create_ep(t);
	for (int i = 0; i < DTEST_NOTES; i++)
		post_note_receive(t, i);
}

void tester_address(struct tester *t, struct sockaddr_storage *address)
{
	DAT_IA_ATTR attr;
	const struct sockaddr *own;

	good(dat_ia_query(t->ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL), "dat_ia_query");
	own = (const struct sockaddr *)attr.ia_address_ptr;
	memset(address, 0, sizeof *address);
	memcpy(address, own, own->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
}

void tester_close(struct tester *t)
{
	TIMED(t, ep_free, dat_ep_free(t->ep));
	if (t->psp)
		good(dat_psp_free(t->psp), "dat_psp_free");
	TIMED(t, evd_free, dat_evd_free(t->recv));
	TIMED(t, evd_free, dat_evd_free(t->request));
	TIMED(t, evd_free, dat_evd_free(t->conn));
	TIMED(t, evd_free, dat_evd_free(t->cr));
	if (t->cno)
		good(dat_cno_free(t->cno), "dat_cno_free");
	TIMED(t, lmr_free, dat_lmr_free(t->note_lmr));
	TIMED(t, lmr_free, dat_lmr_free(t->out_lmr));
	TIMED(t, lmr_free, dat_lmr_free(t->in_lmr));
	TIMED(t, pz_free, dat_pz_free(t->pz));
	TIMED(t, close, dat_ia_close(t->ia, DAT_CLOSE_GRACEFUL_FLAG));
	munmap((void *)t->in, t->o->length);
	munmap(t->out, t->o->length);
	munmap(t->notes, (DTEST_NOTES + 1) * sizeof *t->notes);
}

/* --- the connection ----------------------------------------------------------- */

static DAT_EVENT wait_connection_event(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout)
{
	DAT_EVENT event = { 0 };
	DAT_COUNT more;

	good(dat_evd_wait(evd, timeout, 1, &event, &more), "waiting for a connection event: dat_evd_wait");
	return event;
}

/* Byte i is first + i, which the peer checks. */
static void fill_private_data(unsigned char data[PRIVATE_DATA], int first)
{
	for (int i = 0; i < PRIVATE_DATA; i++)
		data[i] = (unsigned char)(first + i);
}

static void check_private_data(const void *got, DAT_COUNT length, int first)
{
	unsigned char expected[PRIVATE_DATA];

	fill_private_data(expected, first);
	if (length < PRIVATE_DATA || !got || memcmp(got, expected, PRIVATE_DATA))
		fail("private data of the peer: %d bytes found, the %d of a dtest expected", (int)length, PRIVATE_DATA);
}

void tester_listen(struct tester *t)
{
	good_listener(dat_psp_create(t->ia, DTEST_QUALIFIER, t->cr, DAT_PSP_CONSUMER_FLAG, &t->psp), DTEST_QUALIFIER,
		      NULL);
}

bool tester_requested(struct tester *t, unsigned ms)
{
	DAT_EVENT event = { 0 };
	DAT_COUNT more;
	DAT_RETURN rc = dat_evd_wait(t->cr, ms * 1000, 1, &event, &more);

	if (DAT_GET_TYPE(rc) == DAT_TIMEOUT_EXPIRED)
		return false;
	good(rc, "waiting for a connection request: dat_evd_wait");
	t->arrived = event.event_data.cr_arrival_event_data.cr_handle;
	return true;
}

void tester_accept(struct tester *t)
{
	unsigned char data[PRIVATE_DATA];
	DAT_CR_HANDLE cr = t->arrived;
	char failure[CAUSE_TEXT];
	DAT_EVENT event;
	DAT_CR_PARAM param;

	sleep(t->o->delay);
	good(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), "dat_cr_query");
	check_private_data(param.private_data, param.private_data_size, 1);
	fill_private_data(data, 2);
	good_call(dat_cr_accept(cr, t->ep, PRIVATE_DATA, data), "dat_cr_accept");
	event = wait_connection_event(t->conn, DTEST_PATIENCE * 1000000);
	if (event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED)
		fail("%s", connection_failure(&event, "accepting", failure));
}

void tester_connect(struct tester *t, const struct sockaddr *address)
{
	DAT_CONNECTION_EVENT_DATA *data;
	char what[256], failure[CAUSE_TEXT];
	unsigned char own[PRIVATE_DATA];
	double start = now();
	DAT_EVENT event;

	fill_private_data(own, 1);
	good_call(dat_ep_connect(t->ep, (DAT_IA_ADDRESS_PTR)address, DTEST_QUALIFIER, 100000000, PRIVATE_DATA, own,
				 DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG), "dat_ep_connect");
	event = wait_connection_event(t->conn, DAT_TIMEOUT_INFINITE);
	t->times.connect = now() - start;
	if (event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED) {
		snprintf(what, sizeof what, "connect to %s", t->o->host);
		fail("%s", connection_failure(&event, what, failure));
	}
	data = &event.event_data.connect_event_data;
	check_private_data(data->private_data, data->private_data_size, 2);
}

void tester_disconnect(struct tester *t)
{
	char failure[CAUSE_TEXT];
	DAT_EVENT event;

	if (client(t))
		good(dat_ep_disconnect(t->ep, DAT_CLOSE_DEFAULT), "dat_ep_disconnect");
	event = wait_connection_event(t->conn, DTEST_PATIENCE * 1000000);
	if (event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED)
		fail("%s", connection_failure(&event, "disconnecting", failure));
}

/* --- completions -------------------------------------------------------------- */

/* Returns a hint if the peer's buffer is larger: the peer ends the test then, and cannot say why. */
static const char *hint_of_sizes(const struct tester *t)
{
	static char text[128];

	if (!t->peer.rmr_context || t->peer.segment_length <= t->o->length)
		return "";
	snprintf(text, sizeof text, "; the peer's buffer has %zu bytes, ours %zu: give both sides the same -b",
		 (size_t)t->peer.segment_length, t->o->length);
	return text;
}

static void check_completion(const struct tester *t, const DAT_EVENT *event, const char *what)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	const DAT_IB_EXTENSION_EVENT_DATA *extension = (const void *)event->event_extension_data;
	char cause[CAUSE_TEXT];

	if ((int)event->event_number == (int)DAT_IB_DTO_EVENT) {
		if (extension->status != DAT_OP_SUCCESS)
			fail("%s: status %d", what, (int)extension->status);
	} else if (event->event_number != DAT_DTO_COMPLETION_EVENT) {
		fail("%s: %s", what, event_name(event->event_number));
	} else if (dto->status != DAT_DTO_SUCCESS && *completion_cause(event, cause)) {
		fail("%s: %s%s%s", what, dto_status_name(dto->status), cause, hint_of_sizes(t));
	} else if (dto->status != DAT_DTO_SUCCESS) {
		fail("%s: %s%s%s", what, dto_status_name(dto->status),
		     dto->status == DAT_DTO_ERR_FLUSHED || dto->status == DAT_DTO_ERR_TRANSPORT ?
			     "; has the peer ended?" : "", hint_of_sizes(t));
	}
}

static bool take(struct tester *t, DAT_EVD_HANDLE evd, const char *what, DAT_EVENT *event)
{
	DAT_RETURN rc = dat_evd_dequeue(evd, event);

	if (DAT_GET_TYPE(rc) == DAT_QUEUE_EMPTY) {
		t->empty_polls++;
		return false;
	}
	good(rc, "dat_evd_dequeue");
	check_completion(t, event, what);
	return true;
}

bool tester_poll(struct tester *t, DAT_EVD_HANDLE evd, const char *what)
{
	DAT_EVENT event;

	return take(t, evd, what, &event);
}

/* The notification may come from the other EVD, or be for an event that has been dequeued already. */
static void wait_cno(struct tester *t)
{
	DAT_EVD_HANDLE evd;
	DAT_RETURN rc = dat_cno_wait(t->cno, 1000000, &evd);

	if (DAT_GET_TYPE(rc) != DAT_TIMEOUT_EXPIRED && DAT_GET_TYPE(rc) != DAT_QUEUE_EMPTY)
		good(rc, "dat_cno_wait");
}

DAT_EVENT tester_wait(struct tester *t, DAT_EVD_HANDLE evd, const char *what)
{
	double deadline = now() + DTEST_PATIENCE;
	DAT_EVENT event = { 0 };
	DAT_COUNT more;
	DAT_RETURN rc;

	if (!t->o->poll && !t->o->cno) {
		rc = dat_evd_wait(evd, DTEST_PATIENCE * 1000000, 1, &event, &more);
		if (DAT_GET_TYPE(rc) == DAT_TIMEOUT_EXPIRED)
			fail("%s: no completion within %d s", what, DTEST_PATIENCE);
		good(rc, "dat_evd_wait");
		check_completion(t, &event, what);
		return event;
	}
	while (!take(t, evd, what, &event)) {
		if (now() > deadline)
			fail("%s: no completion within %d s", what, DTEST_PATIENCE);
		if (t->o->cno)
			wait_cno(t);
	}
	return event;
}

/* --- posting ------------------------------------------------------------------ */

static DAT_LMR_TRIPLET out_segment(struct tester *t, size_t length)
{
	return (DAT_LMR_TRIPLET){ (DAT_VADDR)(uintptr_t)t->out, length, t->out_context };
}

void tester_send(struct tester *t, size_t length)
{
	DAT_LMR_TRIPLET from = out_segment(t, length);
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };

	good(dat_ep_post_send(t->ep, 1, &from, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
}

void tester_post_receive(struct tester *t)
{
	DAT_LMR_TRIPLET into = { (DAT_VADDR)(uintptr_t)t->in, t->o->length, t->in_context };
	DAT_DTO_COOKIE cookie = { .as_64 = 2 };

	good(dat_ep_post_recv(t->ep, 1, &into, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
}

void tester_write(struct tester *t, size_t length, bool signaled)
{
	DAT_LMR_TRIPLET from = out_segment(t, length);
	DAT_DTO_COOKIE cookie = { .as_64 = 3 };

	good(dat_ep_post_rdma_write(t->ep, 1, &from, cookie, &t->peer, signaled ?
				    DAT_COMPLETION_DEFAULT_FLAG : DAT_COMPLETION_SUPPRESS_FLAG),
	     "dat_ep_post_rdma_write");
}

void tester_write_immediate(struct tester *t, size_t length)
{
	DAT_LMR_TRIPLET from = out_segment(t, length);
	DAT_DTO_COOKIE cookie = { .as_64 = 4 };

	good(dat_ib_post_rdma_write_immed(t->ep, 1, &from, cookie, &t->peer, IMMEDIATE,
					  DAT_COMPLETION_DEFAULT_FLAG), "dat_ib_post_rdma_write_immed");
}

void tester_read(struct tester *t, size_t length)
{
	DAT_LMR_TRIPLET into = out_segment(t, length);
	DAT_DTO_COOKIE cookie = { .as_64 = 5 };

	good(dat_ep_post_rdma_read(t->ep, 1, &into, cookie, &t->peer, DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ep_post_rdma_read");
}

void tester_send_note(struct tester *t, bool signaled)
{
	DAT_LMR_TRIPLET from = { (DAT_VADDR)(uintptr_t)&t->notes[DTEST_NOTES], sizeof *t->notes, t->note_context };
	DAT_DTO_COOKIE cookie = { .as_64 = 6 };

	good(dat_ep_post_send(t->ep, 1, &from, cookie, signaled ? DAT_COMPLETION_DEFAULT_FLAG :
			      DAT_COMPLETION_SUPPRESS_FLAG), "dat_ep_post_send");
	if (signaled)
		tester_wait(t, t->request, "sending a note");
}

void tester_receive_note(struct tester *t)
{
	DAT_EVENT event = tester_wait(t, t->recv, "waiting for a note of the peer");
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;
	const struct note *note = &t->notes[dto->user_cookie.as_64 % DTEST_NOTES];

	if (event.event_number != DAT_DTO_COMPLETION_EVENT || dto->transfered_length != sizeof *note)
		fail("a note of the peer: %zu bytes found, %zu expected",
		     (size_t)dto->transfered_length, sizeof *note);
	if (t->peer.rmr_context || t->peer.virtual_address)
		return;
	t->peer.virtual_address = be64toh(note->address);
	t->peer.segment_length = be32toh(note->length);
	t->peer.rmr_context = be32toh(note->context);
	if (t->peer.segment_length < t->o->length)
		fail("the peer's buffer has %zu bytes, ours %zu: give both sides the same -b",
		     (size_t)t->peer.segment_length, t->o->length);
}
