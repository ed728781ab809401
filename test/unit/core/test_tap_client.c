/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_tap_client.c - begin and end of the capture that a client of the control socket asks for (ia/tap.c): one
 * client at a time, whose requests keep the capture alive. The device and the timer are replaced here; test_tap.c is
 * about the ring. */
#include "dapl/core/base/tap.h"
#include "dapl/core/event/async.h"
#include "dapl/core/ia/tap.h"
#include "test/unit/child.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ias[2];
static bool recording[2];		/* what the device of each IA was told last */
static unsigned told;			/* how often devices were told */
static struct dapl_timer *running;	/* that was started, and has not fired */
static void (*fires)(struct dapl_timer *timer);
static uint64_t delay_us;
static int begin_error;			/* of the ring */
static bool no_list;			/* there is no memory for the list of IAs */
static char answer[256];		/* to the last request */

static void tell(struct dapl_device *dev, bool on)
{
	for (int i = 0; i < 2; i++)
		if (ias[i]->dev == dev)
			recording[i] = on;
	told++;
}

struct dapl_device_ops __wrap_dapl_device_ops;

REPLACE(dapl_timer_start)
void __wrap_dapl_timer_start(struct dapl_timer *timer, uint64_t us, void (*fire)(struct dapl_timer *))
{
	running = timer;
	fires = fire;
	delay_us = us;
}

REPLACE(dapl_timer_drain)
void __wrap_dapl_timer_drain(struct dapl_timer *timer)
{
	if (running == timer)
		running = NULL;
}

EXTEND(dapl_tap_begin)
int __wrap_dapl_tap_begin(uint32_t snap, uint64_t *began)
{
	return begin_error ? -begin_error : __real_dapl_tap_begin(snap, began);
}

EXTEND(dapl_async_enter_ias)
bool __wrap_dapl_async_enter_ias(struct dapl_object ***objects, size_t *count)
{
	return !no_list && __real_dapl_async_enter_ias(objects, count);
}

/* Returns NULL, or why it failed. */
static const char *ask(const char *text)
{
	static char why[128];
	struct json_writer json = { .text = NULL };
	struct json_object request;
	const char *failed;
	size_t at = 0;

	assert_null(json_read(text, strlen(text), &request, &at));
	json_write_open(&json, NULL, '{');
	failed = dapl_tap_verb(&request, &json, why, sizeof why);
	json_write_close(&json, '}');
	assert_true(!json.failed && json.length < sizeof answer);
	memcpy(answer, json.text, json.length);
	answer[json.length] = '\0';
	json_write_free(&json);
	return failed;
}

static void fire(void)
{
	struct dapl_timer *timer = running;

	assert_non_null(timer);
	running = NULL;
	fires(timer);
}

static bool put(const char *text)
{
	const struct tap_ends ends = { .local.family = 4 };
	struct tap_entry *entry;
	uint32_t shown = 0;

	if (!dapl_tap_show(5, 0, &ends, &shown) || !(entry = dapl_tap_reserve(TAP_LINE, shown)))
		return false;
	*entry = (struct tap_entry){ .qpn = 5, .state = TAP_VALID, .op = TAP_SEND };
	entry->message.captured = entry->message.length = (uint32_t)strlen(text);
	strcpy((char *)entry->message.payload, text);
	dapl_tap_publish(TAP_LINE);
	return true;
}

/* The ring, by the descriptor of the last answer. */
static struct tap_ring *map(void)
{
	struct tap_ring *ring;
	int fd;

	assert_int_equal(sscanf(answer, "{\"descriptor\":%d,", &fd), 1);
	ring = mmap(NULL, TAP_HEAD + TAP_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(ring != MAP_FAILED);
	return ring;
}

/* Client 7 captures a message. Returns the ring. */
static struct tap_ring *capture_message(void)
{
	struct tap_ring *ring;

	assert_null(ask("{\"client\":7}"));
	ring = map();
	assert_true(put("message"));
	return ring;
}

static uint32_t first_qpn(const struct tap_ring *ring)
{
	return ((const struct tap_entry *)((const char *)ring + TAP_HEAD))->qpn;
}

static void unmap(struct tap_ring *ring) { munmap(ring, TAP_HEAD + TAP_SIZE); }

UNIT_FIXTURE(set_up)
{
	static char devices[2];		/* their addresses are those of devices */

	__wrap_dapl_device_ops.tap = tell;
	for (int i = 0; i < 2; i++) {
		ias[i] = core_ia_new();
		ias[i]->dev = (struct dapl_device *)&devices[i];
		dapl_async_join(ias[i]);
		recording[i] = false;
	}
	told = 0;
}

/* No test leaves a lock held, or an IA entered. */
UNIT_FIXTURE(tear_down)
{
	begin_error = 0;
	no_list = false;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ias[i]->obj.calls, 0);
		dapl_async_leave(ias[i]);
	}
	dapl_tap_ia_closed();
	for (int i = 0; i < 2; i++)
		core_ia_free(ias[i]);
	dapl_tap_fini();
	running = NULL;
}

UNIT_CASE(first_request_begins_and_later_ones_go_on)
{
	char first[sizeof answer];

	assert_false(put("before"));
	assert_null(ask("{\"client\":7,\"snap\":5}"));
	assert_true(recording[0] && recording[1]);
	assert_int_equal(dapl_tap_snap(), 5);
	assert_non_null(strstr(answer, "\"began\":"));
	assert_true(put("here"));
	strcpy(first, answer);
	running = NULL;
	assert_null(ask("{\"client\":7,\"snap\":9}"));
	assert_string_equal(answer, first);
	assert_int_equal(dapl_tap_snap(), 5);
	assert_int_equal(told, 2);
	assert_non_null(running);
	assert_int_equal(delay_us, TAP_LEASE_MS * 1000);
}

