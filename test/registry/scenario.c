/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scenario.c - see scenario.h. The body runs in a child, whose output and notes go to temporary files. */
#include "test/registry/scenario.h"
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static pthread_mutex_t note_lock = PTHREAD_MUTEX_INITIALIZER;
static char *notes;		/* of this process, and of the one that made them */
static size_t notes_length;
static int note_fd = -1, real_stderr = 2;

/* Called by the mock providers. */
__attribute__((visibility("default"))) void mock_note(const char *fmt, ...);
void mock_note(const char *fmt, ...)
{
	char line[1024];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, args);
	va_end(args);
	line[n++] = '\n';
	pthread_mutex_lock(&note_lock);
	notes = realloc(notes, notes_length + n + 1);
	memcpy(notes + notes_length, line, n);
	notes_length += n;
	notes[notes_length] = '\0';
	if (note_fd >= 0 && write(note_fd, line, n) != n)
		abort();
	pthread_mutex_unlock(&note_lock);
}

static int count_lines(const char *text, const char *line)
{
	size_t length = strlen(line);
	int count = 0;

	for (const char *at = text; at && *at; at = strchr(at, '\n') + 1)
		if (!strncmp(at, line, length) && at[length] == '\n')
			count++;
	return count;
}

int noted(const char *note)
{
	int count;

	pthread_mutex_lock(&note_lock);
	count = count_lines(notes, note);
	pthread_mutex_unlock(&note_lock);
	return count;
}

int noted_in(const struct outcome *outcome, const char *note)
{
	return count_lines(outcome->notes, note);
}

void scenario_check(bool good, const char *file, int line, const char *what)
{
	if (good)
		return;
	dprintf(real_stderr, "%s:%d: %s: false\n", file, line, what);
	_exit(99);
}

static const char *code(DAT_RETURN ret, char *text, size_t size)
{
	const char *major = "", *minor = "";
	DAT_RETURN (*strerror)(DAT_RETURN, const char **, const char **) =
		(DAT_RETURN (*)(DAT_RETURN, const char **, const char **))
		dlsym(RTLD_DEFAULT, "dat_strerror");

	if (strerror)
		strerror(ret, &major, &minor);
	snprintf(text, size, "0x%08x %s %s", ret, major, minor);
	return text;
}

void scenario_returns(DAT_RETURN got, DAT_RETURN expected, const char *file, int line,
		      const char *what)
{
	char a[128], b[128];

	if (got == expected)
		return;
	dprintf(real_stderr, "%s:%d: %s\n  returned %s\n  expected %s\n", file, line, what,
		code(got, a, sizeof(a)), code(expected, b, sizeof(b)));
	_exit(99);
}

/* Temporary files hold what the process prints: they never fill up, as pipes do. */
static int scratch(void)
{
	FILE *f = tmpfile();

	if (!f)
		abort();
	return dup(fileno(f));
}

static void collect(int fd, char *text, size_t size)
{
	ssize_t n = pread(fd, text, size - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	close(fd);
}

static void run(const char *conf, void (*body)(void), int out, int err, int note)
{
	char path[PATH_MAX];

	real_stderr = dup(2);
	fflush(NULL);
	note_fd = note;
	dup2(out, 1);
	dup2(err, 2);
	if (conf) {
		snprintf(path, sizeof(path), strchr(conf, '/') ? "%s%s" : "%s/%s",
			 strchr(conf, '/') ? "" : FIXTURES, conf);
		setenv("DAT_OVERRIDE", path, 1);
	}
	if (chdir(MODULES))
		abort();
	alarm(300);	/* a deadlock is a failure, also under valgrind */
	body();
	free(notes);
	notes = NULL;
	notes_length = 0;
	exit(0);
}

void scenario(struct outcome *outcome, const char *conf, void (*body)(void))
{
	int out = scratch(), err = scratch(), note = scratch(), status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		run(conf, body, out, err, note);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	outcome->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
	collect(out, outcome->out, sizeof(outcome->out));
	collect(err, outcome->err, sizeof(outcome->err));
	collect(note, outcome->notes, sizeof(outcome->notes));
	if (outcome->status)
		print_message("%s", outcome->err);
}

void silent(const char *conf, void (*body)(void))
{
	struct outcome *outcome = malloc(sizeof(*outcome));

	scenario(outcome, conf, body);
	assert_int_equal(outcome->status, 0);
	assert_string_equal(outcome->out, "");
	assert_string_equal(outcome->err, "");
	free(outcome);
}

void silent_but_unknown(const char *conf, void (*body)(void), int names)
{
	static const char start[] = "dat: no interface adapter \"";
	struct outcome *outcome = malloc(sizeof(*outcome));
	int lines = 0;

	scenario(outcome, conf, body);
	assert_int_equal(outcome->status, 0);
	assert_string_equal(outcome->out, "");
	for (const char *at = outcome->err; *at; at = strchr(at, '\n') + 1, lines++)
		assert_memory_equal(at, start, strlen(start));
	assert_int_equal(lines, names);
	free(outcome);
}
