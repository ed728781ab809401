/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send_immed.c - sends with immediate data. */
#include "pair.h"
#include <dat/dat_send_extensions.h>
#include <string.h>

#define DEFAULT DAT_COMPLETION_DEFAULT_FLAG

static void send_immediate(const struct end *end, size_t length, uint64_t cookie, DAT_UINT32 data)
{
	OK(dat_ep_post_send_immed(end->ep, length ? 1 : 0, SEGMENT(&end->mem, 0, length),
				  COOKIE(cookie), data, DEFAULT));
}

static void expect_immediate(DAT_EVD_HANDLE evd, uint64_t cookie, size_t length, DAT_UINT32 data)
{
	DAT_EVENT event = EVENT(evd, DAT_IB_DTO_EVENT);
	const DAT_IB_EXTENSION_EVENT_DATA *extension =
		(const DAT_IB_EXTENSION_EVENT_DATA *)event.event_extension_data;

	EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
	EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	EQUAL(event.event_data.dto_completion_event_data.transfered_length, length);
	EQUAL(extension->type, DAT_IB_RECV_IMMED_DATA);
	EQUAL(extension->val.immed.data, data);
}

TEST("EXT-29", a_send_carries_immediate_data)
{
	needs_attr(DAT_SEND_ATTR_IMMED);
	static const size_t lengths[] = { 1, 64, 65, 1024, 1025, 20000 };
	struct pair p = CONNECTED_PAIR();

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		DAT_DTO_COMPLETION_EVENT_DATA sent;

		post_recv(&p.b, 0, 32768, i);
		fill(p.a.mem.at, lengths[i], i);
		send_immediate(&p.a, lengths[i], 100 + i, 0x12345678 + i);
		sent = COMPLETES(p.a.request, 100 + i, DAT_DTO_SUCCESS);
		EQUAL(sent.operation, DAT_DTO_SEND);
		EQUAL(sent.transfered_length, lengths[i]);
		expect_immediate(p.b.recv, i, lengths[i], 0x12345678 + i);
		HOLDS(is_filled(p.b.mem.at, lengths[i], i));
	}
}

TEST("EXT-29", immediate_data_comes_without_a_message)
{
	needs_attr(DAT_SEND_ATTR_IMMED);
	struct pair p = CONNECTED_PAIR();

	post_recv(&p.b, 0, 64, 1);
	send_immediate(&p.a, 0, 2, 0xfeedf00d);
	expect_immediate(p.b.recv, 1, 0, 0xfeedf00d);
	COMPLETES(p.a.request, 2, DAT_DTO_SUCCESS);
}

TEST("EXT-29", sends_with_and_without_immediate_data_keep_their_order)
{
	needs_attr(DAT_SEND_ATTR_IMMED);
	struct pair p = CONNECTED_PAIR();

	for (int i = 0; i < 8; i++)
		post_recv(&p.b, 1024 * i, 1024, i);
	for (int i = 0; i < 8; i++)
		if (i % 2)
			send_immediate(&p.a, 100 + i, i, 1000 + i);
		else
			post_send(&p.a, 0, 100 + i, i);
	for (int i = 0; i < 8; i++) {
		COMPLETES(p.a.request, i, DAT_DTO_SUCCESS);
		if (i % 2)
			expect_immediate(p.b.recv, i, 100 + i, 1000 + i);
		else
			EQUAL(COMPLETES(p.b.recv, i, DAT_DTO_SUCCESS).transfered_length, 100 + i);
	}
}

TEST("EXT-29", segments_are_gathered_with_immediate_data)
{
	needs_attr(DAT_SEND_ATTR_IMMED);
	struct pair p = CONNECTED_PAIR();
	DAT_LMR_TRIPLET iov[] = { segment(&p.a.mem, 4096, 10), segment(&p.a.mem, 0, 0),
				  segment(&p.a.mem, 8192, 20) };
	char expected[30];

	fill(p.a.mem.at + 4096, 10, 1);
	fill(p.a.mem.at + 8192, 20, 2);
	memcpy(expected, p.a.mem.at + 4096, 10);
	memcpy(expected + 10, p.a.mem.at + 8192, 20);
	post_recv(&p.b, 0, 64, 1);
	OK(dat_ep_post_send_immed(p.a.ep, 3, iov, COOKIE(2), 7, DAT_COMPLETION_SUPPRESS_FLAG));
	expect_immediate(p.b.recv, 1, 30, 7);
	HOLDS(!memcmp(p.b.mem.at, expected, 30));
	NO_EVENT(p.a.request);
}

TEST("EXT-30", an_srq_receives_immediate_data)
{
	needs_srq();
	needs_attr(DAT_SEND_ATTR_IMMED);
	DAT_PZ_HANDLE pz = a_pz();
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 4, .max_recv_iov = 1,
		.low_watermark = DAT_SRQ_LW_DEFAULT };
	DAT_SRQ_HANDLE srq;

	OK(dat_srq_create(ia(), pz, &attr, &srq));
	struct pair p = CONNECTED_PAIR(.pz = pz, .srq = srq);

	OK(dat_srq_post_recv(srq, 1, SEGMENT(&p.b.mem, 0, 256), COOKIE(1)));
	send_immediate(&p.a, 200, 2, 0x80000000);
	expect_immediate(p.b.recv, 1, 200, 0x80000000);
}

TEST("EXT-31", a_send_with_immediate_data_is_checked)
{
	needs_attr(DAT_SEND_ATTR_IMMED);
	struct end end = AN_END();
	DAT_LMR_TRIPLET iov[256];

	for (int i = 0; i < 256; i++)
		iov[i] = segment(&end.mem, 0, 8);
	FAILS(dat_ep_post_send_immed(end.ep, 1, iov, COOKIE(1), 1, DEFAULT), DAT_INVALID_STATE);
	FAILS(dat_ep_post_send_immed(end.ep, 256, iov, COOKIE(1), 1, DEFAULT),
	      DAT_INVALID_PARAMETER);
	FAILS(dat_ep_post_send_immed(end.ep, 1, NULL, COOKIE(1), 1, DEFAULT),
	      DAT_INVALID_PARAMETER);
	OK(dat_ep_free(end.ep));
	FAILS(dat_ep_post_send_immed(end.ep, 1, iov, COOKIE(1), 1, DEFAULT),
	      DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);
}

TEST("EXT-31", datagrams_have_no_such_call)
{
	needs_attr(DAT_SEND_ATTR_IMMED);
	needs_attr(DAT_IB_ATTR_UD);
	DAT_EP_ATTR attr = ep_attr();

	attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	struct end end = AN_END(.attr = &attr);

	FAILS(dat_ep_post_send_immed(end.ep, 1, SEGMENT(&end.mem, 0, 8), COOKIE(1), 1, DEFAULT),
	      DAT_INVALID_PARAMETER);
}

TEST("EXT-31", an_ia_without_immediate_data_says_so)
{
	if (named_attr(DAT_SEND_ATTR_IMMED))
		skip("there is immediate data");
	struct end end = AN_END();

	FAILS(dat_ep_post_send_immed(end.ep, 1, SEGMENT(&end.mem, 0, 8), COOKIE(1), 1, DEFAULT),
	      DAT_NOT_IMPLEMENTED);
}
