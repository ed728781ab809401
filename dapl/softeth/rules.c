/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rules.c - the rules of a port: their list, the kernel's filter, the memberships that they need. Memberships are
 * of sockets, so they end with the process. The program that takes frames away is ingress.c's; rules as objects that
 * move and that several ports share are place.c's. */
#include <errno.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/clock.h"
#include "dapl/softeth/change.h"
#include "dapl/softeth/filter.h"
#include "dapl/softeth/ingress.h"
#include "dapl/softeth/rules.h"
#include "dapl/softeth/spread.h"

/* After this time no frame is on its way to a socket any more. Less than the second of port.h. */
#define LEFT_NS 900000000ull

void eth_rule_count_frames(struct eth_rule *rule, uint64_t frames, uint64_t bytes)
{
	__atomic_add_fetch(&rule->counts->frames, frames, __ATOMIC_RELAXED);
	__atomic_add_fetch(&rule->counts->bytes, bytes, __ATOMIC_RELAXED);
}

struct eth_rule *eth_rule_by_id(const struct eth_port *port, uint32_t id)
{
	struct eth_rule *r = port->rules;

	assert_held(&port->lock);
	while (r && r->id != id)
		r = r->next;
	return r;
}

static bool is_within(const struct rule_times *times, uint64_t time)
{
	uint64_t until = __atomic_load_n(&times->until_ns, __ATOMIC_RELAXED);

	return time >= __atomic_load_n(&times->from_ns, __ATOMIC_RELAXED) && (!until || time < until);
}

static bool is_in_time(const struct eth_rule *r, uint64_t time)
{
	while (r && !is_within(r->times, time))
		r = r->past;
	return r;
}

/* False if the rule is a group's, and the frame is another member's. */
static bool is_own(const struct eth_rule *r, const struct eth_headers *headers, uint64_t time, uint32_t *hash)
{
	uint32_t found;

	if (!r->spread)
		return true;
	found = spread_hash(r->spread, headers);
	if (spread_owner(r->spread, found, time) != r->member)
		return false;
	*hash = found;
	return true;
}

/* HOT: a capture of all frames has one rule that matches everything; then headers are not parsed. ETH-20. */
struct eth_rule *eth_rule_find(struct eth_port *port, const uint8_t *frame, uint32_t captured,
			       struct eth_tag tag, uint64_t time, bool outgoing, bool other_host, uint32_t *hash)
{
	static const uint8_t none[6];
	struct eth_headers headers;
	bool parsed = false;

	assert_held(&port->lock);
	change_wait();
	for (struct eth_rule *r = port->rules; r; r = r->next) {
		if (outgoing && !(r->rule.flags & ETH_EGRESS))
			continue;
		if (other_host && !(r->rule.flags & ETH_ALL) && !memcmp(r->rule.mask.dst, none, 6))
			continue;
		if (!is_in_time(r, time))
			continue;
		if (r->needs_headers && !parsed)
			eth_parse(frame, captured, tag, &headers);
		parsed |= r->needs_headers;
		if (r->needs_headers && (!eth_matches(&r->rule, &headers) || !is_own(r, &headers, time, hash)))
			continue;
		return r->rule.mode == ETH_DROP ? NULL : r;	/* counted where it is dropped */
	}
	return NULL;
}

/* --- the kernel's filter ------------------------------------------------------------------ */

static int attach(int fd, struct sock_filter *code, unsigned n)
{
	struct sock_fprog program = { .len = (unsigned short)n, .filter = code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) ? errno : 0;
}

static uint32_t kept_bytes(const struct eth_port *port)
{
	return port->snap ? port->snap : ETH_ALL_BYTES;
}

int eth_filter_none(int fd)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);

	return attach(fd, &nothing, 1);
}

/* The rules of a group, from `r` on. Returns the first rule behind them. */
static struct eth_rule *gather_group(struct eth_port *port, struct eth_rule *r, const struct dapl_eth_rule **rules,
				     struct filter_part *part)
{
	struct eth_spread *spread = r->spread;
	uint64_t since = clock_read_ns(CLOCK_REALTIME) - LEFT_NS;

	*part = (struct filter_part){ .rules = rules };
	if (spread) {
		part->key = spread->key;
		part->ports = spread->ports;
		part->inner = spread->inner;
		part->size = spread->size;
		port->old_tables |= spread_bits(spread, r->member, since, part->bits);
	}
	for (; r && r->spread == spread; r = r->next)
		if (r->rule.mode != ETH_DROP)
			rules[part->n++] = &r->rule;
	return r;
}

/* Makes a program of the rules, for groups with their hash or without it, and attaches it. Without the hash a
 * port gets all frames that the rules of its groups match, and drops those of other members (is_own()). */
