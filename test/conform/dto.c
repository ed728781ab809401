/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dto.c - moving data: messages, RDMA, their completions, order and errors. */
#include "actors.h"
#include "pair.h"
#include <string.h>

#define DEFAULT DAT_COMPLETION_DEFAULT_FLAG
#define SUPPRESS DAT_COMPLETION_SUPPRESS_FLAG

static DAT_RETURN send_segments(const struct end *end, DAT_COUNT n, DAT_LMR_TRIPLET *iov, uint64_t cookie)
{
	return dat_ep_post_send(end->ep, n, iov, COOKIE(cookie), DEFAULT);
}

TEST("DTO-1", a_send_completes_with_its_cookie)
{
	struct pair p = CONNECTED_PAIR();

	post_recv(&p.b, 0, 64, 1);
	post_send(&p.a, 0, 64, 0x1234567890abcdefull);
	DAT_DTO_COMPLETION_EVENT_DATA done = COMPLETES(p.a.request, 0x1234567890abcdefull, DAT_DTO_SUCCESS);
	EQUAL(done.ep_handle, p.a.ep);
	EQUAL(done.operation, DAT_DTO_SEND);
	done = COMPLETES(p.b.recv, 1, DAT_DTO_SUCCESS);
	EQUAL(done.ep_handle, p.b.ep);
	EQUAL(done.operation, DAT_DTO_RECEIVE);
}

TEST("DTO-2", a_send_tells_its_length)
{
	struct pair p = CONNECTED_PAIR();

	post_recv(&p.b, 0, 1000, 1);
	post_send(&p.a, 0, 777, 2);
	EQUAL(COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS).transfered_length, 777);
}

TEST("DTO-3", a_receive_fills_its_segments_in_order)
{
	struct pair p = CONNECTED_PAIR();
	DAT_COUNT n = ep_attr().max_recv_iov;
	DAT_LMR_TRIPLET iov[4];

	/* Makes segments from the end of the memory to its begin. */
	for (int i = 0; i < n; i++)
		iov[i] = segment(&p.b.mem, (n - 1 - i) * 1000, 100);
	OK(dat_ep_post_recv(p.b.ep, n, iov, COOKIE(1), DEFAULT));
	DAT_COUNT length = n * 100 - 50;
	fill(p.a.mem.at, length, 1);
	post_send(&p.a, 0, length, 2);
	EQUAL(COMPLETES(p.b.recv, 1, DAT_DTO_SUCCESS).transfered_length, length);
	for (int i = 0; i < n; i++)
		HOLDS(!memcmp(p.b.mem.at + (n - 1 - i) * 1000, p.a.mem.at + i * 100, i == n - 1 ? 50 : 100));
	HOLDS(is_zero(p.b.mem.at + 50, 50));
}

TEST("DTO-4", a_message_too_long_breaks_the_connection)
{
	struct pair p = CONNECTED_PAIR();

	post_recv(&p.b, 0, 64, 1);
	post_send(&p.a, 0, 65, 2);
	COMPLETES(p.b.recv, 1, device_is("rxe") ? DAT_DTO_ERR_LOCAL_EP : DAT_DTO_ERR_LOCAL_LENGTH);
	ENDS(p.b.conn);
	ENDS(p.a.conn);
	HOLDS(is_zero(p.b.mem.at + 64, 64));
}

TEST("DTO-5", a_message_may_be_empty)
{
	struct pair p = CONNECTED_PAIR();

	post_recv(&p.b, 0, 64, 1);
	OK(send_segments(&p.a, 0, NULL, 2));
	EQUAL(COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS).transfered_length, 0);
	EQUAL(COMPLETES(p.b.recv, 1, DAT_DTO_SUCCESS).transfered_length, 0);
	OK(dat_ep_post_recv(p.b.ep, 0, NULL, COOKIE(3), DEFAULT));
	OK(send_segments(&p.a, 0, NULL, 4));
	COMPLETES(p.b.recv, 3, DAT_DTO_SUCCESS);
}

TEST("DTO-6", a_segment_of_no_length_is_not_looked_at)
{
	struct pair p = CONNECTED_PAIR();
	DAT_LMR_TRIPLET iov = { .virtual_address = 0xdead, .segment_length = 0, .lmr_context = 0xdeadbeef };

	post_recv(&p.b, 0, 64, 1);
	OK(send_segments(&p.a, 1, &iov, 2));
	EQUAL(COMPLETES(p.b.recv, 1, DAT_DTO_SUCCESS).transfered_length, 0);
	COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS);
}

