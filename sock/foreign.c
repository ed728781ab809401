/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* foreign.c - proofs, wake-ups and limits between processes of different users. See foreign.h. */
#include "sock/foreign.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "sock/closer.h"
#include "sock/conn.h"
#include "sock/real.h"

#ifndef TFD_IOC_SET_TICKS
#define TFD_IOC_SET_TICKS _IOW('T', 0, uint64_t)
#endif

enum {
	UNREAD = 64,      /* messages in all; each has three descriptors at most, of the 1024 that a user may have */
	UNREAD_OF_USER = 16, /* so that four users are needed to take all */
	USER_IDS = 0x7fffffff, /* ids that a namespace maps at least if it is the first one */
};

/* The first number of a file, -1: none. */
static long long read_number(const char *path, const char *format)
{
	FILE *file = fopen(path, "re");
	long long n = -1;

	if (file && fscanf(file, format, &n) != 1)
		n = -1;
	if (file)
		fclose(file);
	return n;
}

bool foreign_is_ambiguous(uid_t uid)
{
	long long overflow = read_number("/proc/sys/kernel/overflowuid", "%lld");

	if (overflow < 0)
		overflow = 65534;
	/* A map has lines of: first id inside, first id outside, count. */
	return uid == overflow && read_number("/proc/self/uid_map", "%*d %*d %lld") < USER_IDS;
}

static bool link_is(int fd, const char *wanted)
{
	char path[64], link[64] = "";

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return readlink(path, link, sizeof link - 1) > 0 && !strcmp(link, wanted);
}

int foreign_prove(int socket)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", socket);
	return open(path, O_PATH | O_CLOEXEC);
}

/* Neither this nor foreign_is_wake() asks the file itself, as fstat() does: its file system may be the peer's. */
bool foreign_is_proof(int fd, uint32_t inode)
{
	char wanted[64];
	int flags = fd < 0 ? -1 : REAL(fcntl)(fd, F_GETFL);

	snprintf(wanted, sizeof wanted, "socket:[%u]", inode);
	return flags >= 0 && flags & O_PATH && link_is(fd, wanted);
}

bool foreign_is_wake(int fd)
{
	return fd >= 0 && link_is(fd, "anon_inode:[timerfd]");
}

bool foreign_renew_wake(int efd)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	int old = REAL(fcntl)(efd, F_DUPFD_CLOEXEC, efd);
	bool done = fd >= 0 && old >= 0 && REAL(dup3)(fd, efd, O_CLOEXEC) >= 0;
	uint64_t one = 1;

	if (done) {
		/* Threads that look at either file look again. */
		if (REAL(write)(old, &one, sizeof one) < 0)
			foreign_fire(old);
		foreign_fire(efd);
	}
	if (fd >= 0)
		REAL(close)(fd);
	if (old >= 0)
		REAL(close)(old);
	return done;
}

void foreign_fire(int fd)
{
	uint64_t one = 1;
	struct itimerspec past = { .it_value = { 0, 1 } };
	int saved = errno;

	/* Kernels without checkpoints lack the first call. */
	if (REAL(ioctl)(fd, TFD_IOC_SET_TICKS, &one))
		timerfd_settime(fd, TFD_TIMER_ABSTIME, &past, NULL);
	errno = saved;
}

void foreign_clear(int fd)
{
	struct itimerspec off = { 0 };

	timerfd_settime(fd, 0, &off, NULL);
}

/* Messages with descriptors that the receivers may have left unread. */
static struct {
	int control;
	uid_t uid;
	bool closed; /* the connection does not need the socket any more */
} unread[UNREAD];
static int unread_count;

static void drop_read_ones(void)
{
	for (int i = 0; i < unread_count;) {
		int bytes = 0;

		if (!REAL(ioctl)(unread[i].control, SIOCOUTQ, &bytes) && bytes) {
			i++;
			continue;
		}
		if (unread[i].closed)
			closer_take(unread[i].control);
		unread[i] = unread[--unread_count];
	}
}

bool foreign_may_send(uid_t uid)
{
	int of_user = 0;

	drop_read_ones();
	for (int i = 0; i < unread_count; i++)
		of_user += unread[i].uid == uid;
	return unread_count < UNREAD && of_user < UNREAD_OF_USER && !closer_is_behind();
}

void foreign_sent(int control, uid_t uid)
{
	unread[unread_count].control = control;
	unread[unread_count].uid = uid;
	unread[unread_count++].closed = false;
}

void foreign_close(int control)
{
	/* The peer learns of it now, however late the descriptor is closed. */
	REAL(shutdown)(control, SHUT_RDWR);
	drop_read_ones();
	for (int i = 0; i < unread_count; i++)
		if (unread[i].control == control) {
			unread[i].closed = true;
			return;
		}
	closer_take(control);
}

void foreign_after_fork(void)
{
	unread_count = 0;
}