UNIT_CASE(payload_of_a_record_is_bounded)
{
	assert_null(ask("{\"client\":7,\"snap\":4294967296}"));
	assert_int_equal(dapl_tap_snap(), TAP_SNAP_MAX);
	assert_null(ask("{\"client\":7,\"end\":1}"));
	assert_null(ask("{\"client\":7}"));
	assert_int_equal(dapl_tap_snap(), 0);
}

UNIT_CASE(request_without_a_client_does_nothing)
{
	assert_string_equal(ask("{}"), "\"client\" is missing");
	assert_string_equal(ask("{\"client\":0}"), "\"client\" is missing");
	assert_string_equal(ask("{\"client\":\"7\"}"), "\"client\" is missing");
	assert_int_equal(told, 0);
	assert_null(running);
}

UNIT_CASE(second_client_waits_for_the_end_of_the_first)
{
	assert_null(ask("{\"client\":7}"));
	assert_string_equal(ask("{\"client\":8}"), "another capture of its messages runs");
	assert_string_equal(ask("{\"client\":8,\"end\":1}"), "another capture of its messages runs");
	assert_string_equal(answer, "{}");
	assert_true(put("of 7"));
	assert_null(ask("{\"client\":7,\"end\":1}"));
	assert_false(recording[0] || recording[1]);
	assert_false(put("of none"));
	assert_null(ask("{\"client\":8}"));
	assert_true(recording[0] && recording[1]);
}

/* What was captured can be read until the second end. */
UNIT_CASE(second_end_gives_the_memory_back)
{
	struct tap_ring *ring = capture_message();

	assert_null(ask("{\"client\":7,\"end\":1}"));
	assert_int_not_equal(first_qpn(ring), 0);
	told = 0;
	assert_null(ask("{\"client\":7,\"end\":1}"));
	assert_int_equal(first_qpn(ring), 0);
	assert_int_equal(told, 0);
	unmap(ring);
}

UNIT_CASE(capture_of_a_killed_client_ends)
{
	struct tap_ring *ring = capture_message();

	fire();
	assert_false(recording[0] || recording[1]);
	assert_false(put("later"));
	assert_int_equal(first_qpn(ring), 0);
	assert_null(ask("{\"client\":8}"));
	unmap(ring);
}

/* The client that was killed had ended its capture, but not read it. */
UNIT_CASE(memory_of_a_killed_client_is_given_back)
{
	struct tap_ring *ring = capture_message();

	assert_null(ask("{\"client\":7,\"end\":1}"));
	told = 0;
	fire();
	assert_int_equal(first_qpn(ring), 0);
	assert_int_equal(told, 0);
	unmap(ring);
}

UNIT_CASE(capture_without_memory_does_not_begin)
{
	begin_error = EMFILE;
	assert_string_equal(ask("{\"client\":7}"), "it has no memory for a capture: Too many open files");
	assert_int_equal(told, 0);
	begin_error = 0;
	no_list = true;
	assert_string_equal(ask("{\"client\":7}"), "no memory");
	assert_false(put("message"));
	assert_string_equal(answer, "{}");
	assert_null(running);
	no_list = false;
	assert_null(ask("{\"client\":8}"));
	assert_true(recording[0] && recording[1]);
}

UNIT_CASE(ia_opened_meanwhile_takes_part)
{
	dapl_tap_ia_opened(ias[1]);
	assert_int_equal(told, 0);
	dapl_async_leave(ias[1]);
	assert_null(ask("{\"client\":7}"));
	assert_true(recording[0] && !recording[1]);
	dapl_async_join(ias[1]);
	dapl_tap_ia_opened(ias[1]);
	assert_true(recording[1]);
	assert_int_equal(told, 2);
}

/* The timer must not fire into a library that is unloaded. */
UNIT_CASE(capture_ends_with_the_last_ia)
{
	assert_null(ask("{\"client\":7}"));
	dapl_async_leave(ias[1]);
	dapl_tap_ia_closed();
	assert_true(put("message"));
	assert_non_null(running);
	dapl_async_leave(ias[0]);
	dapl_tap_ia_closed();
	assert_false(put("message"));
	assert_null(running);
	dapl_async_join(ias[0]);
	dapl_async_join(ias[1]);
	assert_null(ask("{\"client\":8}"));
}

UNIT_CASE(device_that_shows_no_messages_is_not_asked)
{
	__wrap_dapl_device_ops.tap = NULL;
	assert_string_equal(ask("{\"client\":7}"), "its provider library does not show messages");
	dapl_tap_ia_opened(ias[0]);
	assert_null(running);
	assert_int_equal(told, 0);
}

/* The IAs of the parent are none of the child's. */
static int in_child(void)
{
	if (put("message"))
		return 1;
	dapl_tap_ia_opened(ias[0]);
	if (told)
		return 2;
	return ask("{\"client\":8}") ? 3 : 0;
}

UNIT_CASE(child_has_no_capture)
{
	pid_t child;

	assert_null(ask("{\"client\":7}"));
	told = 0;
	child = fork_child();
	if (!child)
		_exit(in_child());
	expect_success(child);
	assert_true(put("message"));
	assert_non_null(ask("{\"client\":8}"));
	assert_null(ask("{\"client\":7}"));
}

UNIT_FIXTURE(init)
{
	dapl_tap_init();
	dapl_tap_client_init();
}

UNIT_MAIN(init, NULL)