TEST("DTO-7", an_unconnected_ep_does_not_send)
{
	struct end a = AN_END();

	FAILS(send_segments(&a, 1, SEGMENT(&a.mem, 0, 64), 1),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EP_UNCONNECTED);
}

static struct pair a_disconnected_pair(void)
{
	struct pair p = CONNECTED_PAIR();

	hang_up(&p.a);
	EVENT(p.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	EVENT(p.b.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	STATE(p.a.ep, DAT_EP_STATE_DISCONNECTED);
	STATE(p.b.ep, DAT_EP_STATE_DISCONNECTED);
	return p;
}

TEST("DTO-8", a_disconnected_ep_flushes_sends)
{
	struct pair p = a_disconnected_pair();

	post_send(&p.a, 0, 64, 1);
	COMPLETES(p.a.request, 1, DAT_DTO_ERR_FLUSHED);
	post_write(&p.b, 0, 64, &p.a.mem, 0, 2);
	COMPLETES(p.b.request, 2, DAT_DTO_ERR_FLUSHED);
}

TEST("DTO-9", a_disconnected_ep_flushes_receives)
{
	struct pair p = a_disconnected_pair();

	post_recv(&p.a, 0, 64, 1);
	COMPLETES(p.a.recv, 1, DAT_DTO_ERR_FLUSHED);
	post_recv(&p.b, 0, 64, 2);
	COMPLETES(p.b.recv, 2, DAT_DTO_ERR_FLUSHED);
}

TEST("DTO-10", an_ep_that_is_disconnecting_does_not_send)
{
	struct pair p = CONNECTED_PAIR();

	hold_requests(&p);
	OK(dat_ep_disconnect(p.a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	FAILS(send_segments(&p.a, 1, SEGMENT(&p.a.mem, 0, 64), 1),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_EP_DISCPENDING);
}

TEST("DTO-11", a_send_has_no_more_segments_than_its_ep_allows)
{
	struct pair p = CONNECTED_PAIR();
	DAT_COUNT n = ep_param(p.a.ep).ep_attr.max_request_iov + 1;
	DAT_LMR_TRIPLET *iov = (DAT_LMR_TRIPLET *)some_memory(n * sizeof(*iov));

	for (int i = 0; i < n; i++)
		iov[i] = segment(&p.a.mem, i * 8, 8);
	FAILS(send_segments(&p.a, n, iov, 1), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	FAILS(send_segments(&p.a, -1, iov, 1), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	WORKS(p.a, p.b);
}

TEST("DTO-12", segments_are_somewhere)
{
	struct pair p = CONNECTED_PAIR();

	FAILS(send_segments(&p.a, 1, NULL, 1), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	FAILS(dat_ep_post_recv(p.a.ep, 1, NULL, COOKIE(1), DEFAULT), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	WORKS(p.a, p.b);
}

TEST("DTO-13", no_more_requests_are_posted_than_an_ep_holds)
{
	struct pair p = CONNECTED_PAIR();
	DAT_COUNT n = ep_param(p.a.ep).ep_attr.max_request_dtos;

	hold_requests(&p);
	for (int i = 1; i < n; i++)
		post_send(&p.a, 0, 64, i);
	FAILS(send_segments(&p.a, 1, SEGMENT(&p.a.mem, 0, 64), 99), DAT_INSUFFICIENT_RESOURCES);
	post_recv(&p.b, 0, 64, 1);
	COMPLETES(p.a.request, 900, DAT_DTO_SUCCESS);
	post_send(&p.a, 0, 64, n);
}

TEST("DTO-14", no_more_receives_are_posted_than_an_ep_holds)
{
	struct end a = AN_END();
	DAT_COUNT n = ep_param(a.ep).ep_attr.max_recv_dtos;

	for (int i = 0; i < n; i++)
		post_recv(&a, 0, 64, i);
	FAILS(dat_ep_post_recv(a.ep, 1, SEGMENT(&a.mem, 0, 64), COOKIE(n), DEFAULT),
	      DAT_INSUFFICIENT_RESOURCES);
}

/* The post must fail, or the completion. */
static void expect_local_failure(struct pair *p, DAT_RETURN ret, DAT_RETURN at_once, uint64_t cookie,
				 DAT_DTO_COMPLETION_STATUS status)
{
	if (ret != DAT_SUCCESS)
		FAILS(ret, at_once);
	else
		COMPLETES(p->a.request, cookie, status);
}

/* A send or an RDMA write from that memory fails. A short one may be inlined, and succeed. */
static void expect_not_sent(struct pair *p, const struct region *from, uint32_t offset,
			    uint32_t length, bool write, DAT_RETURN at_once,
			    DAT_DTO_COMPLETION_STATUS status)
{
	DAT_RETURN ret;

	AT(write ? "dat_ep_post_rdma_write from that memory" : "dat_ep_post_send from that memory");
	if (write)
		ret = dat_ep_post_rdma_write(p->a.ep, 1, SEGMENT(from, offset, length), COOKIE(2),
					     TARGET(&p->b.mem, 0, length), DEFAULT);
	else
		ret = send_segments(&p->a, 1, SEGMENT(from, offset, length), 2);
	if (ret == DAT_SUCCESS && may_be_inlined(length))
		EVENT(p->a.request, DAT_DTO_COMPLETION_EVENT);
	else
		expect_local_failure(p, ret, at_once, 2, status);
}

TEST("DTO-15", memory_of_another_pz_is_not_sent)
{
	for (int i = 0; i < 2 * INLINE_LENGTHS; i++) {
		struct pair p = CONNECTED_PAIR();
		struct region other = a_region(a_pz(), 4096, ALL_RIGHTS);

		post_recv(&p.b, 0, 4096, 1);
		expect_not_sent(&p, &other, 0, inline_lengths[i / 2], i % 2,
				DAT_PROTECTION_VIOLATION, device_is("rxe") ?
				DAT_DTO_ERR_LOCAL_EP : DAT_DTO_ERR_LOCAL_PROTECTION);
	}
}

TEST("DTO-16", memory_that_may_not_be_read_is_not_sent)
{
	struct pair p = CONNECTED_PAIR();
	struct region sink = a_region(p.a.pz, 4096, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);

	post_recv(&p.b, 0, 4096, 1);
	AT("dat_ep_post_send from memory without local read");
	/* or it is sent, as dtest relies on: see DOUBTS.md */
	DAT_RETURN ret = send_segments(&p.a, 1, SEGMENT(&sink, 0, 4096), 2);
	if (ret != DAT_SUCCESS)
		FAILS(ret, DAT_PRIVILEGES_VIOLATION);
	else
		EVENT(p.a.request, DAT_DTO_COMPLETION_EVENT);
}

TEST("DTO-17", unsignaled_posts_need_the_attribute)
{
	struct pair p = CONNECTED_PAIR();

	FAILS(dat_ep_post_send(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 64), COOKIE(1),
			       DAT_COMPLETION_UNSIGNALLED_FLAG), DAT_INVALID_PARAMETER);
	WORKS(p.a, p.b);
}

TEST("DTO-18", a_suppressed_completion_is_not_told_of_when_it_succeeds)
{
	struct pair p = CONNECTED_PAIR();

	post_recv(&p.b, 0, 64, 1);
	post_recv(&p.b, 64, 64, 2);
	OK(dat_ep_post_send(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 64), COOKIE(3), SUPPRESS));
	post_send(&p.a, 0, 64, 4);
	COMPLETES(p.b.recv, 1, DAT_DTO_SUCCESS);
	COMPLETES(p.b.recv, 2, DAT_DTO_SUCCESS);
	COMPLETES(p.a.request, 4, DAT_DTO_SUCCESS);
	NO_EVENT(p.a.request);
	/* Suppressed completions do not use up the queue. */
	DAT_COUNT n = 3 * ep_param(p.a.ep).ep_attr.max_request_dtos;
	for (int i = 0; i < n; i++) {
		DAT_COMPLETION_FLAGS flags = i % 4 == 3 ? DEFAULT : SUPPRESS;
		post_recv(&p.b, 0, 64, i);
		OK(dat_ep_post_send(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 64), COOKIE(i), flags));
		COMPLETES(p.b.recv, i, DAT_DTO_SUCCESS);
		if (flags == DEFAULT)
			COMPLETES(p.a.request, i, DAT_DTO_SUCCESS);
	}
}

TEST("DTO-19", a_suppressed_completion_is_told_of_when_it_fails)
{
	struct pair p = CONNECTED_PAIR();
	struct region wrong = forged(&p.b.mem);

	OK(dat_ep_post_rdma_read(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 64), COOKIE(1), TARGET(&wrong, 0, 64),
				 SUPPRESS));
	OK(dat_ep_post_send(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 64), COOKIE(2), SUPPRESS));
	DAT_EVENT event = EVENT(p.a.request, DAT_DTO_COMPLETION_EVENT);
	EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	HOLDS(event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS);
	COMPLETES(p.a.request, 2, DAT_DTO_ERR_FLUSHED);
}

TEST("DTO-20", an_rdma_write_puts_data_silently)
{
	struct pair p = CONNECTED_PAIR();

	post_recv(&p.b, 4096, 64, 1);
	fill(p.a.mem.at, 1000, 1);
	post_write(&p.a, 0, 1000, &p.b.mem, 100, 2);
	DAT_DTO_COMPLETION_EVENT_DATA done = COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS);
	EQUAL(done.operation, DAT_DTO_RDMA_WRITE);
	EQUAL(done.transfered_length, 1000);
	post_send(&p.a, 0, 8, 3);	/* behind it: when this is here, so is that */
	COMPLETES(p.b.recv, 1, DAT_DTO_SUCCESS);
	HOLDS(is_filled(p.b.mem.at + 100, 1000, 1));
	NO_EVENT(p.b.recv);
	NO_EVENT(p.b.request);
}

TEST("DTO-21", an_rdma_read_gets_data)
{
	struct pair p = CONNECTED_PAIR();

	fill(p.b.mem.at + 100, 1000, 1);
	post_read(&p.a, 0, 1000, &p.b.mem, 100, 2);
	DAT_DTO_COMPLETION_EVENT_DATA done = COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS);
	EQUAL(done.operation, DAT_DTO_RDMA_READ);
	EQUAL(done.transfered_length, 1000);
	HOLDS(is_filled(p.a.mem.at, 1000, 1));
	NO_EVENT(p.b.recv);
}

TEST("DTO-22", an_rdma_read_gets_as_much_as_the_remote_segment_says)
{
	struct pair p = CONNECTED_PAIR();

	memset(p.b.mem.at, 'b', 300);
	OK(dat_ep_post_rdma_read(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 200), COOKIE(1), TARGET(&p.b.mem, 0, 100),
				 DEFAULT));
	EQUAL(COMPLETES(p.a.request, 1, DAT_DTO_SUCCESS).transfered_length, 100);
	HOLDS(p.a.mem.at[99] == 'b');
	HOLDS(is_zero(p.a.mem.at + 100, 100));
	if (ia_attr()->max_iov_segments_per_rdma_read < 2)
		return;
	/* The last segment is filled in part, those behind it are not touched. */
	memset(p.a.mem.at, 0, 300);
	DAT_LMR_TRIPLET iov[] = { segment(&p.a.mem, 0, 60), segment(&p.a.mem, 100, 60) };
	OK(dat_ep_post_rdma_read(p.a.ep, 2, iov, COOKIE(2), TARGET(&p.b.mem, 0, 80), DEFAULT));
	EQUAL(COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS).transfered_length, 80);
	HOLDS(p.a.mem.at[59] == 'b' && p.a.mem.at[119] == 'b');
	HOLDS(is_zero(p.a.mem.at + 60, 40) && is_zero(p.a.mem.at + 120, 100));
}

