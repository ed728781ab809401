/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* routes.c - dat_net_routes() and dat_net_reachable(): asks the kernel for the route from each local
 * address, and puts these candidates in order. doc/design/routes.md has the reasons. */
#include "net/entries.h"
#include "net/lookup.h"
#include "net/order.h"
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct search {
	struct nl_sock *sock;
	struct net_table table;
	struct net_rdma_list rdma;
	struct net_entries entries;
	const struct sockaddr *to;
	int index;			/* of the scope of `to`; 0: none */
	struct net_answer choice;	/* of the kernel, without a source address */
	struct net_candidate *candidates;
	size_t count;
	int err;
};

/* --- candidates ----------------------------------------------------------------------------------- */

static struct net_candidate *new_candidate(struct search *s)
{
	struct net_candidate *candidates = realloc(s->candidates, (s->count + 1) * sizeof *candidates);

	if (!candidates) {
		s->err = ENOMEM;
		return NULL;
	}
	s->candidates = candidates;
	memset(&candidates[s->count], 0, sizeof *candidates);
	candidates[s->count].sequence = s->count;
	return &candidates[s->count++];
}

static bool is_same_address(const struct sockaddr_storage *a, const struct sockaddr *b)
{
	size_t n, m;
	const uint8_t *left = net_bytes((const struct sockaddr *)a, &n), *right = net_bytes(b, &m);

	return n && n == m && !memcmp(left, right, n);
}

/* What the order needs of a source address. */
static void fill_source(struct search *s, struct net_candidate *candidate, const struct net_address *from)
{
	candidate->route.local = from->address;
	candidate->scope = from->scope;
	candidate->to_scope = net_order_scope(s->to);
	candidate->deprecated = from->deprecated;
	candidate->same = is_same_address(&from->address, s->to);
	candidate->common = net_order_common(s->to, (const struct sockaddr *)&from->address, from->prefix);
	candidate->chosen_source = !s->choice.err &&
				   is_same_address(&s->choice.source, (const struct sockaddr *)&from->address);
}

static void copy_name(char *to, size_t size, const struct net_link *link)
{
	snprintf(to, size, "%s", link ? link->name : "");
}

static void fill_hop(struct search *s, struct net_candidate *candidate, const struct net_answer *answer,
		     const struct net_hop *hop)
{
	const struct net_link *link = net_link_by_index(&s->table, hop->index);
	const struct net_hop *chosen = s->choice.hops;

	if (hop->via.ss_family)
		candidate->route.via = hop->via;
	else
		memcpy(&candidate->route.via, s->to,
		       s->to->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
						     sizeof(struct sockaddr_in6));
	if (candidate->route.via.ss_family == AF_INET)
		((struct sockaddr_in *)&candidate->route.via)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&candidate->route.via)->sin6_port = 0;
	if (candidate->route.via.ss_family == AF_INET6 &&
	    IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)&candidate->route.via)->sin6_addr))
		((struct sockaddr_in6 *)&candidate->route.via)->sin6_scope_id = (uint32_t)hop->index;
	copy_name(candidate->route.netdev, sizeof candidate->route.netdev, link);
	candidate->route.mtu = answer->mtu ? answer->mtu : link ? link->mtu : 0;
	candidate->route.metric = answer->metric;
	candidate->chosen_hop =
		s->choice.count && hop->index == chosen->index && (hop->via.ss_family == chosen->via.ss_family) &&
		(!hop->via.ss_family || is_same_address(&hop->via, (const struct sockaddr *)&chosen->via));
}

static void fill_entry(struct search *s, struct net_candidate *candidate, const struct net_entry *entry)
{
	if (!entry)
		return;
	snprintf(candidate->route.ia, sizeof candidate->route.ia, "%s", entry->ia);
	candidate->route.rdma = entry->kind;
	candidate->entry = (size_t)(entry - s->entries.entries);
}

/* Adds a candidate for each next hop. `why` is DAT_NET_OK where there is an entry. */
static void add_hops(struct search *s, const struct net_address *from, const struct net_answer *answer,
		     const struct net_entry *entry, uint8_t why)
{
	for (size_t i = 0; i < answer->count; i++) {
		const struct net_link *link = net_link_by_index(&s->table, answer->hops[i].index);
		struct net_candidate *candidate = new_candidate(s);

		if (!candidate)
			return;
		fill_source(s, candidate, from);
		fill_hop(s, candidate, answer, &answer->hops[i]);
		fill_entry(s, candidate, entry);
		candidate->route.why = link && !net_link_is_up(link) ? DAT_NET_LINK_DOWN : why;
	}
}

