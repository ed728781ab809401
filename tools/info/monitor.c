/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* monitor.c - see monitor.h. */
#include "tools/info/monitor.h"
#include "tools/info/output.h"
#include "tools/cli.h"
#include <dat/dat_net.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned bit;
} kinds[] = {
	{ "mtu", DAT_NET_MTU }, { "link", DAT_NET_LINK }, { "address", DAT_NET_ADDRESS },
	{ "route", DAT_NET_ROUTE }, { "neighbour", DAT_NET_NEIGHBOUR }, { "rdma", DAT_NET_RDMA },
	{ "neighbor", DAT_NET_NEIGHBOUR },	/* the first name of a bit is what is printed */
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static unsigned bit_of(const char *word, size_t length)
{
	for (int i = 0; i < KINDS; i++)
		if (strlen(kinds[i].name) == length && !strncmp(kinds[i].name, word, length))
			return kinds[i].bit;
	usage_error("--monitor: \"%.*s\" found, mtu, link, address, route, neighbour or rdma expected",
		    (int)length, word);
}

static unsigned parse(const char *words)
{
	unsigned bits = 0;

	if (!words)
		return DAT_NET_CHANGES & ~DAT_NET_NEIGHBOUR;	/* neighbours change all the time */
	for (const char *at = words;; at++) {
		size_t length = strcspn(at, ",");

		bits |= bit_of(at, length);
		at += length;
		if (!*at)
			return bits;
	}
}

static const char *kind_name(unsigned bit)
{
	for (int i = 0; i < KINDS; i++)
		if (kinds[i].bit == bit)
			return kinds[i].name;
	return "?";
}

/* Local time with milliseconds and time zone, as in RFC 3339. */
static void print_time(char *text, size_t size)
{
	struct timespec now;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	n = strftime(text, size, "%FT%T", &tm);
	n += (size_t)snprintf(text + n, size - n, ".%03ld", now.tv_nsec / 1000000);
	strftime(text + n, size - n, "%z", &tm);
}

static void print_address(char *text, size_t size, const struct sockaddr_storage *address)
{
	text[0] = '\0';
	if (address->ss_family)
		getnameinfo((const struct sockaddr *)address, sizeof *address, text, (socklen_t)size, NULL, 0,
			    NI_NUMERICHOST);
}

static void print_lladdr(char *text, size_t size, const struct dat_net_change *c)
{
	text[0] = '\0';
	for (size_t i = 0, n = 0; i < c->length && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, i ? ":%02x" : "%02x", c->lladdr[i]);
}

static const char *verb(const struct dat_net_change *c)
{
	return !c->before ? "came" : c->now ? "changed" : "went";
}

static void print_line(const struct dat_net_change *c, const char *time)
{
	char address[64], via[64], lladdr[64];

	print_address(address, sizeof address, &c->address);
	print_address(via, sizeof via, &c->via);
	print_lladdr(lladdr, sizeof lladdr, c);
	printf("%s  %s  %s  ", time, kind_name(c->what), *c->netdev ? c->netdev : *c->device ? c->device : "-");
	switch (c->what) {
	case DAT_NET_MTU: printf("%u -> %u", c->before, c->now); break;
	case DAT_NET_LINK: printf("%s -> %s", c->before ? "up" : "down", c->now ? "up" : "down"); break;
	case DAT_NET_ADDRESS: printf("%s %s/%u", verb(c), address, c->prefix); break;
	case DAT_NET_ROUTE:
		printf("%s %s/%u%s%s", verb(c), address, c->prefix, *via ? " via " : "", via);
		break;
	case DAT_NET_NEIGHBOUR: printf("%s %s%s%s", verb(c), address, *lladdr ? " at " : "", lladdr); break;
	default: printf("%s", verb(c));
	}
	putchar('\n');
}

static void print_json(const struct dat_net_change *c, const char *time)
{
	json_t *to = json_object();
	char text[64];

	output_set(to, "time", output_text(time));
	output_set(to, "what", output_text(kind_name(c->what)));
	output_set(to, "before", json_integer(c->before));
	output_set(to, "now", json_integer(c->now));
	output_set(to, "interface", *c->netdev ? output_text(c->netdev) : json_null());
	if (*c->device)
		output_set(to, "device", output_text(c->device));
	print_address(text, sizeof text, &c->address);
	if (*text)
		output_set(to, "address", output_format("%s/%u", text, c->prefix));
	print_address(text, sizeof text, &c->via);
	if (*text)
		output_set(to, "next_hop", output_text(text));
	print_lladdr(text, sizeof text, c);
	if (*text)
		output_set(to, "link_layer", output_text(text));
	output_json_line(to);
}

static void flush_output(void)
{
	if (fflush(stdout))
		cli_finish();	/* reports that the output could not be written */
}

/* Prints the changes that have arrived. */
static void print_changes(struct dat_net_monitor *m, bool json)
{
	struct dat_net_change change;
	char time[64];
	int err;

	while (!(err = dat_net_monitor_next(m, &change)) || err == ENOBUFS) {
		print_time(time, sizeof time);
		if (err && json)
			printf("{\"time\": \"%s\", \"what\": \"lost\"}\n", time);
		else if (err)
			printf("%s  lost  -  changes came too fast\n", time);
		else if (json)
			print_json(&change, time);
		else
			print_line(&change, time);
	}
	if (err != EAGAIN)
		fail("the changes cannot be read: %s", strerror(err));
	flush_output();
}

/* Returns a descriptor that is readable after SIGINT or SIGTERM. */
static int open_signals(void)
{
	sigset_t end;
	int fd;

	sigemptyset(&end);
	sigaddset(&end, SIGINT);
	sigaddset(&end, SIGTERM);
	fd = signalfd(-1, &end, SFD_CLOEXEC);
	if (fd < 0)
		fail("signalfd: %s", strerror(errno));
	sigprocmask(SIG_BLOCK, &end, NULL);
	return fd;
}

int monitor_show(const char *words, bool json)
{
	unsigned what = parse(words);
	struct dat_net_monitor *m;
	struct pollfd fds[3];
	int err = dat_net_monitor_open(what, &m);

	if (err)
		fail("the network cannot be watched: %s", strerror(err));
	fds[0] = (struct pollfd){ .fd = dat_net_monitor_fd(m), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = open_signals(), .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = STDOUT_FILENO };	/* reports only that nothing can be written any more */
	puts(json ? "{\"what\": \"watching\"}" : "watching; Ctrl-C ends");
	flush_output();
	while (!(fds[1].revents & POLLIN) && !fds[2].revents) {
		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			fail("poll: %s", strerror(errno));
		if (fds[0].revents & POLLIN)
			print_changes(m, json);
	}
	close(fds[1].fd);
	dat_net_monitor_close(m);
	return 0;
}
