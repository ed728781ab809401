/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_lease.c - the thread of datcap that renews captures while the main thread is blocked. What programs answer is
 * made up here. */
#include <jansson.h>
#include "tools/datcap/lease.h"
#include "test/unit/unit.h"

static unsigned asked[2];	/* requests to each program; atomic */
static const struct control_socket programs[2] = { { "a", 1 }, { "b", 2 } };

json_t *control_ask(const struct control_socket *socket, enum control_verb verb, json_t *request, char *why,
		    size_t size)
{
	if (verb == CONTROL_TAP && json_integer_value(json_object_get(request, "client")) == 7)
		__atomic_add_fetch(&asked[socket->name[0] - 'a'], 1, __ATOMIC_RELAXED);
	json_decref(request);
	return NULL;
}

/* The main thread has just renewed `count` programs from `first` on. */
static void renew(size_t first, size_t count)
{
	struct control_socket *sockets = calloc(count, sizeof *sockets);

	assert_non_null(sockets);
	memcpy(sockets, programs + first, count * sizeof *sockets);
	lease_keep(sockets, count);
	lease_renewed();
}

static unsigned requests_to(int program) { return __atomic_load_n(&asked[program], __ATOMIC_RELAXED); }

UNIT_FIXTURE(set_up)
{
	memset(asked, 0, sizeof asked);
	lease_start(json_pack("{s:i}", "client", 7));
}

UNIT_FIXTURE(tear_down) { lease_stop(); }

UNIT_TEST_WITH(thread_renews_while_the_caller_does_not, set_up, tear_down)
{
	renew(0, 2);
	while (requests_to(0) < 2 || requests_to(1) < 2)
		usleep(1000);
}

UNIT_TEST_WITH(thread_asks_only_programs_of_the_last_call, set_up, tear_down)
{
	renew(0, 2);
	renew(1, 1);
	while (requests_to(1) < 1)
		usleep(1000);
	assert_int_equal(requests_to(0), 0);
}

UNIT_TEST_WITH(no_request_follows_the_stop, set_up, tear_down)
{
	unsigned before;

	renew(0, 1);
	while (requests_to(0) < 1)
		usleep(1000);
	lease_stop();
	before = requests_to(0);
	usleep(10000);
	assert_int_equal(requests_to(0), before);
	lease_stop();	/* does nothing */
}

UNIT_MAIN(NULL, NULL)
