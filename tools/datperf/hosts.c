/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hosts.c - see hosts.h. The server of a pair serves one client, or ends when none comes; it prints its address
 * and port, which the client connects to; the client prints its results as CSV. */
#include "hosts.h"
#include "../cli.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	LAUNCHER_WORDS = 24, WORDS = 48,	/* of the launcher; of a command with them */
	OUTPUT = 4096,		/* bytes of a command's standard output that are read */
	START_SECONDS = 60,	/* until the server serves: the launcher may have to log in */
	RUN_SECONDS = 120,	/* for the client beyond what it measures */
	END_SECONDS = 20,	/* for a command that has printed all, until SIGTERM */
	KILL_SECONDS = 3,	/* from SIGTERM until SIGKILL */
	PAUSE_NS = 20000000,	/* between looks whether a command has ended */
};
static const char IDLE[] = "--once=60";	/* a server whose client never comes ends by itself, behind any launcher */

/* A command that runs on a host. */
struct command_run {
	pid_t pid;
	int out;		/* its standard output */
	char text[OUTPUT];	/* what was read of it */
	size_t length;
};

void hosts_read(struct hosts *h, const char *list)
{
	char *words = strdup(list), *name;

	h->count = 0;
	while (words && (name = strsep(&words, ","))) {
		if (!*name || *name == '-' || strpbrk(name, " \t\n"))
			usage_error("--hosts: \"%s\" found, names of hosts separated by commas expected", list);
		for (int i = 0; i < h->count; i++)
			if (!strcmp(h->names[i], name))
				usage_error("--hosts: %s found twice", name);
		if (h->count == MATRIX_HOSTS)
			usage_error("--hosts: more than %d hosts", MATRIX_HOSTS);
		h->names[h->count++] = name;
	}
	if (h->count < 2)
		usage_error("--hosts: \"%s\" found, two hosts or more expected", list);
}

/* --- commands ------------------------------------------------------------------------ */

/* Splits the launcher into words, in `copy`, and stores LAUNCHER_WORDS of them at most. Returns their number. */
static int add_launcher(char **words, char *copy)
{
	int n = 0;

	for (char *word; (word = strsep(&copy, " "));)
		if (*word && n++ < LAUNCHER_WORDS)
			words[n - 1] = word;
	return n;
}

void hosts_check_launcher(const struct hosts *h)
{
	char *words[LAUNCHER_WORDS], *copy = strdup(h->launcher);
	int n = copy ? add_launcher(words, copy) : 1;

	free(copy);
	if (!n)
		usage_error("--launcher: \"%s\" found, a command expected, like ssh", h->launcher);
	if (n > LAUNCHER_WORDS)
		usage_error("--launcher: %d words found, up to %d expected", n, LAUNCHER_WORDS);
}

/* Starts a command on a host; `arguments` ends with NULL. */
static void start(struct command_run *r, const struct hosts *h, int host, const char *const *arguments)
{
	char *words[WORDS + 1], *copy = strdup(h->launcher);
	int ends[2], n = copy ? add_launcher(words, copy) : 0;

	*r = (struct command_run){ .out = -1 };
	words[n++] = h->names[host];
	for (; *arguments && n < WORDS; arguments++)
		words[n++] = (char *)*arguments;
	words[n] = NULL;
	if (!copy || pipe2(ends, O_CLOEXEC))
		fail("pipe: %m");
	r->pid = fork();
	if (r->pid < 0)
		fail("fork: %m");
	if (!r->pid) {
		int null = open("/dev/null", O_RDONLY);

		dup2(null, STDIN_FILENO);	/* ssh would read what is typed here */
		dup2(ends[1], STDOUT_FILENO);
		execvp(words[0], words);
		fprintf(stderr, "datperf: --launcher: %s: %s\n", words[0], strerror(errno));
		_exit(127);
	}
	free(copy);
	close(ends[1]);
	r->out = ends[0];
}

/* Reads more output. Returns false at its end, or if nothing comes for so many seconds. */
static bool read_more(struct command_run *r, int seconds)
{
	struct pollfd one = { .fd = r->out, .events = POLLIN };
	ssize_t n;
	int ready;

	do
		ready = poll(&one, 1, seconds * 1000);
	while (ready < 0 && errno == EINTR);
	if (ready <= 0)
		return false;
	n = read(r->out, r->text + r->length, sizeof r->text - 1 - r->length);
	if (n <= 0)
		return false;
	r->length += (size_t)n;
	r->text[r->length] = '\0';
	return r->length < sizeof r->text - 1;
}

