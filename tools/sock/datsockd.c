/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datsockd.c - the service by which libdatsock finds peers on other hosts: command line, begin and end. What processes
 * ask: clients.c; what other hosts ask: point.c. See datsockd(8). */
#include <dat/udat.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/env.h"
#include "common/sock_service.h"
#include "tools/cli.h"
#include "tools/version.h"
#include "tools/sock/attach.h"
#include "tools/sock/clients.h"
#include "tools/sock/locate.h"
#include "tools/sock/loop.h"
#include "tools/sock/point.h"

static const char usage_text[] =
	"usage: datsockd [-D IA]... [-q QUALIFIER] [-r RATE] [--cgroup DIR]\n"
	"\n"
	"  -D, --device IA        serve on this adapter; else on all RDMA adapters of dat.conf\n"
	"  -q, --qualifier NUMBER where services of other hosts ask (4797); the same on all hosts\n"
	"  -r, --rate NUMBER      questions a second that another host may ask (1000)\n"
	"      --cgroup DIR       attach the programs of datsock enable --network to this control group\n"
	"  -h, --help             this text\n"
	"      --version          the version\n"
	"\n"
	"Exit status: 0 after SIGTERM or SIGINT; 1 if something failed; 2 for a wrong option.\n";

enum { CGROUP = 256, SHOW_VERSION, PROVIDERS = 256, DESCRIPTORS = 65536 };

static const struct option names[] = {
	{ "device", required_argument, NULL, 'D' },
	{ "qualifier", required_argument, NULL, 'q' },
	{ "rate", required_argument, NULL, 'r' },
	{ "cgroup", required_argument, NULL, CGROUP },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, SHOW_VERSION },
	{ NULL, 0, NULL, 0 },
};

static char path[4096];

/* The software device between hosts would be slower than the connection itself. */
static void open_all(uint16_t qualifier)
{
	static DAT_PROVIDER_INFO infos[PROVIDERS];
	DAT_PROVIDER_INFO *pointers[PROVIDERS];
	DAT_COUNT count = 0;
	int opened = 0;

	for (int i = 0; i < PROVIDERS; i++)
		pointers[i] = &infos[i];
	if (dat_registry_list_providers(PROVIDERS, &count, pointers) && !count)
		fail("dat.conf has no adapters that can be listed");
	for (int i = 0; i < count && i < PROVIDERS; i++)
		if (!strstr(infos[i].ia_name, "soft"))
			opened += point_open(infos[i].ia_name, qualifier);
	if (!opened)
		cli_warn("no RDMA adapter: connections stay on TCP");
}

static void on_signal(struct loop_watch *watch)
{
	(void)watch;
	loop_end();
}

static void watch_signals(void)
{
	static struct loop_watch watch;
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);	/* for all threads that are made later */
	watch = (struct loop_watch){ signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), on_signal };
	if (watch.fd < 0 || !loop_add(&watch))
		fail("signalfd: %s", strerror(errno));
}

static void raise_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < DESCRIPTORS) {
		limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void listen_to_processes(void)
{
	int map = attach_open_sockets(), err;

	if (map < 0)
		fail("%s: %s", ATTACH_DIRECTORY, strerror(-map));
	snprintf(path, sizeof path, "%s%s", test_root(), SOCK_SERVICE_DIRECTORY);
	if (mkdir(path, 0755) && errno != EEXIST)
		fail("%s: %s", path, strerror(errno));
	snprintf(path, sizeof path, "%s%s", test_root(), SOCK_SERVICE_PATH);
	err = clients_open(path, map);
	if (err)
		fail("%s: %s", path, strerror(err));
}

static bool tick(void)
{
	bool clients = clients_tick(), point = point_tick();

	return clients || point;
}

int main(int argc, char **argv)
{
	const char *cgroup = NULL, *wrong, *devices[16];
	unsigned device_count = 0, qualifier = SOCK_SERVICE_QUALIFIER;
	int c, err;

	cli_init("datsockd", usage_text);
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":D:q:r:h", names, NULL)) != -1)
		switch (c) {
		case 'D':
			if (device_count == sizeof devices / sizeof *devices)
				usage_error("more than %u adapters", device_count);
			devices[device_count++] = optarg;
			break;
		case 'q':
			qualifier = (unsigned)cli_number("-q", optarg, 1, 65535);
			break;
		case 'r':
			point_set_rate((unsigned)cli_number("-r", optarg, 1, 1000000));
			break;
		case CGROUP:
			cgroup = optarg;
			break;
		case 'h':
			cli_print_help();
			break;
		case SHOW_VERSION:
			version_print();
			break;
		default:
			usage_error_option(argv, names, c);
		}
	if (optind < argc)
		usage_error("datsockd takes no argument: \"%s\"", argv[optind]);
	if (geteuid())
		fail("user %u found, root expected", (unsigned)geteuid());
	wrong = attach_begin(cgroup);
	if (wrong)
		fail("%s", wrong);
	if (!loop_open())
		fail("epoll: %s", strerror(errno));
	raise_limit();
	watch_signals();
	listen_to_processes();
	for (unsigned i = 0; i < device_count; i++)
		point_open(devices[i], (uint16_t)qualifier);
	if (!device_count)
		open_all((uint16_t)qualifier);
	err = locate_open((uint16_t)qualifier);
	if (err)
		cli_warn("UDP port %u: %s: only the addresses of adapters are served", qualifier, strerror(err));
	loop_run(tick);
	clients_close();
	locate_close();
	point_close();
	return 0;
}
