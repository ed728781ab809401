/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* filter_rules.c - finds rules for a capture filter. Splits the filter into terms at the "and" of its top
 * level. A term that names an address, a port or a protocol becomes a list of alternative rules. The rules
 * of the filter are the combinations of these alternatives. Terms of other kinds are left to the program,
 * and so are whole filters with "or" at their top level.
 *
 * A rule compares parsed headers, but a filter compares bytes at fixed places, so it may match a header that
 * cannot be parsed. Each term about IP headers therefore has one more alternative, which such headers match.
 * Two exceptions are left: a frame that ends within its ports, or within the fragment header of IPv6,
 * matches no rule with ports or with that protocol. */
#include "filter_rules.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rule.h"

enum { MAX_WORDS = 8, WORD_MAX = 64 };	/* words, bytes of a word: of a term that can become rules */

struct alternatives {
	DAT_ETH_RULE rules[MAX_RULES];
	unsigned n;
	bool full;			/* one more rule did not fit */
};

struct term {
	char words[MAX_WORDS][WORD_MAX];
	unsigned n;			/* words; MAX_WORDS + 1: it cannot become rules */
	bool changes_offsets;		/* of headers, for the terms after it: "vlan", "mpls" */
	const char *begin, *end;
};

/* --- combinations ------------------------------------------------------------------------------- */

/* Combines two rules into one. Returns false if no frame can match both. */
static bool merge(DAT_ETH_RULE *to, const DAT_ETH_RULE *a, const DAT_ETH_RULE *b)
{
	const uint8_t *key_a = (const uint8_t *)&a->key, *key_b = (const uint8_t *)&b->key;
	const uint8_t *mask_a = (const uint8_t *)&a->mask, *mask_b = (const uint8_t *)&b->mask;
	uint8_t *key = (uint8_t *)&to->key, *mask = (uint8_t *)&to->mask;

	*to = *a;
	for (size_t i = 0; i < sizeof to->key; i++) {
		if ((key_a[i] ^ key_b[i]) & mask_a[i] & mask_b[i])
			return false;
		key[i] = key_a[i] | key_b[i];
		mask[i] = mask_a[i] | mask_b[i];
	}
	return true;
}

static void add(struct alternatives *to, const DAT_ETH_RULE *rule)
{
	for (unsigned i = 0; i < to->n; i++)
		if (!memcmp(&to->rules[i], rule, sizeof *rule))
			return;
	to->full |= to->n == MAX_RULES;
	if (!to->full)
		to->rules[to->n++] = *rule;
}

/* Replaces *to by the combinations of its rules with the rules of *more. If they are too many, returns false
 * and leaves *to alone. */
static bool combine(struct alternatives *to, const struct alternatives *more)
{
	struct alternatives both = { .n = 0 };
	DAT_ETH_RULE rule;

	for (unsigned i = 0; i < to->n; i++)
		for (unsigned j = 0; j < more->n; j++)
			if (merge(&rule, &to->rules[i], &more->rules[j]))
				add(&both, &rule);
	if (both.full)
		return false;
	*to = both;
	return true;
}

/* --- rules for a term ------------------------------------------------------------------------------ */

static DAT_ETH_RULE of_type(uint16_t type)
{
	DAT_ETH_RULE rule = { .mode = 0 };

	rule.key.ether_type = htons(type);
	rule.mask.ether_type = 0xffff;
	return rule;
}

static DAT_ETH_RULE of_version(uint8_t version)
{
	DAT_ETH_RULE rule = of_type(version == 4 ? ETHERTYPE_IP : ETHERTYPE_IPV6);

	rule.key.ip_version = version;
	rule.mask.ip_version = 0xff;
	return rule;
}

/* Adds a rule for IP headers that cannot be parsed, to which the parser gives the version 0. */
static void add_unreadable(struct alternatives *to, uint8_t version)
{
	DAT_ETH_RULE rule = of_version(version);

	rule.key.ip_version = 0;
	add(to, &rule);
}

static void add_protocol(struct alternatives *to, uint8_t version, uint8_t protocol)
{
	DAT_ETH_RULE rule = of_version(version);

	rule.key.protocol = protocol;
	rule.mask.protocol = 0xff;
	add(to, &rule);
	add_unreadable(to, version);
}

