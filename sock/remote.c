/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote.c - streams whose ends share no memory. See remote.h.
 *
 * Messages of a stream; `epoch` is the number that the sender of a direction gives to each of its epochs:
 *
 *	OPEN	a, b: key; c: bytes of a ring		asker
 *	RING	a: address, b: RMR context, c: bytes	both, before and after OPEN's answer
 *	OPENED						answerer, which is attached
 *	NO	a: DAT_SOCKET_WHY_*			answerer
 *	MOVE	a: bytes sent over TCP, b: position of the ring, c: epoch. Bytes from here on wait in the sender's ring
 *	AGREE	c: epoch. The receiver has read TCP up to there
 *	CANCEL	c: epoch, which was not agreed to: its bytes come by TCP, without a frame
 *	NOTICE	a: tail, c: epoch. RDMA has written the bytes before. b: as a of TAKEN, for the other direction, if
 *		flags are the last byte of the number of its epoch
 *	TAKEN	a: head, c: epoch
 *	ENDED	c: epoch. The frame is under way: a hint, since a receiver finds it by itself when it reads on
 *	LEFT	c: epoch. The receiver has taken the frame: another epoch may begin
 *	SYNC	a: tail, c: epoch. SYNCED answers that all bytes before are in the receiver's ring
 *	BACK	ends the peer's epoch; BACKED answers that it has ended
 *	CLOSE	a, c: as of TAKEN. Nothing more is written; CLOSED answers that all of the peer's writes were before
 *
 * When the link breaks, a sender that got AGREE sends the frame, one that did not sends none. A receiver that sent
 * AGREE and got no NOTICE does not know which: it looks whether what comes on TCP is the frame, which begins with the
 * key. */
#include "sock/remote.h"
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include "common/clock.h"
#include "sock/conn.h"
#include "sock/move.h"
#include "sock/real.h"
#include "sock/service.h"
#include "sock/settings.h"

enum message_type {
	OPEN = 1,
	RING,
	OPENED,
	NO,
	MOVE,
	AGREE,
	CANCEL,
	NOTICE,
	TAKEN,
	LEFT,
	BACK,
	BACKED,
	CLOSE,
	CLOSED,
	ENDED,
	SYNC,
	SYNCED,
};

enum state {
	EXPECTED, /* waits for OPEN with its key; no link */
	OPENING,  /* waits for the link, or for OPENED */
	ANSWERED, /* has got OPEN, waits for RING */
	ATTACHED,
	CLOSING, /* waits for CLOSED; no connection any more */
	OVER,    /* to be freed by the service thread */
};

enum {
	RING_MOST = 256 << 10, /* bytes: 20 us at 100 Gb/s; all of it is pinned by an adapter */
	BUCKETS = 1024,
	AGREE_NS = 50000000,   /* a receiver that does not read TCP empty in this time goes on with TCP */
	AFTER_CANCEL = 16, /* bytes of TCP before the next try; 16 times as many after each */
	AFTER_CANCELS = 256 << 10,
	TICK_MS = 2,
	TICKS_TO_TELL = 2, /* within the first the program may answer, which tells it, too */
	TCP_TAKES = 16 << 10, /* bytes that a socket takes at the end of a process, however slow the reader is */
	FRAME_TICKS = 5,
	TICKS = 2000, /* after so many a stream whose peer is gone is left to the program's calls */
	LOOK_NS = 1000000000, /* between looks at links whose streams wait; bounds messages */
};

struct remote {
	enum state state; /* the service thread's, but for CLOSING */
	struct conn *conn; /* atomic; NULL: given up */
	struct link *link;
	uint32_t number;
	unsigned char key[LINK_KEY];
	struct segment *segment;
	uint32_t ring; /* bytes */
	struct link_memory staging, exposed;
	struct ring *tx, *rx;
	char *staged;
	uint64_t peer_address;
	uint32_t peer_context;

	/* guarded by the connection's out_lock */
	bool agreed;
	bool waiting;  /* for AGREE */
	uint64_t begun; /* when MOVE was sent; monotonic ns */
	uint64_t posted; /* position up to which the peer's ring was written */
	bool push_later; /* the link had no room */
	uint32_t after_cancel; /* bytes */
	uint64_t synced; /* atomic: position that SYNCED has told */

	/* guarded by in_lock */
	bool wanted; /* the peer has sent MOVE */
	uint64_t want_start, want_position;
	uint32_t want_epoch;
	bool noticed;  /* atomic: bytes have come in this epoch */
	bool no_frame; /* the epoch has ended without one */
	bool ends;     /* the frame has come: the epoch ends when the ring was read up to end_at */
	uint64_t end_at;
	uint64_t told; /* atomic: the position of the last TAKEN or NOTICE */
	uint64_t skip; /* bytes of TCP to be dropped */

	uint8_t ticks_to_tell; /* atomic: until the peer gets to know what was taken; 0: nothing to tell */
	bool finishing; /* both ends go back to TCP; the service thread's */
	bool came;      /* a peer has connected with the key; the service thread's */
	unsigned ticks;
	struct remote *next;      /* of a bucket */
	struct remote *next_all, *prev_all;
};

