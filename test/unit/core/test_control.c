/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_control.c - the names of the control socket: which is taken when others are in use, and that nothing is
 * left when none is free. What the socket answers is in test/life/control.c. */
#include <dirent.h>
#include <sys/un.h>
#include "common/control.h"
#include "dapl/core/base/control.h"
#include "dapl/core/base/service.h"
#include "test/unit/unit.h"

enum { NAMES = 8 };

static int taken[NAMES];

static const char *answer_nothing(const struct json_object *request, struct json_writer *answer, char *why,
				  size_t size)
{
	return NULL;
}

static int set_up(void **state)
{
	static dapl_control_verb *const verbs[] = { answer_nothing };

	for (int i = 0; i < NAMES; i++)
		taken[i] = -1;
	unsetenv("DAPL_CONTROL");
	dapl_control_serve(verbs, 1);
	return dapl_service_get();
}

UNIT_FIXTURE(tear_down)
{
	for (int i = 0; i < NAMES; i++)
		if (taken[i] >= 0)
			close(taken[i]);
	dapl_service_put();
}

/* Counts the descriptors of this process, and finds the name of its control socket; "": it has none. */
static int descriptors(char name[108])
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int n = 0;

	assert_non_null(dir);
	*name = '\0';
	while ((entry = readdir(dir))) {
		struct sockaddr_un address;
		socklen_t size = sizeof address;
		int fd = atoi(entry->d_name), listens = 0;
		socklen_t length = sizeof listens;

		n++;
		if (!getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) && listens &&
		    !getsockname(fd, (struct sockaddr *)&address, &size) && address.sun_family == AF_UNIX)
			snprintf(name, 108, "%.*s", (int)(size - offsetof(struct sockaddr_un, sun_path) - 1),
				 address.sun_path + 1);
	}
	closedir(dir);
	return n;
}

/* Binds `name`, with the suffix of the i-th copy, as another program would. */
static void take(const char *name, int i)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int length = i ? snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s-%d", name, i + 1) :
		snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", name);

	taken[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(taken[i] >= 0);
	assert_int_equal(bind(taken[i], (struct sockaddr *)&address,
			      offsetof(struct sockaddr_un, sun_path) + 1 + (socklen_t)length), 0);
}

static void learn_name(char name[108])
{
	dapl_control_get();
	descriptors(name);
	dapl_control_put();
	if (!*name)
		skip();	/* programs of this kind have none: they run set-uid, or may not be traced */
	assert_memory_equal(name, CONTROL_PREFIX, strlen(CONTROL_PREFIX));
}

UNIT_CASE(next_name_is_taken_when_one_is_in_use)
{
	char name[108], other[108], want[120];

	learn_name(name);
	take(name, 0);
	take(name, 1);
	dapl_control_get();
	descriptors(other);
	dapl_control_put();
	snprintf(want, sizeof want, "%s-3", name);
	assert_string_equal(other, want);
}

UNIT_CASE(nothing_is_left_when_no_name_is_free)
{
	char name[108], other[108];
	int before;

	learn_name(name);
	for (int i = 0; i < NAMES; i++)
		take(name, i);
	before = descriptors(other);
	dapl_control_get();
	assert_int_equal(descriptors(other), before);
	assert_string_equal(other, "");
	dapl_control_put();
	close(taken[NAMES - 1]);	/* the last one is free again */
	taken[NAMES - 1] = -1;
	dapl_control_get();
	descriptors(other);
	assert_true(*other);
	dapl_control_put();
}

UNIT_CASE(socket_lives_as_long_as_its_last_user)
{
	char name[108], other[108];

	learn_name(name);
	dapl_control_get();
	dapl_control_get();
	dapl_control_put();
	descriptors(other);
	assert_string_equal(other, name);
	dapl_control_put();
	descriptors(other);
	assert_string_equal(other, "");
	dapl_control_put();	/* one too many, as after a fork */
	dapl_control_get();
	descriptors(other);
	assert_string_equal(other, name);
	dapl_control_put();
}

UNIT_MAIN(NULL, NULL)
