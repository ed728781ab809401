/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* run.c - see run.h. */
#include "tools/control/run.h"
#include "common/env.h"
#include "tools/cli.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGUMENTS = 16, OUTPUT_MAX = 16 << 20 };	/* bytes */

static bool find_below(char path[PATH_MAX], const char *root, const char *name)
{
	static const char *const directories[] = { "/usr/sbin", "/sbin", "/usr/bin", "/bin" };

	for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
		snprintf(path, PATH_MAX, "%s%s/%s", root, directories[i], name);
		if (!access(path, X_OK))
			return true;
	}
	return false;
}

/* Looks below DAT_TEST_ROOT first, so that tests can replace a program. */
static bool find_program(char path[PATH_MAX], const char *name)
{
	return find_below(path, test_root(), name) || find_below(path, "", name);
}

/* Starts the program. Returns 0 or an errno. */
static int spawn(const char *path, const char *const *arguments, int out, int err, pid_t *pid)
{
	static char *const environment[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL };
	char *argv[ARGUMENTS + 2] = { (char *)(uintptr_t)path };
	posix_spawn_file_actions_t files;
	int result;

	for (int i = 0; i < ARGUMENTS && arguments[i]; i++)
		argv[i + 1] = (char *)(uintptr_t)arguments[i];
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
	result = posix_spawn(pid, path, &files, NULL, argv, environment);
	posix_spawn_file_actions_destroy(&files);
	return result;
}

struct text {
	char *bytes;
	size_t length;
};

/* Returns false at the end of the output. Bytes beyond OUTPUT_MAX are read and dropped. */
static bool read_some(int fd, struct text *text)
{
	char part[4096];
	ssize_t n = read(fd, part, sizeof part);

	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0)
		return false;
	if (text->length + n > OUTPUT_MAX)
		return true;
	text->bytes = realloc(text->bytes, text->length + n + 1);
	if (!text->bytes)
		fail("there is no memory left");
	memcpy(text->bytes + text->length, part, n);
	text->length += n;
	text->bytes[text->length] = '\0';
	return true;
}

static void read_both(int out, int err, struct text *text, struct text *errors)
{
	struct pollfd fds[2] = { { .fd = out, .events = POLLIN }, { .fd = err, .events = POLLIN } };
	struct text *to[2] = { text, errors };

	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		for (int i = 0; i < 2; i++)
			if (fds[i].fd >= 0 && fds[i].revents && !read_some(fds[i].fd, to[i]))
				fds[i].fd = -1;
	}
}

static void keep_error(struct run_output *output, struct text *errors)
{
	snprintf(output->error, sizeof output->error, "%s", errors->bytes ? errors->bytes : "");
	output->error[strcspn(output->error, "\n")] = '\0';
	free(errors->bytes);
}

int run_program(const char *name, const char *const *arguments, struct run_output *output)
{
	struct text text = { 0 }, errors = { 0 };
	int out[2], err[2], status, result;
	char path[PATH_MAX];
	pid_t pid;

	*output = (struct run_output){ 0 };
	if (!find_program(path, name)) {
		snprintf(output->error, sizeof output->error, "%s is not installed", name);
		return -1;
	}
	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		fail("no pipe: %s", strerror(errno));
	result = spawn(path, arguments, out[1], err[1], &pid);
	close(out[1]);
	close(err[1]);
	if (!result)
		read_both(out[0], err[0], &text, &errors);
	close(out[0]);
	close(err[0]);
	if (result) {
		snprintf(output->error, sizeof output->error, "%.400s: %s", path, strerror(result));
		return -1;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	keep_error(output, &errors);
	output->text = text.bytes ? text.bytes : strdup("");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