static int attach_rules(struct eth_port *port, struct sock_filter *code, bool hash)
{
	const struct dapl_eth_rule *rules[ETH_MAX_RULES];
	struct eth_filter filter;
	struct filter_part part;

	port->old_tables = false;
	eth_filter_begin(&filter, code, kept_bytes(port));
	for (struct eth_rule *r = port->rules; r;) {
		r = gather_group(port, r, rules, &part);
		if (!hash)
			part.key = NULL;
		eth_filter_add(&filter, &part);
	}
	if (filter.full && hash)
		return attach_rules(port, code, false);
	return attach(port->fd, code, eth_filter_end(&filter));
}

/* port->lock held. The kernel limits the memory of a socket's filter, and counts the one that is replaced, too: 20
 * KiB in all before Linux 6.9 (net.core.optmem_max), while a hash takes up to 15. So where memory is short all frames
 * pass first, which frees the old filter, and then those that a program with the hash passes, or one without it. */
static int renew_filter(struct eth_port *port)
{
	struct sock_filter everything = BPF_STMT(BPF_RET | BPF_K, kept_bytes(port)), *code;
	int err;

	assert_held(&port->lock);
	if (port->xdp)		/* frames that the XDP program passes are the kernel's */
		return 0;
	if (!(code = malloc(ETH_FILTER_MAX * sizeof *code)))
		return ENOMEM;
	err = attach_rules(port, code, true);
	if (err == ENOMEM && !attach(port->fd, &everything, 1)) {
		if (attach_rules(port, code, true))
			attach_rules(port, code, false);	/* if it fails, too, all frames pass */
		err = 0;
	}
	free(code);
	return err;
}

int eth_filter_renew(struct eth_port *port)
{
	int err;

	dapl_mutex_lock(&port->lock);
	err = renew_filter(port);
	if (port->old_tables)
		port->want_purge(port->context);
	dapl_mutex_unlock(&port->lock);
	return err;
}

/* --- memberships ------------------------------------------------------------------------ */

enum { MAX_MEMBERSHIPS = 3 };	/* of a rule: all frames, all multicast frames, one address */

static bool is_exact(const uint8_t mask[6])
{
	static const uint8_t all[6] = { 255, 255, 255, 255, 255, 255 };

	return !memcmp(mask, all, 6);
}

/* What the packet socket needs of the device for a rule. Returns how many. ETH-20. */
static unsigned wanted_memberships(const struct eth_port *port, const struct dapl_eth_rule *rule,
				   struct packet_mreq wanted[MAX_MEMBERSHIPS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < MAX_MEMBERSHIPS; i++)
		wanted[i] = (struct packet_mreq){ .mr_ifindex = port->index };
	if (rule->flags & ETH_ALL)
		wanted[n++].mr_type = PACKET_MR_PROMISC;
	if (rule->flags & ETH_ALL_MULTICAST)
		wanted[n++].mr_type = PACKET_MR_ALLMULTI;
	if (is_exact(rule->mask.dst) && !is_exact(rule->key.dst)) {
		wanted[n].mr_type = rule->key.dst[0] & 1 ? PACKET_MR_MULTICAST : PACKET_MR_UNICAST;
		wanted[n].mr_alen = 6;
		memcpy(wanted[n++].mr_address, rule->key.dst, 6);
	}
	return n;
}

/* The socket counts equal memberships: each rule adds its own. After an error those before it stay, until
 * drop_memberships. */
static int add_memberships(struct eth_port *port, struct eth_rule *rule)
{
	struct packet_mreq wanted[MAX_MEMBERSHIPS];
	unsigned n = wanted_memberships(port, &rule->rule, wanted);

	for (; rule->memberships < n; rule->memberships++)
		if (setsockopt(port->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &wanted[rule->memberships],
			       sizeof *wanted))
			return errno;
	return 0;
}

/* Drops those that the rule has added, no more: another rule may have equal ones. */
static void drop_memberships(struct eth_port *port, struct eth_rule *rule)
{
	struct packet_mreq wanted[MAX_MEMBERSHIPS];

	wanted_memberships(port, &rule->rule, wanted);
	while (rule->memberships)
		setsockopt(port->fd, SOL_PACKET, PACKET_DROP_MEMBERSHIP, &wanted[--rule->memberships],
			   sizeof *wanted);
}

/* ETH-20 */
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

/* True if `r` is looked at before the new rule. */
static bool precedes(const struct eth_rule *r, const struct eth_rule *new)
{
	if (r->spread != new->spread)
		return !r->spread || (new->spread && r->spread->id < new->spread->id);
	return r->rule.priority <= new->rule.priority;
}

static struct eth_rule **place_for(struct eth_port *port, const struct eth_rule *new)
{
	struct eth_rule **at = &port->rules;

