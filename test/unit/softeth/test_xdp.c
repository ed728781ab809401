/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_xdp.c - a port over AF_XDP sockets: its sockets and their order, what is known of a frame with and without a
 * mark, and the order of releases. Sockets (xsk.c) and the program are replaced. test/eth/xdp.c has real ones. */
#include "dapl/softeth/ingress.h"
#include "dapl/softeth/rule_find.h"
#include "dapl/softeth/rules.h"
#include "dapl/softeth/steer.h"
#include "dapl/softeth/xdp.h"
#include "dapl/softeth/xsk.h"
#include "test/unit/softeth/steps.h"
#include "test/unit/unit.h"

enum { QUEUES = 2, CHUNK = 2048, CHUNKS = 4, AT = 256, MAP = 1000, PORT_ID = 7 };

static struct eth_port port;
static struct eth_rule marked, found;
static uint8_t memory[QUEUES][CHUNK * CHUNKS];
static struct xsk *opened[QUEUES];
static struct xdp_desc waiting[QUEUES][CHUNKS];
static unsigned waits[QUEUES];
static char given[64];			/* queue and chunk of each frame that went back */
static bool was_empty;
static uint64_t drops;

/* --- in place of other files ---------------------------------------------------------------------------------- */

REPLACE(xsk_open, xsk_close, xsk_has_frame, xsk_take, xsk_give, xsk_commit, xsk_read_drops, syscall)
REPLACE(eth_steer_renew, eth_steer_detach, eth_rule_find)
EXTEND(close)

static unsigned queue_of(const struct xsk *x) { return x == opened[1]; }

int __wrap_xsk_open(struct xsk *x, int interface, uint32_t queue, uint32_t frames, uint32_t max_frame,
		    const char **tried)
{
	assert_int_equal(interface, 5);
	assert_in_range(queue, 0, QUEUES - 1);
	assert_int_equal(frames, CHUNKS);
	assert_int_equal(max_frame, 1518);
	*tried = "open";
	if (step("open"))
		return EBUSY;
	x->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	x->memory = memory[queue];
	x->size = sizeof memory[queue];
	x->chunk = CHUNK;
	x->zero_copy = !queue;
	opened[queue] = x;
	return 0;
}

void __wrap_xsk_close(struct xsk *x)
{
	if (x->fd >= 0)
		__real_close(x->fd);
	step("close");
}

bool __wrap_xsk_has_frame(const struct xsk *x) { return waits[queue_of(x)]; }

bool __wrap_xsk_take(struct xsk *x, struct xdp_desc *frame)
{
	unsigned q = queue_of(x);

	if (!waits[q])
		return false;
	*frame = waiting[q][0];
	memmove(waiting[q], waiting[q] + 1, sizeof waiting[q] - sizeof waiting[q][0]);
	waits[q]--;
	return true;
}

void __wrap_xsk_give(struct xsk *x, uint64_t address)
{
	char *end = given + strlen(given);

	*end++ = (char)('a' + queue_of(x));
	*end++ = (char)('0' + address / CHUNK);
	*end = 0;
}

bool __wrap_xsk_commit(struct xsk *x) { return was_empty; }

uint64_t __wrap_xsk_read_drops(struct xsk *x)
{
	uint64_t new = drops;

	drops = 0;
	return new;
}

/* bpf(2) makes the map of sockets, and puts one into it. */
long __wrap_syscall(long number, ...)
{
	const union bpf_attr *attr;
	va_list args;
	uint32_t entry;
	bool makes;

	va_start(args, number);
	makes = va_arg(args, int) == BPF_MAP_CREATE;
	attr = va_arg(args, const union bpf_attr *);
	va_end(args);
	if (makes) {
		assert_int_equal(attr->max_entries, port.queues);
		return step("map") ? -1 : MAP;
	}
	assert_int_equal(attr->map_fd, MAP);
	entry = *(const uint32_t *)(uintptr_t)attr->key;
	assert_int_equal(*(const int *)(uintptr_t)attr->value, opened[entry]->fd);
	return step("set");
}

