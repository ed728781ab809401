/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rule.c - parses rules: words with values, in any order. A rule compares each header field with at most one
 * value. The device compares them with frames. */
#include "rule.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_MAX = 64, TEXT_MAX = 1000 };	/* bytes; each valid word is shorter than WORD_MAX */

struct parser {
	const char *at;
	char word[WORD_MAX];
	DAT_ETH_KEY *key, *mask;	/* of the outer headers, or after "inner" of the inner ones */
	DAT_ETH_RULE *rule;
	char *wrong;
	size_t size;
};

static bool fault(struct parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool fault(struct parser *p, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(p->wrong, p->size, fmt, args);
	va_end(args);
	return false;
}

/* Reads the next word. Returns false at the end. */
static bool next(struct parser *p)
{
	size_t n = 0;

	while (isspace((unsigned char)*p->at))
		p->at++;
	while (*p->at && !isspace((unsigned char)*p->at)) {
		if (n < WORD_MAX - 1)
			p->word[n++] = *p->at;
		p->at++;
	}
	p->word[n] = 0;
	return n != 0;
}

static bool read_number(const char *text, unsigned long max, unsigned long *value)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoul(text, &end, 0);
	return !errno && !*end && *value <= max;
}

/* Reads "VALUE", or "VALUE/MASK" if `may_mask`. */
static bool value_and_mask(struct parser *p, const char *what, unsigned long max, bool may_mask,
			   unsigned long *value, unsigned long *mask)
{
	char *slash;

	if (!next(p))
		return fault(p, "\"%s\" lacks its value, a number up to %lu", what, max);
	*mask = max;
	slash = may_mask ? strchr(p->word, '/') : NULL;
	if (slash)
		*slash = 0;
	if (!read_number(p->word, max, value) || (slash && !read_number(slash + 1, max, mask)))
		return fault(p, "%s \"%s%s%s\": expected a number up to %lu%s", what, p->word, slash ? "/" : "",
			     slash ? slash + 1 : "", max, may_mask ? ", and perhaps a mask" : "");
	*value &= *mask;
	return true;
}

/* Returns false, with an error, if the rule has a condition on this field already: a rule compares a field with one
 * value. */
static bool is_free(struct parser *p, const char *what, const uint8_t *mask, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (mask[i])
			return fault(p, "\"%s\" found, but the rule has a condition on this field already", what);
	return true;
}

bool rule_parse_mac(const char *text, uint8_t mac[6])
{
	unsigned byte[6];
	int end = 0;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &byte[0], &byte[1], &byte[2], &byte[3], &byte[4], &byte[5],
		   &end) != 6 || text[end])
		return false;
	for (int i = 0; i < 6; i++)
		mac[i] = (uint8_t)byte[i];
	return true;
}

static bool set_version(struct parser *p, uint8_t version)
{
	if (p->mask->ip_version && p->key->ip_version != version)
		return fault(p, "the rule asks for both IP versions");
	p->key->ip_version = version;
	p->mask->ip_version = 0xff;
	return true;
}

static void set_prefix(uint8_t *key, uint8_t *mask, const uint8_t *address, unsigned bytes, unsigned bits)
{
	for (unsigned i = 0; i < bytes; i++) {
		unsigned left = bits > i * 8 ? bits - i * 8 : 0;

		mask[i] = left >= 8 ? 0xff : (uint8_t)(0xff00 >> left);
		key[i] = address[i] & mask[i];
	}
}

