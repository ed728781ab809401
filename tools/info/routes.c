/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* routes.c - see routes.h. The output is gathered as JSON first. */
#include "tools/info/routes.h"
#include "tools/info/output.h"
#include "tools/cli.h"
#include <arpa/inet.h>
#include <dat/dat_net.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- words ------------------------------------------------------------------------------- */

static const char *rdma_name(uint8_t rdma)
{
	static const char *const names[] = {
		[DAT_NET_NONE] = "none", [DAT_NET_SOFT] = "software", [DAT_NET_ROCE] = "RoCE",
		[DAT_NET_IWARP] = "iWARP", [DAT_NET_IB] = "InfiniBand",
	};

	return rdma < sizeof names / sizeof *names ? names[rdma] : "?";
}

static const char *why_text(uint8_t why)
{
	static const char *const texts[] = {
		[DAT_NET_OK] = "", [DAT_NET_NO_ROUTE] = "no route",
		[DAT_NET_PROHIBITED] = "the route is prohibited", [DAT_NET_LINK_DOWN] = "link down",
		[DAT_NET_NO_ADDRESS] = "no usable address of this family",
		[DAT_NET_NO_DEVICE] = "no RDMA device, and no entry of the software device in dat.conf: datinfo --conf "
			"prints one",
		[DAT_NET_NO_PROVIDER] = "no entry of dat.conf opens its RDMA device with this address",
	};

	return why < sizeof texts / sizeof *texts ? texts[why] : "?";
}

/* Returns text such as "192.0.2.1" or "fe80::1%eth0"; null if there is no address. */
static json_t *address_json(const struct sockaddr_storage *address)
{
	char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 2];

	if (!address->ss_family ||
	    getnameinfo((const struct sockaddr *)address, sizeof *address, text, sizeof text, NULL, 0,
			NI_NUMERICHOST))
		return json_null();
	return output_text(text);
}

static json_t *lladdr_json(const uint8_t *bytes, uint8_t length)
{
	char text[3 * DAT_NET_LLADDR_MAX] = "";

	for (int i = 0; i < length; i++)
		snprintf(text + 3 * i - !!i, sizeof text - (size_t)(3 * i), i ? ":%02x" : "%02x", bytes[i]);
	return length ? output_text(text) : json_null();
}

/* --- destinations -------------------------------------------------------------------------- */

static struct addrinfo *resolve(const char *name)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	int wrong = getaddrinfo(name, NULL, &hints, &found);

	if (wrong)
		fail("\"%s\" found, an IP address or a host name expected: %s", name, gai_strerror(wrong));
	return found;
}

static void check_scope(const char *name, const struct sockaddr *address)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;

	if (address->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) && !six->sin6_scope_id)
		fail("\"%s\" is link-local: an interface behind it expected, as in %s%%eth0", name, name);
}

/* --- routes ---------------------------------------------------------------------------------- */

static json_t *link_layer(const struct dat_net_route *route)
{
	struct dat_net_neighbour n;

	if (!route->via.ss_family ||
	    dat_net_neighbour((const struct sockaddr *)&route->via, route->netdev, 0, 0, &n))
		return json_null();
	return lladdr_json(n.lladdr, n.length);
}

static json_t *describe_route(const struct dat_net_route *route)
{
	json_t *to = json_object();

	output_set(to, "rank", route->rank == 255 ? json_null() : json_integer(route->rank));
	output_set(to, "ia", *route->ia ? output_text(route->ia) : json_null());
	output_set(to, "rdma", output_text(rdma_name(route->rdma)));
	output_set(to, "from", address_json(&route->local));
	output_set(to, "next_hop", address_json(&route->via));
	output_set(to, "link_layer", link_layer(route));
	output_set(to, "interface", output_text(route->netdev));
	output_set(to, "mtu", json_integer(route->mtu));
	output_set(to, "metric", json_integer(route->metric));
	output_set(to, "usable", json_boolean(route->why == DAT_NET_OK));
	output_set(to, "why", route->why ? output_text(why_text(route->why)) : json_null());
	return to;
}

/* Returns the exit status: 0, ROUTES_SOFT_ONLY or CLI_FAILURE. */
static int status_of(const struct dat_net_route *list, size_t count)
{
	int status = CLI_FAILURE;

	for (size_t i = 0; i < count; i++) {
		if (list[i].why != DAT_NET_OK)
			continue;
		if (list[i].rdma != DAT_NET_SOFT)
			return 0;
		status = ROUTES_SOFT_ONLY;
	}
	return status;
}

