/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* netlink_fuzz.c - any bytes as messages of the kernel, one after the other: rtnetlink messages and uevents.
 * The changes that net/changes.c makes of them are of known kinds, with texts and lengths in their bounds,
 * and the table of links stays whole.
 *
 * The input is records: a byte with flags, the low byte of the message type, two bytes of length
 * (little-endian), and so many bytes, or as many as are left. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net/changes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORD = 4, UEVENT = 1, REPLACE = 2, ONE_KIND = 4 };	/* bits of the first byte */
enum { ALL = DAT_NET_MTU | DAT_NET_LINK | DAT_NET_ADDRESS | DAT_NET_ROUTE | DAT_NET_NEIGHBOUR | DAT_NET_RDMA };

static void demand(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "netlink_fuzz: %s\n", what);
	abort();
}

static bool is_ended(const char *text, size_t room)
{
	return strnlen(text, room) < room;
}

static void check_change(const struct net_changes *c, const struct dat_net_change *change)
{
	demand(change->what & c->what, "a change of a kind that was not asked for");
	demand(!(change->what & (change->what - 1)), "a change of two kinds");
	demand(is_ended(change->netdev, sizeof change->netdev), "the interface's name has no end");
	demand(is_ended(change->device, sizeof change->device), "the device's name has no end");
	demand(change->length <= sizeof change->lladdr, "a link-layer address beyond its room");
	demand(change->what != DAT_NET_LINK || (change->before <= 1 && change->now <= 1), "a link that is not 0 or 1");
}

static void check_all(const struct net_changes *c)
{
	demand(c->count <= NET_CHANGES_PER_MESSAGE, "too many changes");
	for (size_t i = 0; i < c->count; i++)
		check_change(c, &c->ready[i]);
	for (size_t i = 0; i < c->table.link_count; i++) {
		const struct net_link *link = &c->table.links[i];

		demand(is_ended(link->name, sizeof link->name), "a link's name has no end");
		demand(link->length <= sizeof link->lladdr, "a link's address beyond its room");
		demand(net_link_by_index(&c->table, link->index) == link, "two links of one index");
	}
}

static void message(struct net_changes *c, uint8_t type, bool replace, const uint8_t *bytes, size_t length)
{
	struct nlmsghdr *head = calloc(1, NLMSG_SPACE(length));
	struct nl_msg *msg;

	demand(head != NULL, "no memory");
	*head = (struct nlmsghdr){ .nlmsg_len = NLMSG_LENGTH(length), .nlmsg_type = type,
		.nlmsg_flags = replace ? NLM_F_REPLACE : 0 };
	memcpy(NLMSG_DATA(head), bytes, length);
	msg = nlmsg_convert(head);
	demand(msg != NULL, "no memory");
	nlmsg_set_proto(msg, NETLINK_ROUTE);
	net_changes_of(c, msg);
	nlmsg_free(msg);
	free(head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct net_changes c = { .what = ALL };

	while (size >= RECORD) {
		uint8_t flags = data[0], type = data[1];
		size_t length = data[2] | (size_t)data[3] << 8;

		data += RECORD;
		size -= RECORD;
		if (length > size)
			length = size;
		c.what = flags & ONE_KIND ? DAT_NET_MTU : ALL;
		c.count = 0;
		if (flags & UEVENT)
			net_changes_of_uevent(&c, (const char *)data, length);
		else
			message(&c, type, flags & REPLACE, data, length);
		check_all(&c);
		data += length;
		size -= length;
	}
	net_table_free(&c.table);
	return 0;
}