/* "src" or "dst"; both are set if the term has neither, since either may match then. */
struct direction {
	bool src, dst;
};

static void add_port(struct alternatives *to, uint8_t version, uint8_t protocol, struct direction d, uint16_t port)
{
	DAT_ETH_RULE base = of_version(version), rule;

	base.key.protocol = protocol;
	base.mask.protocol = protocol ? 0xff : 0;
	rule = base;
	rule.key.port_src = htons(port);
	rule.mask.port_src = 0xffff;
	if (d.src)
		add(to, &rule);
	rule = base;
	rule.key.port_dst = htons(port);
	rule.mask.port_dst = 0xffff;
	if (d.dst)
		add(to, &rule);
	add_unreadable(to, version);
}

/* Adds what rule_parse() makes of "src ADDRESS" and "dst ADDRESS". */
static bool add_address(struct alternatives *to, struct direction d, const char *address, const DAT_ETH_RULE *base)
{
	static const char *const words[] = { "src", "dst" };
	char text[WORD_MAX + 8], wrong[300];

	for (int i = 0; i < 2; i++) {
		DAT_ETH_RULE rule = { .mode = 0 }, merged;

		if (!(i ? d.dst : d.src))
			continue;
		snprintf(text, sizeof text, "%s %s", words[i], address);
		if (!rule_parse(text, &rule, wrong, sizeof wrong) || !merge(&merged, &rule, base))
			return false;
		add(to, &merged);
	}
	return true;
}

/* Without "ip" a filter for an IPv4 address also finds ARP and RARP packets about it. */
static bool add_ip_address(struct alternatives *to, uint8_t version, struct direction d, const char *address)
{
	const uint8_t found = strchr(address, ':') ? 6 : 4;
	DAT_ETH_RULE base = of_version(found);

	if ((version && version != found) || !add_address(to, d, address, &base))
		return false;
	add_unreadable(to, found);
	if (version || found == 6)
		return true;
	base = of_type(ETHERTYPE_ARP);
	add(to, &base);
	base = of_type(ETHERTYPE_REVARP);
	add(to, &base);
	return true;
}

/* Reads a decimal number, or a hexadecimal one with 0x if `hexadecimal`. Refuses a leading 0, which means
 * octal to libpcap. */
static bool read_number(const char *text, bool hexadecimal, unsigned long max, unsigned long *value)
{
	const bool is_hex = hexadecimal && text[0] == '0' && text[1] == 'x';
	char *end;

	if (is_hex ? !isxdigit((unsigned char)text[2]) : !isdigit((unsigned char)*text) || (*text == '0' && text[1]))
		return false;
	*value = strtoul(text, &end, is_hex ? 16 : 10);
	return !*end && *value <= max;
}

/* Returns whether this is a complete IP address, with a prefix length if `with_bits`: not a name, and not an
 * address without its last numbers. */
static bool is_ip_address(const char *text, bool with_bits)
{
	char address[WORD_MAX], *slash;
	uint8_t bytes[16];
	unsigned long bits;

	memcpy(address, text, sizeof address);
	slash = strchr(address, '/');
	if (!slash != !with_bits)
		return false;
	if (slash)
		*slash = 0;
	if (inet_pton(AF_INET, address, bytes) == 1)
		return !slash || read_number(slash + 1, false, 32, &bits);
	return inet_pton(AF_INET6, address, bytes) == 1 && (!slash || read_number(slash + 1, false, 128, &bits));
}

/* Returns whether this is an extension header: eth_match_parse() skips them, so it never is the parsed
 * protocol. */
static bool is_extension(unsigned long protocol)
{
	return protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING || protocol == IPPROTO_FRAGMENT ||
	       protocol == IPPROTO_DSTOPTS;
}

/* Returns whether a filter for this EtherType compares the type alone. Numbers below 0x600 are lengths; for
 * `others` a filter compares other bytes, too. */
static bool is_plain_type(unsigned long type)
{
	/* tags, AppleTalk, IPX */
	static const uint16_t others[] = { 0x8100, 0x88a8, 0x9100, 0x809b, 0x80f3, 0x8137 };

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (type == others[i])
			return false;
	return type >= 0x600;
}

