/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* await.c - see await.h. A child process makes each look, because the registry of a process reads its files once. */
#include "tools/info/await.h"
#include "tools/cli.h"
#include "common/clock.h"
#include "tools/info/adapters.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PAUSE_US = 500000,	/* microseconds between two looks: a device appears within seconds */
	LOOK_S = 20,		/* seconds that a provider has to open the IA, at most */
};

static void discard_output(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(CLI_FAILURE);
}

static bool opens(char *name, unsigned seconds)
{
	const struct adapters_options options = { .names = &name, .count = 1, .seconds = seconds };
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		fail("no process can be started: %s", strerror(errno));
	if (!pid) {
		discard_output();
		exit(adapters_show(&options));
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			fail("the process that looks is lost: %s", strerror(errno));
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

int await_adapter(char *name, unsigned seconds)
{
	const struct adapters_options options = { .names = &name, .count = 1, .seconds = LOOK_S };
	uint64_t end = clock_now_ns() + seconds * 1000000000ull, now;

	while ((now = clock_now_ns()) < end) {
		unsigned left = (unsigned)((end - now) / 1000000000) + 1;

		if (opens(name, left < LOOK_S ? left : LOOK_S))
			return 0;
		usleep(PAUSE_US);
	}
	return adapters_show(&options);
}
