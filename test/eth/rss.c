/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rss.c - groups of raw endpoints: each frame comes to the endpoint that a Toeplitz hash and a table name, also while tables and
 * rules change. The hash and the table are computed here once more, from the fields that a frame was made of. */
#include "wire.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FAILS(call, type) fails(__LINE__, #call, (call), type)
static void fails(int line, const char *call, DAT_RETURN ret, int type)
{
	if ((int)DAT_GET_TYPE(ret) != type)
		fail("line %d: %s gives %s", line, call, life_return(ret));
}

enum {
	MEMBERS = 4, TABLE = 128, MOST = 20000,
	SOURCE = 6,		/* a frame's number is in its source address, behind two bytes */
};

static struct wire w;
static DAT_EP_HANDLE eps[MEMBERS];
static uint16_t table[TABLE];
static DAT_ETH_RSS rss = { .fields = DAT_ETH_RSS_IP | DAT_ETH_RSS_PORTS, .table_size = TABLE, .table = table };
static uint8_t seen[MOST];
static int owner_of[MOST];	/* -1: not checked */
static uint32_t hash_of[MOST];
static unsigned received, from_member[MEMBERS];

static void seed_random(void)
{
	const char *given = getenv("ETH_SEED");
	unsigned seed = given ? (unsigned)strtoul(given, NULL, 0) : (unsigned)time(NULL) ^ (unsigned)getpid() << 8;

	printf("ETH_SEED=%u\n", seed);
	fflush(stdout);
	srandom(seed);
}

static unsigned below(unsigned n)
{
	return (unsigned)random() % n;
}

static void random_bytes(uint8_t *at, size_t n)
{
	while (n--)
		*at++ = (uint8_t)below(256);
}

static void random_table(void)
{
	for (int i = 0; i < TABLE; i++)
		table[i] = (uint16_t)below(MEMBERS);
}

static void open_members(const char *frames)
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

static DAT_ETH_GROUP_HANDLE make_group(void)
{
	DAT_ETH_GROUP_HANDLE group;

	OK(dat_eth_group_create(w.ia, MEMBERS, eps, &rss, &group));
	return group;
}

static DAT_ETH_RULE_HANDLE add_rule(DAT_HANDLE at, const DAT_ETH_RULE *rule)
{
	DAT_ETH_RULE_HANDLE handle;

	OK(dat_eth_rule_add(at, rule, &handle));
	return handle;
}

/* --- frames, and where they belong -------------------------------------------------------- */

/* By the definition: one bit at a time, the key moved to the left. */
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

struct made {
	uint8_t frame[400];
	size_t length;
	uint8_t input[36];	/* of the hash */
	size_t addresses, all;	/* bytes of it */
};

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

/* An IP packet with random addresses and ports. */
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

static struct made make_frame(uint32_t number)
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

static void send_frame(uint32_t number)
{
	struct made m = make_frame(number);

	hash_of[number] = toeplitz(m.input, rss.fields & DAT_ETH_RSS_PORTS ? m.all : m.addresses);
	owner_of[number] = table[hash_of[number] & (TABLE - 1)];
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
		fail("frame %u of hash 0x%08x came to %d instead of %d", number, hash_of[number], member, owner_of[number]);
	EXPECT((frame->flags & DAT_ETH_FRAME_HASH) && frame->hash == hash_of[number]);
}

static void collect(void)
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

static void collect_until(unsigned expected)
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

/* --- ETH-31 --------------------------------------------------------------------------------- */

static void frames_come_by_hash(DAT_UINT32 fields)
{
	enum { FRAMES = 10000 };
	DAT_ETH_RULE any = wire_any();
	DAT_ETH_RULE_HANDLE rule;
	DAT_UINT64 frames;

	rss.fields = fields;
	any.tag = 9;
	open_members("32768");
	rule = add_rule(make_group(), &any);
	for (uint32_t i = 0; i < FRAMES; i++) {
		send_frame(i);
		if (i % 1000 == 999)
			collect();
	}
	collect_until(FRAMES);
	OK(dat_eth_rule_query(rule, NULL, &frames, NULL));
	EXPECT(frames == FRAMES);
	for (int i = 0; i < MEMBERS; i++)
		EXPECT(from_member[i] > FRAMES / 20);
	wire_close(&w);
}

