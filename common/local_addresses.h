/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* local_addresses.h - the IP addresses of this host, with what getifaddrs() leaves out: the interface of an address
 * that has a label, alternative names of interfaces, and whether an address is usable. */
#ifndef COMMON_LOCAL_ADDRESSES_H
#define COMMON_LOCAL_ADDRESSES_H
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct local_link {
	int index;
	unsigned flags;			/* IFF_UP and others */
	char name[IF_NAMESIZE];
	bool is_named;			/* this is its name, or an alternative one */
};

struct local_address {
	struct sockaddr_storage at;	/* port 0; a link-local address has its scope */
	const struct local_link *link;
	unsigned flags;			/* IFA_F_TENTATIVE and others */
	bool is_named;			/* it is one of the named interface, or the name is its label */
};

struct local_addresses {
	struct local_link *links;
	struct local_address *addresses;	/* in the kernel's order */
	size_t link_count, address_count;
	const struct local_link *named;		/* NULL: no interface has the name */
};

/* Reads all interfaces and addresses of the network namespace, and marks those that `name` means: an interface, with
 * any of its names, or else a label. Returns 0 or an errno value; local_addresses_free() may be called in either
 * case. */
int local_addresses_read(struct local_addresses *list, const char *name);
void local_addresses_free(struct local_addresses *list);

/* The index of the interface with that name or alternative name; 0: there is none. */
int local_link_index(const char *name);

/* How well an address suits an adapter; the greatest is the best. Usable addresses come first, then IPv4, IPv6, and
 * link-local IPv6. Among equals, an address that stays: neither deprecated nor temporary. `flags` are IFA_F_. */
unsigned local_address_rank(const struct sockaddr *address, unsigned flags);
/* Why no socket can be bound to the address now, as the end of a sentence: "is tentative: ...". NULL: it can, or the
 * cause is unknown. */
const char *local_address_trouble(const struct local_address *address);
/* The same for an address that may have been removed. */
const char *local_address_why(const struct sockaddr *address);
/* Finds the interface of the source address that the kernel selects for a destination. False: there is no route, or no
 * interface but loopback. */
bool local_route_netdev(const struct sockaddr *to, char netdev[IF_NAMESIZE]);

#endif