static struct remote *buckets[BUCKETS];
static struct remote *all;
static uint32_t last_number;
static bool restless; /* atomic: a stream waits for something that no event tells */
static bool watching; /* atomic: a stream may wait for the peer */

#define LOAD(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

/* --- frames ------------------------------------------------------------------------------------------------------- */

static uint32_t crc32c(const unsigned char *p, size_t size)
{
	uint32_t crc = ~0u;

	while (size--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

void remote_encode_frame(unsigned char frame[REMOTE_FRAME], const unsigned char key[LINK_KEY], uint32_t epoch,
			 uint64_t position)
{
	uint64_t at = htobe64(position);
	uint32_t number = htobe32(epoch), crc;

	memcpy(frame, key, LINK_KEY);
	memcpy(frame + 16, &at, 8), memcpy(frame + 24, &number, 4);
	crc = htobe32(crc32c(frame, 28));
	memcpy(frame + 28, &crc, 4);
}

bool remote_decode_frame(const unsigned char frame[REMOTE_FRAME], const unsigned char key[LINK_KEY], uint32_t epoch,
			 uint64_t *position)
{
	unsigned char expected[REMOTE_FRAME];
	uint64_t at;

	memcpy(&at, frame + 16, 8);
	*position = be64toh(at);
	remote_encode_frame(expected, key, epoch, *position);
	return !memcmp(frame, expected, sizeof expected);
}

/* --- streams ------------------------------------------------------------------------------------------------------ */

/* The peer has to do something. */
static void watch(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&watching, __ATOMIC_RELAXED) && !__atomic_exchange_n(&watching, true, __ATOMIC_SEQ_CST))
		service_wake();
}

static struct remote **bucket(const struct link *link, uint32_t number)
{
	return &buckets[((uintptr_t)link / 64 + number / 2) % BUCKETS];
}

static struct remote *find(const struct link *link, uint32_t number)
{
	struct remote *r = *bucket(link, number);

	while (r && (r->link != link || r->number != number))
		r = r->next;
	return r;
}

static void enter(struct remote *r, struct link *link, uint32_t number)
{
	struct remote **at = bucket(link, number);

	link_hold(link);
	r->link = link, r->number = number;
	r->next = *at, *at = r;
	watch();
}

static struct remote *create(struct conn *c, const unsigned char key[LINK_KEY])
{
	struct remote *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->conn = c;
	memcpy(r->key, key, LINK_KEY);
	r->after_cancel = AFTER_CANCEL;
	r->next_all = all;
	if (all)
		all->prev_all = r;
	return all = r;
}

static void destroy(struct remote *r)
{
	if (r->link) {
		struct remote **at = bucket(r->link, r->number);

		while (*at != r)
			at = &(*at)->next;
		*at = r->next;
		link_release(r->link);
	}
	*(r->prev_all ? &r->prev_all->next_all : &all) = r->next_all;
	if (r->next_all)
		r->next_all->prev_all = r->prev_all;
	link_unregister(&r->staging);
	link_unregister(&r->exposed);
	if (r->segment)
		munmap(r->segment, SEGMENT_DATA + 2 * (size_t)r->ring);
	free(r);
}

static void post(struct remote *r, enum message_type type, uint64_t a, uint64_t b, uint64_t c)
{
	link_send(r->link, (struct link_message){ .type = type, .stream = r->number, .a = a, .b = b, .c = c });
}

/* The two ends hold no lock: program's threads ask, the service thread ticks. */
static void tick(void)
{
	if (!__atomic_exchange_n(&restless, true, __ATOMIC_SEQ_CST))
		service_wake();
}

static void tell_soon(struct remote *r)
{
	__atomic_store_n(&r->ticks_to_tell, TICKS_TO_TELL, __ATOMIC_SEQ_CST);
	tick();
}

/* Makes the rings of this end. Memory that is shared is not copied by a fork: the adapter writes to these pages. */
static int make_rings(struct remote *r, uint32_t ring)
{
	size_t size = SEGMENT_DATA + 2 * (size_t)ring;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int side = r->conn->connector ? 0 : 1;

	if (p == MAP_FAILED)
		return DAT_SOCKET_WHY_MEMORY;
	madvise(p, size, MADV_DONTFORK);
	r->segment = p, r->ring = ring;
	r->tx = &r->segment->ring[side], r->rx = &r->segment->ring[!side];
	r->staged = (char *)p + SEGMENT_DATA + side * (size_t)ring;
	if (link_register(r->link, r->staged, ring, false, &r->staging) ||
	    link_register(r->link, (char *)p + SEGMENT_DATA + !side * (size_t)ring, ring, true, &r->exposed))
		return DAT_SOCKET_WHY_MEMORY;
	return 0;
}

static void send_ring(struct remote *r)
{
	int side = r->tx == &r->segment->ring[0] ? 0 : 1;

	post(r, RING, (uintptr_t)r->segment + SEGMENT_DATA + !side * (size_t)r->ring, r->exposed.rmr_context, r->ring);
}

