/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* members.c - endpoints of a group, and frames with their hashes (members.h). */
#include "members.h"
#include "test/variables.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct wire w;
DAT_EP_HANDLE eps[MEMBERS];
uint16_t table[TABLE];
DAT_ETH_RSS rss = { .fields = DAT_ETH_RSS_IP | DAT_ETH_RSS_PORTS, .table_size = TABLE, .table = table };
static uint8_t seen[MOST];
static int owner_of[MOST];	/* -1: not checked */
static uint32_t hash_of[MOST];
unsigned received, from_member[MEMBERS];

void members_seed(void)
{
	unsigned seed = variable_seed("ETH_SEED");

	printf("ETH_SEED=%u\n", seed);
	fflush(stdout);
	srandom(seed);
}

static unsigned below(unsigned n)
{
	return (unsigned)random() % n;
}

void random_bytes(uint8_t *at, size_t n)
{
	while (n--)
		*at++ = (uint8_t)below(256);
}

void random_table(void)
{
	for (int i = 0; i < TABLE; i++)
		table[i] = (uint16_t)below(MEMBERS);
}

void open_members(const char *frames)
{
	wire_open(&w);
	for (int i = 0; i < MEMBERS; i++) {
		wire_endpoint(&w, frames, NULL);
		eps[i] = w.ep;
	}
	random_bytes(rss.key, sizeof rss.key);
	random_table();
	memset(seen, 0, sizeof seen);
	memset(owner_of, 255, sizeof owner_of);
	memset(from_member, 0, sizeof from_member);
	received = 0;
}

DAT_ETH_GROUP_HANDLE make_group(void)
{
	DAT_ETH_GROUP_HANDLE group;

	OK(dat_eth_group_create(w.ia, MEMBERS, eps, &rss, &group));
	return group;
}

DAT_ETH_RULE_HANDLE add_rule(DAT_HANDLE at, const DAT_ETH_RULE *rule)
{
	DAT_ETH_RULE_HANDLE handle;

	OK(dat_eth_rule_add(at, rule, &handle));
	return handle;
}

/* --- frames, and where they belong -------------------------------------------------------- */

