/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rules.c - the rules of a port: their list, the kernel's filter, the memberships that they need. Memberships are
 * of sockets, so they end with the process. The program that takes frames away is ingress.c's. */
#include <errno.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "dapl/softeth/filter.h"
#include "dapl/softeth/packet.h"

struct eth_rule *eth_rule_find(struct eth_port *port, const uint8_t *frame, uint32_t captured,
			       uint32_t wire_length, struct eth_tag tag, bool outgoing, bool other_host)
{
	static const uint8_t none[6];
	struct eth_headers headers;

	eth_parse(frame, captured, tag, &headers);
	for (struct eth_rule *r = port->rules; r; r = r->next) {
		if (outgoing && !(r->rule.flags & ETH_EGRESS))
			continue;
		if (other_host && !(r->rule.flags & ETH_ALL) && !memcmp(r->rule.mask.dst, none, 6))
			continue;
		if (!eth_matches(&r->rule, &headers))
			continue;
		if (r->rule.mode == ETH_DROP)	/* counted where it is dropped */
			return NULL;
		r->frames++;
		r->bytes += wire_length;
		return r;
	}
	return NULL;
}

static int attach(int fd, struct sock_filter *code, unsigned n)
{
	struct sock_fprog program = { .len = (unsigned short)n, .filter = code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) ? errno : 0;
}

int eth_filter_none(int fd)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);

	return attach(fd, &nothing, 1);
}

static int renew_filter(struct eth_port *port)
{
	const struct dapl_eth_rule *rules[ETH_MAX_RULES];
	struct sock_filter *code = malloc(ETH_FILTER_MAX * sizeof *code);
	unsigned n = 0;
	int err;

	if (!code)
		return ENOMEM;
	for (struct eth_rule *r = port->rules; r; r = r->next)
		if (r->rule.mode != ETH_DROP)
			rules[n++] = &r->rule;
	err = attach(port->fd, code, eth_filter_make(code, rules, n,
						     port->snap ? port->snap : ETH_ALL_BYTES));
	free(code);
	return err;
}

/* --- memberships ------------------------------------------------------------------------ */

static bool is_exact(const uint8_t mask[6])
{
	static const uint8_t all[6] = { 255, 255, 255, 255, 255, 255 };

	return !memcmp(mask, all, 6);
}

/* Adds or drops what the packet socket needs of the device, one membership for each rule. */
static int membership(struct eth_port *port, const struct dapl_eth_rule *rule, int what)
{
	struct packet_mreq wanted[3] = { { .mr_ifindex = port->index }, { .mr_ifindex = port->index },
		{ .mr_ifindex = port->index } };
	unsigned n = 0;

	if (rule->flags & ETH_ALL)
		wanted[n++].mr_type = PACKET_MR_PROMISC;
	if (rule->flags & ETH_ALL_MULTICAST)
		wanted[n++].mr_type = PACKET_MR_ALLMULTI;
	if (is_exact(rule->mask.dst) && !is_exact(rule->key.dst)) {
		wanted[n].mr_type = rule->key.dst[0] & 1 ? PACKET_MR_MULTICAST : PACKET_MR_UNICAST;
		wanted[n].mr_alen = 6;
		memcpy(wanted[n++].mr_address, rule->key.dst, 6);
	}
	for (unsigned i = 0; i < n; i++)
		if (setsockopt(port->fd, SOL_PACKET, what, &wanted[i], sizeof wanted[i]) &&
		    what == PACKET_ADD_MEMBERSHIP)
			return errno;
	return 0;
}

static int join_socket(struct eth_port *port, const struct dapl_eth_rule *rule)
{
	struct ip_mreqn group4 = { .imr_ifindex = port->index };
	struct ipv6_mreq group6 = { .ipv6mr_interface = (unsigned)port->index };
	bool is_ipv4 = rule->key.ip_version == 4;
	int fd = socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), failed;

	if (fd < 0)
		return -1;
	memcpy(&group4.imr_multiaddr, rule->key.ip_dst, 4);
	memcpy(&group6.ipv6mr_multiaddr, rule->key.ip_dst, 16);
	failed = is_ipv4 ? setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group4, sizeof group4) :
		setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &group6, sizeof group6);
	if (failed) {
		close(fd);
		return -1;
	}
	return fd;
}

/* --- the list --------------------------------------------------------------------------- */