/* The connection goes on by these rings. Returns 0 or a DAT_SOCKET_WHY_*. */
static int attach(struct remote *r)
{
	struct conn *c = r->conn;
	size_t size = 2 * (size_t)r->ring, memory = size > RING_MIN ? size - RING_MIN : 0; /* besides move_attach() */
	int why = DAT_SOCKET_WHY_BUSY;

	if (!settings_take_memory(memory))
		return DAT_SOCKET_WHY_MEMORY;
	if (conn_lock(c)) {
		c->remote = r;
		c->had_frames = true;
		why = service_is_forking() ? DAT_SOCKET_WHY_BUSY :
					     move_attach(c, r->segment, SEGMENT_DATA + size, r->ring, -1);
		if (why) {
			c->remote = NULL;
		} else {
			c->memory += memory;
			c->tx.size = r->ring;
			STORE(&r->tx->size, r->ring), STORE(&r->rx->size, r->ring);
			/* So that the other side of each ring, which is this file, hears of each change. */
			STORE(&r->tx->asleep, 1), STORE(&r->rx->full, 1);
			r->state = ATTACHED;
		}
		conn_unlock(c);
	}
	if (why)
		settings_give_memory(memory);
	return why;
}

/* Nothing was attached: gives the stream up. */
static void give_up(struct remote *r)
{
	r->conn = NULL;
	if (r->link && !link_is_over(r->link)) {
		r->state = CLOSING;
		post(r, CLOSE, 0, 0, 0);
	} else {
		destroy(r);
	}
}

static void refuse(struct remote *r, enum dat_socket_why why)
{
	struct conn *c = r->conn;

	give_up(r);
	if (c)
		service_remote_opened(c, why);
}

