/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unit.h - what each unit test includes: cmocka with the headers that it needs, those of the system that many tests
 * use, and tests that register themselves.
 *
 *	UNIT_TEST(queue_is_empty_at_first)
 *	{
 *		assert_null(queue_first(&queue));
 *	}
 *
 *	UNIT_MAIN(NULL, NULL)
 *
 * UNIT_MAIN runs the tests of the program in the order of their lines, or those that match its argument as cmocka's
 * test filter, and bounds their time. UNIT_CASE is a test between set_up() and tear_down() of the file; a file with
 * other fixtures defines a short name for UNIT_TEST_WITH. `state` is cmocka's pointer that a setup may set; most tests
 * have no use for it, and a function that stands for another has parameters that it does not read: the warning about
 * them is off here. */
#ifndef TEST_UNIT_UNIT_H
#define TEST_UNIT_UNIT_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

struct unit_test {
	int line;
	struct CMUnitTest test;
};

/* Declares the functions that the linker calls in place of others (--wrap): REPLACE(send, close). EXTEND declares
 * those that are replaced, too, as __real_send. Visible, since the libraries of sanitizers call some of libc. */
#define REPLACE(...) UNIT_EACH(UNIT_REPLACE, __VA_ARGS__)
#define EXTEND(...) UNIT_EACH(UNIT_EXTEND, __VA_ARGS__)
#define UNIT_REPLACE(f) extern __typeof__(f) __wrap_##f __attribute__((visibility("default")));
#define UNIT_EXTEND(f) UNIT_REPLACE(f) extern __typeof__(f) __real_##f __attribute__((visibility("default")));
#define UNIT_EACH(m, ...) \
	UNIT_PICK(__VA_ARGS__, UNIT_8, UNIT_7, UNIT_6, UNIT_5, UNIT_4, UNIT_3, UNIT_2, UNIT_1, )(m, __VA_ARGS__)
#define UNIT_PICK(a, b, c, d, e, f, g, h, pick, ...) pick
#define UNIT_1(m, a) m(a)
#define UNIT_2(m, a, ...) m(a) UNIT_1(m, __VA_ARGS__)
#define UNIT_3(m, a, ...) m(a) UNIT_2(m, __VA_ARGS__)
#define UNIT_4(m, a, ...) m(a) UNIT_3(m, __VA_ARGS__)
#define UNIT_5(m, a, ...) m(a) UNIT_4(m, __VA_ARGS__)
#define UNIT_6(m, a, ...) m(a) UNIT_5(m, __VA_ARGS__)
#define UNIT_7(m, a, ...) m(a) UNIT_6(m, __VA_ARGS__)
#define UNIT_8(m, a, ...) m(a) UNIT_7(m, __VA_ARGS__)

/* A set-up or tear-down that does not fail but by its assertions: UNIT_FIXTURE(set_up) { ... } */
#define UNIT_FIXTURE(name) \
	static void name##_steps(void **state); \
	static int name(void **state) \
	{ \
		name##_steps(state); \
		return 0; \
	} \
	static void name##_steps(void **state)

/* Allocations that fail while `when` holds; the program wraps the function. The libraries of sanitizers call it,
 * too. */
#define UNIT_FAIL_MALLOC(when) \
	EXTEND(malloc) \
	void *__wrap_malloc(size_t size) { return (when) ? NULL : __real_malloc(size); }
#define UNIT_FAIL_CALLOC(when) \
	EXTEND(calloc) \
	void *__wrap_calloc(size_t n, size_t size) { return (when) ? NULL : __real_calloc(n, size); }
#define UNIT_FAIL_REALLOC(when) \
	EXTEND(realloc) \
	void *__wrap_realloc(void *old, size_t size) { return (when) ? NULL : __real_realloc(old, size); }

/* The linker gathers pointers to all tests in one section and defines its two ends. */
#define UNIT_TEST_WITH(name, set_up, tear_down) \
	static void name(void **state); \
	static const struct unit_test name##_test = { \
		__LINE__, cmocka_unit_test_setup_teardown(name, set_up, tear_down) \
	}; \
	static const struct unit_test *const name##_entry __attribute__((used, section("unit_tests"))) = &name##_test; \
	static void name(void **state)

#define UNIT_TEST(name) UNIT_TEST_WITH(name, NULL, NULL)

/* A test between set_up() and tear_down() of its file. */
#define UNIT_CASE(name) UNIT_TEST_WITH(name, set_up, tear_down)

extern const struct unit_test *const __start_unit_tests[] __attribute__((visibility("hidden")));
extern const struct unit_test *const __stop_unit_tests[] __attribute__((visibility("hidden")));

static inline const struct unit_test *unit_next(int line)
{
	const struct unit_test *next = NULL;

	for (const struct unit_test *const *t = __start_unit_tests; t < __stop_unit_tests; t++)
		if ((*t)->line > line && (next == NULL || (*t)->line < next->line))
			next = *t;
	return next;
}

/* Seconds: ends a test that waits for ever, and leaves time to one under valgrind or an emulation. */
enum { UNIT_MOST_S = 300 };

static inline int unit_run(int argc, char **argv, int (*set_up)(void **), int (*tear_down)(void **))
{
	static struct CMUnitTest tests[256];
	size_t n = 0;

	for (const struct unit_test *t = unit_next(0); t != NULL; t = unit_next(t->line)) {
		if (n == sizeof(tests) / sizeof(*tests))
			abort();
		tests[n++] = t->test;
	}
	alarm(UNIT_MOST_S);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return _cmocka_run_group_tests("tests", tests, n, set_up, tear_down);
}

#define UNIT_MAIN(set_up, tear_down) \
	int main(int argc, char **argv) { return unit_run(argc, argv, set_up, tear_down); }

#endif
