/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One direction of a connection in shared memory: bytes, epochs, growth, and a peer that stores what cannot be. */
#include "sock/ring.h"
#include "test/unit/unit.h"

enum { MAX = 4 * RING_MIN };

static struct ring ring;
static char data[MAX];
static struct ring_sender s;
static struct ring_receiver r;
static bool broken;

UNIT_FIXTURE(open_ring)
{
	memset(&ring, 0, sizeof ring);
	memset(data, 0, sizeof data);
	ring_sender_init(&s, &ring, data, MAX);
	ring_receiver_init(&r, &ring, data, MAX);
	broken = false;
}

/* An epoch that both ends are in. */
UNIT_FIXTURE(open_epoch)
{
	open_ring(state);
	ring_begin(&s, 0);
	ring_enter(&r, &broken);
}

static size_t put(const char *text)
{
	struct iovec iov = { (void *)text, strlen(text) };

	return ring_write(&s, &iov, 1, 0, iov.iov_len, &broken);
}

static size_t put_bytes(size_t length)
{
	char *bytes = calloc(1, length);
	struct iovec iov = { bytes, length };
	size_t n = ring_write(&s, &iov, 1, 0, length, &broken);

	free(bytes);
	return n;
}

static size_t drop_bytes(size_t length)
{
	return ring_read(&r, NULL, 0, 0, length, &broken);
}

static char text[64];

static const char *get(size_t length)
{
	struct iovec iov = { text, sizeof text - 1 };

	text[ring_read(&r, &iov, 1, 0, length, &broken)] = 0;
	return text;
}

#define IN_EPOCH(f) UNIT_TEST_WITH(f, open_epoch, NULL)

IN_EPOCH(vector_is_filled_from_an_offset)
{
	char a[3] = "..", b[5] = "....";
	struct iovec iov[2] = { { a, 2 }, { b, 4 } };

	put("12345");
	assert_int_equal(ring_read(&r, iov, 2, 1, 4, &broken), 4);
	assert_string_equal(a, ".1");
	assert_string_equal(b, "234.");
}

IN_EPOCH(peek_takes_nothing)
{
	struct iovec iov = { text, 3 };

	put("abcdef");
	assert_int_equal(ring_peek(&r, &iov, 1, 0, 3, &broken), 3);
	assert_memory_equal(text, "abc", 3);
	assert_string_equal(get(6), "abcdef");
}

IN_EPOCH(bytes_wrap_at_the_end)
{
	assert_int_equal(put_bytes(RING_MIN - 3), RING_MIN - 3);
	assert_int_equal(drop_bytes(RING_MIN), RING_MIN - 3);
	assert_int_equal(put("abcdef"), 6);
	assert_memory_equal(data, "def", 3);
	assert_string_equal(get(9), "abcdef");
}

IN_EPOCH(full_ring_takes_no_more)
{
	assert_int_equal(put_bytes(RING_MIN + 10), RING_MIN);
	assert_int_equal(put("x"), 0);
	assert_false(ring_is_writable(&s));
	drop_bytes(5);
	assert_int_equal(put("123456"), 5);
	assert_false(broken);
}

IN_EPOCH(ring_grows_only_when_it_is_empty)
{
	put_bytes(RING_MIN);
	s.wish = 2 * s.size;
	assert_int_equal(put("x"), 0);
	drop_bytes(RING_MIN);
	assert_int_equal(put_bytes(MAX), 2 * RING_MIN);
	assert_int_equal(drop_bytes(MAX), 2 * RING_MIN);
	assert_false(broken);
}

IN_EPOCH(ring_shrinks_only_when_it_is_empty)
{
	s.wish = 2 * RING_MIN;
	put_bytes(MAX);
	s.wish = RING_MIN;
	drop_bytes(RING_MIN);
	assert_int_equal(put_bytes(MAX), RING_MIN);
	drop_bytes(2 * RING_MIN);
	assert_int_equal(put_bytes(MAX), RING_MIN);
	assert_int_equal(drop_bytes(MAX), RING_MIN);
	assert_false(broken);
}

IN_EPOCH(ring_does_not_grow_beyond_its_memory)
{
	for (int i = 0; i < 5; i++) {
		s.wish = 2 * s.size;
		put_bytes(MAX);
		drop_bytes(MAX);
	}
	assert_int_equal(s.size, MAX);
	assert_int_equal(put_bytes(2 * MAX), MAX);
}

IN_EPOCH(unclaimed_bytes_come_back)
{
	struct iovec pieces[2];

	put("abcdef");
	get(2);
	assert_int_equal(ring_revoke(&s, pieces, &broken), 4);
	assert_memory_equal(pieces[0].iov_base, "cdef", 4);
	assert_int_equal(pieces[0].iov_len + pieces[1].iov_len, 4);
	assert_int_equal(ring_available(&r, &broken), 0);
	assert_string_equal(get(9), "");
	assert_true(ring_is_revoked(&r));
	assert_false(broken);
}

