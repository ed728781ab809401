/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* foreign_handshake.c - the MPA exchange with another implementation: Requests and Replies, good and
 * bad, of both revisions, and which end sends first. */
#include <poll.h>
#include "test/unit/soft/foreign_peer.h"
#include "test/unit/soft/foreign_tests.h"
#include "test/unit/unit.h"

void bad_replies_fail_the_connection(void **state)
{
	struct sockaddr_in at;
	struct dapl_conn_params p;
	struct wire_mpa mpa;
	uint8_t pdata[600];
	size_t n;
	int l;

	for (int kind = 0; kind < 5; kind++) {
		struct upcall up;
		reset_foreign_peer(false);
		open_device_end();
		l = listen_for_device(&at);
		p = params(&at);
		OK(ops->connect(we.dev, &p, &we.conn));
		peer_socket = accept(l, NULL, NULL);
		assert_true(get_mpa(false, &mpa, pdata, &n));
		switch (kind) {
		case 0:		/* rejected, with data */
			put_mpa(true, WIRE_MPA_S | WIRE_MPA_REJECT, 2, &four_reads, "no", 3);
			break;
		case 1:		/* markers wanted */
			put_mpa(true, WIRE_MPA_S | WIRE_MPA_MARKERS, 2, &four_reads, "", 0);
			break;
		case 2:		/* no Reply at all */
			put_mpa(false, WIRE_MPA_S, 2, &four_reads, "", 0);
			break;
		case 3:		/* the end without a Reply: once more with revision 1 */
			close(peer_socket);
			peer_socket = accept(l, NULL, NULL);
			assert_true(get_mpa(false, &mpa, pdata, &n));
			assert_int_equal(mpa.revision, 1);
			assert_int_equal(mpa.flags, 0);
			close(peer_socket);
			peer_socket = -1;
			break;
		case 4:		/* claims to be this implementation, but has no trailer */
			put_mpa(true, WIRE_MPA_S | WIRE_DAPL_REPLY, 2, &four_reads, "", 0);
			break;
		}
		up = await(FAILED);
		assert_int_equal(up.failure, kind ? DAPL_CONN_REFUSED : DAPL_CONN_REJECTED);
		if (!kind)
			assert_string_equal(up.pdata, "no");
		close(l);
		foreign_peer_down();
	}
}

void peer_to_peer_and_revision_1_connect(void **state)
{
	struct wire_mpa want = { .p2p = true, .p2p_write = true, .p2p_read = true, .ird = 4,
		.ord = 4 }, mpa;
	uint8_t ulpdu[65536];
	uint16_t n;

	reset_foreign_peer(false);
	open_device_end();
	mpa = passive_up(WIRE_MPA_S, 2, &want);
	assert_true(mpa.p2p && mpa.p2p_write && !mpa.p2p_read && !mpa.p2p_send);
	post(1, IBV_WR_SEND, 0, 10, 0, 0);
	put_segment((struct wire_segment){ .tagged = true, .last = true, .op = WIRE_WRITE }, "", 0);
	completion(1, 0);
	assert_true(get_fpdu(ulpdu, &n));
	foreign_peer_down();

	reset_foreign_peer(true);
	open_device_end();
	passive_up(WIRE_MPA_CRC, 1, NULL);
	talk();
	foreign_peer_down();
}

/* In DAT the acceptor may send first, to an initiator that waits for its data. If the
 * initiator announced a frame, the acceptor waits for it. */
void acceptor_may_send_first(void **state)
{
	struct wire_mpa promise = { .p2p = true, .p2p_write = true, .ird = 4, .ord = 4 };
	struct pollfd in = { .events = POLLIN };
	uint8_t ulpdu[65536];
	uint16_t n;

	foreign_peer_up(true);
	post(1, IBV_WR_SEND, 0, 10, 0, 0);
	assert_true(get_fpdu(ulpdu, &n));
	assert_int_equal(ulpdu[1], 0x43);
	completion(1, 0);
	post_recv(2, 0, 8);
	put_segment(send_seg(1, 0, true), "x", 1);
	completion(2, 0);
	foreign_peer_down();

	reset_foreign_peer(false);
	open_device_end();
	passive_up(WIRE_MPA_S, 2, &promise);
	post(1, IBV_WR_SEND, 0, 10, 0, 0);
	in.fd = peer_socket;
	assert_int_equal(poll(&in, 1, 300), 0);
	put_segment((struct wire_segment){ .tagged = true, .last = true, .op = WIRE_WRITE }, "", 0);
	completion(1, 0);
	foreign_peer_down();
}

/* --- tests: bad Requests ----------------------------------------------------------- */

void bad_requests_are_refused(void **state)
{
	static const struct wire_mpa send_only = { .p2p = true, .p2p_send = true };
	uint8_t pdata[600], junk[1024];
	struct wire_mpa mpa;
	size_t n;

	reset_foreign_peer(false);
	open_device_end();
	/* with a Reply that says so */
	for (int kind = 0; kind < 2; kind++) {
		dial();
		if (!kind)
			put_mpa(false, WIRE_MPA_S | WIRE_MPA_MARKERS, 2, &four_reads, "", 0);
		else
			put_mpa(false, WIRE_MPA_S, 2, &send_only, "", 0);
		assert_true(get_mpa(true, &mpa, pdata, &n));
		assert_true(mpa.flags & WIRE_MPA_REJECT);
		assert_false(get(pdata, 1));
		close(peer_socket);
	}
	/* with the end of the connection */
	for (int kind = 0; kind < 5; kind++) {
		dial();
		memset(junk, 'x', sizeof junk);
		switch (kind) {
		case 0:
			put(junk, 20);
			break;
		case 1:
			put_mpa(true, 0, 2, NULL, "", 0);
			break;
		case 2:
			put_mpa(false, 0, 3, NULL, "", 0);
			break;
		case 3:		/* enhanced data promised, not there */
			put_mpa(false, WIRE_MPA_S, 2, NULL, "ab", 2);
			break;
		case 4:		/* too long */
			put_mpa(false, 0, 1, NULL, junk, 513);
			break;
		}
		assert_false(get(pdata, 1));
		close(peer_socket);
	}
	assert_int_equal(upcall_count(REQUEST, NULL), 0);
	foreign_peer_down();
}
