/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flags.c - what the flags of a post promise, for each kind of request that carries a payload, and at lengths around
 * the limits up to which devices treat a payload in another way: inline data, slots of a ring, batches. */
#include "actors.h"
#include "place.h"
#include <dat/dat_send_extensions.h>
#include <string.h>

#define DEFAULT DAT_COMPLETION_DEFAULT_FLAG
#define FENCE DAT_COMPLETION_BARRIER_FENCE_FLAG
#define SUPPRESS DAT_COMPLETION_SUPPRESS_FLAG
#define SOLICITED DAT_COMPLETION_SOLICITED_WAIT_FLAG
#define UNSIGNALLED DAT_COMPLETION_UNSIGNALLED_FLAG

enum { MOST = 1 << 20, OLD = 0xee };	/* bytes of the longest payload; what a buffer holds before a read */
static const uint32_t lengths[] = { 0, 1, 64, 65, 1024, 1025, MOST };
enum { LENGTHS = sizeof(lengths) / sizeof(*lengths) };

enum kind { SEND, SEND_IMMED, SEND_INVALIDATE, WRITE, WRITE_IMMED, KINDS };
static const char *const kind_name[KINDS] = { "send", "send with immediate data", "send with invalidate", "RDMA write",
	"RDMA write with immediate data" };

/* Cookies of receives and requests. */
enum { BEFORE = 1, READ, CARRIER, REQUEST, MARK, BIND };

/* a posts, b receives. */
struct setting {
	struct pair p;
	struct region here;	/* a's payload */
	struct region source;	/* b's memory: what a reads */
	struct region sink;	/* b's memory: where messages and writes arrive */
	bool invalidates;	/* sends can invalidate a window */
	DAT_RMR_CONTEXT window;	/* b's, for the next of them */
};

/* Whether there are windows that a send can invalidate. */
static bool has_windows(DAT_PZ_HANDLE pz)
{
	__typeof__(&dat_rmr_create_for_ep) create = FIND(dat_rmr_create_for_ep);
	DAT_RMR_HANDLE rmr;

	return ia_attr()->max_rmrs && FIND(dat_ep_post_send_with_invalidate) && create && !create(pz, &rmr);
}

static struct setting a_setting(DAT_COMPLETION_FLAGS recv_flags, DAT_COMPLETION_FLAGS request_flags)
{
	DAT_EP_ATTR attr = ep_attr();
	struct setting s = { .invalidates = false };

	attr.max_message_size = attr.max_rdma_size = MOST;
	attr.recv_completion_flags = recv_flags;
	attr.request_completion_flags = request_flags;
	s.p = CONNECTED_PAIR(.attr = &attr);
	s.here = a_region(s.p.a.pz, MOST, ALL_RIGHTS);
	s.source = a_region(s.p.b.pz, MOST, ALL_RIGHTS);
	s.sink = a_region(s.p.b.pz, MOST, ALL_RIGHTS);
	s.invalidates = has_windows(s.p.b.pz);
	return s;
}

static bool has_kind(const struct setting *s, enum kind kind)
{
	switch (kind) {
	case SEND_IMMED:	return named_attr(DAT_SEND_ATTR_IMMED) != NULL;
	case SEND_INVALIDATE:	return s->invalidates;
	case WRITE_IMMED:	return named_attr(DAT_IB_ATTR_IMMED_DATA) != NULL;
	default:		return true;
	}
}

/* A send with invalidate names a window that is bound. */
static void make_ready(struct setting *s, enum kind kind)
{
	DAT_RMR_HANDLE rmr;

	if (kind != SEND_INVALIDATE)
		return;
	OK(LATE(dat_rmr_create_for_ep)(s->p.b.pz, &rmr));
	OK(dat_rmr_bind(rmr, s->source.lmr, SEGMENT(&s->source, 0, 4096), DAT_MEM_PRIV_REMOTE_READ_FLAG,
			DAT_VA_TYPE_VA, s->p.b.ep, COOKIE(BIND), DEFAULT, &s->window));
	EVENT(s->p.b.request, DAT_RMR_BIND_COMPLETION_EVENT);
}