	while (*at && precedes(*at, new))
		at = &(*at)->next;
	return at;
}

static bool exists(const struct eth_port *port, const struct eth_rule *new)
{
	for (const struct eth_rule *r = port->rules; r; r = r->next)
		if (!r->moved && r->spread == new->spread && dapl_eth_rule_is_same(&r->rule, &new->rule))
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
		port->steering -= rule->rule.mode != ETH_COPY && !rule->moved;
		if (rule->rule.mode == ETH_DROP)
			eth_steer_put_counter(port, rule);
	}
}

static void link_rule(struct eth_port *port, struct eth_rule *rule)
{
	struct eth_rule **at = place_for(port, rule);

	rule->next = *at;
	*at = rule;
	port->rule_count++;
	port->steering += rule->rule.mode != ETH_COPY && !rule->moved;
}

/* The device no longer needs to receive its frames. */
static void leave(struct eth_port *port, struct eth_rule *rule)
{
	drop_memberships(port, rule);
	if (rule->joined >= 0)
		close(rule->joined);
}

static void free_rule(struct eth_rule *rule)
{
	rule_counts_put(rule->counts);
	rule_times_put(rule->times);
	if (rule->spread)
		spread_put(rule->spread);
	free(rule);
}

static void free_past(struct eth_rule **past)
{
	struct eth_rule *rule;

	while ((rule = *past)) {
		*past = rule->past;
		free_rule(rule);
	}
}

static void end_rule(struct eth_port *port, struct eth_rule *rule)
{
	leave(port, rule);
	free_past(&rule->past);
	free_rule(rule);
}

/* --- what is left after a change ----------------------------------------------------------- */

/* Takes what is left of a rule that comes back off the list; NULL: nothing is left. Equal counts show that
 * it is the same rule. */
static struct eth_rule *take_left(struct eth_port *port, const struct eth_rule *rule)
{
	struct eth_rule *left = port->rules;

	while (left && !(left->moved && left->counts == rule->counts && left->spread == rule->spread))
		left = left->next;
	if (left)
		unlink_rule(port, left);
	return left;
}

static void keep_past(struct eth_port *port, struct eth_rule *rule, struct eth_rule *left)
{
	struct eth_rule **oldest = &rule->past;

	leave(port, left);
	rule->past = left;
	for (unsigned n = 0; *oldest && n < ETH_MAX_PAST; n++)
		oldest = &(*oldest)->past;
	free_past(oldest);
}

/* True if no frame that the rule was left for waits in the socket. The rule left so long ago that none is
 * on its way to it. */
static bool is_read(const struct eth_port *port, uint64_t until)
{
	struct pollfd fd = { .fd = port->fd, .events = POLLIN };

	return port->last_time > until || poll(&fd, 1, 0) == 0;
}

/* A moved rule without an end is being removed: the thread that does so still reads its counters. */
static bool is_over(const struct eth_port *port, const struct eth_rule *rule, uint64_t before)
{
	uint64_t until = rule->times->until_ns;

	return until && until < before && is_read(port, until);
}

/* Returns true if something stays. */
static bool purge_past(const struct eth_port *port, struct eth_rule *rule, uint64_t before)
{
	struct eth_rule **past = &rule->past;

	while (*past && !is_over(port, *past, before))
		past = &(*past)->past;
	free_past(past);
	return rule->past;
}

/* Ends what is left of moved rules if no frame is on its way; `at_once`: even if there may be one. Returns
 * true if something stays. */
static bool purge(struct eth_port *port, bool at_once)
{
	uint64_t before = clock_read_ns(CLOCK_REALTIME) - LEFT_NS;
	struct eth_rule **at = &port->rules, *rule;
	bool left = false, ended = false;

	while ((rule = *at)) {
		if (!rule->moved || (!at_once && !is_over(port, rule, before))) {
			left |= purge_past(port, rule, before) || rule->moved;
			at = &rule->next;
			continue;
		}
		*at = rule->next;
		port->rule_count--;
		end_rule(port, rule);
		ended = true;
	}
	if (ended || port->old_tables)
		renew_filter(port);
	return left || port->old_tables;
}

bool eth_rule_purge(struct eth_port *port)
{
	bool left;

	dapl_mutex_lock(&port->lock);
	left = purge(port, false);
	dapl_mutex_unlock(&port->lock);
	return left;
}

/* --- adding and removing ------------------------------------------------------------------- */

