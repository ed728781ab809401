/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* local_address.c - see local_address.h. */
#include "dapl/soft/local_address.h"
#include "common/address.h"
#include "common/ia_params.h"
#include "common/local_addresses.h"
#include "common/log.h"
#include "dapl/soft/settings.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RAW "raw:"

static unsigned rank(const struct local_address *a)
{
	return a ? local_address_rank((const struct sockaddr *)&a->at, a->flags) : 0;
}

/* The best of the addresses that the name means. */
static const struct local_address *find_named(const struct local_addresses *all)
{
	const struct local_address *best = NULL;

	for (size_t i = 0; i < all->address_count; i++)
		if (all->addresses[i].is_named && rank(&all->addresses[i]) > rank(best))
			best = &all->addresses[i];
	return best;
}

/* Returns true if the name may be that of this host. A name that looks like that of an absent interface is not
 * looked up, since a name server may take long. */
static bool is_host_name(const char *name)
{
	char self[256] = "";

	gethostname(self, sizeof self - 1);
	return strpbrk(name, ".:") || !strcmp(name, "localhost") || !strcmp(name, self);
}

/* Interfaces may have equal addresses: then the best of them. */
static const struct local_address *find_equal(const struct local_addresses *all, const struct sockaddr *address)
{
	const struct local_address *best = NULL;

	for (size_t i = 0; i < all->address_count; i++)
		if (address_same_host((struct sockaddr *)&all->addresses[i].at, address) &&
		    (!best || (local_address_trouble(best) && !local_address_trouble(&all->addresses[i]))))
			best = &all->addresses[i];
	return best;
}

static const struct local_address *find_host(const struct local_addresses *all, const char *name)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	const struct local_address *match = NULL;

	if (!is_host_name(name) || getaddrinfo(name, NULL, &hints, &found))
		return NULL;
	for (const struct addrinfo *a = found; a && !match; a = a->ai_next)
		match = find_equal(all, a->ai_addr);
	freeaddrinfo(found);
	return match;
}

/* What an entry without ia_params gets: an interface that is up, loopback at worst. An address that is not usable
 * comes after that. */
static const struct local_address *find_any(const struct local_addresses *all)
{
	const struct local_address *best = NULL;
	unsigned most = 0, score;

	for (size_t i = 0; i < all->address_count; i++) {
		const struct local_address *a = &all->addresses[i];

		if (!(a->link->flags & IFF_UP) || !(a->link->flags & IFF_RUNNING))
			continue;
		score = rank(a) + (a->link->flags & IFF_LOOPBACK ? 0 : 100) + (local_address_trouble(a) ? 0 : 1000);
		if (score > most) {
			most = score;
			best = a;
		}
	}
	return best;
}

/* Prints why a name is no address of this host. */
static void say_absent(const struct local_addresses *all, const char *said, const char *name)
{
	struct in6_addr address;
	bool digits = inet_pton(AF_INET, name, &address) == 1;

	if (!*name)
		log_report(REPORT_NO_ADDRESS, NULL,
			   "soft: ia_params \"%s\": no such interface: none that is up has an IP address", said);
	else if (all->named)
		log_report(REPORT_NO_ADDRESS, NULL, "soft: ia_params \"%s\": interface %s %s no IP address", said,
			   all->named->name, all->named->flags & IFF_UP ? "has" : "is down and has");
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
static const struct local_link *find_raw(const struct local_addresses *all, const char *name,
					 struct sockaddr_storage *address)
{
	struct sockaddr_in loopback = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };

	if (!all->named)
		log_report(REPORT_NO_ADDRESS, NULL, "soft: ia_params \"raw:%s\": no such interface", name);
	address_copy(address, (struct sockaddr *)&loopback);
	return all->named;
}

/* Name and port of ia_params, without the options behind them. */
static int read_params(struct ia_params *wanted, const char *params, const char **wrong)
{
	char *name = strndup(params, soft_settings_options_offset(params));

	if (!name)
		return ENOMEM;
	*wrong = ia_params_read(wanted, name);
	free(name);
	return 0;
}

static const struct local_link *find_ip(const struct local_addresses *all, const char *said, const char *name,
					struct sockaddr_storage *address)
{
	const struct local_address *found = *name ? find_named(all) : find_any(all);

	if (!found && *name)
		found = find_host(all, name);
	if (!found) {
		say_absent(all, said, name);
		return NULL;
	}
	*address = found->at;
	return found->link;
}

int soft_local_address_find(const char *params, struct sockaddr_storage *address, char netdev[IF_NAMESIZE])
{
	const struct local_link *link;
	struct local_addresses all;
	struct ia_params wanted;
	const char *wrong, *name;
	char said[80];
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
	name = strncmp(wanted.name, RAW, strlen(RAW)) ? wanted.name : wanted.name + strlen(RAW);
	err = local_addresses_read(&all, name);
	if (err) {
		log_report(REPORT_OPEN_FAILED, LOG_FIELDS(.err = err), "soft: ia_params \"%s\": interfaces cannot be "
			   "listed, rtnetlink: %s", said, strerror(err));
	} else {
		link = name == wanted.name ? find_ip(&all, said, name, address) : find_raw(&all, name, address);
		err = link ? 0 : ENODEV;
		snprintf(netdev, IF_NAMESIZE, "%s", link ? link->name : "");
	}
	local_addresses_free(&all);
	return err;
}