TEST("DTO-23", an_rdma_read_needs_room_for_what_it_gets)
{
	struct pair p = CONNECTED_PAIR();

	FAILS(dat_ep_post_rdma_read(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 100), COOKIE(1),
				    TARGET(&p.b.mem, 0, 200), DEFAULT), DAT_LENGTH_ERROR);
	WORKS(p.a, p.b);
}

TEST("DTO-24", an_rdma_write_needs_room_for_what_it_puts)
{
	struct pair p = CONNECTED_PAIR();

	FAILS(dat_ep_post_rdma_write(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 200), COOKIE(1),
				     TARGET(&p.b.mem, 0, 100), DEFAULT), DAT_LENGTH_ERROR);
	WORKS(p.a, p.b);
	/* A message may be shorter than its receive. */
	OK(dat_ep_post_rdma_write(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 100), COOKIE(2),
				  TARGET(&p.b.mem, 0, 200), DEFAULT));
	EQUAL(COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS).transfered_length, 100);
}

/* Posts behind the end of the region, and with a byte before its begin. */
TEST("DTO-25", memory_outside_its_lmr_is_not_sent)
{
	for (int i = 0; i < 4 * INLINE_LENGTHS; i++) {
		struct pair p = CONNECTED_PAIR();
		char *memory = some_memory(3 * 4096);
		struct region region = a_region_at(memory + 4096, 4096, p.a.pz, ALL_RIGHTS);
		uint32_t offset = i % 4 < 2 ? 2 * 4096 - 1 : 4096 - 1;

		region.at = memory;
		post_recv(&p.b, 0, 4096, 1);
		expect_not_sent(&p, &region, offset, inline_lengths[i / 4] + (i % 4 < 2), i % 2,
				DAT_INVALID_PARAMETER, DAT_DTO_ERR_LOCAL_PROTECTION);
	}
}