IN_EPOCH(revoked_bytes_around_the_end_are_two_pieces)
{
	struct iovec pieces[2];

	put_bytes(RING_MIN - 2);
	drop_bytes(RING_MIN);
	put("abcd");
	assert_int_equal(ring_revoke(&s, pieces, &broken), 4);
	assert_int_equal(pieces[0].iov_len, 2);
	assert_int_equal(pieces[1].iov_len, 2);
	assert_memory_equal(pieces[0].iov_base, "ab", 2);
	assert_memory_equal(pieces[1].iov_base, "cd", 2);
}

IN_EPOCH(epoch_begins_after_the_last_one_was_left)
{
	struct iovec pieces[2];

	assert_false(ring_can_begin(&s));
	put("ab");
	ring_revoke(&s, pieces, &broken);
	assert_false(ring_can_begin(&s));
	ring_leave(&r, &broken);
	assert_true(ring_can_begin(&s));
	assert_false(ring_has_epoch(&r));
	ring_begin(&s, 77);
	assert_true(ring_has_epoch(&r));
	assert_int_equal(ring_enter(&r, &broken), 77);
	put("cd");
	assert_string_equal(get(9), "cd");
	assert_false(broken);
}

IN_EPOCH(wake_up_is_asked_for_once)
{
	assert_false(ring_take_wish(&ring.asleep));
	ring_ask(&ring.asleep);
	assert_true(ring_take_wish(&ring.asleep));
	assert_false(ring_take_wish(&ring.asleep));
}

IN_EPOCH(room_is_told_when_half_is_free)
{
	put_bytes(RING_MIN);
	ring_ask(&ring.full);
	drop_bytes(RING_MIN / 2 - 1);
	assert_false(ring_take_room_wish(&r));
	drop_bytes(1);
	assert_true(ring_take_room_wish(&r));
	assert_false(ring_take_room_wish(&r));
}

/* A peer that lies. */

IN_EPOCH(tail_beyond_the_ring_is_an_error)
{
	ring.tail = RING_MIN + 1;
	assert_int_equal(ring_available(&r, &broken), 0);
	assert_true(broken);
}

IN_EPOCH(tail_before_the_claim_is_an_error)
{
	put("abc");
	get(3);
	ring.tail = 2;
	assert_string_equal(get(9), "");
	assert_true(broken);
}

IN_EPOCH(size_beyond_the_memory_is_an_error)
{
	put("abc");
	ring.size = 2 * MAX;
	assert_string_equal(get(9), "");
	assert_true(broken);
}

IN_EPOCH(odd_sizes_are_errors)
{
	static const uint32_t sizes[] = { 0, 3, RING_MIN - 1, RING_MIN + 1, UINT32_MAX };

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		broken = false;
		put("abc");
		ring.size = sizes[i];
		assert_string_equal(get(9), "");
		assert_true(broken);
	}
}

IN_EPOCH(any_base_stays_within_the_ring)
{
	static char taken[RING_MIN];
	struct iovec iov = { taken, sizeof taken };

	put_bytes(RING_MIN);
	ring.base = UINT64_MAX - 12345;
	memset(data + RING_MIN, 'x', MAX - RING_MIN);
	assert_int_equal(ring_read(&r, &iov, 1, 0, sizeof taken, &broken), RING_MIN);
	assert_null(memchr(taken, 'x', sizeof taken));
}

IN_EPOCH(claim_of_the_peer_is_an_error)
{
	put("abc");
	ring.claim = 1;
	assert_string_equal(get(9), "");
	assert_true(broken);
}

UNIT_TEST_WITH(epoch_at_another_claim_is_an_error, open_ring, NULL)
{
	ring.claim = 5, ring.epoch = 2;
	ring_enter(&r, &broken);
	assert_true(broken);
}

IN_EPOCH(revocation_of_read_bytes_is_an_error)
{
	put("abc");
	get(3);
	ring.claim = 1 | RING_REVOKED;
	ring_leave(&r, &broken);
	assert_true(broken);
}

IN_EPOCH(head_beyond_the_tail_is_an_error)
{
	put("abc");
	ring.head = 4;
	assert_true(ring_is_writable(&s)); /* so that a thread which waits for room finds the error */
	assert_int_equal(ring_room(&s, &broken), 0);
	assert_true(broken);
}

IN_EPOCH(head_far_before_the_tail_is_an_error)
{
	put_bytes(RING_MIN);
	ring.head = 0ull - RING_MIN;
	assert_true(ring_is_writable(&s));
	assert_int_equal(put("x"), 0);
	assert_true(broken);
}

IN_EPOCH(claims_that_cannot_be_give_no_bytes_back)
{
	struct iovec pieces[2] = { { 0 } };

	put("abc");
	ring.claim = 4;
	assert_int_equal(ring_revoke(&s, pieces, &broken), 0);
	assert_true(broken);
	assert_int_equal(pieces[0].iov_len + pieces[1].iov_len, 0);
}

IN_EPOCH(claim_before_the_head_leaves_no_room_twice)
{
	struct iovec pieces[2];

	put_bytes(100);
	drop_bytes(100);
	assert_int_equal(ring_room(&s, &broken), RING_MIN);
	ring.claim = 40;
	ring_revoke(&s, pieces, &broken);
	ring_begin(&s, 0);
	assert_int_equal(put_bytes(MAX), 0);
	assert_true(broken);
}

UNIT_MAIN(NULL, NULL)
