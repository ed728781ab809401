/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datsock.c - the command line of datsock: starts programs with libdatsock, and asks running ones. See datsock(1). */
#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "tools/cli.h"
#include "tools/version.h"
#include "tools/parse_json.h"
#include "tools/sock/network.h"

static const char usage_text[] =
	"usage: datsock run PROGRAM [ARGUMENT...]   start a program whose TCP connections may move\n"
	"       datsock list                   connections: what carries them, why not memory\n"
	"       datsock stat [-d] [-r]         counts of each program\n"
	"       datsock config [NAME=VALUE...] show, change settings of running programs\n"
	"       datsock enable | disable       new connections may move, or not\n"
	"       datsock enable | disable --network\n"
	"                                      TCP tells ends on other hosts of each other, or not; for root\n"
	"       datsock drain                  all connections back to TCP\n"
	"\n"
	"  -d, --detail   of stat: bytes, calls and wake-ups of each connection\n"
	"  -r, --reset    of stat: set the counts of the programs to 0 after they are shown\n"
	"  -p, --pid PID  only this program\n"
	"      --network  of enable and disable: programs in the kernel, and the service datsockd\n"
	"      --cgroup DIR\n"
	"                 of enable --network: for processes of this control group; starts no service\n"
	"      --json     the answers of the programs, as an array\n"
	"  -h, --help     this text\n"
	"      --version  the version\n"
	"\n"
	"Exit status: 0; 1 if something failed; 2 for a wrong option. run: that of the program.\n";

enum { JSON = 256, VERSION, NETWORK, CGROUP, ANSWER = 1 << 20, DRAIN_MS = 10000 };

static const struct option names[] = {
	{ "detail", no_argument, NULL, 'd' },
	{ "reset", no_argument, NULL, 'r' },
	{ "pid", required_argument, NULL, 'p' },
	{ "network", no_argument, NULL, NETWORK },
	{ "cgroup", required_argument, NULL, CGROUP },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, VERSION },
	{ NULL, 0, NULL, 0 },
};

static unsigned long only_pid;
static int failures;

/* The library beside this build's programs, else the installed one. */
static const char *library(void)
{
	static char path[4096];
	const char *given = getenv("DATSOCK_LIBRARY");
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
	char *slash;

	if (given)
		return given;
	if (n > 0) {
		path[n] = 0;
		slash = strrchr(path, '/');
		strcpy(slash, "/libdatsock.so.0");
		if (!access(path, R_OK))
			return path;
		strcpy(slash, "/.libs/libdatsock.so.0");
		if (!access(path, R_OK))
			return path;
	}
	return LIBDIR "/libdatsock.so.0";
}

static void run(char **argv)
{
	const char *before = getenv("LD_PRELOAD"), *lib = library();
	char preload[8192];

	if (access(lib, R_OK))
		fail("%s: %s", lib, strerror(errno));
	/* Behind other libraries, next to libc, whose functions it stands for. */
	snprintf(preload, sizeof preload, "%s%s%s", before ? before : "", before && *before ? ":" : "", lib);
	setenv("LD_PRELOAD", preload, 1);
	/* Enabled, for all ports and peers on this host, unless datsock.conf or the environment has something else. */
	setenv("DATSOCK_RUN", "1", 1);
	execvp(argv[0], argv);
	fail("%s: %s", argv[0], strerror(errno));
}

/* Returns the answer of one program, NULL if it has ended or belongs to another user. */
static json_t *ask(const char *name, const char *request)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct timeval limit = { 3, 0 };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char *text = malloc(ANSWER);
	size_t used = 0;
	json_t *answer = NULL;
	ssize_t n = -1;

	if (fd < 0 || !text)
		fail("%s", strerror(errno));
	snprintf(sa.sun_path + 1, sizeof sa.sun_path - 1, "%s", name);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	if (!connect(fd, (void *)&sa, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)) &&
	    send(fd, request, strlen(request), MSG_NOSIGNAL) > 0)
		for (;;) {
			text = realloc(text, used + ANSWER);
			if (!text)
				fail("%s", strerror(ENOMEM));
			n = recv(fd, text + used, ANSWER, 0);
			if (n <= 0)
				break;
			used += n;
		}
	close(fd);
	if (n < 0 && errno == EAGAIN)
		cli_warn("%s does not answer", name);
	if (used)
		answer = parse_json(text, used);
	free(text);
	return answer;
}