TEST("DTO-26", an_rdma_write_to_a_context_that_does_not_exist_breaks_the_connection)
{
	struct pair p = CONNECTED_PAIR();
	struct region wrong = forged(&p.b.mem);

	post_write(&p.a, 0, 64, &wrong, 0, 1);
	COMPLETES(p.a.request, 1, DAT_DTO_ERR_REMOTE_ACCESS);
	EVENT(p.a.conn, DAT_CONNECTION_EVENT_BROKEN);
	ENDS(p.b.conn);
}

TEST("DTO-27", an_rdma_write_may_be_empty)
{
	struct pair p = CONNECTED_PAIR();

	OK(dat_ep_post_rdma_write(p.a.ep, 0, NULL, COOKIE(1), TARGET(&p.b.mem, 0, 0), DEFAULT));
	EQUAL(COMPLETES(p.a.request, 1, DAT_DTO_SUCCESS).transfered_length, 0);
	post_write(&p.a, 0, 0, &p.b.mem, 0, 2);
	EQUAL(COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS).transfered_length, 0);
	WORKS(p.a, p.b);
}

TEST("DTO-28", a_fenced_send_starts_after_the_reads_before_it)
{
	struct pair p = CONNECTED_PAIR();

	/* Sends back at once what was read. */
	for (int i = 0; i < 20; i++) {
		fill(p.b.mem.at, 16384, i);
		memset(p.a.mem.at, 0, 16384);
		post_recv(&p.b, 32768, 16384, i);
		post_read(&p.a, 0, 16384, &p.b.mem, 0, 100 + i);
		OK(dat_ep_post_send(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 16384), COOKIE(200 + i),
				    DAT_COMPLETION_BARRIER_FENCE_FLAG));
		COMPLETES(p.b.recv, i, DAT_DTO_SUCCESS);
		HOLDS(is_filled(p.b.mem.at + 32768, 16384, i));
		COMPLETES(p.a.request, 100 + i, DAT_DTO_SUCCESS);
		COMPLETES(p.a.request, 200 + i, DAT_DTO_SUCCESS);
	}
}