/* Computes the hash by its definition: one bit at a time, with the key moved to the left. */
static uint32_t toeplitz(const uint8_t *input, size_t n)
{
	uint8_t key[sizeof rss.key];
	uint32_t hash = 0;

	memcpy(key, rss.key, sizeof key);
	for (size_t bit = 0; bit < 8 * n; bit++) {
		if (input[bit / 8] & (0x80 >> bit % 8))
			hash ^= (uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 | key[3];
		for (size_t i = 0; i < sizeof key; i++)
			key[i] = (uint8_t)(key[i] << 1 | (i + 1 < sizeof key ? key[i + 1] >> 7 : 0));
	}
	return hash;
}

static void put(struct made *m, const void *bytes, size_t n)
{
	memcpy(m->frame + m->length, bytes, n);
	m->length += n;
}

static void put_input(struct made *m, size_t offset, size_t n)
{
	memcpy(m->input + m->all, m->frame + offset, n);
	m->all += n;
}

static void put_ethernet(struct made *m, const char *type)
{
	put(m, w.eth0, 6);
	put(m, w.peer_address, 6);
	put(m, type, 2);
}

/* Appends an IP packet with random addresses and ports. */
static void put_ip(struct made *m, int version, uint8_t protocol, bool fragment, uint16_t port)
{
	uint8_t ip[40] = { 0x45, 0, 0, 100, 0, 0, fragment ? 0x20 : 0, 0, 64, protocol }, l4[24] = { 0 };
	size_t address = version == 4 ? 12 : 8, size = version == 4 ? 4 : 16, at = m->length;

	if (version == 6)
		memcpy(ip, (uint8_t[]){ 0x60, 0, 0, 0, 0, 24, protocol, 64 }, 8);
	random_bytes(ip + address, 2 * size);
	put(m, ip, address + 2 * size);
	random_bytes(l4, 4);
	if (port)
		memcpy(l4 + 2, &(uint16_t){ htons(port) }, 2);
	put(m, l4, protocol == 17 ? 8 : 24);
	m->all = 0;
	put_input(m, at + address, 2 * size);
	m->addresses = m->all;
	if (!fragment && (protocol == 6 || protocol == 17))
		put_input(m, at + address + 2 * size, 4);
}

struct made make_frame(uint32_t number)
{
	static const uint8_t protocols[] = { 6, 17, 132, 1 };
	int version = below(2) ? 6 : 4;
	struct made m = { .length = 0 };

	switch (below(8)) {
	case 0:		/* no IP */
		put_ethernet(&m, "\x88\xb5");
		put(&m, rss.key, sizeof rss.key);
		break;
	case 1:		/* a second VLAN tag, which the kernel does not strip */
		put_ethernet(&m, "\x88\xa8");
		put(&m, "\x00\x05\x81\x00\x00\x06", 6);
		put(&m, version == 4 ? "\x08\x00" : "\x86\xdd", 2);
		put_ip(&m, version, protocols[below(4)], false, 0);
		break;
	case 2:
		put_ethernet(&m, "\x08\x00");
		put_ip(&m, 4, protocols[below(2)], true, 0);
		break;
	case 3:		/* VXLAN */
		put_ethernet(&m, "\x08\x00");
		put_ip(&m, 4, 17, false, 4789);
		if (!(rss.fields & DAT_ETH_RSS_INNER))
			break;
		put(&m, "\x08\x00\x00\x00\x00\x00\x2a\x00", 8);
		put_ethernet(&m, version == 4 ? "\x08\x00" : "\x86\xdd");
		put_ip(&m, version, protocols[below(4)], false, 0);
		break;
	default:
		put_ethernet(&m, version == 4 ? "\x08\x00" : "\x86\xdd");
		put_ip(&m, version, protocols[below(4)], false, 0);
	}
	memcpy(m.frame + SOURCE + 2, &number, sizeof number);
	return m;
}

int made_owner(const struct made *m, uint32_t *hash)
{
	*hash = toeplitz(m->input, rss.fields & DAT_ETH_RSS_PORTS ? m->all : m->addresses);
	return table[*hash & (TABLE - 1)];
}

void send_frame(uint32_t number)
{
	struct made m = make_frame(number);

	owner_of[number] = made_owner(&m, &hash_of[number]);
	wire_send(&w, m.frame, m.length);
}

static void check_frame(int member, const DAT_ETH_FRAME *frame)
{
	uint32_t number;

	memcpy(&number, frame->data + SOURCE + 2, sizeof number);
	EXPECT(number < MOST && !frame->lost);
	if (seen[number]++)
		fail("frame %u came twice", number);
	received++;
	from_member[member]++;
	if (owner_of[number] < 0)
		return;
	if (owner_of[number] != member)
		fail("frame %u of hash 0x%08x came to %d instead of %d", number, hash_of[number], member,
		     owner_of[number]);
	if (wire_on_soft())		/* verbs do not tell the hash */
		EXPECT((frame->flags & DAT_ETH_FRAME_HASH) && frame->hash == hash_of[number]);
}

void collect(void)
{
	DAT_ETH_FRAME frames[64];
	DAT_COUNT got;

	for (int i = 0; i < MEMBERS; i++)
		while (dat_eth_poll(eps[i], frames, 64, &got) == DAT_SUCCESS) {
			for (DAT_COUNT n = 0; n < got; n++)
				check_frame(i, &frames[n]);
			OK(dat_eth_release(eps[i], got));
		}
}

void collect_until(unsigned expected)
{
	double end = life_now() + 20;

	while (received < expected) {
		collect();
		if (life_now() > end)
			fail("%u of %u frames came", received, expected);
	}
	usleep(20000);
	collect();
	EXPECT(received == expected);
}