static bool is_same(const struct dapl_eth_rule *a, const struct dapl_eth_rule *b)
{
	return a->priority == b->priority && a->flags == b->flags && !memcmp(&a->key, &b->key, sizeof a->key) &&
	       !memcmp(&a->mask, &b->mask, sizeof a->mask) &&
	       !memcmp(&a->inner_key, &b->inner_key, sizeof a->inner_key) &&
	       !memcmp(&a->inner_mask, &b->inner_mask, sizeof a->inner_mask);
}

static struct eth_rule **place_for(struct eth_port *port, const struct dapl_eth_rule *rule)
{
	struct eth_rule **at = &port->rules;

	while (*at && (*at)->rule.priority <= rule->priority)
		at = &(*at)->next;
	return at;
}

static bool exists(const struct eth_port *port, const struct dapl_eth_rule *rule)
{
	for (const struct eth_rule *r = port->rules; r; r = r->next)
		if (is_same(&r->rule, rule))
			return true;
	return false;
}

static void unlink_rule(struct eth_port *port, struct eth_rule *rule)
{
	struct eth_rule **at = &port->rules;

	while (*at && *at != rule)
		at = &(*at)->next;
	if (*at) {
		*at = rule->next;
		port->rule_count--;
		port->steering -= rule->rule.mode != ETH_COPY;
		if (rule->rule.mode == ETH_DROP)
			eth_steer_put_counter(port, rule);
	}
}

static void end_rule(struct eth_port *port, struct eth_rule *rule)
{
	membership(port, &rule->rule, PACKET_DROP_MEMBERSHIP);
	if (rule->group >= 0)
		close(rule->group);
	free(rule);
}

/* port->lock held. */
static int add_locked(struct eth_port *port, struct eth_rule *rule)
{
	struct eth_rule **at;
	int err;

	if (exists(port, &rule->rule))
		return EEXIST;
	if (port->rule_count == ETH_MAX_RULES)
		return ENOSPC;
	if ((rule->rule.flags & ETH_JOIN) && (rule->group = join_socket(port, &rule->rule)) < 0)
		return errno;
	if ((err = membership(port, &rule->rule, PACKET_ADD_MEMBERSHIP)))
		return err;
	at = place_for(port, &rule->rule);
	rule->next = *at;
	*at = rule;
	port->rule_count++;
	port->steering += rule->rule.mode != ETH_COPY;
	err = rule->rule.mode == ETH_DROP ? eth_steer_get_counter(port, rule) : 0;
	if (!err && !(err = renew_filter(port)))
		err = eth_steer_renew(port);
	if (err) {
		unlink_rule(port, rule);
		eth_steer_renew(port);
		renew_filter(port);
	}
	return err;
}

int eth_rule_add(struct eth_port *port, const struct dapl_eth_rule *rule, struct eth_rule **added)
{
	struct eth_rule *new = calloc(1, sizeof *new);
	int err;

	if (!new)
		return ENOMEM;
	new->rule = *rule;
	new->group = -1;
	dapl_mutex_lock(&port->lock);
	err = add_locked(port, new);
	if (err)
		end_rule(port, new);
	else
		*added = new;
	dapl_mutex_unlock(&port->lock);
	return err;
}

void eth_rule_free(struct eth_port *port, struct eth_rule *rule)
{
	dapl_mutex_lock(&port->lock);
	unlink_rule(port, rule);
	eth_steer_renew(port);
	renew_filter(port);
	end_rule(port, rule);
	dapl_mutex_unlock(&port->lock);
}

void eth_rules_free(struct eth_port *port)
{
	struct eth_rule *rule;

	while ((rule = port->rules)) {
		unlink_rule(port, rule);
		end_rule(port, rule);
	}
	eth_steer_renew(port);
}

void eth_rule_free_all(struct eth_port *port)
{
	dapl_mutex_lock(&port->lock);
	eth_rules_free(port);
	eth_filter_none(port->fd);
	dapl_mutex_unlock(&port->lock);
}

void eth_rule_count(struct eth_port *port, const struct eth_rule *rule, uint64_t *frames, uint64_t *bytes)
{
	dapl_mutex_lock(&port->lock);
	*frames = rule->frames;
	*bytes = rule->bytes;
	if (rule->rule.mode == ETH_DROP)
		eth_steer_count(port, rule, frames, bytes);
	dapl_mutex_unlock(&port->lock);
}