static bool single_word(const char *word, struct alternatives *to)
{
	static const struct { const char *word; uint16_t type; } types[] = {
		{ "ip", ETHERTYPE_IP }, { "ip6", ETHERTYPE_IPV6 }, { "arp", ETHERTYPE_ARP },
		{ "rarp", ETHERTYPE_REVARP },
	};
	static const struct { const char *word; uint8_t protocol; bool four, six; } protocols[] = {
		{ "tcp", IPPROTO_TCP, true, true }, { "udp", IPPROTO_UDP, true, true },
		{ "sctp", IPPROTO_SCTP, true, true },
		{ "icmp", IPPROTO_ICMP, true, false }, { "icmp6", IPPROTO_ICMPV6, false, true },
	};

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (!strcmp(word, types[i].word)) {
			const DAT_ETH_RULE rule = of_type(types[i].type);

			add(to, &rule);
			return true;
		}
	for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++)
		if (!strcmp(word, protocols[i].word)) {
			if (protocols[i].four)
				add_protocol(to, 4, protocols[i].protocol);
			if (protocols[i].six)
				add_protocol(to, 6, protocols[i].protocol);
			return true;
		}
	return false;
}

/* "ip proto N", "ip6 proto N", "ether proto N" */
static bool protocol_term(const char *layer, const char *number, struct alternatives *to)
{
	unsigned long n;

	if (!read_number(number, true, 0xffff, &n))
		return false;
	if (!strcmp(layer, "ether")) {
		const DAT_ETH_RULE rule = of_type((uint16_t)n);

		add(to, &rule);
		return is_plain_type(n);
	}
	if ((strcmp(layer, "ip") != 0 && strcmp(layer, "ip6") != 0) || n > 255 || is_extension(n))
		return false;
	add_protocol(to, layer[2] ? 6 : 4, (uint8_t)n);
	return true;
}

/* "[tcp|udp|sctp] [src|dst] port N" */
static bool port_term(const char *layer, struct direction d, const char *number, struct alternatives *to)
{
	const uint8_t protocol = !strcmp(layer, "tcp") ? IPPROTO_TCP : !strcmp(layer, "udp") ? IPPROTO_UDP :
		!strcmp(layer, "sctp") ? IPPROTO_SCTP : 0;
	unsigned long port;

	if ((*layer && !protocol) || !read_number(number, false, 0xffff, &port))
		return false;
	add_port(to, 4, protocol, d, (uint16_t)port);
	add_port(to, 6, protocol, d, (uint16_t)port);
	return true;
}

/* "[ip|ip6|ether] [src|dst] [host|net] ADDRESS" */
static bool address_term(const char *layer, struct direction d, bool is_net, const char *address, bool promiscuous,
			 struct alternatives *to)
{
	const DAT_ETH_RULE all = { .mode = 0 };
	uint8_t mac[6];

	if (!strcmp(layer, "ether"))	/* a rule for a destination also matches frames to other stations */
		return !is_net && rule_parse_mac(address, mac) && (promiscuous || !d.dst) &&
		       add_address(to, d, address, &all);
	if (*layer && strcmp(layer, "ip") != 0 && strcmp(layer, "ip6") != 0)
		return false;
	return is_ip_address(address, is_net) && add_ip_address(to, *layer ? layer[2] ? 6 : 4 : 0, d, address);
}

/* Makes the rules of a term "[LAYER] [src|dst] [port|host|net|proto] VALUE". Returns false if it cannot
 * become rules. */
static bool read_term(const struct term *t, bool promiscuous, struct alternatives *to)
{
	static const char *const layers[] = { "ip", "ip6", "ether", "tcp", "udp", "sctp" };
	const char *layer = "", *kind = "";
	struct direction d = { true, true };
	unsigned at = 0;

	*to = (struct alternatives){ .n = 0 };
	if (!t->n || t->n > MAX_WORDS)
		return false;
	if (t->n == 1)
		return single_word(t->words[0], to);
	for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
		if (!strcmp(t->words[0], layers[i]))
			layer = t->words[0];
	at += *layer != 0;
	if (at < t->n && (!strcmp(t->words[at], "src") || !strcmp(t->words[at], "dst"))) {
		d.src = t->words[at][0] == 's';
		d.dst = !d.src;
		at++;
	}
	if (at + 2 == t->n)
		kind = t->words[at++];
	if (at + 1 != t->n || (!*kind && d.src && d.dst))	/* an address needs a word before it */
		return false;
	if (!strcmp(kind, "proto"))
		return d.src && d.dst && protocol_term(layer, t->words[at], to);
	if (!strcmp(kind, "port"))
		return port_term(layer, d, t->words[at], to);
	if (*kind && strcmp(kind, "host") != 0 && strcmp(kind, "net") != 0)
		return false;
	return address_term(layer, d, *kind == 'n', t->words[at], promiscuous, to);
}