static void add_miss(struct search *s, const struct net_address *from, const struct net_link *link,
		     const struct net_entry *entry, uint8_t why)
{
	struct net_candidate *candidate = new_candidate(s);

	if (!candidate)
		return;
	if (from)
		fill_source(s, candidate, from);
	fill_entry(s, candidate, entry);
	copy_name(candidate->route.netdev, sizeof candidate->route.netdev, link);
	candidate->route.mtu = link->mtu;
	candidate->route.why = why;
}

/* --- from one address --------------------------------------------------------------------------- */

/* The destination cannot answer a source address of a narrower scope, unless the destination is this host. */
static bool scope_fits(const struct search *s, const struct net_address *from)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&from->address;

	if (s->index && from->index != s->index && net_order_scope(s->to) == RT_SCOPE_LINK)
		return false;
	if (from->address.ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) &&
	    net_order_scope(s->to) < RT_SCOPE_LINK && !is_same_address(&from->address, s->to))
		return false;
	return s->choice.local || from->scope <= net_order_scope(s->to);
}

static uint8_t why_no_route(int err)
{
	return err == EACCES || err == EINVAL ? DAT_NET_PROHIBITED : DAT_NET_NO_ROUTE;
}

static uint8_t why_no_entry(const struct search *s, const struct net_link *link)
{
	return net_rdma_of(&s->rdma, link->name, NULL) ? DAT_NET_NO_PROVIDER : DAT_NET_NO_DEVICE;
}

/* An RDMA device sends by its own interface only, whatever the kernel would choose for a socket. */
static void add_rdma(struct search *s, const struct net_address *from, const struct net_link *link,
		     const struct net_entry *entry, const struct net_answer *any)
{
	struct net_answer own;

	if (!any->err && (any->local || any->hops[0].index == from->index)) {
		add_hops(s, from, any, entry, DAT_NET_OK);
		return;
	}
	s->err = net_lookup(s->sock, s->to, (const struct sockaddr *)&from->address, from->index, &own);
	if (s->err)
		return;
	if (own.err)
		add_miss(s, from, link, entry, why_no_route(own.err));
	else
		add_hops(s, from, &own, entry, DAT_NET_OK);
}

static void add_soft_or_none(struct search *s, const struct net_address *from, const struct net_link *link,
			     const struct net_entry *soft, const struct net_answer *answer)
{
	if (answer->err)
		add_miss(s, from, link, soft, why_no_route(answer->err));
	else
		add_hops(s, from, answer, soft, soft ? DAT_NET_OK : why_no_entry(s, link));
}

static void search_from(struct search *s, const struct net_address *from)
{
	const struct net_link *link = net_link_by_index(&s->table, from->index);
	const struct net_entry *rdma = net_entry_of(&s->entries, from, false);
	const struct net_entry *soft = net_entry_of(&s->entries, from, true);
	struct net_answer answer;

	if (!link || !scope_fits(s, from))
		return;
	if (s->choice.local && !from->usable)
		return;
	if (!from->usable || !net_link_is_up(link)) {
		add_miss(s, from, link, rdma ? rdma : soft,
			 net_link_is_up(link) ? DAT_NET_NO_ADDRESS : DAT_NET_LINK_DOWN);
		return;
	}
	s->err = net_lookup(s->sock, s->to, (const struct sockaddr *)&from->address, s->index, &answer);
	if (!s->err && rdma)
		add_rdma(s, from, link, rdma, &answer);
	if (!s->err && (soft || !rdma))
		add_soft_or_none(s, from, link, soft, &answer);
}

/* Adds the interfaces of RDMA devices that have no address of the family, each once. */
static void add_without_address(struct search *s)
{
	for (size_t i = 0; i < s->rdma.count; i++) {
		const struct net_link *link = net_link_by_name(&s->table, s->rdma.ports[i].netdev);
		bool has = !link || net_rdma_of(&s->rdma, link->name, NULL) != &s->rdma.ports[i];

		for (size_t j = 0; j < s->table.address_count && !has; j++)
			has = s->table.addresses[j].index == link->index &&
			      s->table.addresses[j].address.ss_family == s->to->sa_family;
		if (!has && !s->err)
			add_miss(s, NULL, link, NULL, net_link_is_up(link) ? DAT_NET_NO_ADDRESS :
									     DAT_NET_LINK_DOWN);
	}
}

