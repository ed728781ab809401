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
#include "common/clock.h"
#include "dapl/softeth/filter.h"
#include "dapl/softeth/packet.h"

#define LEFT_NS 900000000ull	/* after so long no frame is on its way to a socket: it is less than the second of port.h */

void eth_rule_count_frame(struct eth_rule *rule, uint32_t wire_length)
{
	__atomic_add_fetch(&rule->counts->frames, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&rule->counts->bytes, wire_length, __ATOMIC_RELAXED);
}

struct eth_rule *eth_rule_find(struct eth_port *port, const uint8_t *frame, uint32_t captured,
			       struct eth_tag tag, uint64_t time, bool outgoing, bool other_host)
{
	static const uint8_t none[6];
	struct eth_headers headers;

	eth_parse(frame, captured, tag, &headers);
	for (struct eth_rule *r = port->rules; r; r = r->next) {
		if (outgoing && !(r->rule.flags & ETH_EGRESS))
			continue;
		if (other_host && !(r->rule.flags & ETH_ALL) && !memcmp(r->rule.mask.dst, none, 6))
			continue;
		if (time < r->from_ns || (r->until_ns && time >= r->until_ns) || !eth_matches(&r->rule, &headers))
			continue;
		return r->rule.mode == ETH_DROP ? NULL : r;	/* counted where it is dropped */
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
		if (!r->until_ns && is_same(&r->rule, rule))
			return true;
	return false;
}

/* The rules of a port that is disconnected are gone, though a caller may not know it yet. */
static bool is_there(const struct eth_port *port, const struct eth_rule *rule)
{
	for (const struct eth_rule *r = port->rules; r; r = r->next)
		if (r == rule)
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
		port->steering -= rule->rule.mode != ETH_COPY && !rule->until_ns;
		if (rule->rule.mode == ETH_DROP)
			eth_steer_put_counter(port, rule);
	}
}

static void end_rule(struct eth_port *port, struct eth_rule *rule)
{
	membership(port, &rule->rule, PACKET_DROP_MEMBERSHIP);
	if (rule->group >= 0)
		close(rule->group);
	if (!__atomic_sub_fetch(&rule->counts->refs, 1, __ATOMIC_ACQ_REL))
		free(rule->counts);
	free(rule);
}

/* Ends what is left of moved rules, once no frame can be on its way. Returns whether some is left. */
static bool purge(struct eth_port *port, uint64_t before)
{
	struct eth_rule **at = &port->rules, *rule;
	bool left = false, ended = false;

	while ((rule = *at)) {
		if (!rule->until_ns || rule->until_ns >= before) {
			left |= rule->until_ns != 0;
			at = &rule->next;
			continue;
		}
		*at = rule->next;
		port->rule_count--;
		end_rule(port, rule);
		ended = true;
	}
	if (ended)
		renew_filter(port);
	return left;
}

/* port->lock held. */
static int add_locked(struct eth_port *port, struct eth_rule *rule)
{
	struct eth_rule **at;
	int err;

	if (exists(port, &rule->rule))
		return EEXIST;
	if (port->rule_count == ETH_MAX_RULES)
		purge(port, UINT64_MAX);
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

/* counts NULL: it has its own. */
static struct eth_rule *new_rule(const struct dapl_eth_rule *rule, struct rule_counts *counts)
{
	struct eth_rule *new = calloc(1, sizeof *new);

	if (!counts)
		counts = calloc(1, sizeof *counts);
	if (!new || !counts) {
		if (counts && !counts->refs)
			free(counts);
		free(new);
		return NULL;
	}
	__atomic_add_fetch(&counts->refs, 1, __ATOMIC_RELAXED);
	new->rule = *rule;
	new->group = -1;
	new->counts = counts;
	return new;
}

int eth_rule_add(struct eth_port *port, const struct dapl_eth_rule *rule, struct eth_rule **added)
{
	struct eth_rule *new = new_rule(rule, NULL);
	int err;

	if (!new)
		return ENOMEM;
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
	if (is_there(port, rule)) {
		unlink_rule(port, rule);
		eth_steer_renew(port);
		renew_filter(port);
		end_rule(port, rule);
	}
	dapl_mutex_unlock(&port->lock);
}

static int move_locked(struct eth_port *from, struct eth_rule *rule, struct eth_port *to, struct eth_rule **moved)
{
	struct eth_rule *new = new_rule(&rule->rule, rule->counts);
	int err;

	if (!new)
		return ENOMEM;
	err = add_locked(to, new);
	if (err) {
		end_rule(to, new);
		return err;
	}
	rule->until_ns = new->from_ns = clock_read_ns(CLOCK_REALTIME);
	from->steering -= rule->rule.mode != ETH_COPY;
	eth_steer_renew(from);
	*moved = new;
	return 0;
}

/* Both sockets see a frame at the same time stamp: those before this instant are of the old port, the others of the
 * new one. Both locks are held, so no frame is looked at while the rules change. */
int eth_rule_move(struct eth_port *from, struct eth_rule *rule, struct eth_port *to, struct eth_rule **moved)
{
	int err;

	dapl_mutex_lock(&from->lock);
	dapl_mutex_lock_another(&to->lock);
	purge(from, clock_read_ns(CLOCK_REALTIME) - LEFT_NS);
	err = is_there(from, rule) ? move_locked(from, rule, to, moved) : ENOENT;
	dapl_mutex_unlock(&to->lock);
	dapl_mutex_unlock(&from->lock);
	return err;
}

bool eth_rule_purge(struct eth_port *port)
{
	bool left;

	dapl_mutex_lock(&port->lock);
	left = purge(port, clock_read_ns(CLOCK_REALTIME) - LEFT_NS);
	dapl_mutex_unlock(&port->lock);
	return left;
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
	*frames = *bytes = 0;
	if (is_there(port, rule)) {
		*frames = __atomic_load_n(&rule->counts->frames, __ATOMIC_RELAXED);
		*bytes = __atomic_load_n(&rule->counts->bytes, __ATOMIC_RELAXED);
		if (rule->rule.mode == ETH_DROP)
			eth_steer_count(port, rule, frames, bytes);
	}
	dapl_mutex_unlock(&port->lock);
}
