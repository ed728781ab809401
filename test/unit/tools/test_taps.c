/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_taps.c - the order and the time in which datcap takes messages out of the rings of programs. A child process
 * stands in for a program; what its control socket answers is made up here. */
#include "tools/datcap/taps.h"
#include <signal.h>
#include "common/clock.h"
#include "common/ticks.h"
#include "tools/control/client.h"
#include "tools/datcap/lease.h"
#include "test/unit/child.h"
#include "test/unit/unit.h"

#define HOUR_NS 3600000000000ull
enum { SLACK_NS = 1000000 };	/* ns: on a loaded machine, two clocks are not read at one time */

static struct program {
	pid_t pid;
	int file;
	struct tap_ring *ring;
} programs[2];
static size_t listed;		/* programs that control_find() gives */

/* --- the control socket of a program ------------------------------------------------------- */

struct control_socket *control_find(pid_t pid, size_t *count)
{
	struct control_socket *sockets = calloc(2, sizeof *sockets);

	assert_int_equal(pid, 0);
	for (*count = 0; *count < listed; ++*count) {
		sockets[*count].pid = programs[*count].pid;
		sockets[*count].name[0] = (char)('a' + *count);
	}
	return sockets;
}

json_t *control_ask(const struct control_socket *socket, enum control_verb verb, json_t *request, char *why,
		    size_t size)
{
	assert_int_equal(verb, CONTROL_TAP);
	json_decref(request);
	return json_pack("{s:i, s:i}", "descriptor", programs[socket->name[0] - 'a'].file, "began", 1);
}

bool control_is_ours(const struct control_socket *socket) { return true; }
void control_fail_absent(pid_t pid) { abort(); }

/* --- the thread that renews captures --------------------------------------------------------- */

static int lease_threads;
static unsigned renewals;	/* of all captures, by the caller */
static size_t kept;		/* programs whose capture it is to renew */

void lease_start(json_t *request)
{
	json_decref(request);
	lease_threads++;
}

void lease_keep(struct control_socket *sockets, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(sockets[i].pid, programs[sockets[i].name[0] - 'a'].pid);
	free(sockets);
	kept = count;
}

void lease_renewed(void) { renewals++; }
void lease_stop(void) { lease_threads = 0; }

/* --- programs -------------------------------------------------------------------------------- */