static bool parse_ip_address(struct parser *p, const char *what, const char *bits, bool is_dst)
{
	uint8_t *key = is_dst ? p->key->ip_dst : p->key->ip_src, address[16];
	uint8_t *mask = is_dst ? p->mask->ip_dst : p->mask->ip_src;
	bool is_ipv4 = inet_pton(AF_INET, p->word, address) == 1;
	const unsigned long most = is_ipv4 ? 32 : 128;
	unsigned long length = most;

	if (!is_ipv4 && inet_pton(AF_INET6, p->word, address) != 1)
		return fault(p, "%s \"%s\": expected an Ethernet or IP address", what, p->word);
	if (bits && !read_number(bits, most, &length))
		return fault(p, "%s \"%s/%s\": expected a prefix of at most %lu bits", what, p->word, bits, most);
	if (!is_free(p, what, mask, sizeof p->mask->ip_dst))
		return false;
	set_prefix(key, mask, address, is_ipv4 ? 4 : 16, (unsigned)length);
	return set_version(p, is_ipv4 ? 4 : 6);
}

static bool parse_address(struct parser *p, const char *what, bool is_dst)
{
	uint8_t *key = is_dst ? p->key->dst : p->key->src, *mask = is_dst ? p->mask->dst : p->mask->src;
	uint8_t mac[6];
	char *slash;

	if (!next(p))
		return fault(p, "\"%s\" lacks its address", what);
	slash = strchr(p->word, '/');
	if (slash)
		*slash = 0;
	if (!rule_parse_mac(p->word, mac))
		return parse_ip_address(p, what, slash ? slash + 1 : NULL, is_dst);
	if (!is_free(p, what, mask, sizeof p->mask->dst))
		return false;
	memset(mask, 0xff, 6);
	if (slash && !rule_parse_mac(slash + 1, mask))
		return fault(p, "%s \"%s/%s\": expected a mask like ff:ff:ff:00:00:00", what, p->word, slash + 1);
	for (int i = 0; i < 6; i++)
		key[i] = mac[i] & mask[i];
	return true;
}

static bool set_protocol(struct parser *p, const char *what, unsigned long protocol)
{
	if (!is_free(p, what, &p->mask->protocol, sizeof p->mask->protocol))
		return false;
	p->key->protocol = (uint8_t)protocol;
	p->mask->protocol = 0xff;
	return true;
}