static json_t *ask_all(const char *request)
{
	FILE *file = fopen("/proc/net/unix", "re");
	json_t *all = json_array();
	char line[512];

	if (!file || !all)
		fail("/proc/net/unix: %s", strerror(errno));
	while (fgets(line, sizeof line, file)) {
		char *name = strstr(line, "@datsock1-control-");
		unsigned long pid;
		json_t *answer;
		const char *error;

		if (!name)
			continue;
		name[strcspn(name, "\n")] = 0;
		pid = strtoul(name + strlen("@datsock1-control-"), NULL, 10);
		if (only_pid && pid != only_pid)
			continue;
		answer = ask(name + 1, request);
		if (!answer)
			continue;
		error = json_string_value(json_object_get(answer, "error"));
		if (error) {
			cli_warn("%s: %s", request, error);
			failures++;
		}
		json_array_append_new(all, answer);
	}
	fclose(file);
	if (only_pid && !json_array_size(all))
		fail("process %lu has no connection that libdatsock knows, or belongs to another user", only_pid);
	return all;
}

static long long number(json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

static const char *string(json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static void print_list(json_t *all, bool detail)
{
	size_t i, k;
	json_t *p, *c;

	printf("%-8s %-3s %-28s %-28s %-7s %-7s %s\n", "PID", "", "LOCAL", "PEER", "IN", "OUT", "ADAPTER, OR WHY NOT");
	json_array_foreach(all, i, p) json_array_foreach(json_object_get(p, "connections"), k, c)
	{
		char local[80], peer[80];

		snprintf(local, sizeof local, "%s:%lld", string(c, "local"), number(c, "local_port"));
		snprintf(peer, sizeof peer, "%s:%lld", string(c, "peer"), number(c, "peer_port"));
		printf("%-8lld %-3s %-28s %-28s %-7s %-7s %s\n", number(p, "pid"),
		       json_is_true(json_object_get(c, "connector")) ? ">" : "<", local, peer, string(c, "in"),
		       string(c, "out"), *string(c, "adapter") ? string(c, "adapter") : string(c, "why"));
		if (detail)
			printf("         read %lld tcp + %lld memory, written %lld + %lld bytes; "
			       "%lld reads, %lld writes, "
			       "%lld wake-ups; %lld moves, %lld back; ring %lld KiB\n",
			       number(c, "read_tcp"), number(c, "read_memory"), number(c, "written_tcp"),
			       number(c, "written_memory"), number(c, "reads"), number(c, "writes"),
			       number(c, "wakeups"), number(c, "moves"), number(c, "backs"),
			       number(c, "ring_out") / 1024);
	}
}

static void print_reasons(json_t *p, const char *name, const char *title)
{
	json_t *counts = json_object_get(p, name), *value;
	const char *key;

	json_object_foreach(counts, key, value)
		printf("    %s, %s: %lld\n", title, key, (long long)json_integer_value(value));
}

static void print_stat(json_t *all)
{
	size_t i;
	json_t *p;

	json_array_foreach(all, i, p)
	{
		printf("%lld: %lld connections, %lld in memory now; %lld moved, %lld closed; %lld KiB of rings\n",
		       number(p, "pid"), number(p, "open"), number(p, "moved_now"), number(p, "moved"),
		       number(p, "closed"), number(p, "memory") / 1024);
		print_reasons(p, "refused", "not moved");
		print_reasons(p, "backs", "back");
	}
}

static void print_config(json_t *all)
{
	size_t i;
	json_t *p, *value;
	const char *key;

	printf("%-8s %-16s %-24s %s\n", "PID", "SETTING", "VALUE", "FROM");
	json_array_foreach(all, i, p) json_object_foreach(json_object_get(p, "config"), key, value)
	{
		printf("%-8lld %-16s ", number(p, "pid"), key);
		if (json_is_string(value))
			printf("%-24s", json_string_value(value));
		else
			printf("%-24lld", (long long)json_integer_value(value));
		printf(" %s\n", string(json_object_get(p, "from"), key));
	}
}

static void drain(bool json)
{
	struct timespec pause = { 0, 20000000 };
	json_t *all = NULL, *p;
	long long left = 1;
	size_t i;

	for (int waited = 0; left && waited < DRAIN_MS; waited += 20) {
		if (all) {
			json_decref(all);
			nanosleep(&pause, NULL);
		}
		all = ask_all("drain");
		left = 0;
		json_array_foreach(all, i, p) left += number(p, "moved_now");
	}
	if (json)
		json_dumpf(all, stdout, JSON_INDENT(2));
	if (left)
		fail("%lld connections are still in memory after %d s: their peers do not answer", left,
		     DRAIN_MS / 1000);
}

int main(int argc, char **argv)
{
	bool detail = false, reset = false, json = false, network = false;
	const char *command, *cgroup = NULL;
	json_t *all;
	int c;

	cli_init("datsock", usage_text);
	opterr = 0;
	/* The program's options are its own. */
	while ((c = getopt_long(argc, argv, argc > 1 && !strcmp(argv[1], "run") ? "+:drp:h" : ":drp:h", names, NULL)) !=
	       -1)
		switch (c) {
		case 'd':
			detail = true;
			break;
		case 'r':
			reset = true;
			break;
		case 'p':
			only_pid = cli_number("--pid", optarg, 1, 1 << 30);
			break;
		case NETWORK:
			network = true;
			break;
		case CGROUP:
			cgroup = optarg;
			break;
		case JSON:
			json = true;
			break;
		case 'h':
			cli_print_help();
			break;
		case VERSION:
			version_print();
			break;
		default:
			usage_error_option(argv, names, c);
		}
	if (optind == argc)
		usage_error("a command is missing");
	command = argv[optind++];
	if (!strcmp(command, "run")) {
		if (optind == argc)
			usage_error("run: a program is missing");
		run(argv + optind);
	}
	if (strcmp(command, "config") && optind < argc)
		usage_error("%s takes no argument: \"%s\"", command, argv[optind]);
	if ((detail || reset) && strcmp(command, "stat"))
		usage_error("-d and -r belong to stat");
	if ((network && strcmp(command, "enable") && strcmp(command, "disable")) ||
	    (cgroup && !(network && *command == 'e')))
		usage_error("--network belongs to enable and disable, --cgroup to enable --network");
	if (network) {
		*command == 'e' ? network_enable(cgroup) : network_disable();
		cli_finish();
	}
	if (!strcmp(command, "drain")) {
		drain(json);
		cli_finish();
	}
	if (!strcmp(command, "list") || !strcmp(command, "stat")) {
		all = ask_all(detail || !strcmp(command, "list") ? "list" : reset ? "reset" : "stat");
		if (detail && reset)
			json_decref(ask_all("reset"));
	} else if (!strcmp(command, "enable") || !strcmp(command, "disable")) {
		all = ask_all(*command == 'e' ? "enabled=1" : "enabled=0");
	} else if (!strcmp(command, "config")) {
		for (int i = optind; i < argc; i++) {
			if (!strchr(argv[i], '='))
				usage_error("\"%s\" is not NAME=VALUE", argv[i]);
			json_decref(ask_all(argv[i]));
		}
		all = ask_all("config");
	} else {
		usage_error("there is no command \"%s\"", command);
	}
	if (json) {
		json_dumpf(all, stdout, JSON_INDENT(2));
		putchar('\n');
	} else if (!json_array_size(all)) {
		fputs("datsock: no program that can be asked has a connection that libdatsock knows\n", stderr);
	} else if (!strcmp(command, "list")) {
		print_list(all, false);
	} else if (!strcmp(command, "stat")) {
		print_stat(all);
		if (detail)
			print_list(all, true);
	} else {
		print_config(all);
	}
	json_decref(all);
	cli_finish_with(failures ? CLI_FAILURE : 0);
}