int __wrap_eth_steer_renew(struct eth_port *at)
{
	assert_held(&at->lock);
	return step("attach") ? EBUSY : 0;
}

void __wrap_eth_steer_detach(struct eth_port *at) { step("detach"); }

struct eth_rule *__wrap_eth_rule_find(struct eth_port *at, const uint8_t *frame, uint32_t captured, struct eth_tag tag,
				      uint64_t time, bool outgoing, bool other_host, uint32_t *hash)
{
	assert_false(outgoing || other_host);
	assert_true(time);
	return *frame ? &found : NULL;
}

int __wrap_close(int fd) { return fd == MAP ? step("unmap") : __real_close(fd); }

/* --- a case ----------------------------------------------------------------------------------------------------- */

static const char *tried;

static int open_xdp(void) { return eth_xdp_open(&port, CHUNKS, 1518, &tried); }

UNIT_FIXTURE(set_up)
{
	forget_steps();
	port = (struct eth_port){ .fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), .index = 5,
		.queues = QUEUES };
	dapl_mutex_init(&port.lock, RANK_SOFT_ETH);
	marked = found = (struct eth_rule){ .counts = eth_rule_counts_new() };
	found.counts = eth_rule_counts_new();
	marked.rule.tag = 1;
	marked.id = PORT_ID;
	port.rules = &marked;
	found.rule.tag = 2;
	memset(memory, 0, sizeof memory);
	memset(waits, 0, sizeof waits);
	given[0] = 0;
	was_empty = false;
	drops = 0;
}

UNIT_FIXTURE(tear_down)
{
	eth_xdp_close(&port);
	eth_rule_counts_put(marked.counts);
	eth_rule_counts_put(found.counts);
	__real_close(port.fd);
}

static uint64_t tai_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_TAI, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A frame of 60 bytes comes. id 0: without a mark. */
static void store(unsigned queue, unsigned chunk, uint8_t first, uint32_t id, uint64_t time)
{
	struct steer_mark mark = { .time = time, .rule = id };
	uint8_t *at = memory[queue] + chunk * CHUNK + AT;

	if (id)
		memcpy(at - sizeof mark, &mark, sizeof mark);
	memset(at, first, 60);
	waiting[queue][waits[queue]++] = (struct xdp_desc){ .addr = chunk * CHUNK + AT, .len = 60 };
}