static void post_from(const struct setting *s, enum kind kind, DAT_LMR_TRIPLET payload, DAT_COMPLETION_FLAGS flags)
{
	uint32_t length = payload.segment_length;
	DAT_RMR_TRIPLET to = target(&s->sink, 0, length);
	DAT_EP_HANDLE ep = s->p.a.ep;
	DAT_COUNT n = length != 0;

	switch (kind) {
	case SEND:
		OK(dat_ep_post_send(ep, n, &payload, COOKIE(REQUEST), flags));
		break;
	case SEND_IMMED:
		OK(dat_ep_post_send_immed(ep, n, &payload, COOKIE(REQUEST), 7, flags));
		break;
	case SEND_INVALIDATE:
		OK(LATE(dat_ep_post_send_with_invalidate)(ep, n, &payload, COOKIE(REQUEST), flags, DAT_TRUE,
							  s->window));
		break;
	case WRITE:
		OK(dat_ep_post_rdma_write(ep, n, &payload, COOKIE(REQUEST), &to, flags));
		break;
	default:
		OK(dat_ib_post_rdma_write_immed(ep, n, &payload, COOKIE(REQUEST), &to, 7, flags));
	}
}

/* Empty messages: in front of the request under test, and behind a write, which b does not notice. */
static void post_empty(const struct end *end, uint64_t cookie, DAT_COMPLETION_FLAGS flags)
{
	OK(dat_ep_post_send(end->ep, 0, NULL, COOKIE(cookie), flags));
}

static void post_receive(const struct setting *s, uint32_t length, uint64_t cookie)
{
	OK(dat_ep_post_recv(s->p.b.ep, length != 0, SEGMENT(&s->sink, 0, length), COOKIE(cookie), DEFAULT));
}

static bool is_silent(enum kind kind)
{
	return kind == WRITE;
}

/* The receive of the request, or of the message behind a write. */
static void post_receive_for(const struct setting *s, enum kind kind, uint32_t length)
{
	post_receive(s, kind == WRITE || kind == WRITE_IMMED ? 0 : length, is_silent(kind) ? MARK : REQUEST);
}

static void expect_done(DAT_EVENT event, uint64_t cookie)
{
	EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
	EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}

/* Completions of operations with immediate data are events of the extension. */
static void expect_next(DAT_EVD_HANDLE evd, uint64_t cookie)
{
	expect_done(next_event(evd), cookie);
}

static void expect_arrival(const struct setting *s, enum kind kind)
{
	expect_next(s->p.b.recv, is_silent(kind) ? MARK : REQUEST);
}

/* Calls run() for each kind of request and each length. */
static void for_each(struct setting *s, void (*run)(struct setting *s, enum kind kind, uint32_t length))
{
	for (enum kind kind = 0; kind < KINDS; kind++)
		for (int i = 0; has_kind(s, kind) && i < LENGTHS; i++) {
			make_ready(s, kind);
			run(s, kind, lengths[i]);
		}
}

/* --- BARRIER_FENCE ---------------------------------------------------------------------------- */

enum { ROUNDS = 3 };

/* The message in front keeps the read from being executed while it is posted. */
static void post_read_behind_a_message(struct setting *s, uint32_t length, unsigned seed)
{
	uint32_t read = length ? length : 1;

	fill(s->source.at, read, seed);
	memset(s->here.at, OLD, read);
	memset(s->sink.at, 0, read);
	post_receive(s, 0, BEFORE);
	post_empty(&s->p.a, BEFORE, DEFAULT);
	OK(dat_ep_post_rdma_read(s->p.a.ep, 1, SEGMENT(&s->here, 0, read), COOKIE(READ),
				 TARGET(&s->source, 0, read), DEFAULT));
}

static void expect_what_was_read(const struct setting *s, enum kind kind, uint32_t length, unsigned seed)
{
	AT("payload of a request behind a read");
	if (!is_filled(s->sink.at, length, seed))
		fail("expected that a %s of %u bytes carries what was read, found 0x%02x (0x%02x: as before the read)",
		     kind_name[kind], length, (unsigned char)s->sink.at[0], OLD);
}

/* Posts the request behind an empty message and a read, or an atomic. */
static void run_fenced(struct setting *s, enum kind kind, DAT_LMR_TRIPLET payload)
{
	post_receive_for(s, kind, payload.segment_length);
	post_from(s, kind, payload, FENCE);
	if (is_silent(kind))
		post_empty(&s->p.a, MARK, DEFAULT);
	expect_next(s->p.b.recv, BEFORE);
	expect_arrival(s, kind);
	expect_next(s->p.a.request, BEFORE);
	expect_next(s->p.a.request, READ);
	expect_next(s->p.a.request, REQUEST);
	if (is_silent(kind))
		expect_next(s->p.a.request, MARK);
}

