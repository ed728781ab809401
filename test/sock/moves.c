/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* moves.c - a stream keeps its bytes and their order while its directions move to the ring and back at random
 * positions.
 *
 *	moves [SEED [BYTES [MODE [UID UID]]]]	MODE: both (default), kill, stop; users of the two ends
 *
 * Run it with the library preloaded, DATSOCK_AFTER=0 and DATSOCK_TEST_BACK=N. Two processes send each other bytes that
 * each position determines, in writes of random sizes, by blocking and nonblocking calls, poll and epoll. With `kill`
 *one of them is killed at a random moment: what the other one receives is a prefix of the stream, and then the end. */
#include <arpa/inet.h>
#include <dat/dat_socket.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma weak dat_socket_info /* of the preloaded library */

enum { STOPS = 20 }; /* with `stop`: some are in the middle of a call, some while the peer waits */

static uint64_t state;

static uint32_t random32(void)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return state >> 33;
}

static char byte_at(uint64_t position)
{
	return (char)(position * 2654435761u >> 13 ^ position >> 24);
}

static void fail(const char *what, uint64_t position)
{
	fprintf(stderr, "moves: %s at byte %llu (%s)\n", what, (unsigned long long)position, strerror(errno));
	exit(1);
}

/* Prints how often the direction of this end has moved to the ring and back. */
static void print_moves(int fd)
{
	struct dat_socket_info info = { .size = sizeof info };

	if (dat_socket_info && !dat_socket_info(fd, &info))
		printf("%llu moves, %llu backs\n", (unsigned long long)info.moves, (unsigned long long)info.backs);
	fflush(stdout);
}

static void exchange(int fd, uint64_t total, bool dies)
{
	static char out[200000], in[200000];
	uint64_t sent = 0, got = 0;
	int ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { EPOLLIN | EPOLLOUT, { .fd = fd } };
	bool edge = random32() % 2, use_poll = random32() % 2, ended = false, in_ready = true, out_ready = true;

	if (edge)
		event.events |= EPOLLET;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	if (!use_poll)
		epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event);
	while (sent < total || !ended) {
		if (sent < total && out_ready) {
			size_t n = random32() % (random32() % 8 ? 3000 : sizeof out) + 1;
			ssize_t done;

			if (n > total - sent)
				n = total - sent;
			for (size_t i = 0; i < n; i++)
				out[i] = byte_at(sent + i);
			done = write(fd, out, n);
			if (done < 0 && errno != EAGAIN) {
				if (dies)
					return;
				fail("write failed", sent);
			}
			if (done < 0 && (edge || use_poll))
				out_ready = false;
			if (done > 0)
				sent += done;
			if (sent == total && shutdown(fd, SHUT_WR)) {
				if (dies)
					return;
				fail("shutdown failed", sent);
			}
		}
		if (in_ready) {
			size_t n = random32() % (random32() % 8 ? 5000 : sizeof in) + 1;
			ssize_t done = read(fd, in, n);

			if (done < 0 && errno != EAGAIN) {
				if (dies)
					return;
				fail("read failed", got);
			}
			if (done < 0)
				in_ready = false;
			for (ssize_t i = 0; i < done; i++)
				if (in[i] != byte_at(got + i))
					fail("wrong byte", got + i);
			if (done > 0)
				got += done;
			if (!done) {
				ended = true;
				in_ready = false;
				if (!dies && got != total)
					fail("early end", got);
				if (dies)
					return;
			}
		}
		if (in_ready || (out_ready && sent < total))
			continue;
		if (use_poll) {
			struct pollfd p = { fd, (ended ? 0 : POLLIN) | (sent < total ? POLLOUT : 0), 0 };

			errno = 0;
			if (p.events && poll(&p, 1, 20000) < 1 && errno != EINTR)
				fail("poll tells nothing for 20 s", got);
			in_ready |= !ended && p.revents & (POLLIN | POLLHUP | POLLERR),
				out_ready |= p.revents & POLLOUT;
		} else if (sent < total || !ended) {
			/* A signal that stops the process interrupts this call. */
			event.events = 0, errno = 0;
			if (epoll_wait(ep, &event, 1, 20000) != 1 && errno != EINTR)
				fail("epoll tells nothing for 20 s", got);
			in_ready |= !ended && event.events & (EPOLLIN | EPOLLHUP | EPOLLERR),
				out_ready |= event.events & EPOLLOUT;
		}
	}
}

/* Makes a process that stops the other one at random moments. Returns its pid. */
static pid_t start_stopper(pid_t pid, int listener)
{
	pid_t stopper = fork();

	if (stopper)
		return stopper;
	close(listener);
	for (int i = 0; i < STOPS; i++) {
		usleep(random32() % 3000);
		kill(pid, SIGSTOP);
		usleep(random32() % 10000);
		kill(pid, SIGCONT);
	}
	_exit(0);
}

static void become(uid_t uid)
{
	if (uid != getuid() && setresuid(uid, uid, uid))
		fail("setresuid failed", 0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1,
		 total = argc > 2 ? strtoull(argv[2], NULL, 0) : 1 << 20;
	bool dies = argc > 3 && !strcmp(argv[3], "kill"), stops = argc > 3 && !strcmp(argv[3], "stop");
	socklen_t size = sizeof sa;
	/* users of the two ends */
	uid_t connector = argc > 5 ? strtoul(argv[4], NULL, 0) : getuid(),
	      acceptor = argc > 5 ? strtoul(argv[5], NULL, 0) : getuid();
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd, status;
	pid_t pid, stopper = 0;

	signal(SIGPIPE, SIG_IGN);
	alarm(120);
	if (bind(listener, (void *)&sa, sizeof sa) || listen(listener, 1) || getsockname(listener, (void *)&sa, &size))
		fail("no listener", 0);
	pid = fork();
	state = seed * 2 + !pid;
	random32();
	if (!pid) {
		become(acceptor);
		fd = accept(listener, NULL, NULL);
		close(listener);
		exchange(fd, total, dies);
		print_moves(fd);
		_exit(0);
	}
	if (dies && !fork()) {
		close(listener);
		usleep(random32() % 30000);
		kill(pid, SIGKILL);
		_exit(0);
	}
	if (stops)
		stopper = start_stopper(pid, listener);
	become(connector);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (void *)&sa, sizeof sa))
		fail("connect failed", 0);
	close(listener);
	exchange(fd, total, dies);
	print_moves(fd);
	close(fd);
	/* The number of the other process is its own until it is waited for. */
	while (stopper && waitpid(stopper, &status, 0) != stopper)
		;
	while (waitpid(pid, &status, 0) != pid)
		;
	if (!dies && status)
		return 1;
	return 0;
}