static void ETH_31_addresses_and_ports_select(void)
{
	frames_come_by_hash(DAT_ETH_RSS_IP | DAT_ETH_RSS_PORTS);
}

static void ETH_31_addresses_select(void)
{
	frames_come_by_hash(DAT_ETH_RSS_IP);
}

static void ETH_31_headers_within_tunnels_select(void)
{
	frames_come_by_hash(DAT_ETH_RSS_IP | DAT_ETH_RSS_PORTS | DAT_ETH_RSS_INNER);
}

/* Members share only the group's frames: their own rules are looked at first. */
static void ETH_31_members_keep_rules_of_their_own(void)
{
	DAT_ETH_RULE any = wire_any(), own = wire_any();
	DAT_ETH_FRAME got;
	struct made m;
	int owner;

	open_members("64");
	any.tag = 1;
	add_rule(make_group(), &any);
	own.tag = 2;
	add_rule(eps[2], &own);
	for (uint32_t i = 0; i < 20; i++) {
		m = make_frame(i);
		owner = table[toeplitz(m.input, rss.fields & DAT_ETH_RSS_PORTS ? m.all : m.addresses) & (TABLE - 1)];
		wire_send(&w, m.frame, m.length);
		w.ep = eps[2];
		EXPECT(wire_poll(&w, &got, 1) == 1 && got.tag == 2);
		OK(dat_eth_release(w.ep, 1));
		if (owner == 2)
			continue;
		w.ep = eps[owner];
		EXPECT(wire_poll(&w, &got, 1) == 1 && got.tag == 1);
		OK(dat_eth_release(w.ep, 1));
	}
	wire_close(&w);
}

/* The published vector, by posted receives: the event tells the hash. */
static void ETH_31_a_posted_receive_tells_the_hash(void)
{
	static const uint8_t key[40] = "\x6d\x5a\x56\xda\x25\x5b\x0e\xc2\x41\x67\x25\x3d\x43\xa3\x8f\xb0\xd0\xca\x2b\xcb"
		"\xae\x7b\x30\xb4\x77\xcb\x2d\xa3\x80\x30\xf2\x0c\x6a\x42\xb7\x3b\xbe\xac\x01\xfa";
	DAT_ETH_RULE any = wire_any();
	const DAT_ETH_FRAME *frame;
	uint8_t bytes[100] = { 0 };
	DAT_EVENT event;

	rss.fields = DAT_ETH_RSS_IP | DAT_ETH_RSS_PORTS;
	open_members("");
	memcpy(rss.key, key, sizeof rss.key);
	add_rule(make_group(), &any);
	for (int i = 0; i < MEMBERS; i++) {
		w.ep = eps[i];
		wire_post(&w, 1000 * (size_t)i, 1000, (uint64_t)i);
	}
	wire_tcp(&w, bytes, 14, 4, 20);
	inet_pton(AF_INET, "66.9.149.187", bytes + 26);
	inet_pton(AF_INET, "161.142.100.80", bytes + 30);
	memcpy(bytes + 34, (uint16_t[]){ htons(2794), htons(1766) }, 4);
	wire_send(&w, bytes, 74);
	event = wire_event(w.recv, DAT_ETH_DTO_EVENT);
	frame = (const DAT_ETH_FRAME *)event.event_extension_data;
	EXPECT((frame->flags & DAT_ETH_FRAME_HASH) && frame->hash == 0x51ccc178);
	EXPECT(event.event_data.dto_completion_event_data.user_cookie.as_64 == table[0x51ccc178 & (TABLE - 1)]);
	EXPECT(!memcmp(w.memory + 1000 * event.event_data.dto_completion_event_data.user_cookie.as_64, bytes, 74));
	wire_close(&w);
}

