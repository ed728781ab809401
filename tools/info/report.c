/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* report.c - see report.h. Each part of the report is what a command prints, or a file of the system; a command that
 * fails or hangs costs its own part only. */
#include "tools/info/report.h"
#include "tools/cli.h"
#include "tools/control/client.h"
#include "tools/control/run.h"
#include "tools/info/anonymous.h"
#include "tools/info/output.h"
#include "tools/info/system.h"
#include "common/message_ids.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	LIMIT_S = 60,		/* seconds of a command: an adapter that hangs takes 20 */
	MOST_DUMPS = 100,	/* programs */
	WORDS = 8,		/* of a command */
};

/* The command "datinfo" is this program; one with a slash in front is a file. Parts of one name follow each other in
 * one file, each below its command; JSON stands alone. The first name is what a reader opens first. */
static const struct part {
	const char *name, *command[WORDS];
} parts[] = {
	{ "0-what-is-wrong", { "datinfo" } },
	{ "0-what-is-wrong", { "datctl", "-q" } },
	{ "system", { "datinfo", "--version" } },
	{ "system", { "uname", "-a" } },
	{ "system", { "/etc/os-release" } },
	{ "system", { "lscpu" } },
	{ "configuration", { SYSCONFDIR "/dat.conf" } },
	{ "configuration", { SYSCONFDIR "/dapl.conf" } },
	{ "configuration", { "sh", "-c", "tail -n +1 -- " SYSCONFDIR "/dat.conf.d/* \"$DAT_OVERRIDE\" 2>/dev/null" } },
	{ "adapters.json", { "datinfo", "-v", "--json" } },
	{ "environment.json", { "datinfo", "--env", "--json" } },
	{ "limits", { "/proc/self/limits" } },
	{ "limits", { "/proc/meminfo" } },
	{ "limits", { "df", "-h", "/dev/shm", "/tmp" } },
	{ "limits", { "/proc/sys/net/core/rmem_max" } },
	{ "limits", { "/proc/sys/net/core/wmem_max" } },
	{ "limits", { "/proc/sys/net/ipv4/tcp_rmem" } },
	{ "limits", { "/proc/sys/net/ipv4/tcp_wmem" } },
	{ "limits", { "/proc/sys/net/ipv4/ip_local_port_range" } },
	{ "limits", { "/proc/sys/vm/max_map_count" } },
	{ "limits", { "/proc/sys/kernel/yama/ptrace_scope" } },
	{ "modules", { "/proc/modules" } },
	{ "devices", { "datinfo", "--devinfo", "-v" } },
	{ "devices", { "datinfo", "--stat" } },
	{ "devices", { "rdma", "-d", "link" } },
	{ "devices", { "rdma", "statistic" } },
	{ "network", { "datinfo", "--nics" } },
	{ "network", { "ip", "-d", "-s", "address" } },
	{ "network", { "ip", "rule" } },
	{ "network", { "ip", "route", "show", "table", "all" } },
	{ "programs", { "datinfo", "--top" } },
	{ "programs", { "datinfo", "--ports" } },
	{ "programs", { "datinfo", "--metrics" } },
};

struct report {
	char dir[PATH_MAX / 2];	/* where the parts are collected */
	bool anonymous;
	unsigned files;
};

/* --- what a command prints -------------------------------------------------------------------- */

static void run_self(const char *const *command, int fd)
{
	char *arguments[WORDS + 1] = { 0 };

	for (int i = 0; i < WORDS && command[i]; i++)
		arguments[i] = (char *)(uintptr_t)command[i];
	if (dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		_exit(CLI_FAILURE);
	alarm(LIMIT_S);
	if (!strcmp(command[0], "datinfo"))
		execv("/proc/self/exe", arguments);
	else
		execvp(command[0], arguments);
	dprintf(fd, "%s\n", errno == ENOENT ? "not installed" : strerror(errno));
	_exit(CLI_FAILURE);
}

static char *read_all(FILE *file)
{
	size_t size = 0, length = 0, n;
	char *text = NULL;

	do {
		text = realloc(text, size += 65536);
		if (!text)
			fail("there is no memory left");
		n = fread(text + length, 1, size - length - 1, file);
		length += n;
	} while (n);
	text[length] = '\0';
	return text;
}

/* Returns the text of a file or the output of a command, to be freed. */
static char *text_of(const char *const *command)
{
	const char *path = command[0];
	char buffer[PATH_MAX];
	FILE *file;
	char *text;
	pid_t pid;
	int status;

	if (*path == '/') {
		file = fopen(!strncmp(path, "/proc/", 6) ? path : system_path(buffer, "%s", path), "re");
		text = file ? read_all(file) : strdup(strerror(errno));
	} else {
		file = tmpfile();
		if (!file)
			fail("no temporary file: %s", strerror(errno));
		fflush(NULL);
		pid = fork();
		if (pid < 0)
			fail("no process can be started: %s", strerror(errno));
		if (!pid)
			run_self(command, fileno(file));
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		rewind(file);
		text = read_all(file);
	}
	if (!text)
		fail("there is no memory left");
	if (file)
		fclose(file);
	return text;
}

/* --- parts ------------------------------------------------------------------------------------ */

static void add(struct report *report, const char *name, const char *const *command)
{
	bool json = strstr(name, ".json") != NULL;
	char path[PATH_MAX], *text = text_of(command);
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", report->dir, name);
	report->files += access(path, F_OK) != 0;
	file = fopen(path, "ae");
	if (!file)
		fail("%s: %s", path, strerror(errno));
	if (!json) {
		fputs("==", file);
		for (int i = 0; i < WORDS && command[i]; i++)
			fprintf(file, " %s", command[i]);
		fputs("\n", file);
	}
	if (report->anonymous)
		anonymous_write(file, text);
	else
		fputs(text, file);
	if (!json)
		fputs("\n", file);
	free(text);
	if (fclose(file))
		fail("%s: %s", path, strerror(errno));
}

/* The trace records and counters of each program that answers. */
static void add_dumps(struct report *report)
{
	struct control_socket *sockets;
	size_t count;
	pid_t last = 0;
	unsigned dumps = 0;

	sockets = control_find(0, &count);
	for (size_t i = 0; i < count && dumps < MOST_DUMPS; i++) {
		char name[32], number[24];
		const char *const command[WORDS] = { "datinfo", "--dump", number, "--json" };

		if (sockets[i].pid == last || !control_is_ours(&sockets[i]))
			continue;
		last = sockets[i].pid;
		dumps++;
		snprintf(number, sizeof number, "%ld", (long)last);
		snprintf(name, sizeof name, "dump-%ld.json", (long)last);
		add(report, name, command);
	}
	free(sockets);
}

/* What the libraries have written to the system's journal, by the ids of their messages. */
static void add_journal(struct report *report)
{
#define X(name, id, priority, title) " MESSAGE_ID=" id
	static const char *const command[WORDS] = { "sh", "-c", "journalctl -q --no-pager -n 500" LOG_MESSAGES(X) };
#undef X

	add(report, "journal", command);
}

static void hide_names(void)
{
	char host[256] = "";
	struct passwd *user;

	if (!gethostname(host, sizeof host - 1))
		anonymous_name("host", host);
	while ((user = getpwent()))
		if (user->pw_uid >= 1000 && user->pw_uid < 60000)
			anonymous_name("user", user->pw_name);
	endpwent();
}

/* --- the archive ------------------------------------------------------------------------------ */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status, (void)type, (void)walk;
	return remove(path);
}