TEST("DTO-29", a_hundred_messages_arrive_in_order)
{
	struct pair p = CONNECTED_PAIR();

	for (int i = 0; i < 10; i++)
		post_recv(&p.b, i * 64, 64, i);
	for (int i = 0; i < 100; i += 10) {
		for (int j = i; j < i + 10; j++) {
			*(int *)(p.a.mem.at + j * 64) = j;
			post_send(&p.a, j * 64, 64, j);
		}
		for (int j = i; j < i + 10; j++) {
			COMPLETES(p.a.request, j, DAT_DTO_SUCCESS);
			COMPLETES(p.b.recv, j, DAT_DTO_SUCCESS);
			EQUAL(*(int *)(p.b.mem.at + j % 10 * 64), j);
		}
		for (int j = i + 10; j < i + 20; j++)
			post_recv(&p.b, j % 10 * 64, 64, j);
	}
}

TEST("DTO-30", data_written_is_there_when_the_message_behind_it_is)
{
	struct pair p = CONNECTED_PAIR();

	for (int i = 1; i <= 50; i++) {
		fill(p.a.mem.at, 20000, i);
		post_recv(&p.b, 60000, 8, i);
		OK(dat_ep_post_rdma_write(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 20000), COOKIE(i),
					  TARGET(&p.b.mem, 0, 20000), SUPPRESS));
		post_send(&p.a, 60000, 8, 100 + i);
		COMPLETES(p.b.recv, i, DAT_DTO_SUCCESS);
		HOLDS(is_filled(p.b.mem.at, 20000, i));
		COMPLETES(p.a.request, 100 + i, DAT_DTO_SUCCESS);
	}
}