static void ETH_31_a_taken_frame_is_not_the_hosts(void)
{
	DAT_ETH_RULE udp = { .mode = DAT_ETH_TAKE, .key.ip_version = 4, .mask.ip_version = 255, .key.protocol = 17,
		.mask.protocol = 255 };
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(5000) };
	uint8_t frame[200];
	int fd;

	open_members("64");
	OK(dat_eth_query(w.ia, &attr));
	if (!(attr.caps & DAT_ETH_CAP_TAKE))
		skip("this kernel has no tcx");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	EXPECT(!bind(fd, (struct sockaddr *)&at, sizeof at));
	wire_command("ip route add 10.77.0.2/32 dev eth0");
	add_rule(make_group(), &udp);
	for (uint32_t i = 0; i < 50; i++) {
		size_t length = wire_udp(&w, frame, "10.77.0.1", 5000, 20);

		frame[34] = (uint8_t)i;		/* source port */
		wire_finish_checksums(frame, 14, 40);
		memcpy(frame + SOURCE + 2, &i, sizeof i);
		wire_send(&w, frame, length);
	}
	collect_until(50);
	EXPECT(recv(fd, frame, sizeof frame, 0) < 0);
	close(fd);
	wire_close(&w);
}

/* --- ETH-32 --------------------------------------------------------------------------------- */

static void refuses(int type, DAT_COUNT n, const DAT_EP_HANDLE *handles, const DAT_ETH_RSS *how)
{
	DAT_ETH_GROUP_HANDLE group;
	DAT_RETURN ret = dat_eth_group_create(w.ia, n, handles, how, &group);

	if ((int)DAT_GET_TYPE(ret) != type)
		fail("%s instead of 0x%x", life_return(ret), (unsigned)type);
}

static void ETH_32_wrong_arguments_are_refused(void)
{
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	DAT_EP_HANDLE twice[2], other[2];
	DAT_ETH_RSS how;
	DAT_ETH_GROUP_HANDLE group;

	open_members("64");
	OK(dat_eth_query(w.ia, &attr));
	EXPECT((attr.caps & DAT_ETH_CAP_RSS) && attr.max_group >= MEMBERS && attr.max_table >= TABLE);
	refuses(DAT_INVALID_PARAMETER, 0, eps, &rss);
	refuses(DAT_INVALID_PARAMETER, -1, eps, &rss);
	refuses(DAT_INVALID_PARAMETER, (DAT_COUNT)attr.max_group + 1, eps, &rss);
	refuses(DAT_INVALID_PARAMETER, MEMBERS, NULL, &rss);
	refuses(DAT_INVALID_PARAMETER, MEMBERS, eps, NULL);
	FAILS(dat_eth_group_create(w.ia, MEMBERS, eps, &rss, NULL), DAT_INVALID_PARAMETER);
	FAILS(dat_eth_group_create(eps[0], MEMBERS, eps, &rss, &group), DAT_INVALID_HANDLE);
	how = rss, how.fields = 0;
	refuses(DAT_INVALID_PARAMETER, MEMBERS, eps, &how);
	how = rss, how.fields = DAT_ETH_RSS_PORTS;
	refuses(DAT_INVALID_PARAMETER, MEMBERS, eps, &how);
	how = rss, how.fields |= 0x8;
	refuses(DAT_INVALID_PARAMETER, MEMBERS, eps, &how);
	how = rss, how.reserved = 1;
	refuses(DAT_INVALID_PARAMETER, MEMBERS, eps, &how);
	how = rss, how.table = NULL;
	refuses(DAT_INVALID_PARAMETER, MEMBERS, eps, &how);
	how = rss, how.table_size = 0;
	refuses(DAT_INVALID_PARAMETER, MEMBERS, eps, &how);
	how = rss, how.table_size = 100;
	refuses(DAT_INVALID_PARAMETER, MEMBERS, eps, &how);
	how = rss, how.table_size = 2 * attr.max_table;
	refuses(DAT_INVALID_PARAMETER, MEMBERS, eps, &how);
	table[TABLE - 1] = MEMBERS;
	refuses(DAT_INVALID_PARAMETER, MEMBERS, eps, &rss);
	random_table();
	how = rss, how.table_size = 1;
	table[0] = 0;
	twice[0] = twice[1] = eps[0];
	refuses(DAT_INVALID_PARAMETER, 2, twice, &how);
	other[0] = eps[0], other[1] = w.recv;
	refuses(DAT_INVALID_HANDLE, 2, other, &how);
	other[1] = DAT_HANDLE_NULL;
	refuses(DAT_INVALID_HANDLE, 2, other, &how);
	OK(dat_ep_disconnect(eps[1], DAT_CLOSE_ABRUPT_FLAG));
	refuses(DAT_INVALID_STATE, MEMBERS, eps, &how);
	OK(dat_eth_group_create(w.ia, 1, eps, &how, &group));
	wire_close(&w);
}