static void put_number(uint8_t *to, size_t bytes, unsigned long value)
{
	while (bytes--) {
		to[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

/* Parses a field that is a number, and stores it in network byte order. */
static bool parse_field(struct parser *p, const char *what, bool *found)
{
#define AT(member) offsetof(DAT_ETH_KEY, member), sizeof ((DAT_ETH_KEY *)NULL)->member
	static const struct { const char *word; unsigned long max; bool may_mask; size_t at, bytes; } fields[] = {
		{ "vlan", 4095, false, AT(vlan_tci) }, { "type", 0xffff, false, AT(ether_type) },
		{ "tos", 255, true, AT(tos) }, { "flow", 0xfffff, false, AT(flow_label) },
		{ "sport", 0xffff, false, AT(port_src) }, { "dport", 0xffff, false, AT(port_dst) },
	};
#undef AT
	unsigned long value = 0, mask = 0;
	size_t i = 0;

	while (i < sizeof fields / sizeof *fields && strcmp(what, fields[i].word))
		i++;
	*found = i < sizeof fields / sizeof *fields;
	if (!*found)
		return true;
	if (!value_and_mask(p, fields[i].word, fields[i].max, fields[i].may_mask, &value, &mask) ||
	    !is_free(p, what, (uint8_t *)p->mask + fields[i].at, fields[i].bytes))
		return false;
	put_number((uint8_t *)p->key + fields[i].at, fields[i].bytes, value);
	put_number((uint8_t *)p->mask + fields[i].at, fields[i].bytes, mask);
	return strcmp(what, "flow") || set_version(p, 6);
}

static bool parse_protocol(struct parser *p)
{
	unsigned long value, mask;

	return value_and_mask(p, "proto", 255, false, &value, &mask) && set_protocol(p, "proto", value);
}

/* Sets the tunnel, and its number if the next word is a number. */
static bool parse_tunnel(struct parser *p, unsigned tunnel, unsigned long max)
{
	const char *before = p->at;
	unsigned long id;

	if (p->key != &p->rule->key)
		return fault(p, "a tunnel within a tunnel cannot be matched");
	if (p->mask->tunnel)
		return fault(p, "the rule asks for two tunnels");
	p->key->tunnel = tunnel;
	p->mask->tunnel = 0xffffffff;
	if (!next(p))
		return true;
	if (!isdigit((unsigned char)*p->word)) {
		p->at = before;
		return true;
	}
	if (!read_number(p->word, max, &id))
		return fault(p, "tunnel \"%s\": expected a number up to %lu", p->word, max);
	p->key->tunnel_id = htonl((uint32_t)id);
	p->mask->tunnel_id = 0xffffffff;
	return true;
}

static bool parse_word(struct parser *p)
{
	static const struct { const char *word; unsigned tunnel; unsigned long max; } tunnels[] = {
		{ "vxlan", DAT_ETH_TUNNEL_VXLAN, 0xffffff }, { "geneve", DAT_ETH_TUNNEL_GENEVE, 0xffffff },
		{ "nvgre", DAT_ETH_TUNNEL_NVGRE, 0xffffff }, { "gre", DAT_ETH_TUNNEL_GRE, 0xffffffff },
		{ "mpls", DAT_ETH_TUNNEL_MPLS, 0xfffff },
	};
	char what[WORD_MAX];
	bool found;

	memcpy(what, p->word, sizeof what);
	if (!strcmp(what, "dst") || !strcmp(what, "src"))
		return parse_address(p, what, *what == 'd');
	if (!strcmp(what, "ip") || !strcmp(what, "ip6"))
		return set_version(p, what[2] ? 6 : 4);
	if (!strcmp(what, "tcp") || !strcmp(what, "udp") || !strcmp(what, "sctp"))
		return set_protocol(p, what, *what == 't' ? IPPROTO_TCP : *what == 'u' ? IPPROTO_UDP : IPPROTO_SCTP);
	if (!strcmp(what, "proto"))
		return parse_protocol(p);
	if (!strcmp(what, "inner")) {
		p->key = &p->rule->inner_key;
		p->mask = &p->rule->inner_mask;
		return true;
	}
	for (size_t i = 0; i < sizeof tunnels / sizeof *tunnels; i++)
		if (!strcmp(what, tunnels[i].word))
			return parse_tunnel(p, tunnels[i].tunnel, tunnels[i].max);
	if (!parse_field(p, what, &found))
		return false;
	return found || fault(p, "\"%s\" is no word of a rule: dst src vlan type ip ip6 tos flow proto tcp udp sctp "
			      "sport dport vxlan geneve nvgre gre mpls inner", what);
}

bool rule_parse(const char *text, DAT_ETH_RULE *rule, char *wrong, size_t size)
{
	struct parser p = { .at = text, .key = &rule->key, .mask = &rule->mask, .rule = rule, .wrong = wrong,
		.size = size };

	memset(&rule->key, 0, 4 * sizeof rule->key);
	if (strlen(text) > TEXT_MAX)
		return fault(&p, "a rule has at most %d characters", TEXT_MAX);
	if (!next(&p))
		return fault(&p, "column %zu: the end found, expected words like 'dst 10.0.0.1'", strlen(text) + 1);
	do
		if (!parse_word(&p))
			return false;
	while (next(&p));
	return true;
}

bool rule_has_condition(const DAT_ETH_RULE *rule)
{
	static const DAT_ETH_KEY none;

	return memcmp(&rule->mask, &none, sizeof none) || memcmp(&rule->inner_mask, &none, sizeof none);
}

bool rule_names_group(const DAT_ETH_RULE *rule)
{
	const DAT_ETH_KEY *key = &rule->key;

	return key->ip_version == 4 ? key->ip_dst[0] >> 4 == 14 : key->ip_dst[0] == 0xff;
}