/* A process that removes the parts when this one has ended, by whatever signal, or closes `alive`. */
static struct {
	pid_t pid; /* 0: none */
	int alive; /* the write end of a pipe, which only this process has */
} remover;

static void remove_at_end(const char *dir, int ended)
{
	char byte;

	setsid();	/* signals of the terminal, and of a job that is ended, are not for this process */
	while (read(ended, &byte, 1) < 0 && errno == EINTR)
		;
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	_exit(0);
}

/* Also at an exit of fail(). */
static void remove_parts(void)
{
	if (!remover.pid)
		return;
	close(remover.alive);
	while (waitpid(remover.pid, NULL, 0) < 0 && errno == EINTR)
		;
	remover.pid = 0;
}

static void start_remover(const char *dir)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		fail("no pipe: %s", strerror(errno));
	fflush(NULL);
	remover.pid = fork();
	if (!remover.pid) {
		close(ends[1]);
		remove_at_end(dir, ends[0]);
	}
	close(ends[0]);
	remover.alive = ends[1];
	if (remover.pid < 0) {
		remover.pid = 0;
		rmdir(dir);
		fail("no process can be started: %s", strerror(errno));
	}
	atexit(remove_parts);
}

static void begin(struct report *report, bool anonymous)
{
	char name[64];
	const char *tmp = getenv("TMPDIR");
	int length;
	time_t now = time(NULL);

	report->anonymous = anonymous;
	if (!tmp || !*tmp)
		tmp = "/tmp";
	length = snprintf(report->dir, sizeof report->dir, "%s/datinfo-XXXXXX", tmp);
	if (length >= (int)(sizeof report->dir - sizeof name))
		fail("TMPDIR: %s", strerror(ENAMETOOLONG));
	if (!mkdtemp(report->dir))
		fail("%s: no directory can be made: %s", tmp, strerror(errno));
	start_remover(report->dir);
	strftime(name, sizeof name, "/uDAPL-%Y%m%d-%H%M%S", localtime(&now));
	strcat(report->dir, name);
	if (mkdir(report->dir, 0700))
		fail("%s: %s", report->dir, strerror(errno));
	if (anonymous)
		hide_names();
}

/* Packs the parts, and removes them. Returns the exit status of tar. */
static int pack(struct report *report, const char *file, char why[512])
{
	char *slash = strrchr(report->dir, '/');
	const char *const arguments[] = { "-C", report->dir, "-czf", file, "--", slash + 1, NULL };
	struct run_output output;
	int status;

	*slash = '\0';
	status = run_program("tar", arguments, &output);
	free(output.text);
	memcpy(why, output.error, sizeof output.error);
	remove_parts();
	return status;
}

int report_write(const char *file, bool anonymous)
{
	struct report report = { .files = 0 };
	char why[512], *path;
	int fd;

	fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	path = fd < 0 ? NULL : realpath(file, NULL);
	if (!path)
		fail("%s: %s", file, strerror(errno));
	close(fd);
	begin(&report, anonymous);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		add(&report, parts[i].name, parts[i].command);
	add_dumps(&report);
	add_journal(&report);
	if (pack(&report, path, why))
		fail("%s: %s", file, *why ? why : "tar failed");
	free(path);
	printf("%s: %u files. Read them before you send it%s\n", file, report.files,
	       anonymous ? "" : "; --anonymous hides addresses and names");
	return 0;
}
