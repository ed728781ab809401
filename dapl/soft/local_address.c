/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* local_address.c - see local_address.h. */
#include "dapl/soft/local_address.h"
#include "common/address.h"
#include "common/ia_params.h"
#include "common/log.h"
#include "dapl/soft/options.h"
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_link_local(const struct sockaddr *address)
{
	return address->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

/* The preference of an address for a device named by its interface: IPv4 first. */
static int rank(const struct ifaddrs *i, const char *name)
{
	if (!i->ifa_addr || strcmp(i->ifa_name, name))
		return 0;
	if (i->ifa_addr->sa_family == AF_INET)
		return 3;
	if (i->ifa_addr->sa_family != AF_INET6)
		return 0;
	return is_link_local(i->ifa_addr) ? 1 : 2;
}

static const struct ifaddrs *find_netdev(const struct ifaddrs *all, const char *name)
{
	const struct ifaddrs *best = NULL;

	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		if (rank(i, name) > (best ? rank(best, name) : 0))
			best = i;
	return best;
}

/* True: the name may be that of this host. A name that looks like that of an absent interface is not
 * looked up, since a name server may take long. */
static bool is_host_name(const char *name)
{
	char self[256] = "";

	gethostname(self, sizeof self - 1);
	return strpbrk(name, ".:") || !strcmp(name, "localhost") || !strcmp(name, self);
}

static const struct ifaddrs *find_host(const struct ifaddrs *all, const char *name)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	const struct ifaddrs *match = NULL;

	if (!is_host_name(name) || getaddrinfo(name, NULL, &hints, &found))
		return NULL;
	for (const struct addrinfo *a = found; a && !match; a = a->ai_next)
		for (const struct ifaddrs *i = all; i && !match; i = i->ifa_next)
			if (i->ifa_addr && address_same_host(i->ifa_addr, a->ai_addr))
				match = i;
	freeaddrinfo(found);
	return match;
}

/* What an entry without ia_params gets: an interface that is up, loopback at worst. */
static const struct ifaddrs *find_any(const struct ifaddrs *all)
{
	const struct ifaddrs *best = NULL;
	int most = 0, score;

	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		score = rank(i, i->ifa_name);
		if (!score || !(i->ifa_flags & IFF_UP) || !(i->ifa_flags & IFF_RUNNING))
			continue;
		score += i->ifa_flags & IFF_LOOPBACK ? 0 : 10;
		if (score > most) {
			most = score;
			best = i;
		}
	}
	return best;
}

static bool is_up(const struct ifaddrs *all, const char *name)
{
	for (; all; all = all->ifa_next)
		if (!strcmp(all->ifa_name, name))
			return all->ifa_flags & IFF_UP;
	return false;
}

/* Prints why a name is no address of this host. */
static void say_absent(const struct ifaddrs *all, const char *said, const char *name)
{
	struct in6_addr address;
	bool digits = inet_pton(AF_INET, name, &address) == 1;

	if (!*name)
		log_report(REPORT_NO_ADDRESS, NULL,
			   "soft: ia_params \"%s\": no such interface: none that is up has an IP address", said);
	else if (if_nametoindex(name))
		log_report(REPORT_NO_ADDRESS, NULL, "soft: ia_params \"%s\": interface %s %s no IP address", said, name,
			   is_up(all, name) ? "has" : "is down and has");
	else if (digits && !strncmp(name, "127.", 4))
		log_report(REPORT_NO_ADDRESS, NULL,
			   "soft: ia_params \"%s\": no such local address; as an address of the loopback network "
			   "it can be added to lo: ip address add %s/8 dev lo", said, name);
	else if (digits || inet_pton(AF_INET6, name, &address) == 1)
		log_report(REPORT_NO_ADDRESS, NULL,
			   "soft: ia_params \"%s\": no such local address; no interface of this host has it", said);
	else
		log_report(REPORT_NO_ADDRESS, NULL,
			   "soft: ia_params \"%s\": no such interface or local address", said);
}

/* "raw:NETDEV": an interface that needs no IP address, for raw Ethernet endpoints alone. The device's
 * address is that of loopback. */
static int find_raw(const char *name, struct sockaddr_storage *address, char netdev[IF_NAMESIZE])
{
	struct sockaddr_in loopback = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };

	if (!if_nametoindex(name)) {
		log_report(REPORT_NO_ADDRESS, NULL, "soft: ia_params \"raw:%s\": no such interface", name);
		return ENODEV;
	}
	address_copy(address, (struct sockaddr *)&loopback);
	snprintf(netdev, IF_NAMESIZE, "%.*s", IF_NAMESIZE - 1, name);
	return 0;
}

/* Name and port of ia_params, without the options behind them. */
static int read_params(struct ia_params *wanted, const char *params, const char **wrong)
{
	char *name = strndup(params, soft_options_offset(params));

	if (!name)
		return ENOMEM;
	*wrong = ia_params_read(wanted, name);
	free(name);
	return 0;
}

int soft_local_address_find(const char *params, struct sockaddr_storage *address, char netdev[IF_NAMESIZE])
{
	const struct ifaddrs *found = NULL;
	struct ia_params wanted;
	char said[80];
	struct ifaddrs *all;
	const char *wrong;
	int err = read_params(&wanted, params, &wrong);

	ia_params_printable(params, said, sizeof said);
	if (err) {
		log_report(REPORT_OPEN_FAILED, LOG_FIELDS(.err = err), "soft: ia_params \"%s\": %s", said,
			   strerror(err));
		return err;
	}
	if (wrong) {
		log_report(REPORT_BAD_PARAMS, NULL,
			   "soft: ia_params \"%s\": %s; expected \"interface 0\", \"address 0\" or \"hostname 0\"",
			   said, wrong);
		return EINVAL;
	}
	if (!strncmp(wanted.name, "raw:", 4))
		return find_raw(wanted.name + 4, address, netdev);
	if (getifaddrs(&all)) {
		err = errno;
		log_report(REPORT_OPEN_FAILED, LOG_FIELDS(.err = err), "soft: ia_params \"%s\": getifaddrs: %s", said,
			   strerror(err));
		return err;
	}
	if (!*wanted.name)
		found = find_any(all);
	else if (!(found = find_netdev(all, wanted.name)))
		found = find_host(all, wanted.name);
	if (found) {
		address_copy(address, found->ifa_addr);
		snprintf(netdev, IF_NAMESIZE, "%s", found->ifa_name);
	} else {
		say_absent(all, said, wanted.name);
	}
	freeifaddrs(all);
	return found ? 0 : ENODEV;
}