TEST("DTO-31", a_list_of_segments_is_the_consumers_after_the_post)
{
	if (provider_attr()->iov_ownership_on_return != DAT_IOV_CONSUMER)
		skip("iov_ownership_on_return is not DAT_IOV_CONSUMER");
	struct pair p = CONNECTED_PAIR();
	DAT_LMR_TRIPLET iov = segment(&p.b.mem, 0, 64);

	OK(dat_ep_post_recv(p.b.ep, 1, &iov, COOKIE(1), DEFAULT));
	memset(&iov, 0xee, sizeof(iov));
	iov = segment(&p.a.mem, 0, 64);
	fill(p.a.mem.at, 64, 1);
	OK(send_segments(&p.a, 1, &iov, 2));
	memset(&iov, 0xee, sizeof(iov));
	COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS);
	COMPLETES(p.b.recv, 1, DAT_DTO_SUCCESS);
	HOLDS(is_filled(p.b.mem.at, 64, 1));
}

TEST("DTO-32", a_message_without_a_receive_waits_or_fails)
{
	struct pair p = CONNECTED_PAIR();
	DAT_EVENT event;

	post_send(&p.a, 0, 64, 1);
	for (double end = now() + 0.3; now() < end;) {
		if (dat_evd_dequeue(p.a.request, &event) != DAT_SUCCESS)
			continue;
		EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
		EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_RECEIVER_NOT_READY);
		ENDS(p.a.conn);
		return;
	}
	post_recv(&p.b, 0, 64, 2);	/* it retries for ever */
	COMPLETES(p.b.recv, 2, DAT_DTO_SUCCESS);
	COMPLETES(p.a.request, 1, DAT_DTO_SUCCESS);
}

/* The peer waits for a receive, or ends the connection. A transport may notice that only with a later request. */
TEST("DTO-41", requests_behind_a_message_without_a_receive_complete_once)
{
	enum { N = 8 };
	struct pair p = CONNECTED_PAIR();
	DAT_DTO_COMPLETION_STATUS status = DAT_DTO_SUCCESS;
	DAT_EVENT event;
	DAT_COUNT more;

	post_send(&p.a, 0, 64, 1);
	dat_evd_wait(p.b.conn, 300000, 1, &event, &more);
	for (int i = 2; i <= N; i++)
		post_send(&p.a, 0, 64, i);
	for (int i = 1; i <= N; i++)
		post_recv(&p.b, 0, 64, i);
	for (int i = 1; i <= N; i++) {
		event = EVENT(p.a.request, DAT_DTO_COMPLETION_EVENT);
		EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, i);
		if (status != DAT_DTO_SUCCESS)
			EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
		status = event.event_data.dto_completion_event_data.status;
	}
	NO_EVENT(p.a.request);
	if (status == DAT_DTO_SUCCESS)
		return;
	ENDS(p.a.conn);
	post_send(&p.a, 0, 64, N + 1);
	COMPLETES(p.a.request, N + 1, DAT_DTO_ERR_FLUSHED);
	NO_EVENT(p.a.request);
}

TEST("DTO-42", a_message_in_front_of_one_that_is_not_sent_arrives)
{
	struct pair p = CONNECTED_PAIR();
	struct region other = a_region(a_pz(), 4096, ALL_RIGHTS);

	fill(p.a.mem.at, 4096, 1);
	for (int i = 1; i <= 3; i++)
		post_recv(&p.b, 4096 * i, 4096, i);
	post_send(&p.a, 0, 4096, 1);
	DAT_RETURN ret = send_segments(&p.a, 1, SEGMENT(&other, 0, 4096), 2);
	COMPLETES(p.a.request, 1, DAT_DTO_SUCCESS);
	COMPLETES(p.b.recv, 1, DAT_DTO_SUCCESS);
	HOLDS(is_filled(p.b.mem.at + 4096, 4096, 1));
	if (ret == DAT_SUCCESS) {
		EVENT(p.a.request, DAT_DTO_COMPLETION_EVENT);
		return;
	}
	FAILS(ret, DAT_PROTECTION_VIOLATION);
	post_send(&p.a, 0, 4096, 3);
	COMPLETES(p.a.request, 3, DAT_DTO_SUCCESS);
	COMPLETES(p.b.recv, 2, DAT_DTO_SUCCESS);
}

#define EPS 8
#define POSTS 300
struct eight {
	struct pair p[EPS];
	_Atomic int done[EPS];
};

