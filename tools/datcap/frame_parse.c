/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* frame_parse.c - parses descriptions of frames, and ranges of their fields (frame.h). */
#include "common/tunnel.h"
#include "frame.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rule.h"

enum { WORD_MAX = 2 * FRAME_PAYLOAD + 8 };

/* What a layer must have, so that a word has an effect. */
enum need { NEED_NOTHING, NEED_IP, NEED_IP4, NEED_IP6, NEED_PORTS, NEED_TCP, NEED_ICMP, NEEDS };

struct parser {
	const char *text, *at;
	unsigned column;		/* of `word`; from 1 on */
	char word[WORD_MAX];
	struct frame *frame;
	struct frame_layer *layer;
	struct frame_fault *fault;
	struct { unsigned column; char word[8]; } needed[NEEDS];	/* by the first word of this layer; 0: none */
};

static bool wrong(struct parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(struct parser *p, const char *expected, ...)
{
	size_t size = sizeof p->fault->text;
	int n = *p->word ? snprintf(p->fault->text, size, "\"%.40s\" found, expected ", p->word) :
		snprintf(p->fault->text, size, "the end found, expected ");
	va_list args;

	va_start(args, expected);
	vsnprintf(p->fault->text + n, size - (size_t)n, expected, args);
	va_end(args);
	p->fault->column = p->column;
	return false;
}

/* Reads the next word. Returns false at the end. A word in double quotes may have blanks. */
static bool next(struct parser *p)
{
	bool quoted;
	size_t n = 0;

	while (isspace((unsigned char)*p->at))
		p->at++;
	p->column = (unsigned)(p->at - p->text) + 1;
	quoted = *p->at == '"';
	if (quoted)
		p->word[n++] = *p->at++;
	while (*p->at && (quoted ? *p->at != '"' : !isspace((unsigned char)*p->at))) {
		if (n < WORD_MAX - 2)
			p->word[n++] = *p->at;
		p->at++;
	}
	if (quoted && *p->at)
		p->word[n++] = *p->at++;
	p->word[n] = 0;
	return n != 0;
}

static bool is_number(const char *text, uint64_t max, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = isdigit((unsigned char)*text) ? strtoull(text, &end, 0) : 0;
	return isdigit((unsigned char)*text) && !errno && !*end && *value <= max;
}

static bool number(struct parser *p, const char *what, uint64_t max, uint32_t *value)
{
	uint64_t found;

	next(p);
	if (!is_number(p->word, max, &found))
		return wrong(p, "%s, a number up to %llu", what, (unsigned long long)max);
	*value = (uint32_t)found;
	return true;
}

static bool mac(struct parser *p, uint8_t address[6])
{
	next(p);
	return rule_parse_mac(p->word, address) || wrong(p, "an Ethernet address like 02:00:00:00:00:01");
}

/* Reads a word "A>B", and ends "A" at the '>'. Returns false if there is no '>'. */
static bool split(struct parser *p, char **second)
{
	next(p);
	*second = strchr(p->word, '>');
	if (!*second)
		return false;
	*(*second)++ = 0;
	return true;
}

/* Puts the '>' back, since messages show the word. */
static void join(char *second)
{
	second[-1] = '>';
}

static bool addresses(struct parser *p, unsigned version)
{
	int family = version == 6 ? AF_INET6 : AF_INET;
	const char *like = version == 6 ? "fd00::1>fd00::2" : "10.0.0.1>10.0.0.2";
	char *second;
	bool good = split(p, &second);

	if (!good)
		return wrong(p, "two addresses like %s", like);
	good = inet_pton(family, p->word, p->layer->ip_src) == 1 && inet_pton(family, second, p->layer->ip_dst) == 1;
	join(second);
	p->layer->version = version;
	return good || wrong(p, "two addresses like %s", like);
}

static bool ports(struct parser *p, uint32_t protocol)
{
	uint64_t source = 0, destination = 0;
	char *second;
	bool good = split(p, &second);

	if (good) {
		good = is_number(p->word, 65535, &source) && is_number(second, 65535, &destination);
		join(second);
	}
	p->layer->protocol = protocol;
	p->layer->ports = true;
	p->layer->sport = (uint32_t)source;
	p->layer->dport = (uint32_t)destination;
	return good || wrong(p, "two ports like 1>2");
}

/* Reads "request A>B" or "reply A>B". */
static bool arp(struct parser *p)
{
	next(p);
	p->layer->arp = !strcmp(p->word, "request") ? FRAME_ARP_REQUEST : !strcmp(p->word, "reply") ? FRAME_ARP_REPLY :
		FRAME_NO_ARP;
	if (!p->layer->arp)
		return wrong(p, "request or reply");
	if (p->layer->version)
		return wrong(p, "either arp or an IP header");
	if (!addresses(p, 4))
		return false;
	p->layer->version = 0;
	return true;
}

/* Reads the type of ICMP, and perhaps its code: "echo", "3/1". Called behind the IP header, which says the version. */
static bool icmp(struct parser *p)
{
	const bool version6 = p->layer->version == 6;
	uint64_t type = 0, code = 0;
	char *slash;
	bool good;

	next(p);
	slash = strchr(p->word, '/');
	if (slash)
		*slash = 0;
	good = is_number(p->word, 255, &type);
	if (!strcmp(p->word, "echo")) {
		type = version6 ? 128 : 8;
		good = true;
	} else if (!strcmp(p->word, "echo-reply")) {
		type = version6 ? 129 : 0;
		good = true;
	}
	good = good && (!slash || is_number(slash + 1, 255, &code));
	if (slash)
		*slash = '/';
	p->layer->icmp = true;
	p->layer->icmp_type = (uint32_t)type;
	p->layer->icmp_code = (uint32_t)code;
	p->layer->protocol = version6 ? 58 : 1;
	return good || wrong(p, "echo, echo-reply, or a type up to 255, perhaps with /CODE");
}

/* Reads a VLAN and perhaps its priority: "5" or "5/3". */
static bool tag(struct parser *p)
{
	uint64_t id, priority = 0;
	char *slash;
	bool good;

	next(p);
	if (p->layer->tags == FRAME_TAGS)
		return wrong(p, "at most %d tags", FRAME_TAGS);
	slash = strchr(p->word, '/');
	if (slash)
		*slash = 0;
	good = is_number(p->word, 4095, &id) && (!slash || is_number(slash + 1, 7, &priority));
	if (slash)
		*slash = '/';
	if (!good)
		return wrong(p, "a VLAN up to 4095, perhaps with /PRIORITY");
	p->layer->vlan[p->layer->tags++] = (uint16_t)(priority << 13 | id);
	return true;
}

static bool tcp_flags(struct parser *p)
{
	static const char letters[] = "FSRPAUEC";

	next(p);
	for (const char *c = p->word; *c; c++) {
		const char *found = strchr(letters, toupper((unsigned char)*c));

		if (!found)
			return wrong(p, "TCP flags, letters of %s", letters);
		p->layer->flags |= 1u << (found - letters);
	}
	return *p->word || wrong(p, "TCP flags, letters of %s", letters);
}

static bool payload(struct parser *p)
{
	struct frame *f = p->frame;
	size_t length;

	next(p);
	length = strlen(p->word);
	if (*p->word == '"') {
		if (length < 2 || p->word[length - 1] != '"' || length - 2 > FRAME_PAYLOAD)
			return wrong(p, "\"text\" of at most %d bytes", FRAME_PAYLOAD);
		f->payload_length = (uint32_t)length - 2;
		memcpy(f->payload, p->word + 1, length - 2);
		return true;
	}
	if (!length || length % 2 || strspn(p->word, "0123456789abcdefABCDEF") != length || length / 2 > FRAME_PAYLOAD)
		return wrong(p, "bytes as hexadecimal digits, two each, or \"text\"; at most %d", FRAME_PAYLOAD);
	f->payload_length = (uint32_t)length / 2;
	for (size_t i = 0; i < length / 2; i++) {
		char digits[3] = { p->word[2 * i], p->word[2 * i + 1], 0 };

		f->payload[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return true;
}

static void need(struct parser *p, enum need what)
{
	if (p->needed[what].column)
		return;
	p->needed[what].column = p->column;
	snprintf(p->needed[what].word, sizeof p->needed[what].word, "%.7s", p->word);
}

/* Checks that each word of the layer has an effect. */
static bool end_layer(struct parser *p)
{
	const struct frame_layer *l = p->layer;
	const struct { bool has; const char *expected; } needs[NEEDS] = {
		[NEED_NOTHING] = { true, "" },
		[NEED_IP] = { l->version, "ip A>B or ip6 A>B" },
		[NEED_IP4] = { l->version == 4, "ip A>B" },
		[NEED_IP6] = { l->version == 6, "ip6 A>B" },
		[NEED_PORTS] = { l->ports, "udp A>B or tcp A>B" },
		[NEED_TCP] = { l->ports && l->protocol == 6, "tcp A>B" },
		[NEED_ICMP] = { l->icmp, "icmp TYPE" },
	};

	for (int i = 0; i < NEEDS; i++)
		if (p->needed[i].column && !needs[i].has) {
			p->fault->column = p->needed[i].column;
			snprintf(p->fault->text, sizeof p->fault->text, "\"%s\" found, expected %s beside it",
				 p->needed[i].word, needs[i].expected);
			return false;
		}
	memset(p->needed, 0, sizeof p->needed);
	return true;
}

static void start_layer(struct parser *p, const uint8_t src[6])
{
	p->layer = &p->frame->layer[p->frame->layers++];
	*p->layer = (struct frame_layer){ .ttl = 64, .protocol = 256 };
	memset(p->layer->dst, 0xff, 6);
	memcpy(p->layer->src, src, 6);
}

/* Parses a tunnel over UDP. The words after it describe the frame in the tunnel. */
static bool tunnel(struct parser *p, enum frame_tunnel kind, uint32_t port)
{
	struct frame_layer *outer = p->layer;

	if (p->frame->layers == FRAME_LAYERS)
		return wrong(p, "no tunnel within a tunnel");
	if (!outer->version)
		return wrong(p, "ip or ip6 before a tunnel");
	if (outer->ports && outer->protocol != 17)
		return wrong(p, "udp, or no ports, before a tunnel");
	if (!outer->ports)
		outer->sport = 49152;
	outer->dport = outer->ports ? outer->dport : port;
	outer->ports = true;
	outer->protocol = 17;
	outer->tunnel = kind;
	if (!number(p, "the number of the tunnel", 0xffffff, &outer->tunnel_id) || !end_layer(p))
		return false;
	start_layer(p, outer->src);
	return true;
}

/* Parses a word that has a number. Stores in *found whether it is such a word. */
static bool numeric(struct parser *p, bool *found)
{
	struct frame_layer *l = p->layer;
	const struct { const char *word; uint32_t *value; uint64_t max; enum need need; } fields[] = {
		{ "type", &l->type, 0xffff, NEED_NOTHING }, { "tos", &l->tos, 255, NEED_IP },
		{ "ttl", &l->ttl, 255, NEED_IP }, { "id", &l->id, 65535, NEED_IP4 },
		{ "flow", &l->flow, 0xfffff, NEED_IP6 }, { "proto", &l->protocol, 255, NEED_IP },
		{ "sport", &l->sport, 65535, NEED_PORTS }, { "dport", &l->dport, 65535, NEED_PORTS },
		{ "seq", &l->seq, 0xffffffff, NEED_TCP }, { "ack", &l->ack, 0xffffffff, NEED_TCP },
		{ "icmpid", &l->icmp_id, 65535, NEED_ICMP }, { "icmpseq", &l->icmp_seq, 65535, NEED_ICMP },
		{ "len", &p->frame->length, 65535, NEED_NOTHING },
	};

	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (!strcmp(p->word, fields[i].word)) {
			*found = true;
			need(p, fields[i].need);
			return number(p, fields[i].word, fields[i].max, fields[i].value);
		}
	*found = false;
	return true;
}

static bool parse_word(struct parser *p)
{
	bool found;

	if (!strcmp(p->word, "dst") || !strcmp(p->word, "src"))
		return mac(p, *p->word == 'd' ? p->layer->dst : p->layer->src);
	if (!strcmp(p->word, "ip") || !strcmp(p->word, "ip6"))
		return addresses(p, p->word[2] ? 6 : 4);
	if (!strcmp(p->word, "udp") || !strcmp(p->word, "tcp")) {
		need(p, NEED_IP);
		return ports(p, *p->word == 'u' ? 17 : 6);
	}
	if (!strcmp(p->word, "arp"))
		return arp(p);
	if (!strcmp(p->word, "icmp"))
		return p->layer->version ? icmp(p) : wrong(p, "ip or ip6 before icmp");
	if (!strcmp(p->word, "vlan"))
		return tag(p);
	if (!strcmp(p->word, "flags")) {
		need(p, NEED_TCP);
		return tcp_flags(p);
	}
	if (!strcmp(p->word, "payload"))
		return payload(p);
	if (!strcmp(p->word, "badsum")) {
		p->frame->bad_checksum = true;
		return true;
	}
	if (!strcmp(p->word, "vxlan"))
		return tunnel(p, FRAME_VXLAN, PORT_VXLAN);
	if (!strcmp(p->word, "geneve"))
		return tunnel(p, FRAME_GENEVE, PORT_GENEVE);
	if (!numeric(p, &found))
		return false;
	return found ||
	       wrong(p, "dst, src, vlan, type, arp, ip, ip6, tos, ttl, id, flow, proto, udp, tcp, sport, dport, flags, "
			"seq, ack, icmp, icmpid, icmpseq, vxlan, geneve, payload, badsum or len");
}

bool frame_parse(const char *text, const uint8_t src[6], struct frame *frame, struct frame_fault *fault)
{
	struct parser p = { .text = text, .at = text, .frame = frame, .fault = fault };

	*frame = (struct frame){ .layers = 0 };
	start_layer(&p, src);
	if (!next(&p))
		return wrong(&p, "a frame like 'ip 10.0.0.1>10.0.0.2 udp 1>2 len 64'");
	do
		if (!parse_word(&p))
			return false;
	while (next(&p));
	return end_layer(&p);
}

/* --- ranges ------------------------------------------------------------------------------------ */

static bool address_value(const char *text, unsigned size, uint8_t address[16])
{
	return size == 6 ? rule_parse_mac(text, address) :
		inet_pton(size == 4 ? AF_INET : AF_INET6, text, address) == 1;
}

/* Returns the last 8 bytes of an address as a number. */
static uint64_t value_of(const uint8_t *address, unsigned size)
{
	uint64_t value = 0;

	for (unsigned i = size > 8 ? size - 8 : 0; i < size; i++)
		value = value << 8 | address[i];
	return value;
}

/* Reads "A-B": numbers, or addresses, of which only the last 8 bytes count. */
static bool range(struct parser *p, struct frame_vary *vary, uint64_t max)
{
	uint8_t first[16], last[16];
	char *minus;
	bool good;

	next(p);
	minus = strchr(p->word, '-');
	if (!minus)
		return wrong(p, "a range like %s", vary->number ? "1-1000" : vary->address_size == 6 ?
			     "02:00:00:00:00:01-02:00:00:00:00:ff" : vary->address_size == 4 ? "10.0.0.1-10.0.0.254" :
			     "fd00::1-fd00::ff");
	*minus = 0;
	if (vary->number) {
		good = is_number(p->word, max, &vary->first) && is_number(minus + 1, max, &vary->last);
	} else {
		good = address_value(p->word, vary->address_size, first) &&
		       address_value(minus + 1, vary->address_size, last);
		if (good) {
			vary->first = value_of(first, vary->address_size);
			vary->last = value_of(last, vary->address_size);
		}
	}
	*minus = '-';
	if (!good || vary->first > vary->last)
		return wrong(p, vary->number ? "a range of numbers up to %llu, the smaller one first" :
			     "a range of addresses, the smaller one first", (unsigned long long)max);
	return true;
}

static bool field_of(struct parser *p, struct frame_vary *vary, uint64_t *max)
{
	struct frame_layer *l = p->layer;
	unsigned ip_size = l->version == 6 ? 16 : 4;
	const struct { const char *word; uint32_t *number; uint8_t *address; unsigned size; uint64_t max; bool there; }
	fields[] = {
		{ "dst", NULL, l->dst, 6, 0, true }, { "src", NULL, l->src, 6, 0, true },
		{ "ipsrc", NULL, l->ip_src, ip_size, 0, l->version || l->arp },
		{ "ipdst", NULL, l->ip_dst, ip_size, 0, l->version || l->arp },
		{ "sport", &l->sport, NULL, 0, 65535, l->ports }, { "dport", &l->dport, NULL, 0, 65535, l->ports },
		{ "tos", &l->tos, NULL, 0, 255, l->version }, { "ttl", &l->ttl, NULL, 0, 255, l->version },
		{ "id", &l->id, NULL, 0, 65535, l->version == 4 },
		{ "flow", &l->flow, NULL, 0, 0xfffff, l->version == 6 },
		{ "seq", &l->seq, NULL, 0, 0xffffffff, l->protocol == 6 }, { "type", &l->type, NULL, 0, 65535, true },
		{ "icmpid", &l->icmp_id, NULL, 0, 65535, l->icmp },
		{ "icmpseq", &l->icmp_seq, NULL, 0, 65535, l->icmp },
		{ "len", &p->frame->length, NULL, 0, 65535, true },
		{ "tunnel", &p->frame->layer[0].tunnel_id, NULL, 0, 0xffffff, p->frame->layer[0].tunnel },
	};

	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (!strcmp(p->word, fields[i].word)) {
			if (!fields[i].there)
				return wrong(p, "a field that the frame has");
			*vary = (struct frame_vary){ .layer = l, .number = fields[i].number,
				.address = fields[i].address, .address_size = fields[i].size, .step = 1 };
			*max = fields[i].max;
			return true;
		}
	return wrong(p, "dst src ipsrc ipdst sport dport tos ttl id flow seq icmpid icmpseq type tunnel len");
}

bool frame_parse_vary(const char *text, struct frame *frame, struct frame_vary *vary, struct frame_fault *fault)
{
	struct parser p = { .text = text, .at = text, .frame = frame, .fault = fault,
		.layer = &frame->layer[frame->layers - 1] };
	uint64_t max = 0;
	uint32_t step = 1;
	bool random;

	next(&p);
	if (!field_of(&p, vary, &max) || !range(&p, vary, max))
		return false;
	if (!next(&p))
		return true;
	random = !strcmp(p.word, "random");
	if (!random && strcmp(p.word, "step"))
		return wrong(&p, "step N, random N, or the end");
	if (!number(&p, random ? "frames with random values" : "the step", 0xffffffff, random ? &vary->random : &step))
		return false;
	vary->step = step;
	if (!(random ? vary->random : step))
		return wrong(&p, random ? "frames above 0" : "a step above 0");
	return !next(&p) || wrong(&p, "the end");
}

uint64_t frame_vary_count(const struct frame_vary *vary)
{
	uint64_t steps = (vary->last - vary->first) / vary->step;

	if (vary->random)
		return 1;
	return steps == UINT64_MAX ? steps : steps + 1;
}

/* Returns the n-th number of a sequence (splitmix64). */
static uint64_t random_number(uint64_t seed, uint64_t n)
{
	uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

void frame_vary_set(const struct frame_vary *vary, uint64_t i)
{
	const uint64_t span = vary->last - vary->first + 1;	/* 0: all 2^64 values */
	uint64_t value = vary->first + i * vary->step;

	if (vary->random) {
		value = random_number(vary->seed, i);
		value = vary->first + (span ? value % span : value);
	}

	if (vary->number) {
		*vary->number = (uint32_t)value;
		return;
	}
	for (unsigned n = 0; n < vary->address_size && n < 8; n++, value >>= 8)
		vary->address[vary->address_size - 1 - n] = (uint8_t)value;
}
