/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* file_size.c - see file_size.h. The kernel sends SIGXFSZ to the calling thread only. The thread blocks it, and
 * takes the pending signal before it restores its mask. */
#include "common/file_size.h"
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

struct blocked {
	sigset_t before;		/* mask of the thread */
	bool pending;			/* a signal that is not ours: the program sent it */
};

static sigset_t set_of_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	return set;
}

static void block(struct blocked *b)
{
	const sigset_t set = set_of_signal();
	sigset_t pending;

	pthread_sigmask(SIG_BLOCK, &set, &b->before);
	b->pending = sigismember(&b->before, SIGXFSZ) == 1 && !sigpending(&pending) &&
		     sigismember(&pending, SIGXFSZ) == 1;
}

static void unblock(const struct blocked *b, bool failed)
{
	const struct timespec no_wait = { 0 };
	const sigset_t set = set_of_signal();
	const int err = errno;

	if (failed && err == EFBIG && !b->pending)
		while (sigtimedwait(&set, NULL, &no_wait) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &b->before, NULL);
	errno = err;
}

int file_set_size(int fd, off_t size)
{
	struct blocked b;
	int result;

	block(&b);
	result = ftruncate(fd, size);
	unblock(&b, result < 0);
	return result;
}

ssize_t file_write(int fd, const void *bytes, size_t n)
{
	struct blocked b;
	ssize_t put;

	block(&b);
	put = write(fd, bytes, n);
	unblock(&b, put < 0);
	return put;
}
