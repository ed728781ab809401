/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rss.c - groups of raw endpoints: each frame comes to the endpoint that a Toeplitz hash and a table name. */
#include "members.h"
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

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
		if (i % 100 == 99)
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

/* Members share only the frames of the group: the rules of a member itself come first. */
static void ETH_31_members_keep_rules_of_their_own(void)
{
	DAT_ETH_RULE any = wire_any(), own = wire_any();
	DAT_ETH_FRAME got;
	struct made m;
	uint32_t hash;
	int owner;

	open_members("4096");	/* frames with two VLAN tags wait at members that do not read, in a block each */
	any.tag = 1;
	add_rule(make_group(), &any);
	own.tag = 2;
	add_rule(eps[2], &own);
	for (uint32_t i = 0; i < 20; i++) {
		m = make_frame(i);
		owner = made_owner(&m, &hash);
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

/* A published test vector, with posted receives: the event has the hash. */
static void ETH_31_a_posted_receive_tells_the_hash(void)
{
	static const uint8_t key[40] =
		"\x6d\x5a\x56\xda\x25\x5b\x0e\xc2\x41\x67\x25\x3d\x43\xa3\x8f\xb0\xd0\xca\x2b\xcb"
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
	if (wire_on_soft())		/* verbs do not tell the hash */
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
	EXPECT(!(attr.caps & DAT_ETH_CAP_RSS_LOSSLESS) == !wire_on_soft());
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
	};

	if (!wire_possible())
		return WIRE_SKIPPED;
	members_seed();
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