static int poll_frames(struct dapl_eth_frame *frames, int max)
{
	int n;

	dapl_mutex_lock(&port.lock);
	n = eth_xdp_poll(&port, frames, max);
	dapl_mutex_unlock(&port.lock);
	return n;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

UNIT_CASE(program_is_attached_before_sockets_and_ends_before_them)
{
	assert_int_equal(open_xdp(), 0);
	steps_are("map attach open set open set");
	assert_int_equal(eth_xdp_sockets(port.xdp), MAP);
	assert_false(eth_xdp_is_zero_copy(port.xdp));	/* one queue has it */
	eth_xdp_close(&port);
	steps_are("detach close close unmap");
	assert_null(port.xdp);
	port.queues = 1;
	assert_int_equal(open_xdp(), 0);
	steps_are("map attach open set");
	assert_true(eth_xdp_is_zero_copy(port.xdp));
}

UNIT_CASE(failed_step_is_named_and_leaves_nothing)
{
	static const struct {
		const char *step, *tried;
		int err;
	} rows[] = { { "map", "CAP_BPF", ENOBUFS }, { "attach", "CAP_NET_ADMIN", EBUSY }, { "open", "open", EBUSY },
		{ "set", "socket", ENOBUFS } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		failing = rows[i].step;
		assert_int_equal(open_xdp(), rows[i].err);
		assert_non_null(strstr(tried, rows[i].tried));
		eth_xdp_close(&port);
		forget_steps();
	}
}

/* --- receiving ---------------------------------------------------------------------------------------------------- */

UNIT_CASE(mark_tells_rule_and_time)
{
	struct dapl_eth_frame frame;
	struct timespec real;

	assert_int_equal(open_xdp(), 0);
	store(0, 1, 0xaa, PORT_ID, tai_now() - 1000000000);
	clock_gettime(CLOCK_REALTIME, &real);
	assert_int_equal(poll_frames(&frame, 1), 1);
	assert_int_equal(frame.tag, 1);
	assert_ptr_equal(frame.data, memory[0] + CHUNK + AT);
	assert_int_equal(frame.length, 60);
	assert_in_range(frame.time / 1000000000, (uint64_t)real.tv_sec - 2, (uint64_t)real.tv_sec);
	assert_int_equal(marked.counts->frames, 1);
	assert_int_equal(marked.counts->bytes, 60);
}

/* What the chunk had before counts no more. */
UNIT_CASE(frame_without_a_mark_is_matched)
{
	struct dapl_eth_frame frame;
	struct timespec real;

	assert_int_equal(open_xdp(), 0);
	store(0, 1, 0xaa, PORT_ID, 1);
	assert_int_equal(poll_frames(&frame, 1), 1);
	store(0, 1, 0xaa, 0, 0);
	clock_gettime(CLOCK_REALTIME, &real);
	assert_int_equal(poll_frames(&frame, 1), 1);
	assert_int_equal(frame.tag, 2);
	assert_in_range(frame.time / 1000000000, (uint64_t)real.tv_sec - 1, (uint64_t)real.tv_sec + 1);
}

UNIT_CASE(frame_of_no_rule_goes_back_at_once)
{
	struct dapl_eth_frame frame;

	assert_int_equal(open_xdp(), 0);
	store(0, 1, 0, 0, 0);
	store(0, 2, 0xaa, PORT_ID + 1, 1);	/* its rule has ended */
	store(1, 3, 0xaa, PORT_ID, 1);
	assert_int_equal(poll_frames(&frame, 1), 1);
	assert_string_equal(given, "a1a2");
	assert_int_equal(port.stats.received, 1);
}

UNIT_CASE(oldest_frames_of_all_queues_are_released)
{
	struct dapl_eth_frame frames[8];

	assert_int_equal(open_xdp(), 0);
	for (unsigned round = 0; round < 5; round++) {	/* more often than there is room */
		store(0, 0, 0xaa, PORT_ID, 1);
		store(0, 1, 0xaa, PORT_ID, 1);
		store(1, 2, 0xaa, PORT_ID, 1);
		given[0] = 0;
		assert_int_equal(poll_frames(frames, 8), 3);
		assert_int_equal(eth_xdp_release(&port, 4), EINVAL);
		assert_int_equal(eth_xdp_release(&port, 2), 0);
		assert_string_equal(given, round % 2 ? "b2a0" : "a0a1");
		assert_int_equal(eth_xdp_release(&port, 2), EINVAL);
		assert_int_equal(eth_xdp_release(&port, 1), 0);
		assert_string_equal(given, round % 2 ? "b2a0a1" : "a0a1b2");
	}
	assert_int_equal(eth_xdp_release(&port, 1), EINVAL);
}

/* With zero copy the kernel counts none, so it is not asked: here the first queue has it. */
UNIT_CASE(losses_come_with_the_next_frame)
{
	struct dapl_eth_frame frame;

	assert_int_equal(open_xdp(), 0);
	was_empty = true;
	drops = 3;
	assert_int_equal(poll_frames(&frame, 1), 0);
	assert_int_equal(port.stats.lost, 3);
	was_empty = false;
	drops = 2;
	store(1, 0, 0xaa, PORT_ID, 1);
	assert_int_equal(poll_frames(&frame, 1), 1);
	assert_int_equal(frame.lost, 3);
	assert_int_equal(port.stats.lost, 3);
	assert_int_equal(eth_xdp_read_drops(&port), 2);
	assert_int_equal(port.stats.lost, 5);
}

UNIT_CASE(frame_or_an_error_wakes)
{
	assert_int_equal(open_xdp(), 0);
	assert_false(eth_xdp_has_frame(&port));
	store(1, 0, 0xaa, PORT_ID, 1);
	assert_true(eth_xdp_has_frame(&port));
}

UNIT_MAIN(NULL, NULL)
