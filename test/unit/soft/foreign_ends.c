/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* foreign_ends.c - how a connection to another implementation ends: a Terminate, a disorderly end, a
 * peer that sends more than there are receives. */
#include <sys/time.h>
#include "test/unit/soft/foreign_peer.h"
#include "test/unit/soft/foreign_tests.h"
#include "test/unit/unit.h"

void terminate_of_the_peer_ends_the_connection(void **state)
{
	static const uint8_t layouts[2][4] = { { 0x01, 0x02, 0, 0 }, { 0x10, 0x02, 0x07, 0 } };
	uint8_t ulpdu[65536];
	uint16_t n;

	for (int i = 0; i < 2; i++) {
		foreign_peer_up(false);
		post_recv(1, 0, 100);
		put_segment(send_seg(1, 0, true), "a", 1);
		completion(1, 0);
		post_recv(2, 0, 100);
		post(3, IBV_WR_RDMA_READ, 0, 8, 0, 0);
		assert_true(get_fpdu(ulpdu, &n));
		put_segment((struct wire_segment){ .last = true, .op = WIRE_TERMINATE, .qn = 2,
			.msn = 1 }, layouts[i], 4);
		completion(3, IBV_WC_REM_ACCESS_ERR);
		completion(2, IBV_WC_WR_FLUSH_ERR);
		await(BROKEN);
		foreign_peer_down();
	}
}

void disorderly_ends_break_the_connection(void **state)
{
	struct linger reset = { 1, 0 };

	for (int kind = 0; kind < 3; kind++) {
		foreign_peer_up(kind == 2);
		post_recv(1, 0, 100);
		if (kind == 0) {
			put("\0\x20\x41", 3);		/* FIN inside an FPDU */
		} else if (kind == 1) {
			setsockopt(peer_socket, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
		} else {
			put_segment(send_seg(1, 0, false), "abc", 3);	/* inside a message */
		}
		close(peer_socket);
		await(BROKEN);
		completion(1, IBV_WC_WR_FLUSH_ERR);
		peer_socket = -1;
		foreign_peer_down();
	}
}

/* Sends of 32 KiB until there are `most` of them or the device's socket takes no more. */
static int send_without_receives(int most)
{
	static const uint8_t block[32768] = { 'b' };
	struct timeval limit = { 0, 300000 };
	int sent = 0;

	setsockopt(peer_socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	for (; sent < most; sent++) {
		uint8_t fpdu[18 + 2 + 32768 + 8] = { 0 };
		struct wire_segment seg = send_seg(sent + 1, 0, true);

		wire_put16(fpdu, 18 + 32768);
		wire_segment_put(fpdu + 2, &seg);
		memcpy(fpdu + 20, block, 32768);
		if (send(peer_socket, fpdu, 20 + 32768 + 4, MSG_NOSIGNAL) != 20 + 32768 + 4)
			break;
	}
	return sent;
}

void sends_without_receives_stop_reading(void **state)
{
	int sent, got = 0;

	foreign_peer_up(false);
	sent = send_without_receives(2000);
	assert_true(sent > 20 && sent < 2000);
	for (; got < sent; got++) {
		post_recv(got, 0, 32768);
		assert_int_equal(completion(got, 0).byte_len, 32768);
	}
	foreign_peer_down();
}

/* The device stops reading at the Send beyond 1 MiB. That Send is short, so the socket has room for the FIN
 * behind it, and the device is notified of the FIN without reading up to it. */
void end_of_a_stalled_peer_is_noticed(void **state)
{
	enum { A_MIB = 32 };

	foreign_peer_up(false);
	assert_int_equal(send_without_receives(A_MIB), A_MIB);
	put_segment(send_seg(A_MIB + 1, 0, true), "more", 4);
	OK(shutdown(peer_socket, SHUT_WR));
	await(BROKEN);
	foreign_peer_down();
}