static void fence_once(struct setting *s, enum kind kind, uint32_t length)
{
	for (unsigned seed = 1; seed <= ROUNDS; seed++) {
		if (seed > 1)
			make_ready(s, kind);
		post_read_behind_a_message(s, length, seed);
		run_fenced(s, kind, segment(&s->here, 0, length));
		expect_what_was_read(s, kind, length, seed);
	}
}

TEST("DTO-36", a_fenced_request_carries_what_was_read_before_it)
{
	struct setting s = a_setting(DEFAULT, DEFAULT);

	for_each(&s, fence_once);
}

/* The flag is on an empty message between the read and the request. */
static void fence_before_once(struct setting *s, enum kind kind, uint32_t length)
{
	post_read_behind_a_message(s, length, length + 1);
	post_receive(s, 0, CARRIER);
	post_empty(&s->p.a, CARRIER, FENCE);
	post_receive_for(s, kind, length);
	post_from(s, kind, segment(&s->here, 0, length), DEFAULT);
	if (is_silent(kind))
		post_empty(&s->p.a, MARK, DEFAULT);
	expect_next(s->p.b.recv, BEFORE);
	expect_next(s->p.b.recv, CARRIER);
	expect_arrival(s, kind);
	for (int cookie = BEFORE; cookie <= (is_silent(kind) ? MARK : REQUEST); cookie++)
		expect_next(s->p.a.request, cookie);
	expect_what_was_read(s, kind, length, length + 1);
}

TEST("DTO-37", a_request_behind_a_fenced_one_carries_what_was_read_before_that)
{
	struct setting s = a_setting(DEFAULT, DEFAULT);

	for_each(&s, fence_before_once);
}

/* --- SUPPRESS, UNSIGNALLED, SOLICITED_WAIT -------------------------------------------------------- */

static void send_suppressed(struct setting *s, enum kind kind, uint32_t length)
{
	post_receive_for(s, kind, length);
	post_from(s, kind, segment(&s->here, 0, length), SUPPRESS);
	if (is_silent(kind))
		post_empty(&s->p.a, MARK, SUPPRESS);
	expect_arrival(s, kind);
	post_receive(s, 0, BEFORE);
	post_empty(&s->p.a, BEFORE, DEFAULT);
	expect_next(s->p.b.recv, BEFORE);
	expect_next(s->p.a.request, BEFORE);
}

TEST("DTO-38", a_suppressed_request_of_any_kind_and_length_makes_no_event)
{
	struct setting s = a_setting(DEFAULT, DEFAULT);

	for_each(&s, send_suppressed);
	NO_EVENT(s.p.a.request);
}

static void send_unsignaled(struct setting *s, enum kind kind, uint32_t length)
{
	struct waiter *w = waiter_on_evd(s->p.a.request, DAT_TIMEOUT_INFINITE, 1);

	post_receive_for(s, kind, length);
	post_from(s, kind, segment(&s->here, 0, length), UNSIGNALLED);
	if (is_silent(kind))
		post_empty(&s->p.a, MARK, UNSIGNALLED);
	expect_arrival(s, kind);
	BLOCKED(w);
	post_receive(s, 0, BEFORE);
	post_empty(&s->p.a, BEFORE, DEFAULT);
	OK(released(w));
	expect_done(w->event, REQUEST);
	if (is_silent(kind))
		expect_next(s->p.a.request, MARK);
	expect_next(s->p.a.request, BEFORE);
	expect_next(s->p.b.recv, BEFORE);
}

TEST("DTO-39", an_unsignaled_request_of_any_kind_and_length_wakes_no_thread)
{
	needs_completion_flag(UNSIGNALLED);
	struct setting s = a_setting(DEFAULT, UNSIGNALLED);

	for_each(&s, send_unsignaled);
}

static void send_solicited(struct setting *s, enum kind kind, uint32_t length)
{
	struct waiter *w;

	if (is_silent(kind))
		return;
	post_receive_for(s, kind, length);
	w = waiter_on_evd(s->p.b.recv, DAT_TIMEOUT_INFINITE, 1);
	post_from(s, kind, segment(&s->here, 0, length), SOLICITED);
	OK(released(w));
	expect_done(w->event, REQUEST);
	expect_next(s->p.a.request, REQUEST);
}

TEST("DTO-40", a_solicited_message_of_any_kind_and_length_wakes_the_waiter)
{
	needs_completion_flag(SOLICITED);
	struct setting s = a_setting(SOLICITED, DEFAULT);

	for_each(&s, send_solicited);
}