/* --- all ------------------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
	return net_order_compare(a, b);
}

static void give_ranks(struct search *s)
{
	uint8_t rank = 0;

	if (s->count)
		qsort(s->candidates, s->count, sizeof *s->candidates, compare);
	for (size_t i = 0; i < s->count; i++) {
		s->candidates[i].route.rank = s->candidates[i].route.via.ss_family ? rank : 255;
		if (rank < 255)
			rank++;
	}
}

static int run(struct search *s)
{
	int err = net_open(&s->sock);

	if (!err)
		err = net_table_read(&s->table, s->sock);
	if (!err)
		err = net_rdma_read(&s->rdma, &s->table);
	if (!err)
		err = net_entries_read(&s->entries, &s->table, &s->rdma);
	if (!err)
		err = net_lookup(s->sock, s->to, NULL, s->index, &s->choice);
	if (err)
		return err;
	for (size_t i = 0; i < s->table.address_count && !s->err; i++)
		if (s->table.addresses[i].address.ss_family == s->to->sa_family)
			search_from(s, &s->table.addresses[i]);
	add_without_address(s);
	give_ranks(s);
	return s->err;
}

static void finish(struct search *s)
{
	if (s->sock)
		net_close(s->sock);
	net_table_free(&s->table);
	net_rdma_free(&s->rdma);
	net_entries_free(&s->entries);
	free(s->candidates);
}

static int check(const struct sockaddr *to, int *index)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)to;

	*index = 0;
	if (to->sa_family == AF_INET)
		return IN_MULTICAST(ntohl(((const struct sockaddr_in *)to)->sin_addr.s_addr)) ? EINVAL : 0;
	if (to->sa_family != AF_INET6)
		return EAFNOSUPPORT;
	if (IN6_IS_ADDR_MULTICAST(&six->sin6_addr))
		return EINVAL;
	if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
		*index = (int)six->sin6_scope_id;
	return IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) && !six->sin6_scope_id ? EINVAL : 0;
}

static int copy_list(const struct search *s, bool all, struct dat_net_route **list, size_t *count)
{
	struct dat_net_route *to = s->count ? calloc(s->count, sizeof *to) : NULL;
	size_t n = 0;

	if (s->count && !to)
		return ENOMEM;
	for (size_t i = 0; i < s->count; i++)
		if (all || s->candidates[i].route.why == DAT_NET_OK)
			to[n++] = s->candidates[i].route;
	if (!n) {
		free(to);
		to = NULL;
	}
	*list = to;
	*count = n;
	return 0;
}

NET_PUBLIC int dat_net_routes(const struct sockaddr *to, unsigned flags, struct dat_net_route **list,
			      size_t *count)
{
	struct search s = { .to = to };
	int err;

	if (!to || !list || !count || flags & ~(unsigned)DAT_NET_ALL)
		return EINVAL;
	err = check(to, &s.index);
	if (!err)
		err = run(&s);
	if (!err)
		err = copy_list(&s, flags & DAT_NET_ALL, list, count);
	finish(&s);
	return err;
}

NET_PUBLIC void dat_net_free(void *list)
{
	free(list);
}

/* How far a route is from usable. The least is missing without an entry of dat.conf; then without a
 * carrier, an address, a device, a route. */
static int distance(const struct dat_net_route *route)
{
	static const int of[] = {
		[DAT_NET_OK] = 0, [DAT_NET_NO_PROVIDER] = 1, [DAT_NET_LINK_DOWN] = 2,
		[DAT_NET_NO_ADDRESS] = 3, [DAT_NET_NO_DEVICE] = 4, [DAT_NET_PROHIBITED] = 5,
		[DAT_NET_NO_ROUTE] = 6,
	};
	bool loopback = !strcmp(route->netdev, "lo");

	return of[route->why] + (loopback ? 10 : 0);
}

NET_PUBLIC int dat_net_reachable(const struct sockaddr *to, struct dat_net_route *best)
{
	struct dat_net_route *list, *nearest;
	size_t count;
	int err;

	if (!best)
		return EINVAL;
	err = dat_net_routes(to, DAT_NET_ALL, &list, &count);
	if (err)
		return err;
	memset(best, 0, sizeof *best);
	best->why = DAT_NET_NO_ROUTE;
	nearest = list;
	for (size_t i = 1; i < count; i++)
		if (distance(&list[i]) < distance(nearest))
			nearest = &list[i];
	if (count)
		*best = *nearest;
	dat_net_free(list);
	return best->why == DAT_NET_OK ? 0 : EHOSTUNREACH;
}