/* The peer has lied, or both ends do not agree: the connection is reset. */
static void reset(struct remote *r, const char *what)
{
	struct conn *c = LOAD(&r->conn);

	if (!c || !conn_lock(c))
		return;
	if (c->remote == r)
		move_break(c, what);
	conn_unlock(c);
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

void remote_push(struct conn *c)
{
	struct remote *r = c->remote;
	uint64_t tail = c->tx.tail, n = tail - r->posted, at = r->posted & (r->ring - 1);
	struct link_piece pieces[LINK_PIECES];
	/* In this order: a head that is read after an epoch is not of an earlier one. */
	uint32_t epoch = LOAD(&r->rx->epoch);
	uint64_t head = LOAD(&r->rx->head);
	int count = 0;

	STORE(&r->tx->asleep, 1);
	if (!r->agreed || !c->tx.active || !n)
		return;
	for (uint64_t done = 0; done < n; count++) {
		uint64_t piece = r->ring - at < n - done ? r->ring - at : n - done;

		pieces[count] = (struct link_piece){ r->staging.lmr_context, r->peer_context,
						     (uintptr_t)r->staged + at, r->peer_address + at, piece };
		done += piece, at = 0;
	}
	r->push_later = !link_write(r->link, pieces, count,
				    (struct link_message){ .type = NOTICE, .flags = epoch,
							   .stream = r->number, .a = tail,
							   .b = head, .c = c->tx.epoch });
	watch();
	if (r->push_later)
		return;
	r->posted = tail;
	__atomic_store_n(&r->told, head, __ATOMIC_RELAXED);
}

void remote_begin(struct conn *c)
{
	struct remote *r = c->remote;

	r->agreed = false, r->waiting = true;
	r->posted = c->tx.tail;
	r->begun = clock_now_ns();
	post(r, MOVE, c->tcp_out, c->tx.tail, c->tx.epoch);
	tick();
}

size_t remote_end(struct conn *c, unsigned char frame[REMOTE_FRAME])
{
	struct remote *r = c->remote;
	bool agreed = r->agreed;

	r->agreed = r->waiting = r->push_later = false;
	if (!agreed) {
		post(r, CANCEL, 0, 0, c->tx.epoch);
		STORE(&r->tx->ack, c->tx.epoch);
		return 0;
	}
	remote_encode_frame(frame, r->key, c->tx.epoch, c->tx.tail);
	c->frames_out += REMOTE_FRAME;
	return REMOTE_FRAME;
}

bool remote_leaves_much(const struct conn *c)
{
	const struct remote *r = c->remote;

	return c->tx.active && r->agreed && !link_is_over(r->link) && c->tx.tail - LOAD(&r->tx->claim) > TCP_TAKES;
}

void remote_ask_synced(struct conn *c)
{
	struct remote *r = c->remote;

	remote_push(c);
	if (!r->push_later)
		post(r, SYNC, c->tx.tail, 0, c->tx.epoch);
}

bool remote_take_synced(struct conn *c)
{
	struct remote *r = c->remote;
	uint64_t claim = LOAD(&r->tx->claim);

	if (LOAD(&r->synced) != c->tx.tail)
		return false;
	/* The peer's program will take them, whatever becomes of this process. */
	while (claim != c->tx.tail && !__atomic_compare_exchange_n(&r->tx->claim, &claim, c->tx.tail, false,
								   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
	STORE(&r->tx->head, c->tx.tail);
	return true;
}

void remote_ended(struct conn *c)
{
	post(c->remote, ENDED, 0, 0, c->tx.epoch);
}

bool remote_keeps_frame(struct conn *c)
{
	c->frame_kept = link_is_over(c->remote->link);
	return c->frame_kept;
}


/* --- receiving ---------------------------------------------------------------------------------------------------- */

/* in_lock held. Enters the epoch that the peer wants to begin, once TCP was read up to it. */
static void try_agree(struct conn *c)
{
	struct remote *r = c->remote;

	if (!r->wanted || c->rx.active || c->tcp_in < r->want_start)
		return;
	if (c->tcp_in > r->want_start) {
		r->wanted = false; /* bytes behind it have come by TCP: the peer has cancelled it */
		return;
	}
	r->wanted = r->no_frame = r->ends = false;
	STORE(&r->noticed, false);
	__atomic_store_n(&r->told, r->want_position, __ATOMIC_RELAXED);
	r->skip = 0;
	STORE(&r->rx->tail, r->want_position);
	STORE(&r->rx->head, r->want_position);
	STORE(&r->rx->claim, r->want_position);
	c->rx.claim = r->want_position;
	c->rx.epoch = r->want_epoch;
	c->rx_left = 0;
	STORE(&r->rx->epoch, r->want_epoch);
	c->rx.active = true;
	post(r, AGREE, 0, 0, r->want_epoch);
}

void remote_received(struct conn *c)
{
	try_agree(c);
}

void remote_taken(struct conn *c)
{
	struct remote *r = c->remote;

	STORE(&r->rx->full, 1);
	if (c->rx.claim - __atomic_load_n(&r->told, __ATOMIC_RELAXED) < r->ring / 4) {
		/* The program reads long after the bytes have come. */
		if (!__atomic_load_n(&r->ticks_to_tell, __ATOMIC_SEQ_CST))
			tell_soon(r);
		return;
	}
	__atomic_store_n(&r->told, c->rx.claim, __ATOMIC_RELAXED);
	post(r, TAKEN, c->rx.claim, 0, c->rx.epoch);
}

/* in_lock held. */
static void end_epoch(struct conn *c, uint64_t skip, bool frame)
{
	struct remote *r = c->remote;

	r->skip = skip, r->no_frame = !frame;
	__atomic_fetch_or(&r->rx->claim, RING_REVOKED, __ATOMIC_ACQ_REL);
}

/* Whether TCP has bytes. A receive would take an error of the socket away, which is the program's. */
static bool has_bytes(const struct conn *c)
{
	int n = 0;

	return !REAL(ioctl)(c->fd, FIONREAD, &n) && n > 0;
}

/* Whether no byte comes any more by TCP. */
static bool has_ended(const struct conn *c)
{
	struct pollfd p = { c->fd, POLLIN | POLLRDHUP, 0 };

	return REAL(poll)(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR) && !has_bytes(c);
}

bool remote_look(struct conn *c)
{
	struct remote *r = c->remote;
	unsigned char bytes[REMOTE_FRAME];
	uint64_t position, ahead;
	ssize_t n;

	if (!c->rx.active || ring_is_revoked(&c->rx))
		return true;
	if (r->ends) {
		if (c->rx.claim == r->end_at)
			end_epoch(c, 0, true);
		return true;
	}
	if (!has_bytes(c))
		return true;
	n = REAL(recv)(c->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
	if (n <= 0)
		return true; /* the end is for the read to find */
	if (n < REMOTE_FRAME && !memcmp(bytes, r->key, n < LINK_KEY ? n : LINK_KEY))
		return true; /* the rest comes */
	if (n < REMOTE_FRAME || !remote_decode_frame(bytes, r->key, c->rx.epoch, &position)) {
		if (LOAD(&r->noticed)) {
			move_break(c, "sent over TCP while the ring carried the stream");
			return false;
		}
		end_epoch(c, 0, false);
		return true;
	}
	ahead = position - c->rx.claim;
	if (ahead > LOAD(&r->rx->tail) - c->rx.claim && -ahead > r->ring) {
		move_break(c, "ended an epoch at a position that cannot be");
		return false;
	}
	REAL(recv)(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
	__atomic_add_fetch(&c->tcp_in, REMOTE_FRAME, __ATOMIC_RELAXED);
	c->frames_in += REMOTE_FRAME;
	if (-ahead <= r->ring)
		end_epoch(c, -ahead, true);
	else
		r->ends = true, r->end_at = position;
	return true;
}

bool remote_skip(struct conn *c)
{
	struct remote *r = c->remote;

	while (r->skip) {
		char none[4096];
		size_t want = r->skip < sizeof none ? r->skip : sizeof none;
		ssize_t n = has_bytes(c) ? REAL(recv)(c->fd, none, want, MSG_DONTWAIT) : 0;

		if (n > 0) {
			r->skip -= n;
			__atomic_add_fetch(&c->tcp_in, n, __ATOMIC_RELAXED);
			c->frames_in += n;
		} else if (has_ended(c)) {
			r->skip = 0; /* before all was sent again; no byte is missing */
		} else {
			return false;
		}
	}
	return true;
}

int remote_tcp_bytes(struct conn *c)
{
	int n = 0;

	if (remote_look(c))
		move_receive(c);
	if (REAL(ioctl)(c->fd, FIONREAD, &n) || !c->rx.active)
		return n;
	return ring_is_revoked(&c->rx) && (uint64_t)n > c->remote->skip ? n - (int)c->remote->skip : 0;
}

bool remote_tcp_is_readable(struct conn *c)
{
	if (c->remote && remote_look(c))
		move_receive(c);
	return c->broken || conn_ring_readable(c) || has_ended(c) || (!c->rx.active && has_bytes(c));
}

void remote_left(struct conn *c)
{
	struct remote *r = c->remote;

	if (!r->no_frame)
		post(r, LEFT, 0, 0, c->rx.epoch);
	try_agree(c);
}

/* --- the way back ------------------------------------------------------------------------------------------------- */

static void finish(struct remote *r)
{
	r->ticks = 0;
	__atomic_store_n(&r->finishing, true, __ATOMIC_SEQ_CST);
	tick();
}

void remote_send_back(struct conn *c)
{
	struct remote *r = c->remote;

	if (c->peer_gone || link_is_over(r->link))
		finish(r);
	else
		post(r, BACK, 0, 0, 0);
}

/* Both locks held. A frame without bytes behind it: if the peer has died, it would bring nothing but a reset, so it
 * waits whether an end of the stream comes. Returns whether it waits on. */
static bool send_kept_frame(struct remote *r, struct conn *c)
{
	if (!c->frame_kept || !c->resend)
		return false;
	if (r->ticks < FRAME_TICKS || has_ended(c))
		return true;
	if (!move_flush(c))
		service_watch_resend(c);
	return c->frame_kept = false;
}

/* The service thread: goes on with the way back of both directions. */
static void try_finish(struct remote *r)
{
	struct conn *c = LOAD(&r->conn);
	bool detached = false, over = false, kept, broken = link_is_over(r->link);

	if (!c || !conn_lock(c))
		return;
	if (c->remote == r && c->mode == CONN_ATTACHED && !c->broken) {
		c->may_begin = false;
		move_revoke(c);
		kept = send_kept_frame(r, c);
		if (c->rx.active && remote_look(c))
			move_receive(c);
		if (!c->rx.active && !kept && !c->broken) {
			r->wanted = false;
			move_detach(c);
			detached = true;
		} else if (!link_is_up(r->link) || c->peer_gone) {
			/* The peer has died: what it has left is the program's to read. */
			over = has_ended(c);
		}
	}
	over |= c->remote != r || c->broken || detached;
	conn_unlock(c);
	if (over || (++r->ticks > TICKS && !LOAD(&c->back_wait)))
		r->finishing = false;
	if (over)
		move_wake_back(c);
	if (detached)
		service_remote_back(c, broken);
}

const char *remote_ia(const struct conn *c)
{
	const struct remote *r = LOAD(&c->remote); /* it is freed by this thread only */

	return r ? link_ia(r->link) : "";
}

void remote_notify_end(struct conn *c)
{
	struct remote *r = c->remote;

	c->may_begin = false;
	move_revoke(c);
	if (c->rx.active && !ring_is_revoked(&c->rx))
		end_epoch(c, 0, false);
	post(r, CLOSE, LOAD(&r->rx->head), 0, LOAD(&r->rx->epoch));
}

void remote_detach(struct conn *c)
{
	struct remote *r = c->remote;
	struct link *link = r->link;
	struct link_message m = { .type = CLOSE, .stream = r->number, .a = LOAD(&r->rx->head),
				  .c = LOAD(&r->rx->epoch) };

	c->remote = NULL;
	STORE(&r->conn, NULL);
	link_hold(link);
	/* From now on the service thread may free it. */
	STORE(&r->state, CLOSING);
	link_send(link, m);
	link_release(link);
	watch();
	tick();
}

/* The peer has given the stream up, or the link is broken. */
static void peer_gone(struct remote *r)
{
	struct conn *c = LOAD(&r->conn);

	if (r->state != ATTACHED || !c)
		return;
	__atomic_store_n(&c->peer_gone, true, __ATOMIC_SEQ_CST);
	finish(r);
	try_finish(r);
	conn_wake(c);
}

/* What the program has read and not answered: the peer need not send it again if this process dies. */
static void tell_taken(struct remote *r, struct conn *c)
{
	uint64_t head = LOAD(&r->rx->head);

	if (head == LOAD(&r->told) || !conn_lock_in(c))
		return;
	if (c->remote == r && c->rx.active && !ring_is_revoked(&c->rx) && c->rx.claim != r->told) {
		__atomic_store_n(&r->told, c->rx.claim, __ATOMIC_RELAXED);
		post(r, TAKEN, c->rx.claim, 0, c->rx.epoch);
	}
	conn_unlock_in(c);
}

/* Whether the peer has to do something for the stream: to take bytes, or to answer. */
static bool waits_for_peer(const struct remote *r)
{
	enum state state = LOAD(&r->state);
	uint64_t claim;

	if (state != ATTACHED)
		return state != EXPECTED && state != OVER;
	claim = LOAD(&r->tx->claim);
	return !(claim & RING_REVOKED) && claim != LOAD(&r->tx->tail);
}

/* Looks at the links of streams that wait. Returns the time until the next look in ms, -1: none. */
static int look_at_links(void)
{
	static uint64_t next_look;
	uint64_t now;

	if (!__atomic_load_n(&watching, __ATOMIC_SEQ_CST))
		return -1;
	now = clock_now_ns();
	if (now < next_look)
		return (next_look - now) / 1000000 + 1;
	next_look = now + LOOK_NS;
	__atomic_store_n(&watching, false, __ATOMIC_SEQ_CST);
	for (struct remote *r = all; r; r = r->next_all)
		if (waits_for_peer(r)) {
			__atomic_store_n(&watching, true, __ATOMIC_SEQ_CST);
			if (!link_watch(r->link, now))
				break; /* streams may be gone */
		}
	return __atomic_load_n(&watching, __ATOMIC_SEQ_CST) ? LOOK_NS / 1000000 + 1 : -1;
}

static int run_ticks(void)
{
	static uint64_t next_tick;
	uint64_t now;

	if (!__atomic_load_n(&restless, __ATOMIC_SEQ_CST))
		return -1;
	now = clock_now_ns();
	if (now < next_tick)
		return (next_tick - now) / 1000000 + 1;
	next_tick = now + TICK_MS * 1000000ull;
	__atomic_store_n(&restless, false, __ATOMIC_SEQ_CST);
	for (struct remote *r = all, *next; r; r = next) {
		struct conn *c = LOAD(&r->conn);

		next = r->next_all;
		if (r->state == OVER || (LOAD(&r->state) == CLOSING && link_is_over(r->link))) {
			destroy(r);
			continue;
		}
		if (c && r->state == ATTACHED && __atomic_load_n(&r->waiting, __ATOMIC_RELAXED)) {
			if (now - r->begun > AGREE_NS && conn_lock_out(c)) {
				if (c->remote == r && r->waiting && c->tx.active) {
					move_revoke(c);
					c->begin_at = c->tcp_out + r->after_cancel;
					if (r->after_cancel < AFTER_CANCELS)
						r->after_cancel *= 16;
				}
				conn_unlock_out(c);
			}
			__atomic_store_n(&restless, true, __ATOMIC_SEQ_CST);
		}
		if (c && r->state == ATTACHED && __atomic_load_n(&r->ticks_to_tell, __ATOMIC_RELAXED)) {
			if (!__atomic_sub_fetch(&r->ticks_to_tell, 1, __ATOMIC_SEQ_CST))
				tell_taken(r, c);
			else
				__atomic_store_n(&restless, true, __ATOMIC_SEQ_CST);
		}
		if (r->finishing) {
			try_finish(r);
			if (r->finishing)
				__atomic_store_n(&restless, true, __ATOMIC_SEQ_CST);
		}
	}
	return __atomic_load_n(&restless, __ATOMIC_SEQ_CST) ? TICK_MS : -1;
}

int remote_run(void)
{
	int tick = run_ticks(), look = look_at_links();

	return tick < 0 || (look >= 0 && look < tick) ? look : tick;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static void set_user(void);

bool remote_expect(struct conn *c, const unsigned char key[LINK_KEY])
{
	struct remote *r;

	set_user();
	remote_forget(c);
	r = create(c, key);
	if (r)
		r->state = EXPECTED;
	return r;
}

static void send_open(struct remote *r)
{
	uint64_t words[2];

	memcpy(words, r->key, sizeof words);
	post(r, OPEN, be64toh(words[0]), be64toh(words[1]), r->ring);
	send_ring(r);
}

int remote_open(struct conn *c, const char *ia, const struct sockaddr *peer, uint64_t qualifier,
		const unsigned char key[LINK_KEY])
{
	uint32_t ring = settings.ring < RING_MOST ? settings.ring : RING_MOST;
	struct link *link;
	struct remote *r;

	set_user();
	link = link_connect(ia, peer, qualifier, key);
	if (!link)
		return errno == EIO ? DAT_SOCKET_WHY_ADAPTER : DAT_SOCKET_WHY_MEMORY;
	remote_forget(c);
	r = create(c, key);
	if (!r)
		return DAT_SOCKET_WHY_MEMORY;
	r->state = OPENING;
	last_number += 2;
	enter(r, link, last_number | link_is_asker(link));
	if (make_rings(r, ring)) {
		destroy(r);
		return DAT_SOCKET_WHY_MEMORY;
	}
	send_open(r); /* waits in the queue of the link until it is up */
	return 0;
}

void remote_forget(struct conn *c)
{
	for (struct remote *r = all, *next; r; r = next) {
		next = r->next_all;
		if (r->conn == c && (r->state == EXPECTED || r->state == OPENING || r->state == ANSWERED))
			give_up(r);
	}
}

/* Once for each key: a peer cannot make links without end. */
static bool knows(const unsigned char token[LINK_KEY])
{
	for (struct remote *r = all; r; r = r->next_all)
		if (r->state == EXPECTED && !r->came && !memcmp(r->key, token, LINK_KEY))
			return r->came = true;
	return false;
}

static void answer_no(struct link *link, uint32_t stream, enum dat_socket_why why)
{
	link_send(link, (struct link_message){ .type = NO, .stream = stream, .a = why });
}

static void on_open(struct link *link, const struct link_message *m)
{
	uint64_t words[2] = { htobe64(m->a), htobe64(m->b) };
	struct remote *r = all;
	int why = DAT_SOCKET_WHY_SETTING;

	if ((m->stream & 1) == link_is_asker(link) || find(link, m->stream)) {
		link_break(link, "a stream with a number that cannot be");
		return;
	}
	while (r && (r->state != EXPECTED || memcmp(r->key, words, sizeof words)))
		r = r->next_all;
	if (!r) {
		answer_no(link, m->stream, DAT_SOCKET_WHY_PEER);
		return;
	}
	enter(r, link, m->stream);
	if (m->c >= 4096 && m->c <= settings.ring && m->c <= RING_MOST && !(m->c & (m->c - 1)))
		why = make_rings(r, m->c);
	r->state = ANSWERED;
	if (why) {
		answer_no(link, m->stream, why);
		refuse(r, why);
	}
}

static void on_ring(struct remote *r, const struct link_message *m)
{
	struct conn *c = r->conn;
	int why;

	if (r->state != ANSWERED && r->state != OPENING)
		return;
	if (m->c != r->ring || m->b > UINT32_MAX) {
		answer_no(r->link, r->number, DAT_SOCKET_WHY_PEER);
		refuse(r, DAT_SOCKET_WHY_PEER);
		return;
	}
	r->peer_address = m->a, r->peer_context = m->b;
	if (r->state == OPENING)
		return;
	why = attach(r);
	if (why) {
		answer_no(r->link, r->number, why);
		refuse(r, why);
		return;
	}
	send_ring(r);
	post(r, OPENED, 0, 0, 0);
	service_remote_opened(c, DAT_SOCKET_WHY_NONE);
}

static void on_opened(struct remote *r)
{
	struct conn *c = r->conn;
	int why = r->peer_address ? attach(r) : DAT_SOCKET_WHY_PEER;

	if (why)
		refuse(r, why);
	else
		service_remote_opened(c, DAT_SOCKET_WHY_NONE);
}

/* --- messages of attached streams -------------------------------------------------------------------------------- */

static void on_move(struct remote *r, struct conn *c, const struct link_message *m)
{
	if (!conn_lock(c))
		return;
	if (c->remote == r && !c->broken) {
		if (c->rx.active && !ring_is_revoked(&c->rx) && LOAD(&r->noticed)) {
			move_break(c, "began an epoch in another one");
		} else if (m->b & RING_REVOKED) {
			move_break(c, "began an epoch at a position that cannot be");
		} else {
			/* The peer has given up the one before, of which it did not know that this end agreed. */
			if (c->rx.active && !ring_is_revoked(&c->rx))
				end_epoch(c, 0, false);
			r->wanted = true;
			r->want_start = m->a, r->want_position = m->b, r->want_epoch = m->c;
			move_receive(c);
			try_agree(c);
		}
	}
	conn_unlock(c);
}

static void on_cancel(struct remote *r, struct conn *c, const struct link_message *m)
{
	if (!conn_lock_in(c))
		return;
	if (c->remote == r && r->wanted && r->want_epoch == m->c) {
		r->wanted = false;
	} else if (c->remote == r && c->rx.active && c->rx.epoch == m->c && !ring_is_revoked(&c->rx)) {
		if (LOAD(&r->noticed)) {
			move_break(c, "cancelled an epoch that had begun");
		} else {
			end_epoch(c, 0, false);
			move_receive(c);
		}
	}
	conn_unlock_in(c);
	conn_wake(c);
}

static void on_ended(struct remote *r, struct conn *c, const struct link_message *m)
{
	if (!conn_lock_in(c))
		return;
	if (c->remote == r && c->rx.active && c->rx.epoch == m->c && remote_look(c))
		move_receive(c);
	conn_unlock_in(c);
	conn_wake(c);
}

static void on_agree(struct remote *r, struct conn *c, const struct link_message *m)
{
	if (!conn_lock_out(c))
		return;
	if (c->remote == r && c->tx.active && c->tx.epoch == m->c && r->waiting) {
		r->agreed = true, r->waiting = false;
		remote_push(c);
	}
	conn_unlock_out(c);
}

/* The peer has taken the bytes before `position` in that epoch. */
static void take_credit(struct remote *r, struct conn *c, uint64_t position, uint32_t epoch)
{
	uint64_t claim = LOAD(&r->tx->claim), tail = LOAD(&r->tx->tail);

	if (LOAD(&r->tx->epoch) != epoch || claim & RING_REVOKED)
		return;
	if (claim - position <= r->ring)
		return; /* two threads have told, and this is the earlier position */
	if (position - claim > tail - claim) {
		reset(r, "stored a head that cannot be in the ring");
		return;
	}
	if (!__atomic_compare_exchange_n(&r->tx->claim, &claim, position, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return; /* revoked meanwhile */
	STORE(&r->tx->head, position);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (LOAD(&r->tx->full) && LOAD(&r->tx->tail) - position <= r->ring / 2 && ring_take_wish(&r->tx->full))
		conn_wake(c);
}

static void on_notice(struct remote *r, struct conn *c, const struct link_message *m)
{
	uint64_t head = LOAD(&r->rx->head), tail = LOAD(&r->rx->tail);

	if ((uint8_t)LOAD(&r->tx->epoch) == m->flags)
		take_credit(r, c, m->b, LOAD(&r->tx->epoch));
	if (LOAD(&r->rx->epoch) != m->c || LOAD(&r->rx->claim) & RING_REVOKED)
		return; /* of an epoch that this end has left */
	if (m->a - tail > r->ring || m->a - head > r->ring) {
		reset(r, "stored a tail that cannot be in the ring");
		return;
	}
	STORE(&r->noticed, true);
	STORE(&r->rx->tail, m->a);
	tell_soon(r);
	if (ring_take_wish(&r->rx->asleep))
		conn_wake(c);
}

static void on_back(struct remote *r, struct conn *c)
{
	if (!conn_lock(c))
		return;
	if (c->remote == r) {
		c->may_begin = false;
		move_revoke(c);
	}
	conn_unlock(c);
	post(r, BACKED, 0, 0, 0);
	finish(r);
	try_finish(r);
}

static void on_message_of(struct remote *r, const struct link_message *m)
{
	struct conn *c = LOAD(&r->conn);

	if (m->type == CLOSED) {
		if (LOAD(&r->state) == CLOSING)
			destroy(r);
		return;
	}
	if (!c || r->state != ATTACHED)
		return; /* it was closed at this end meanwhile */
	switch (m->type) {
	case MOVE: on_move(r, c, m); break;
	case AGREE: on_agree(r, c, m); break;
	case CANCEL: on_cancel(r, c, m); break;
	case NOTICE: on_notice(r, c, m); break;
	case ENDED: on_ended(r, c, m); break;
	case SYNC:
		if (LOAD(&r->rx->epoch) == m->c && LOAD(&r->rx->tail) == m->a)
			post(r, SYNCED, m->a, 0, m->c);
		break;
	case SYNCED:
		if (LOAD(&r->tx->epoch) == m->c)
			STORE(&r->synced, m->a);
		break;
	case TAKEN: take_credit(r, c, m->a, m->c); break;
	case LEFT:
		if (LOAD(&r->tx->epoch) == m->c)
			STORE(&r->tx->ack, m->c);
		break;
	case BACK: on_back(r, c); break;
	case BACKED:
		finish(r);
		try_finish(r);
		break;
	default: link_break(r->link, "a message of an unknown type"); break;
	}
}

/* The peer's end has both directions on TCP, or the program has closed it: it waits for no frame. */
static void on_close(struct remote *r, const struct link_message *m)
{
	struct conn *c = LOAD(&r->conn);

	if (c && r->state == ATTACHED)
		take_credit(r, c, m->a, m->c);
	if (c && conn_lock_out(c)) {
		if (c->remote == r)
			r->agreed = false;
		conn_unlock_out(c);
	}
	peer_gone(r);
}

static void on_message(struct link *link, const struct link_message *m)
{
	struct remote *r = find(link, m->stream);

	if (m->type == OPEN) {
		on_open(link, m);
		return;
	}
	if (m->type == CLOSE) {
		link_send(link, (struct link_message){ .type = CLOSED, .stream = m->stream });
		if (r && r->state != ATTACHED && r->state != CLOSING)
			refuse(r, DAT_SOCKET_WHY_PEER);
		else if (r)
			on_close(r, m);
		return;
	}
	if (!r) {
		/* It was given up before it was attached here. */
		if (m->type == OPENED || m->type == MOVE || m->type == BACK)
			link_send(link, (struct link_message){ .type = CLOSE, .stream = m->stream });
		return;
	}
	if (m->type == RING)
		on_ring(r, m);
	else if (m->type == OPENED && r->state == OPENING)
		on_opened(r);
	else if (m->type == NO && r->state == OPENING)
		refuse(r, m->a < 32 ? m->a : DAT_SOCKET_WHY_PEER);
	else
		on_message_of(r, m);
}

static void on_up(struct link *link)
{
	(void)link;
}

static void on_down(struct link *link)
{
	for (struct remote *r = all, *next; r; r = next) {
		next = r->next_all;
		if (r->link != link)
			continue;
		if (r->state == ATTACHED)
			peer_gone(r);
		else if (LOAD(&r->state) == CLOSING)
			destroy(r);
		else
			refuse(r, DAT_SOCKET_WHY_PEER);
	}
}

static void on_room(struct link *link)
{
	for (struct remote *r = all; r; r = r->next_all) {
		struct conn *c = LOAD(&r->conn);

		if (r->link != link || r->state != ATTACHED || !c || !conn_lock_out(c))
			continue;
		if (c->remote == r && r->push_later)
			remote_push(c);
		conn_unlock_out(c);
	}
}

static void set_user(void)
{
	static const struct link_user user = { knows, on_up, on_down, on_message, on_room };

	link_set_user(&user);
}

void remote_after_fork(void)
{
	memset(buckets, 0, sizeof buckets);
	all = NULL;
	restless = watching = false;
	link_after_fork();
}