static void write_on(void *arg, int me)
{
	struct eight *e = arg;

	for (int i = 0; i < POSTS; i++) {
		UNTIL(i - e->done[me] < 16, "a write to complete");
		post_write(&e->p[me].a, 0, 64, &e->p[me].b.mem, 0, me * 1000 + i);
	}
}

static void *crew_of_eight(void *arg)
{
	crew(EPS, write_on, arg);
	return NULL;
}

TEST("DTO-33", of_eight_eps_on_one_evd_every_completion_comes_once)
{
	static struct eight e;
	DAT_EVD_HANDLE evd = an_evd_of(EPS * 16, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG);
	pthread_t thread;

	for (int i = 0; i < EPS; i++)
		e.p[i] = CONNECTED_PAIR(.request = evd);
	pthread_create(&thread, NULL, crew_of_eight, &e);
	for (int i = 0; i < EPS * POSTS; i++) {
		DAT_EVENT event = EVENT(evd, DAT_DTO_COMPLETION_EVENT);
		DAT_DTO_COMPLETION_EVENT_DATA *done = &event.event_data.dto_completion_event_data;
		int who = (int)done->user_cookie.as_64 / 1000;
		HOLDS(who < EPS);
		EQUAL(done->status, DAT_DTO_SUCCESS);
		EQUAL(done->ep_handle, e.p[who].a.ep);
		EQUAL(done->user_cookie.as_64 % 1000, e.done[who]);
		e.done[who]++;
	}
	pthread_join(thread, NULL);
	NO_EVENT(evd);
}

/* --- calls of 2.0 that some registries do not export ---------------------------------------- */

TEST("DTO-34", a_send_invalidates_the_receivers_rmr)
{
	needs_rmr();
	struct pair p = CONNECTED_PAIR();
	DAT_RMR_HANDLE rmr;
	DAT_RMR_CONTEXT context;

	OPTIONAL(LATE(dat_rmr_create_for_ep)(p.b.pz, &rmr));
	OK(dat_rmr_bind(rmr, p.b.mem.lmr, SEGMENT(&p.b.mem, 0, 4096),
			DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA,
			p.b.ep, COOKIE(1), DEFAULT, &context));
	EVENT(p.b.request, DAT_RMR_BIND_COMPLETION_EVENT);
	struct region window = { .at = p.b.mem.at, .remote = context };
	post_write(&p.a, 0, 64, &window, 0, 2);
	COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS);

	post_recv(&p.b, 8192, 64, 3);
	OPTIONAL(LATE(dat_ep_post_send_with_invalidate)(p.a.ep, 1, SEGMENT(&p.a.mem, 0, 64), COOKIE(4),
							DEFAULT, DAT_TRUE, context));
	COMPLETES(p.a.request, 4, DAT_DTO_SUCCESS);
	DAT_DTO_COMPLETION_EVENT_DATA done = COMPLETES(p.b.recv, 3, DAT_DTO_SUCCESS);
	EQUAL(done.operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
	EQUAL(done.rmr_context, context);
	post_read(&p.a, 0, 64, &window, 0, 5);
	COMPLETES(p.a.request, 5, DAT_DTO_ERR_REMOTE_ACCESS);
}

TEST("DTO-35", an_rdma_read_goes_to_an_rmr)
{
	needs_rmr();
	struct pair p = CONNECTED_PAIR();
	DAT_RMR_HANDLE rmr;
	DAT_RMR_CONTEXT context;

	OK(dat_rmr_create(p.a.pz, &rmr));
	OK(dat_rmr_bind(rmr, p.a.mem.lmr, SEGMENT(&p.a.mem, 0, 4096), DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
			DAT_VA_TYPE_VA, p.a.ep, COOKIE(1), DEFAULT, &context));
	EVENT(p.a.request, DAT_RMR_BIND_COMPLETION_EVENT);
	struct region window = { .at = p.a.mem.at, .remote = context };
	fill(p.b.mem.at, 64, 1);
	OPTIONAL(LATE(dat_ep_post_rdma_read_to_rmr)(p.a.ep, TARGET(&window, 0, 64), COOKIE(2),
						    TARGET(&p.b.mem, 0, 64), DEFAULT));
	EQUAL(COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS).operation, DAT_DTO_RDMA_READ);
	HOLDS(is_filled(p.a.mem.at, 64, 1));
}