/* --- ETH-33 --------------------------------------------------------------------------------- */

static void ETH_33_rules_belong_to_the_group(void)
{
	DAT_ETH_RULE any = wire_any(), drop = { .mode = DAT_ETH_DROP };
	DAT_ETH_RULE_HANDLE rule, other;
	DAT_ETH_GROUP_HANDLE group;

	open_members("64");
	group = make_group();
	rule = add_rule(group, &any);
	FAILS(dat_eth_rule_add(group, &any, &other), DAT_INVALID_STATE);
	FAILS(dat_eth_rule_add(group, &drop, &other), DAT_MODEL_NOT_SUPPORTED);
	FAILS(dat_eth_rule_add(group, NULL, &other), DAT_INVALID_PARAMETER);
	add_rule(eps[0], &any);		/* the endpoint's own is another rule */
	FAILS(dat_eth_poll(group, NULL, 0, NULL), DAT_INVALID_HANDLE);
	FAILS(dat_eth_group_free(eps[0]), DAT_INVALID_HANDLE);
	OK(dat_eth_rule_free(rule));
	rule = add_rule(group, &any);
	OK(dat_eth_group_free(group));
	FAILS(dat_eth_rule_query(rule, NULL, NULL, NULL), DAT_INVALID_HANDLE);
	FAILS(dat_eth_rule_add(group, &any, &rule), DAT_INVALID_HANDLE);
	FAILS(dat_eth_group_free(group), DAT_INVALID_HANDLE);
	FAILS(dat_eth_group_set(group, table), DAT_INVALID_HANDLE);
	group = make_group();
	OK(dat_ep_free(eps[1]));	/* a member leaves */
	add_rule(group, &any);
	for (int i = 0; i < MEMBERS; i++)
		if (i != 1)
			OK(dat_ep_free(eps[i]));
	OK(dat_eth_group_free(group));
	wire_close(&w);
}

/* As many rules as there may be: what did not fit at one member is at none. */
static void ETH_33_a_rule_is_at_all_members_or_at_none(void)
{
	DAT_ETH_ATTR attr = { .size = sizeof attr };
	DAT_ETH_RULE any = wire_any();
	DAT_ETH_GROUP_HANDLE group;
	DAT_ETH_RULE_HANDLE handle;

	open_members("64");
	OK(dat_eth_query(w.ia, &attr));
	group = make_group();
	for (any.priority = 0; any.priority < attr.max_rules; any.priority++)
		add_rule(eps[MEMBERS - 1], &any);
	FAILS(dat_eth_rule_add(group, &any, &handle), DAT_INSUFFICIENT_RESOURCES);
	for (any.priority = 0; any.priority < attr.max_rules; any.priority++)
		add_rule(eps[0], &any);
	wire_close(&w);
}

static void *send_frames(void *none)
{
	struct made m = make_frame(0);

	for (uint32_t i = 0; i < MOST; i++) {
		memcpy(m.frame + SOURCE + 2, &i, sizeof i);
		random_bytes(m.frame + 26, 8);
		wire_send(&w, m.frame, m.length);
	}
	return none;
}

/* Calls `change` while frames come, until all have come. */
static void change_under_load(void (*change)(unsigned round))
{
	unsigned rounds = 0, before;
	pthread_t sender;
	double end;

	pthread_create(&sender, NULL, send_frames, NULL);
	for (end = life_now() + 30; received < MOST && life_now() < end;) {
		before = received;
		collect();
		if (received != before || !rounds)
			change(++rounds);
	}
	pthread_join(sender, NULL);
	collect_until(MOST);
	EXPECT(rounds > 5);
}

static DAT_ETH_GROUP_HANDLE groups[2];
static DAT_ETH_RULE_HANDLE moved_rule;