/* --- terms of a filter ------------------------------------------------------------------------------ */

static bool is_operator(const char *at)
{
	return !strncmp(at, "&&", 2) || !strncmp(at, "||", 2);
}

/* Moves *at to the next word, operator or bracket, and returns its length; 0 at the end. */
static size_t next_token(const char **at)
{
	size_t n = 0;

	while (isspace((unsigned char)**at))
		(*at)++;
	if (is_operator(*at))
		return 2;
	if (**at && strchr("()!", **at))
		return 1;
	while ((*at)[n] && !isspace((unsigned char)(*at)[n]) && !strchr("()!", (*at)[n]) && !is_operator(*at + n))
		n++;
	return n;
}

static bool is_word(const char *at, size_t n, const char *word)
{
	return strlen(word) == n && !memcmp(at, word, n);
}

static bool changes_offsets(const char *at, size_t n)
{
	static const char *const words[] = { "vlan", "mpls", "pppoes", "pppoed", "geneve", "vxlan" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (is_word(at, n, words[i]))
			return true;
	return false;
}

static void add_word(struct term *t, const char *at, size_t n)
{
	if (t->n >= MAX_WORDS || n >= WORD_MAX || strchr("()!", *at))
		t->n = MAX_WORDS + 1;
	else
		memcpy(t->words[t->n++], at, n);
	t->changes_offsets |= changes_offsets(at, n);
	t->end = at + n;
}

/* Returns whether the term ends with "src" or "dst". Then "and" continues it: "src and dst port 5" is one
 * term, and a "not" before it negates all of it. */
static bool ends_with_direction(const struct term *t)
{
	const size_t n = (size_t)(t->end - t->begin);

	return n >= 3 && (!memcmp(t->end - 3, "src", 3) || !memcmp(t->end - 3, "dst", 3));
}

/* Reads the term that begins at *at, and moves *at behind the "and" after it. Returns false if the filter is
 * not just terms joined by "and". */
static bool next_term(const char **at, struct term *t)
{
	unsigned depth = 0;
	size_t n = next_token(at);

	*t = (struct term){ .begin = *at, .end = *at };
	for (; n; *at += n, n = next_token(at)) {
		if (!depth && (is_word(*at, n, "or") || is_word(*at, n, "||")))
			return false;
		if (!depth && (is_word(*at, n, "and") || is_word(*at, n, "&&")))
			break;
		depth += **at == '(';
		depth -= **at == ')';
		add_word(t, *at, n);
	}
	*at += n;
	return !n || !ends_with_direction(t);
}

static void append(char *to, const struct term *t)
{
	const size_t n = strlen(to);

	snprintf(to + n, FILTER_TEXT_MAX + 1 - n, "%s%.*s", n ? " and " : "", (int)(t->end - t->begin), t->begin);
}

void filter_rules_make(struct filter_rules *made, const char *text, bool promiscuous)
{
	struct alternatives all = { .n = 1 }, some;
	const char *at = text;
	bool may = true;		/* the next terms are about the headers that a rule compares */
	struct term term;

	*made = (struct filter_rules){ .n = 0 };
	if (strlen(text) > FILTER_TEXT_MAX / 2)	/* "&&" becomes " and " */
		return;
	snprintf(made->left, sizeof made->left, "%s", text);
	for (const char *look = text; *look;)
		if (!next_term(&look, &term))
			return;
	*made->left = 0;
	while (*at && next_term(&at, &term)) {
		may &= !term.changes_offsets;
		append(may && read_term(&term, promiscuous, &some) && combine(&all, &some) ?
		       made->expressed : made->left, &term);
	}
	if (*made->expressed)
		made->n = all.n;
	if (!made->n) {			/* or no frame can match: "arp and udp" */
		*made->expressed = 0;
		snprintf(made->left, sizeof made->left, "%s", text);
	}
	memcpy(made->rules, all.rules, sizeof all.rules);
}