/* --- BARRIER_FENCE with windows, atomics, and other memory ------------------------------------------- */

/* The bind is fenced, and requests behind a bind begin after it. */
TEST("RMR-14", a_message_behind_a_fenced_bind_carries_what_was_read_before_that)
{
	needs_rmr();
	struct setting s = a_setting(DEFAULT, DEFAULT);
	DAT_RMR_CONTEXT context, last = 0;
	DAT_RMR_HANDLE rmr;

	OK(dat_rmr_create(s.p.a.pz, &rmr));
	for (int i = 0; i < LENGTHS; i++) {
		post_read_behind_a_message(&s, lengths[i], i + 1);
		OK(dat_rmr_bind(rmr, s.here.lmr, SEGMENT(&s.here, 0, 4096), DAT_MEM_PRIV_REMOTE_READ_FLAG,
				DAT_VA_TYPE_VA, s.p.a.ep, COOKIE(BIND), FENCE, &context));
		HOLDS(context != last);
		last = context;
		post_receive_for(&s, SEND, lengths[i]);
		post_from(&s, SEND, segment(&s.here, 0, lengths[i]), DEFAULT);
		expect_next(s.p.b.recv, BEFORE);
		expect_arrival(&s, SEND);
		expect_next(s.p.a.request, BEFORE);
		expect_next(s.p.a.request, READ);
		EVENT(s.p.a.request, DAT_RMR_BIND_COMPLETION_EVENT);
		expect_next(s.p.a.request, REQUEST);
		expect_what_was_read(&s, SEND, lengths[i], i + 1);
	}
}

/* The region for atomics is b's source. */
static void fence_behind_an_atomic(struct setting *s, enum kind kind, uint32_t length)
{
	const uint64_t value = 0x1122334455667788ull + length;

	*(uint64_t *)s->source.at = value;
	memset(s->here.at, OLD, 8);
	memset(s->sink.at, 0, 8);
	post_receive(s, 0, BEFORE);
	post_empty(&s->p.a, BEFORE, DEFAULT);
	OK(dat_ib_post_fetch_and_add(s->p.a.ep, 1, SEGMENT(&s->here, 0, 8), COOKIE(READ), TARGET(&s->source, 0, 8),
				     DEFAULT));
	run_fenced(s, kind, segment(&s->here, 0, length));
	HOLDS(!memcmp(s->sink.at, &value, length < 8 ? length : 8));
}

TEST("EXT-41", a_fenced_request_carries_the_value_of_the_atomic_before_it)
{
	needs_attr(DAT_IB_ATTR_FETCH_AND_ADD);
	struct setting s = a_setting(DEFAULT, DEFAULT);

	s.source = a_region(s.p.b.pz, MOST, (DAT_MEM_PRIV_FLAGS)((int)ALL_RIGHTS | (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC));
	for_each(&s, fence_behind_an_atomic);
}

/* In device memory, and in host memory whose addresses count from 0. */
static void fence_in_place(struct setting *s, const struct place *place)
{
	for (int i = 0; i < LENGTHS && lengths[i] <= PLACE_SIZE; i++)
		for (enum kind kind = SEND; kind <= WRITE; kind += WRITE - SEND) {
			uint32_t read = lengths[i] ? (lengths[i] + 3) & ~3u : 4;

			place_fill(place, 0, read, 77);
			fill(s->source.at, read, i + 1);
			memset(s->sink.at, 0, read);
			post_receive(s, 0, BEFORE);
			post_empty(&s->p.a, BEFORE, DEFAULT);
			OK(dat_ep_post_rdma_read(s->p.a.ep, 1, PLACE_SEGMENT(place, 0, read), COOKIE(READ),
						 TARGET(&s->source, 0, read), DEFAULT));
			run_fenced(s, kind, place_segment(place, 0, lengths[i]));
			expect_what_was_read(s, kind, lengths[i], i + 1);
		}
}

TEST("DM-22", a_fenced_request_from_device_memory_carries_what_was_read_before_it)
{
	struct setting s = a_setting(DEFAULT, DEFAULT);
	struct place place = a_device_place(s.p.a.pz);

	fence_in_place(&s, &place);
}

TEST("LMR-27", a_fenced_request_from_zero_based_memory_carries_what_was_read_before_it)
{
	struct setting s = a_setting(DEFAULT, DEFAULT);
	struct place place = a_host_place(s.p.a.pz);

	fence_in_place(&s, &place);
}
