/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_file_size.c - files that reach RLIMIT_FSIZE: an error, and no signal. */
#include "common/file_size.h"
#include "test/unit/unit.h"
#include <signal.h>
#include <sys/resource.h>

enum { LIMIT = 100 };

static struct rlimit before;
static volatile sig_atomic_t signals;
static int fd;

static void count_signal(int signal) { signals++; }

static int begin(void **state)
{
	struct rlimit limit;
	int err = getrlimit(RLIMIT_FSIZE, &before);

	limit = (struct rlimit){ LIMIT, before.rlim_max };
	signals = 0;
	signal(SIGXFSZ, count_signal);
	fd = memfd_create("test", MFD_CLOEXEC);
	return err || fd < 0 || setrlimit(RLIMIT_FSIZE, &limit);
}

static int end(void **state)
{
	signal(SIGXFSZ, SIG_DFL);
	close(fd);
	return setrlimit(RLIMIT_FSIZE, &before);
}

static bool is_blocked(void)
{
	sigset_t set;

	pthread_sigmask(SIG_SETMASK, NULL, &set);
	return sigismember(&set, SIGXFSZ) == 1;
}

static bool is_pending(void)
{
	sigset_t set;

	sigpending(&set);
	return sigismember(&set, SIGXFSZ) == 1;
}

static void set_blocked(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	pthread_sigmask(how, &set, NULL);
}

static void exceed(void)
{
	char bytes[LIMIT] = "";

	errno = 0;
	assert_int_equal(file_set_size(fd, LIMIT + 1), -1);
	assert_int_equal(errno, EFBIG);
	assert_int_equal(file_set_size(fd, LIMIT), 0);
	assert_int_equal(lseek(fd, LIMIT / 2, SEEK_SET), LIMIT / 2);
	assert_int_equal(file_write(fd, bytes, LIMIT), LIMIT / 2);
	errno = 0;
	assert_int_equal(file_write(fd, bytes, 1), -1);
	assert_int_equal(errno, EFBIG);
}

UNIT_TEST_WITH(limit_is_an_error_without_a_signal, begin, end)
{
	exceed();
	assert_int_equal(signals, 0);
	assert_false(is_blocked());
	assert_false(is_pending());
}

UNIT_TEST_WITH(action_of_the_program_stays, begin, end)
{
	exceed();
	raise(SIGXFSZ);
	assert_int_equal(signals, 1);
	assert_int_equal(ftruncate(fd, LIMIT + 1), -1);
	assert_int_equal(signals, 2);
}

UNIT_TEST_WITH(ignored_signal_leaves_nothing_pending, begin, end)
{
	signal(SIGXFSZ, SIG_IGN);
	exceed();
	assert_false(is_pending());
}

UNIT_TEST_WITH(blocked_signal_stays_blocked, begin, end)
{
	set_blocked(SIG_BLOCK);
	exceed();
	assert_true(is_blocked());
	assert_false(is_pending());
	set_blocked(SIG_UNBLOCK);
	assert_int_equal(signals, 0);
}

/* It waits for the program, which has blocked it. */
UNIT_TEST_WITH(signal_from_elsewhere_is_not_taken, begin, end)
{
	set_blocked(SIG_BLOCK);
	raise(SIGXFSZ);
	exceed();
	assert_true(is_pending());
	set_blocked(SIG_UNBLOCK);
	assert_int_equal(signals, 1);
}

UNIT_TEST_WITH(other_errors_are_those_of_the_calls, begin, end)
{
	assert_int_equal(file_set_size(-1, 0), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(file_write(-1, "", 1), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(file_write(fd, "abc", 3), 3);
}

UNIT_MAIN(NULL, NULL)