static json_t *describe_destination(const char *name, const struct sockaddr *to, int *status)
{
	struct sockaddr_storage copy = { 0 };
	json_t *all = json_object(), *routes = json_array();
	struct dat_net_route *list;
	size_t count;
	int err;

	check_scope(name, to);
	memcpy(&copy, to, to->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	err = dat_net_routes(to, DAT_NET_ALL, &list, &count);
	if (err)
		fail("%s: %s", name, err == EINVAL ? "an address of one host expected, multicast found" :
						     strerror(err));
	for (size_t i = 0; i < count; i++)
		output_append(routes, describe_route(&list[i]));
	*status = status_of(list, count);
	dat_net_free(list);
	output_set(all, "address", address_json(&copy));
	output_set(all, "reachable", output_text(*status == 0 ? "RDMA device" : *status == ROUTES_SOFT_ONLY ?
						 "software device" : "no"));
	output_set(all, "routes", routes);
	return all;
}

static void print_usable(const json_t *routes)
{
	static const char *const heads[] = { "RANK", "IA", "FROM", "NEXT HOP", "LINK LAYER", "IP MTU", "RDMA" };
	struct table *table = table_new(7, heads);
	char rank[16], mtu[16];
	json_t *route;
	size_t i;

	json_array_foreach((json_t *)routes, i, route) {
		const char *cells[] = {
			rank, output_get(route, "ia"), output_get(route, "from"),
			output_get(route, "next_hop"), output_get(route, "link_layer"), mtu,
			output_get(route, "rdma"),
		};

		if (!json_is_true(json_object_get(route, "usable")))
			continue;
		snprintf(rank, sizeof rank, "%lld",
			 (long long)json_integer_value(json_object_get(route, "rank")));
		snprintf(mtu, sizeof mtu, "%lld",
			 (long long)json_integer_value(json_object_get(route, "mtu")));
		table_add(table, cells);
	}
	table_print(table, 0);
}

static bool is_like(const json_t *a, const json_t *b)
{
	return json_equal(json_object_get(a, "ia"), json_object_get(b, "ia")) &&
	       json_equal(json_object_get(a, "from"), json_object_get(b, "from")) &&
	       json_equal(json_object_get(a, "why"), json_object_get(b, "why"));
}

/* Whether all routes leave by loopback: the destination is an address of this host. */
static bool is_this_host(const json_t *routes)
{
	json_t *route;
	size_t i;

	json_array_foreach((json_t *)routes, i, route)
		if (strcmp(output_get(route, "interface"), "lo") != 0)
			return false;
	return true;
}

/* Prints one line with the reasons of all routes that are not usable. Leaves out loopback, which reaches
 * only this host, unless there is nothing else, and a route like the one before: several next hops of an address have
 * the same reason. */
static void print_reasons(const json_t *routes, bool by_software)
{
	bool only_here = !by_software && is_this_host(routes);
	const json_t *before = NULL;
	const char *between = ": ";
	json_t *route;
	size_t i;

	printf("not over an RDMA device");
	json_array_foreach((json_t *)routes, i, route) {
		const char *ia = output_get(route, "ia"), *from = output_get(route, "from");

		if (json_is_true(json_object_get(route, "usable")) ||
		    (!only_here && !strcmp(output_get(route, "interface"), "lo")) || (before && is_like(before, route)))
			continue;
		before = route;
		printf("%s", between);
		output_print(*ia ? ia : output_get(route, "interface"));
		if (*from)
			printf(" (%s)", from);
		printf(": %s", output_get(route, "why"));
		between = "; ";
	}
	if (*between == ':')
		printf(by_software ? ": no RDMA device on this way" : ": no route");
	putchar('\n');
}

static void print_destination(const json_t *destination, bool titled)
{
	const json_t *routes = json_object_get(destination, "routes");
	const char *reachable = output_get(destination, "reachable");

	if (titled)
		printf("%s%s%s\n", output_bold(), output_get(destination, "address"), output_plain());
	if (strcmp(reachable, "RDMA device") != 0)
		print_reasons(routes, !strcmp(reachable, "software device"));
	if (strcmp(reachable, "no") != 0)
		print_usable(routes);
}

int routes_show(const char *name, bool json)
{
	struct addrinfo *found = resolve(name);
	json_t *all = json_object(), *list = json_array(), *destination;
	int best = CLI_FAILURE, status;
	size_t i;

	for (const struct addrinfo *a = found; a; a = a->ai_next) {
		output_append(list, describe_destination(name, a->ai_addr, &status));
		if (status == 0 || best == CLI_FAILURE)
			best = status;
	}
	output_set(all, "name", output_text(name));
	output_set(all, "destinations", list);
	if (!json)
		json_array_foreach(list, i, destination)
			print_destination(destination, found->ai_next);
	if (json)
		output_json(all);
	else
		json_decref(all);
	freeaddrinfo(found);
	return best;
}

/* --- neighbours ------------------------------------------------------------------------------- */

static const char *state_name(uint8_t state)
{
	static const char *const names[] = {
		[DAT_NET_NEIGHBOUR_NONE] = "no link-layer address needed",
		[DAT_NET_NEIGHBOUR_REACHABLE] = "reachable", [DAT_NET_NEIGHBOUR_STALE] = "stale",
		[DAT_NET_NEIGHBOUR_PERMANENT] = "permanent",
	};

	return state < sizeof names / sizeof *names ? names[state] : "?";
}

static void fail_of_neighbour(const char *name, int err, unsigned seconds)
{
	switch (err) {
	case ENETUNREACH:
		fail("%s is not on the link of an interface; datinfo --route %s shows the next hop", name, name);
	case ENETDOWN:
		fail("%s: the interface is down", name);
	case EHOSTUNREACH:
		fail("%s: no answer within %u s", name, seconds);
	default:
		fail("%s: %s", name, strerror(err));
	}
}

int neighbour_show(const char *name, unsigned seconds, bool json)
{
	struct addrinfo *found = resolve(name);
	json_t *all = json_object();
	struct dat_net_neighbour n;
	int err;

	check_scope(name, found->ai_addr);
	err = dat_net_neighbour(found->ai_addr, NULL, DAT_NET_ASK, (int)(seconds * 1000), &n);
	freeaddrinfo(found);
	if (err)
		fail_of_neighbour(name, err, seconds);
	output_set(all, "address", address_json(&n.address));
	output_set(all, "link_layer", lladdr_json(n.lladdr, n.length));
	output_set(all, "interface", output_text(n.netdev));
	output_set(all, "state", output_text(state_name(n.state)));
	if (json) {
		output_json(all);
		return 0;
	}
	printf("%s  %s  %s  %s\n", output_get(all, "address"), n.length ? output_get(all, "link_layer") : "-",
	       n.netdev, state_name(n.state));
	json_decref(all);
	return 0;
}

/* --- interfaces ---------------------------------------------------------------------------------- */

static json_t *describe_nic(const struct dat_net_nic *nic)
{
	json_t *to = json_object();

	output_set(to, "interface", output_text(nic->netdev));
	output_set(to, "up", json_boolean(nic->up));
	output_set(to, "mtu", json_integer(nic->mtu));
	output_set(to, "speed_mbit", nic->speed_mbit ? json_integer(nic->speed_mbit) : json_null());
	output_set(to, "link_layer", lladdr_json(nic->address, nic->length));
	output_set(to, "rdma", output_text(rdma_name(nic->rdma)));
	output_set(to, "device", *nic->device ? output_text(nic->device) : json_null());
	output_set(to, "port", nic->port ? json_integer(nic->port) : json_null());
	return to;
}

static void print_nics(const struct dat_net_nic *list, size_t count, const json_t *nics)
{
	static const char *const heads[] = { "INTERFACE", "STATE", "MTU", "MBIT/S", "LINK LAYER", "RDMA", "DEVICE" };
	struct table *table = table_new(7, heads);

	for (size_t i = 0; i < count; i++) {
		char mtu[16], speed[16] = "", device[DAT_NET_DEVICE_MAX + 16] = "";
		const char *cells[] = {
			list[i].netdev, list[i].up ? "up" : "down", mtu, speed,
			output_get(json_array_get(nics, i), "link_layer"), rdma_name(list[i].rdma), device,
		};

		snprintf(mtu, sizeof mtu, "%u", list[i].mtu);
		if (list[i].speed_mbit)
			snprintf(speed, sizeof speed, "%u", list[i].speed_mbit);
		if (list[i].port)
			snprintf(device, sizeof device, "%s/%u", list[i].device, list[i].port);
		table_add(table, cells);
	}
	table_print(table, 0);
}

int nics_show(bool json)
{
	json_t *all = json_object(), *nics = json_array();
	struct dat_net_nic *list;
	size_t count;
	int err = dat_net_nics(&list, &count);

	if (err)
		fail("the interfaces cannot be read: %s", strerror(err));
	for (size_t i = 0; i < count; i++)
		output_append(nics, describe_nic(&list[i]));
	output_set(all, "interfaces", nics);
	if (json) {
		output_json(all);
	} else {
		print_nics(list, count, nics);
		json_decref(all);
	}
	dat_net_free(list);
	return 0;
}