static void start(struct program *p)
{
	p->file = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(p->file >= 0);
	assert_int_equal(ftruncate(p->file, TAP_HEAD + TAP_SIZE), 0);
	assert_int_equal(fcntl(p->file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	p->ring = mmap(NULL, TAP_HEAD + TAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, p->file, 0);
	assert_true(p->ring != MAP_FAILED);
	p->ring->magic = TAP_MAGIC;
	p->ring->version = TAP_VERSION;
	p->ring->size = TAP_SIZE;
	p->pid = fork_child();
	if (p->pid)
		return;
	for (;;)
		pause();
}

UNIT_FIXTURE(set_up)
{
	listed = 2;
	for (int i = 0; i < 2; i++)
		start(&programs[i]);
	taps_start(0, NULL, 0);
}

UNIT_FIXTURE(tear_down)
{
	taps_free();
	for (int i = 0; i < 2; i++) {
		kill(programs[i].pid, SIGKILL);
		waitpid(programs[i].pid, NULL, 0);
		munmap(programs[i].ring, TAP_HEAD + TAP_SIZE);
		close(programs[i].file);
	}
}

static struct tap_entry *next_line(struct program *p)
{
	struct tap_entry *e = (struct tap_entry *)((char *)p->ring + TAP_HEAD + p->ring->head);

	__atomic_store_n(&p->ring->head, p->ring->head + TAP_LINE, __ATOMIC_RELEASE);
	return e;
}

/* A message with its time; `word` names it. */
static void put(struct program *p, uint64_t time, uint32_t word)
{
	*next_line(p) = (struct tap_entry){ .time = time, .qpn = 1, .state = TAP_VALID, .kind = TAP_ENDS,
		.ends = { .local.family = 4, .remote.family = 4 } };
	*next_line(p) = (struct tap_entry){ .time = time, .qpn = 1, .state = TAP_VALID, .message.word = word };
}

static void expect_next(uint64_t until, uint32_t word)
{
	struct taps_message m;

	assert_true(taps_next(until, &m));
	assert_int_equal(m.record->word, word);
}

static void expect_none(uint64_t until)
{
	struct taps_message m;

	assert_false(taps_next(until, &m));
}

/* --- cases ------------------------------------------------------------------------------------- */

UNIT_TEST_WITH(messages_come_in_the_order_of_their_times, set_up, tear_down)
{
	uint64_t now = clock_read_ns(CLOCK_REALTIME);

	put(&programs[0], now - 30, 1);
	put(&programs[1], now - 20, 2);
	put(&programs[0], now - 10, 3);
	expect_next(now, 1);
	expect_next(now, 2);
	expect_next(now, 3);
	expect_none(now);
}

UNIT_TEST_WITH(message_waits_for_older_ones, set_up, tear_down)
{
	uint64_t now = clock_read_ns(CLOCK_REALTIME);

	put(&programs[0], now - 10, 1);
	expect_none(now - 20);
	put(&programs[1], now - 30, 2);
	expect_next(now - 20, 2);
	expect_none(now - 20);
	expect_next(now, 1);
}

UNIT_TEST_WITH(clock_that_is_set_back_holds_up_no_message, set_up, tear_down)
{
	uint64_t now = clock_read_ns(CLOCK_REALTIME);

	put(&programs[0], now + HOUR_NS, 1);	/* before the clock was set back by an hour */
	put(&programs[0], now - 10, 2);
	put(&programs[1], now - 20, 3);
	expect_next(now, 3);
	expect_next(now, 1);
	expect_next(now, 2);
	expect_none(now);
}

/* A program that counts ticks: the client knows which time a count was at, and puts it in order with the others. */
UNIT_FIXTURE(set_up_ticks)
{
	listed = 2;
	for (int i = 0; i < 2; i++)
		start(&programs[i]);
	programs[0].ring->clock = TAP_TICKS;
	taps_start(0, NULL, 0);
}

UNIT_TEST_WITH(ticks_become_times, set_up_ticks, tear_down)
{
	uint64_t before, between, after;
	struct taps_message m;

	if (!HAVE_TICKS)
		skip();
	for (int i = 0; i < 3; i++) {
		before = clock_read_ns(CLOCK_REALTIME);
		put(&programs[0], ticks_now(), 1);
		between = clock_read_ns(CLOCK_REALTIME);
		put(&programs[0], ticks_after_loads(), 2);
		after = clock_read_ns(CLOCK_REALTIME);
		put(&programs[1], after + 10 * SLACK_NS, 3);
		assert_true(taps_next(after + HOUR_NS, &m));
		assert_int_equal(m.record->word, 1);
		assert_true(m.record->time + SLACK_NS >= before && m.record->time <= between + SLACK_NS);
		assert_true(taps_next(after + HOUR_NS, &m));
		assert_int_equal(m.record->word, 2);
		assert_true(m.record->time + SLACK_NS >= between && m.record->time <= after + SLACK_NS);
		expect_next(after + HOUR_NS, 3);
	}
}

static void expect_malformed(const struct tap_entry *e)
{
	put(&programs[0], 1, 1);
	*next_line(&programs[0]) = *e;
	put(&programs[1], 3, 3);
	expect_next(~(uint64_t)0, 1);
	expect_next(~(uint64_t)0, 3);
	expect_none(~(uint64_t)0);
	assert_int_equal(taps_count(), 1);
}

UNIT_TEST_WITH(entry_of_unknown_kind_ends_its_capture, set_up, tear_down)
{
	expect_malformed(&(struct tap_entry){ .time = 2, .qpn = 1, .state = TAP_VALID, .kind = TAP_FILL + 1 });
}

UNIT_TEST_WITH(entry_beyond_the_head_ends_its_capture, set_up, tear_down)
{
	expect_malformed(&(struct tap_entry){ .time = 2, .qpn = 1, .state = TAP_VALID,
		.message.captured = TAP_INLINE + 1 });
}

UNIT_TEST_WITH(entry_with_too_much_payload_ends_its_capture, set_up, tear_down)
{
	expect_malformed(&(struct tap_entry){ .time = 2, .qpn = 1, .state = TAP_VALID, .message.captured = ~0u });
}

UNIT_TEST_WITH(entry_of_unknown_operation_ends_its_capture, set_up, tear_down)
{
	expect_malformed(&(struct tap_entry){ .time = 2, .qpn = 1, .state = TAP_VALID, .op = TAP_FETCH_ADD + 1 });
}

UNIT_TEST_WITH(entry_of_number_between_operations_ends_its_capture, set_up, tear_down)
{
	expect_malformed(&(struct tap_entry){ .time = 2, .qpn = 1, .state = TAP_VALID, .op = TAP_SEND + 1 });
}

/* A program stores no memory of the peer for a send. */
UNIT_TEST_WITH(send_names_no_memory_of_the_peer, set_up, tear_down)
{
	struct taps_message m;

	put(&programs[0], 1, 1);
	*next_line(&programs[0]) = (struct tap_entry){ .time = 2, .qpn = 1, .state = TAP_VALID, .op = TAP_SEND,
		.message = { .stag = 5, .remote = 6 } };
	expect_next(~(uint64_t)0, 1);
	assert_true(taps_next(~(uint64_t)0, &m));
	assert_int_equal(m.record->memory.stag, 0);
	assert_int_equal(m.record->memory.remote, 0);
}

UNIT_TEST_WITH(entry_of_unknown_connection_ends_its_capture, set_up, tear_down)
{
	expect_malformed(&(struct tap_entry){ .time = 2, .qpn = 2, .state = TAP_VALID });
}

UNIT_TEST_WITH(void_entry_is_skipped_with_its_payload, set_up, tear_down)
{
	put(&programs[0], 1, 1);
	*next_line(&programs[0]) = (struct tap_entry){ .time = 2, .qpn = 1, .state = TAP_VOID,
		.message.captured = TAP_INLINE + 1 };
	*next_line(&programs[0]) = (struct tap_entry){ .kind = 99 };
	put(&programs[0], 3, 3);
	expect_next(~(uint64_t)0, 1);
	expect_next(~(uint64_t)0, 3);
	expect_none(~(uint64_t)0);
	assert_int_equal(taps_count(), 2);
}

UNIT_TEST_WITH(captures_are_renewed_as_long_as_their_programs_run, set_up, tear_down)
{
	assert_int_equal(lease_threads, 1);
	assert_int_equal(kept, 2);
	kept = renewals = 0;
	taps_renew();
	assert_int_equal(kept, 2);
	assert_int_equal(renewals, 1);
	listed = 1;
	taps_find();
	assert_int_equal(kept, 1);
	assert_int_equal(renewals, 1);	/* it asks new programs only */
	taps_end();
	assert_int_equal(lease_threads, 0);
}

UNIT_MAIN(NULL, NULL)