static void move_rule(unsigned round)
{
	const DAT_HANDLE places[] = { groups[0], eps[1], groups[1], groups[0], eps[0] };

	OK(dat_eth_rule_move(moved_rule, places[round % 5]));
}

static void ETH_33_a_moving_rule_loses_no_frame(void)
{
	DAT_ETH_RULE any = wire_any();
	DAT_UINT64 frames;

	open_members("65536");
	groups[0] = make_group();
	random_table();
	groups[1] = make_group();
	moved_rule = add_rule(eps[0], &any);
	change_under_load(move_rule);
	OK(dat_eth_rule_query(moved_rule, NULL, &frames, NULL));
	EXPECT(frames == MOST);
	OK(dat_eth_rule_move(moved_rule, groups[0]));
	OK(dat_eth_group_free(groups[0]));
	FAILS(dat_eth_rule_move(moved_rule, groups[1]), DAT_INVALID_HANDLE);
	wire_close(&w);
}

/* --- ETH-34 --------------------------------------------------------------------------------- */

static void set_table(unsigned round)
{
	(void)round;
	random_table();
	OK(dat_eth_group_set(groups[0], table));
}

static void ETH_34_a_changing_table_loses_no_frame(void)
{
	DAT_ETH_RULE any = wire_any();

	open_members("65536");
	groups[0] = make_group();
	add_rule(groups[0], &any);
	change_under_load(set_table);
	for (int i = 0; i < MEMBERS; i++)
		EXPECT(from_member[i] > 0);
	wire_close(&w);
}

static void ETH_34_frames_go_by_the_new_table(void)
{
	DAT_ETH_RULE any = wire_any();

	open_members("4096");
	groups[0] = make_group();
	add_rule(groups[0], &any);
	for (uint32_t i = 0; i < 500; i++) {
		if (i % 50 == 0)
			set_table(0);
		send_frame(i);
	}
	collect_until(500);
	/* a second later the filters have only this table */
	sleep(2);
	for (uint32_t i = 500; i < 1000; i++)
		send_frame(i);
	collect_until(1000);
	wire_close(&w);
}

static void ETH_34_wrong_tables_are_refused(void)
{
	DAT_ETH_RULE any = wire_any();
	uint16_t wrong[TABLE];

	open_members("4096");
	groups[0] = make_group();
	add_rule(groups[0], &any);
	FAILS(dat_eth_group_set(groups[0], NULL), DAT_INVALID_PARAMETER);
	FAILS(dat_eth_group_set(eps[0], table), DAT_INVALID_HANDLE);
	memcpy(wrong, table, sizeof wrong);
	wrong[5] = MEMBERS;
	FAILS(dat_eth_group_set(groups[0], wrong), DAT_INVALID_PARAMETER);
	OK(dat_ep_disconnect(eps[3], DAT_CLOSE_ABRUPT_FLAG));
	wrong[5] = 3;
	FAILS(dat_eth_group_set(groups[0], wrong), DAT_INVALID_PARAMETER);
	for (int i = 0; i < TABLE; i++)		/* nothing for the endpoint that has left */
		table[i] = (uint16_t)(i % 3);
	OK(dat_eth_group_set(groups[0], table));
	OK(dat_ep_reset(eps[3]));
	for (uint32_t i = 0; i < 200; i++)
		send_frame(i);
	collect_until(200);
	EXPECT(!from_member[3]);
	wire_close(&w);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(ETH_31_addresses_and_ports_select),
		CASE(ETH_31_addresses_select),
		CASE(ETH_31_headers_within_tunnels_select),
		CASE(ETH_31_members_keep_rules_of_their_own),
		CASE(ETH_31_a_posted_receive_tells_the_hash),
		CASE(ETH_31_a_taken_frame_is_not_the_hosts),
		CASE(ETH_32_wrong_arguments_are_refused),
		CASE(ETH_33_rules_belong_to_the_group),
		CASE(ETH_33_a_rule_is_at_all_members_or_at_none),
		CASE(ETH_33_a_moving_rule_loses_no_frame),
		CASE(ETH_34_a_changing_table_loses_no_frame),
		CASE(ETH_34_frames_go_by_the_new_table),
		CASE(ETH_34_wrong_tables_are_refused),
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	seed_random();
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
