/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* entries.c - finds the local address of each entry of dat.conf (entries.h). */
#include "net/entries.h"
#include "common/ia_params.h"
#include "common/local_addresses.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <dat/dat_entries.h>
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static bool is_link_local(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET6 &&
	       IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

static const struct net_address *best_of_link(const struct net_table *table, const struct net_link *link)
{
	const struct net_address *best = NULL;

	for (size_t i = 0; i < table->address_count; i++)
		if (table->addresses[i].index == link->index &&
		    (!best || table->addresses[i].rank > best->rank))
			best = &table->addresses[i];
	return best;
}

/* An entry of the software device without ia_params: an interface that is up, loopback at worst. */
static const struct net_address *best_of_all(const struct net_table *table)
{
	const struct net_address *best = NULL, *found;
	unsigned most = 0, score;

	for (size_t i = 0; i < table->link_count; i++) {
		const struct net_link *link = &table->links[i];

		found = net_link_is_up(link) ? best_of_link(table, link) : NULL;
		if (!found)
			continue;
		score = found->rank + (link->flags & IFF_LOOPBACK ? 0 : 100) + (found->usable ? 1000 : 0);
		if (score > most) {
			most = score;
			best = found;
		}
	}
	return best;
}

/* The scope of an address: the name of an interface, or its index in digits. */
static const struct net_link *find_scope(const struct net_table *table, const char *text)
{
	const struct net_link *link = net_link_by_name(table, text);
	unsigned long index;
	char *end;

	if (link || !isdigit((unsigned char)*text))
		return link;
	index = strtoul(text, &end, 10);
	return *end || index > INT_MAX ? NULL : net_link_by_index(table, (int)index);
}

/* Reads an address in digits. `scope` gets what follows its '%', NULL if nothing does. */
static bool parse_address(const char *text, struct sockaddr_storage *to, const char **scope)
{
	size_t length = strcspn(text, "%");
	char digits[INET6_ADDRSTRLEN];

	if (length >= sizeof digits)
		return false;
	memcpy(digits, text, length);
	digits[length] = 0;
	memset(to, 0, sizeof *to);
	if (inet_pton(AF_INET, digits, &((struct sockaddr_in *)to)->sin_addr) == 1)
		to->ss_family = AF_INET;
	else if (inet_pton(AF_INET6, digits, &((struct sockaddr_in6 *)to)->sin6_addr) == 1)
		to->ss_family = AF_INET6;
	*scope = text[length] ? text + length + 1 : NULL;
	return to->ss_family;
}

static const struct net_address *find_address(const struct net_table *table, const char *text)
{
	const struct net_link *link = NULL;
	struct sockaddr_storage wanted;
	const struct net_address *best = NULL;
	const uint8_t *bytes, *other;
	const char *scope;
	size_t length, n;

	if (!parse_address(text, &wanted, &scope))
		return NULL;
	if (scope && (!is_link_local(&wanted) || !(link = find_scope(table, scope))))
		return NULL;
	bytes = net_bytes((struct sockaddr *)&wanted, &length);
	for (size_t i = 0; i < table->address_count; i++) {
		other = net_bytes((const struct sockaddr *)&table->addresses[i].address, &n);
		if (n == length && !memcmp(other, bytes, length) &&
		    (!link || link->index == table->addresses[i].index) &&
		    (!best || table->addresses[i].rank > best->rank))
			best = &table->addresses[i];
	}
	return best;
}

/* "device port": the best address of the port's interfaces. */
static const struct net_address *address_of_port(const struct net_table *table,
						 const struct net_rdma_list *rdma,
						 const struct ia_params *params)
{
	const struct net_address *best = NULL, *found;
	unsigned port = params->port ? params->port : 1;

	for (size_t i = 0; i < rdma->count; i++) {
		const struct net_link *link = net_link_by_name(table, rdma->ports[i].netdev);

		if (!link || strcmp(rdma->ports[i].device, params->name) != 0 || rdma->ports[i].port != port)
			continue;
		found = best_of_link(table, link);
		if (found && (!best || found->rank > best->rank))
			best = found;
	}
	return best;
}

static void find_kind(struct net_entry *entry, const struct net_table *table,
		      const struct net_rdma_list *rdma)
{
	const struct net_link *link = net_link_by_index(table, entry->address->index);
	const struct net_rdma *port = link ? net_rdma_of(rdma, link->name, NULL) : NULL;

	entry->kind = entry->soft ? DAT_NET_SOFT : port ? port->kind : DAT_NET_NONE;
}

/* Options of the software device, such as "eth_qdisc=bypass". */
static bool are_options(const char *words)
{
	for (size_t length; *words; words += length + strspn(words + length, " \t\r\n")) {
		length = strcspn(words, " \t\r\n");
		if (!memchr(words, '=', length))
			return false;
	}
	return true;
}

static bool read_params(struct ia_params *params, const char *text, bool soft)
{
	const char *rest;

	return !ia_params_read_first(params, text, &rest) && (!*rest || (soft && are_options(rest)));
}

static const struct net_address *address_with_label(const struct net_table *table, const char *label)
{
	const struct net_address *best = NULL;

	for (size_t i = 0; i < table->address_count; i++)
		if (!strcmp(table->addresses[i].label, label) && (!best || table->addresses[i].rank > best->rank))
			best = &table->addresses[i];
	return best;
}

/* What the name of an interface, an alternative one (which libnl does not read), an address or a label selects. */
static const struct net_address *address_named(const struct net_table *table, const char *name)
{
	const struct net_link *link = net_link_by_name(table, name);
	const struct net_address *found = link ? NULL : find_address(table, name);

	if (link || found)
		return found ? found : best_of_link(table, link);
	link = net_link_by_index(table, local_link_index(name));
	return link ? best_of_link(table, link) : address_with_label(table, name);
}

static bool fill(struct net_entry *to, const DAT_ENTRY *from, const struct net_table *table,
		 const struct net_rdma_list *rdma)
{
	struct ia_params params;

	*to = (struct net_entry){ .ia = from->info.ia_name, .soft = strstr(from->library, "libdaplsoft") };
	if (!from->is_default || from->is_repeated || from->info.dapl_version_major != DAT_VERSION_MAJOR ||
	    !read_params(&params, from->ia_params, to->soft))
		return false;
	if (!*params.name)
		to->address = to->soft ? best_of_all(table) : NULL;
	else if (!(to->address = address_named(table, params.name)) && !to->soft &&
		 !net_link_by_name(table, params.name))
		to->address = address_of_port(table, rdma, &params);
	if (to->address)
		find_kind(to, table, rdma);
	return to->address;
}

int net_entries_read(struct net_entries *entries, const struct net_table *table,
		     const struct net_rdma_list *rdma)
{
	DAT_ENTRY *list = NULL;
	DAT_COUNT count = 0;

	memset(entries, 0, sizeof *entries);
	if (dats_list_entries(&list, &count) != DAT_SUCCESS)
		return ENOMEM;
	entries->block = list;
	entries->entries = calloc((size_t)count + 1, sizeof *entries->entries);
	if (!entries->entries)
		return ENOMEM;
	for (DAT_COUNT i = 0; i < count; i++)
		if (fill(&entries->entries[entries->count], &list[i], table, rdma))
			entries->count++;
	return 0;
}

void net_entries_free(struct net_entries *entries)
{
	free(entries->entries);
	free(entries->block);
}

const struct net_entry *net_entry_of(const struct net_entries *entries, const struct net_address *address,
				     bool soft)
{
	for (size_t i = 0; i < entries->count; i++)
		if (entries->entries[i].address == address && entries->entries[i].soft == soft &&
		    entries->entries[i].kind != DAT_NET_NONE)
			return &entries->entries[i];
	return NULL;
}
