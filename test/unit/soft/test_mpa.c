/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_mpa.c - MPA frames of a handshake on a socket: what follows them, and malformed ones. */
#include "dapl/soft/cm/mpa.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/wire/wire.h"
#include "test/unit/unit.h"

static struct dapl_device dev;
static struct soft_cm_conn receiver_cm;
static struct dapl_conn sender, receiver;
static bool no_memory;

UNIT_FAIL_MALLOC(no_memory)

/* Each case runs with the progress lock held. */
UNIT_FIXTURE(set_up)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	sender = (struct dapl_conn){ .dev = &dev, .fd = fds[0] };
	receiver_cm = (struct soft_cm_conn){ .frame = receiver_cm.short_frame, .frame_need = WIRE_MPA_HEADER };
	no_memory = false;
	receiver = (struct dapl_conn){ .dev = &dev, .fd = fds[1], .passive = true, .cm = &receiver_cm };
	dapl_mutex_init(&dev.progress_lock, RANK_SOFT_PROGRESS);
	dapl_mutex_lock(&dev.progress_lock);
}

UNIT_FIXTURE(tear_down)
{
	dapl_mutex_unlock(&dev.progress_lock);
	close(sender.fd);
	close(receiver.fd);
	if (receiver_cm.frame != receiver_cm.short_frame)
		free(receiver_cm.frame);
}

static const struct wire_mpa enhanced = { .flags = WIRE_MPA_S | WIRE_MPA_CRC, .revision = 2, .p2p = true,
	.p2p_write = true, .ird = 3, .ord = 5 };
static const struct wire_mpa plain = { .flags = WIRE_MPA_CRC, .revision = 1 };

UNIT_CASE(only_a_frame_with_much_private_data_takes_memory)
{
	uint8_t data[WIRE_PDATA_MAX] = { [0] = 1, [WIRE_TRAILER] = 2, [WIRE_PDATA_MAX - 1] = 3 };
	const uint8_t *got;
	size_t length;

	no_memory = true;
	assert_true(mpa_send(&sender, &enhanced, NULL, data, WIRE_TRAILER));
	assert_int_equal(mpa_receive(&receiver), GOT_ALL);
	receiver_cm.frame_length = 0;
	receiver_cm.frame_need = WIRE_MPA_HEADER;
	no_memory = false;
	assert_true(mpa_send(&sender, &enhanced, NULL, data, sizeof data));
	assert_int_equal(mpa_receive(&receiver), GOT_ALL);
	got = mpa_data(&receiver, &length);
	assert_int_equal(length, sizeof data);
	assert_memory_equal(got, data, sizeof data);
}

UNIT_CASE(frame_without_memory_is_bad)
{
	uint8_t data[WIRE_TRAILER + 1] = { 0 };

	no_memory = true;
	assert_true(mpa_send(&sender, &enhanced, NULL, data, sizeof data));
	assert_int_equal(mpa_receive(&receiver), GOT_BAD);
	assert_int_equal(receiver.stream.io_error, ENOMEM);
}

UNIT_CASE(stream_behind_the_frame_stays_in_the_socket)
{
	char next[8];

	assert_true(mpa_send(&sender, &plain, NULL, "abc", 3));
	assert_int_equal(send(sender.fd, "FPDU", 4, 0), 4);
	assert_int_equal(mpa_receive(&receiver), GOT_ALL);
	assert_int_equal(recv(receiver.fd, next, sizeof next, 0), 4);
	assert_memory_equal(next, "FPDU", 4);
}

UNIT_CASE(end_within_a_frame_is_bad)
{
	uint8_t bytes[WIRE_MPA_MAX];
	ssize_t length;

	assert_true(mpa_send(&sender, &enhanced, NULL, "hello", 5));
	length = recv(receiver.fd, bytes, sizeof bytes, 0);
	assert_int_equal(send(sender.fd, bytes, length - 1, 0), length - 1);
	shutdown(sender.fd, SHUT_WR);
	assert_int_equal(mpa_receive(&receiver), GOT_BAD);
	assert_int_equal(receiver.stream.io_error, 0);
}

UNIT_CASE(end_before_a_frame_is_an_end)
{
	shutdown(sender.fd, SHUT_WR);
	assert_int_equal(mpa_receive(&receiver), GOT_END);
}

UNIT_CASE(reply_in_place_of_a_request_is_bad)
{
	receiver.passive = false;	/* it waits for a reply */
	assert_true(mpa_send(&sender, &plain, NULL, NULL, 0));
	assert_int_equal(mpa_receive(&receiver), GOT_BAD);
}

UNIT_CASE(length_beyond_the_buffer_is_bad)
{
	static const struct {
		uint16_t length;
		enum mpa_got got;
	} rows[] = { { 512, GOT_PART }, { 513, GOT_BAD }, { UINT16_MAX, GOT_BAD } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct wire_mpa mpa = plain;
		uint8_t header[WIRE_MPA_HEADER];

		mpa.length = rows[i].length;
		wire_mpa_put(header, &mpa);
		receiver.cm->frame_length = 0;
		receiver.cm->frame_need = WIRE_MPA_HEADER;
		assert_int_equal(send(sender.fd, header, sizeof header, 0), sizeof header);
		assert_int_equal(mpa_receive(&receiver), rows[i].got);
	}
}

/* Enhanced data exists from revision 2 on, and takes four bytes. */
UNIT_CASE(enhanced_data_must_be_there)
{
	size_t length;

	receiver.cm->mpa = enhanced;
	receiver.cm->mpa.length = WIRE_MPA_ENHANCED - 1;
	assert_null(mpa_data(&receiver, &length));
	receiver.cm->mpa.length = WIRE_MPA_ENHANCED;
	assert_non_null(mpa_data(&receiver, &length));
	assert_int_equal(length, 0);
	receiver.cm->mpa.revision = 1;
	receiver.cm->mpa.length = WIRE_MPA_ENHANCED;
	assert_null(mpa_data(&receiver, &length));
}

UNIT_CASE(socket_that_is_full_takes_nothing)
{
	char filler[4096] = { 0 };

	while (send(sender.fd, filler, sizeof filler, 0) > 0)
		;
	assert_false(mpa_send(&sender, &plain, NULL, "abc", 3));
	assert_int_equal(errno, EAGAIN);
}

UNIT_MAIN(NULL, NULL)
