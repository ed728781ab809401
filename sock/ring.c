/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring.c - moves bytes through a ring in shared memory, and begins and ends its epochs. See ring.h. */
#include "sock/ring.h"
#include <string.h>

#define LOAD(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define LOAD_ACQUIRE(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define STORE_RELEASE(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

void ring_sender_init(struct ring_sender *s, struct ring *ring, char *data, uint32_t max)
{
	*s = (struct ring_sender){ .ring = ring, .data = data, .max = max, .size = max < RING_MIN ? max : RING_MIN };
	STORE(&ring->size, s->size);
}

void ring_receiver_init(struct ring_receiver *r, struct ring *ring, const char *data, uint32_t max)
{
	*r = (struct ring_receiver){ .ring = ring, .data = data, .max = max };
}

bool ring_can_begin(const struct ring_sender *s)
{
	return !s->active && LOAD_ACQUIRE(&s->ring->ack) == s->epoch;
}

void ring_begin(struct ring_sender *s, uint64_t sent_over_tcp)
{
	s->active = true;
	STORE(&s->ring->start, sent_over_tcp);
	STORE(&s->ring->claim, s->tail);
	STORE_RELEASE(&s->ring->epoch, ++s->epoch);
}

size_t ring_room(struct ring_sender *s, bool *broken)
{
	uint64_t used;

	s->head = LOAD_ACQUIRE(&s->ring->head);
	used = s->tail - s->head;
	if (used > s->size) {
		*broken = true;
		return 0;
	}
	if (s->wish && !used) {
		if (s->wish <= s->max) {
			s->size = s->wish;
			s->base = s->tail;
			STORE(&s->ring->size, s->size);
			STORE(&s->ring->base, s->base);
		}
		s->wish = 0;
	}
	return s->size - used;
}

/* Copies between `length` bytes at `position` of the ring and the vector from `offset` on. */
static void copy(char *data, uint32_t size, uint64_t index, const struct iovec *iov, int count, size_t offset,
		 size_t length, bool to_ring)
{
	for (int i = 0; i < count && length; i++) {
		size_t n;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		n = iov[i].iov_len - offset;
		if (n > length)
			n = length;
		length -= n;
		for (char *p = (char *)iov[i].iov_base + offset; n;) {
			size_t at = index & (size - 1), piece = size - at;

			if (piece > n)
				piece = n;
			if (to_ring)
				memcpy(data + at, p, piece);
			else
				memcpy(p, data + at, piece);
			p += piece, n -= piece, index += piece;
		}
		offset = 0;
	}
}

size_t ring_write(struct ring_sender *s, const struct iovec *iov, int count, size_t offset, size_t length, bool *broken)
{
	uint64_t used = s->tail - s->head;
	size_t room = used <= s->size ? s->size - used : 0;

	if (room < length)
		room = ring_room(s, broken);
	if (room < length)
		length = room;
	if (!length)
		return 0;
	copy(s->data, s->size, s->tail - s->base, iov, count, offset, length, true);
	s->tail += length;
	STORE_RELEASE(&s->ring->tail, s->tail);
	return length;
}

size_t ring_revoke(struct ring_sender *s, struct iovec pieces[2], bool *broken)
{
	uint64_t claim = __atomic_fetch_or(&s->ring->claim, RING_REVOKED, __ATOMIC_ACQ_REL);
	size_t length = s->tail - claim, at = (claim - s->base) & (s->size - 1);

	s->active = false;
	pieces[0] = pieces[1] = (struct iovec){ 0 };
	if (length > s->size) {
		*broken = true;
		return 0;
	}
	pieces[0] = (struct iovec){ s->data + at, length < s->size - at ? length : s->size - at };
	pieces[1] = (struct iovec){ s->data, length - pieces[0].iov_len };
	s->tail = claim;
	STORE_RELEASE(&s->ring->tail, s->tail);
	return length;
}

bool ring_has_epoch(const struct ring_receiver *r)
{
	return LOAD_ACQUIRE(&r->ring->epoch) != r->epoch;
}

uint64_t ring_enter(struct ring_receiver *r, bool *broken)
{
	r->epoch = LOAD_ACQUIRE(&r->ring->epoch);
	r->active = true;
	if ((LOAD(&r->ring->claim) & ~RING_REVOKED) != r->claim)
		*broken = true;
	return LOAD(&r->ring->start);
}

bool ring_is_revoked(const struct ring_receiver *r)
{
	return LOAD_ACQUIRE(&r->ring->claim) & RING_REVOKED;
}

void ring_leave(struct ring_receiver *r, bool *broken)
{
	if ((LOAD(&r->ring->claim) & ~RING_REVOKED) != r->claim)
		*broken = true;
	r->active = false;
	STORE_RELEASE(&r->ring->ack, r->epoch);
}

/* What the sender has stored, each word read once: it may change at any time. */
struct view {
	size_t length; /* bytes that can be read */
	uint64_t base;
	uint32_t size;
};

static struct view look(const struct ring_receiver *r, bool *broken)
{
	uint64_t n = LOAD_ACQUIRE(&r->ring->tail) - r->claim;
	struct view v = { 0, LOAD(&r->ring->base), LOAD(&r->ring->size) };

	if (!n || ring_is_revoked(r))
		return v;
	if (n <= v.size && v.size <= r->max && !(v.size & (v.size - 1)))
		v.length = n;
	else
		/* A revocation lowers the tail; it may have come between the two looks. */
		*broken = !ring_is_revoked(r);
	return v;
}

size_t ring_available(const struct ring_receiver *r, bool *broken)
{
	return look(r, broken).length;
}

size_t ring_read(struct ring_receiver *r, const struct iovec *iov, int count, size_t offset, size_t length,
		 bool *broken)
{
	struct view v = look(r, broken);
	size_t n = v.length < length ? v.length : length;
	uint64_t expected = r->claim;

	if (!n)
		return 0;
	if (!__atomic_compare_exchange_n(&r->ring->claim, &expected, r->claim + n, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE)) {
		*broken = expected != (r->claim | RING_REVOKED);
		return 0;
	}
	if (iov)
		copy((char *)r->data, v.size, r->claim - v.base, iov, count, offset, n, false);
	r->claim += n;
	STORE_RELEASE(&r->ring->head, r->claim);
	return n;
}

size_t ring_peek(const struct ring_receiver *r, const struct iovec *iov, int count, size_t offset, size_t length,
		 bool *broken)
{
	struct view v = look(r, broken);
	size_t n = v.length < length ? v.length : length;

	if (n)
		copy((char *)r->data, v.size, r->claim - v.base, iov, count, offset, n, false);
	return n;
}

bool ring_is_writable(const struct ring_sender *s)
{
	uint64_t used = s->tail - LOAD_ACQUIRE(&s->ring->head);

	/* A head that cannot be makes it writable: the write finds the error. */
	return used <= s->size / 3 * 2ull || used > s->size;
}

void ring_ask(uint32_t *flag)
{
	STORE(flag, 1);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool ring_take_wish(uint32_t *flag)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return LOAD(flag) && __atomic_exchange_n(flag, 0, __ATOMIC_ACQ_REL);
}

bool ring_take_room_wish(const struct ring_receiver *r)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!LOAD(&r->ring->full) || LOAD(&r->ring->tail) - r->claim > LOAD(&r->ring->size) / 2)
		return false;
	return __atomic_exchange_n(&r->ring->full, 0, __ATOMIC_ACQ_REL);
}
