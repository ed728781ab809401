/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* entries.h - which local address the device of each entry of dat.conf has. The providers' rules are
 * repeated here, since nothing is opened: an interface, which each of its names or the label of an address
 * selects, gives its best address (common/local_addresses.h). An entry that names a host is left out, since its address
 * may need a name server. */
#ifndef NET_ENTRIES_H
#define NET_ENTRIES_H
#include "net/rdma.h"

struct net_entry {
	const char *ia;
	bool soft;
	uint8_t kind;			/* DAT_NET_SOFT ... DAT_NET_IB; DAT_NET_NONE: no RDMA device */
	const struct net_address *address;	/* in the table; NULL: none */
};

struct net_entries {
	struct net_entry *entries;	/* in the order of dat.conf */
	size_t count;
	void *block;			/* the registry's list, which has the names */
};

/* Returns 0 or an errno; net_entries_free() may be called in either case. The table must outlive it. */
int net_entries_read(struct net_entries *entries, const struct net_table *table,
		     const struct net_rdma_list *rdma);
void net_entries_free(struct net_entries *entries);
/* The first entry for an address: of RDMA devices, or of the software device. NULL: none. */
const struct net_entry *net_entry_of(const struct net_entries *entries, const struct net_address *address,
				     bool soft);

#endif