/* port->lock held. */
static int add_rule(struct eth_port *port, struct eth_rule *rule)
{
	int err;

	assert_held(&port->lock);
	if (exists(port, rule))
		return EEXIST;
	if (port->rule_count == ETH_MAX_RULES)
		purge(port, true);
	if (port->rule_count == ETH_MAX_RULES)
		return ENOSPC;
	if ((rule->rule.flags & ETH_JOIN) && (rule->joined = join_socket(port, &rule->rule)) < 0)
		return errno;
	if ((err = add_memberships(port, rule)))
		return err;
	link_rule(port, rule);
	err = rule->rule.mode == ETH_DROP ? eth_steer_get_counter(port, rule) : 0;
	if (!err)
		err = renew_filter(port);
	if (err) {
		unlink_rule(port, rule);
		renew_filter(port);
	}
	return err;
}

static int attach_locked(struct eth_port *port, struct eth_rule *rule)
{
	struct eth_rule *left = take_left(port, rule);
	int err = add_rule(port, rule);

	if (left && !err) {
		keep_past(port, rule, left);
	} else if (left) {
		link_rule(port, left);
		renew_filter(port);
	}
	return err;
}

int eth_rule_attach(struct eth_port *port, const struct rule_part *part, uint16_t member, struct eth_rule **added)
{
	struct eth_rule *new = calloc(1, sizeof *new);
	int err;

	if (!new)
		return ENOMEM;
	*new = (struct eth_rule){ .rule = part->rule, .joined = -1, .counts = part->counts, .times = part->times,
		.spread = part->spread, .member = member,
		.needs_headers = part->spread || !eth_matches_all(&part->rule) };
	__atomic_add_fetch(&new->counts->refs, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&new->times->refs, 1, __ATOMIC_RELAXED);
	if (new->spread)
		spread_get(new->spread);
	dapl_mutex_lock(&port->lock);
	new->id = ++port->last_id;
	err = attach_locked(port, new);
	if (err)
		end_rule(port, new);
	else if (port->old_tables)
		port->want_purge(port->context);
	dapl_mutex_unlock(&port->lock);
	if (!err)
		*added = new;
	return err;
}

int eth_rule_steer(struct eth_port *port)
{
	int err;

	dapl_mutex_lock(&port->lock);
	err = eth_steer_renew(port);
	dapl_mutex_unlock(&port->lock);
	return err;
}

/* port->lock held. */
static struct eth_rule *find_by_times(const struct eth_port *port, const struct rule_times *times)
{
	struct eth_rule *r = port->rules;

	assert_held(&port->lock);
	while (r && r->times != times)
		r = r->next;
	return r;
}

void eth_rule_unsteer(struct eth_port *port, const struct rule_times *times, bool purged)
{
	struct eth_rule *rule;

	dapl_mutex_lock(&port->lock);
	rule = find_by_times(port, times);
	if (rule && !rule->moved) {
		port->steering -= rule->rule.mode != ETH_COPY;
		rule->moved = true;
		eth_steer_renew(port);
		if (purged)
			port->want_purge(port->context);
	}
	dapl_mutex_unlock(&port->lock);
}

void eth_rule_detach(struct eth_port *port, const struct rule_times *times)
{
	struct eth_rule *rule;

	dapl_mutex_lock(&port->lock);
	rule = find_by_times(port, times);
	if (rule) {
		unlink_rule(port, rule);
		renew_filter(port);
		end_rule(port, rule);
	}
	dapl_mutex_unlock(&port->lock);
}

/* A caller may ask for a rule that has ended with the disconnect of the port. */
bool eth_rule_has(struct eth_port *port, const struct eth_rule *rule)
{
	bool found = false;

	dapl_mutex_lock(&port->lock);
	for (const struct eth_rule *r = port->rules; r; r = r->next)
		found |= r == rule;
	dapl_mutex_unlock(&port->lock);
	return found;
}

void eth_rules_free(struct eth_port *port)
{
	struct eth_rule *rule;

	while ((rule = port->rules)) {
		unlink_rule(port, rule);
		end_rule(port, rule);
	}
	port->old_tables = false;
	eth_steer_renew(port);
}

/* --- parts --------------------------------------------------------------------------------- */

struct rule_counts *rule_counts_new(void)
{
	struct rule_counts *counts = calloc(1, sizeof *counts);

	if (counts)
		counts->refs = 1;
	return counts;
}

struct rule_times *rule_times_new(uint64_t from_ns)
{
	struct rule_times *times = calloc(1, sizeof *times);

	if (times)
		*times = (struct rule_times){ .refs = 1, .from_ns = from_ns };
	return times;
}

void rule_counts_put(struct rule_counts *counts)
{
	if (counts && !__atomic_sub_fetch(&counts->refs, 1, __ATOMIC_ACQ_REL))
		free(counts);
}

void rule_times_put(struct rule_times *times)
{
	if (times && !__atomic_sub_fetch(&times->refs, 1, __ATOMIC_ACQ_REL))
		free(times);
}
