/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shared.c - raw endpoints that receive from a shared receive queue. */
#include "wire.h"
#include <string.h>
#include <unistd.h>

enum { LENGTH = 100, ROOM = 256, BUFFERS = 16 };

static struct wire w;
static DAT_SRQ_HANDLE srq;
static DAT_EP_HANDLE eps[2];

static void make_endpoint(int i)
{
	DAT_EP_ATTR attr = wire_attr();

	attr.max_recv_dtos = attr.max_recv_iov = 0;
	OK(dat_ep_create_with_srq(w.ia, w.pz, w.recv, w.request, DAT_HANDLE_NULL, srq, &attr, &eps[i]));
}

/* Frames whose source ends with i go to endpoint i. */
static void add_rule(int i)
{
	DAT_ETH_RULE rule = wire_any();

	rule.key.src[5] = (uint8_t)i;
	rule.mask.src[5] = 0xff;
	rule.tag = 40 + (DAT_UINT32)i;
	w.ep = eps[i];
	wire_rule(&w, &rule);
}

static void open_shared(void)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = BUFFERS, .max_recv_iov = 1 };

	wire_open(&w);
	OK(dat_srq_create(w.ia, w.pz, &attr, &srq));
	for (int i = 0; i < 2; i++) {
		make_endpoint(i);
		add_rule(i);
	}
}

static void post(unsigned buffer)
{
	DAT_LMR_TRIPLET iov = { .lmr_context = w.context, .segment_length = ROOM,
		.virtual_address = (uintptr_t)w.memory + buffer * ROOM };

	OK(dat_srq_post_recv(srq, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = buffer }));
}

static void send_to(int i, unsigned seed)
{
	uint8_t frame[LENGTH];

	wire_frame(&w, frame, LENGTH, seed);
	frame[11] = (uint8_t)i;
	wire_send(&w, frame, LENGTH);
}

/* The next frame must be for endpoint i. Returns its buffer, which is one of the queue. */
static unsigned expect_frame(int i, unsigned seed)
{
	DAT_EVENT event = wire_event(w.recv, DAT_ETH_DTO_EVENT);
	const DAT_DTO_COMPLETION_EVENT_DATA *done = &event.event_data.dto_completion_event_data;
	const DAT_ETH_FRAME *got = (const DAT_ETH_FRAME *)event.event_extension_data;
	unsigned buffer = (unsigned)done->user_cookie.as_64;
	uint8_t frame[LENGTH];

	wire_frame(&w, frame, LENGTH, seed);
	frame[11] = (uint8_t)i;
	EXPECT(done->status == DAT_DTO_SUCCESS && done->ep_handle == eps[i] && done->transfered_length == LENGTH);
	EXPECT(got->tag == 40 + (DAT_UINT32)i && got->length == LENGTH && got->wire_length == LENGTH && got->time);
	EXPECT(!memcmp(w.memory + buffer * ROOM, frame, LENGTH));
	return buffer;
}

static void ETH_30_endpoints_share_receives(void)
{
	open_shared();
	for (unsigned i = 0; i < BUFFERS; i++)
		post(i);
	for (unsigned i = 0; i < 300; i++) {
		send_to((int)(i * 7 / 3 & 1), i);
		post(expect_frame((int)(i * 7 / 3 & 1), i));
	}
	wire_close(&w);
}

/* An endpoint without a frame must not hold a receive. */
static void ETH_30_one_receive_serves_all_endpoints(void)
{
	open_shared();
	post(0);
	for (unsigned i = 0; i < 20; i++) {
		send_to((int)(i & 1), i);
		EXPECT(expect_frame((int)(i & 1), i) == 0);
		post(0);
	}
	wire_close(&w);
}

static void ETH_30_frames_wait_for_receives(void)
{
	DAT_EVENT event;

	open_shared();
	for (unsigned i = 0; i < 5; i++)
		send_to(0, i);
	usleep(20000);
	EXPECT(DAT_GET_TYPE(dat_evd_dequeue(w.recv, &event)) == DAT_QUEUE_EMPTY);
	for (unsigned i = 0; i < 5; i++) {
		post(i);
		EXPECT(expect_frame(0, i) == i);
	}
	/* many completions before the first is dequeued */
	for (unsigned i = 0; i < BUFFERS; i++)
		post(i);
	for (unsigned i = 0; i < BUFFERS; i++)
		send_to(1, 50 + i);
	for (unsigned i = 0; i < BUFFERS; i++)
		expect_frame(1, 50 + i);
	wire_close(&w);
}

static void ETH_30_the_queue_outlives_its_endpoints(void)
{
	open_shared();
	post(0);
	OK(dat_ep_disconnect(eps[0], DAT_CLOSE_ABRUPT_FLAG));
	send_to(0, 1);
	send_to(1, 2);
	expect_frame(1, 2);
	post(0);
	OK(dat_ep_reset(eps[0]));
	add_rule(0);
	send_to(0, 3);
	expect_frame(0, 3);
	OK(dat_ep_free(eps[0]));
	make_endpoint(0);
	add_rule(0);
	send_to(0, 4);
	post(1);
	EXPECT(expect_frame(0, 4) == 1);
	OK(dat_ep_free(eps[0]));
	OK(dat_ep_free(eps[1]));
	OK(dat_srq_free(srq));
	wire_close(&w);
}

static void ETH_30_no_ring_and_no_receives_of_its_own(void)
{
	DAT_NAMED_ATTR ring = { "eth_receive", "ring" }, wrong = { "eth_receive", "rings" };
	DAT_EP_ATTR attr = wire_attr();
	DAT_LMR_TRIPLET iov;
	DAT_EP_HANDLE ep;

	open_shared();
	iov = (DAT_LMR_TRIPLET){ .lmr_context = w.context, .segment_length = ROOM,
		.virtual_address = (uintptr_t)w.memory };
	EXPECT(dat_ep_post_recv(eps[0], 1, &iov, (DAT_DTO_COOKIE){ .as_64 = 0 }, DAT_COMPLETION_DEFAULT_FLAG) !=
	       DAT_SUCCESS);
	attr.ep_provider_specific_count = 1;
	attr.ep_provider_specific = &ring;
	FAILS(dat_ep_create_with_srq(w.ia, w.pz, w.recv, w.request, DAT_HANDLE_NULL, srq, &attr, &ep),
	      DAT_MODEL_NOT_SUPPORTED);
	attr.ep_provider_specific = &wrong;
	FAILS(dat_ep_create_with_srq(w.ia, w.pz, w.recv, w.request, DAT_HANDLE_NULL, srq, &attr, &ep),
	      DAT_INVALID_PARAMETER);
	wire_close(&w);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_30_endpoints_share_receives),
		CASE(ETH_30_one_receive_serves_all_endpoints),
		CASE(ETH_30_frames_wait_for_receives),
		CASE(ETH_30_the_queue_outlives_its_endpoints),
		CASE(ETH_30_no_ring_and_no_receives_of_its_own),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