/* Waits at most so many seconds for the end of a command. */
static bool has_ended(struct command_run *r, int seconds, int *status)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	pid_t pid;

	for (int i = 0; (pid = waitpid(r->pid, status, WNOHANG)) == 0 || (pid < 0 && errno == EINTR); i++) {
		if (i >= seconds * (1000000000 / PAUSE_NS))
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* Ends a command that may still run: one that does not end, or ignores SIGTERM, is killed. Returns whether it ended by
 * itself, with status 0. */
static bool end(struct command_run *r, bool now)
{
	int status = 0;
	bool ended = !now && has_ended(r, END_SECONDS, &status);

	close(r->out);
	if (ended)
		return status == 0;
	kill(r->pid, SIGTERM);
	if (!has_ended(r, KILL_SECONDS, &status)) {
		kill(r->pid, SIGKILL);
		while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	return false;
}

/* --- a pair -------------------------------------------------------------------------- */

/* Finds address and port in "serving on IA, address ADDRESS, port N". */
static bool find_place(const char *text, char *address, size_t size, unsigned long *port)
{
	static const char before[] = ", address ";
	const char *found = strstr(text, before), *at = found ? found + sizeof before - 1 : "";
	const char *comma = strchr(at, ',');

	return comma && snprintf(address, size, "%.*s", (int)(comma - at), at) < (int)size &&
	       sscanf(comma, ", port %lu\n", port) == 1 && strchr(comma, '\n');
}

/* Returns a column of the line of a result in CSV, or 0. */
static double find_column(const char *text, const char *line, int column)
{
	const char *found = strstr(text, line), *at = found ? found + 1 : NULL;	/* behind the end of the line before */

	for (int i = 0; at && i < column; i++) {
		at = strpbrk(at, ",\n");
		at = at && *at == ',' ? at + 1 : NULL;
	}
	return at ? strtod(at, NULL) : 0;
}

/* Takes the results out of the output of the client. */
static bool take_results(const char *text, struct pair *p)
{
	p->latency = find_column(text, "\nsend-lat,8,", 4);
	p->bytes = find_column(text, "\nwrite-bw,1048576,", 9);
	p->measured = p->latency > 0 && p->bytes > 0;
	return p->measured;
}

static bool measure_client(const struct hosts *h, int client, const char *program, const char *device, double seconds,
			   const char *address, unsigned long number, struct pair *p)
{
	char time[32], port[24];
	const char *arguments[] = { program, "--csv", "-T", "send-lat,write-bw", "-S", "8,1M", "-t", time, "-s",
				    address, "-p", port, device ? "-D" : NULL, device, NULL };
	struct command_run run;
	bool more;

	snprintf(time, sizeof time, "%g", seconds);
	snprintf(port, sizeof port, "%lu", number);
	start(&run, h, client, arguments);
	do
		more = read_more(&run, RUN_SECONDS + (int)(8 * seconds));
	while (more);
	return end(&run, false) && take_results(run.text, p);
}

static bool measure_pair(const struct hosts *h, int client, int server, const char *program, const char *device,
			 const char *port, double seconds, struct pair *p)
{
	const char *arguments[] = { program, IDLE, "-p", port, device ? "-D" : NULL, device, NULL };
	char address[128];
	struct command_run serving;
	unsigned long number;
	bool done = false;

	start(&serving, h, server, arguments);
	while (read_more(&serving, START_SECONDS) && !find_place(serving.text, address, sizeof address, &number))
		;
	if (find_place(serving.text, address, sizeof address, &number))
		done = measure_client(h, client, program, device, seconds, address, number, p);
	end(&serving, !done);
	if (!done)
		cli_warn("%s - %s: failed", h->names[client], h->names[server]);
	return done;
}

bool hosts_measure(const struct hosts *h, const char *program, const char *device, unsigned long port, double seconds,
		   struct matrix *m)
{
	char number[24];
	bool good = true;

	snprintf(number, sizeof number, "%lu", port);
	*m = (struct matrix){ .hosts = (const char *const *)h->names, .count = h->count };
	for (int a = 0; a < h->count; a++)
		for (int b = a + 1; b < h->count; b++)
			good &= measure_pair(h, a, b, program, device, number, seconds, &m->pairs[a][b]);
	matrix_judge(m);
	return good;
}
