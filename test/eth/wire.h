/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wire.h - a veth pair in a network namespace of the test's own: the IA is on one end, "eth0", the test sends and
 * receives by a packet socket on the other, "peer". Nothing else sends there. */
#ifndef TEST_ETH_WIRE_H
#define TEST_ETH_WIRE_H
#include <dat/udat.h>
#include <dat/dat_eth_extensions.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../life/life.h"

#define WIRE_IA "eth-test"

struct wire {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, recv, request;
	DAT_PZ_HANDLE pz;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	DAT_EP_HANDLE ep;
	int peer;			/* the packet socket of the other end */
	uint8_t eth0[6], peer_address[6];
	uint8_t memory[1 << 16];	/* registered */
};

/* False: not root, and a line has said so. The caller's exit status is then WIRE_SKIPPED. */
bool wire_possible(void);
#define WIRE_SKIPPED 77
void wire_await_up(void);
bool wire_on_soft(void);		/* the software device; else the one that ETH_LIBRARY names */

/* Makes the namespace and the pair, and opens the packet socket of the peer; skips the case if it cannot. */
void wire_network(struct wire *w);
void wire_ia(struct wire *w);		/* opens the IA, and what endpoints need */
void wire_ia_params(struct wire *w, const char *params);	/* with these ia_params instead of "eth0 0" */
void wire_open(struct wire *w);		/* both */
/* The attributes of a raw endpoint; `ring_frames` "": posted receives. */
DAT_EP_ATTR wire_attr(void);
/* A raw endpoint w->ep. ring: "" for posted receives, else eth_frames. */
void wire_endpoint(struct wire *w, const char *ring_frames, const char *snap);
void wire_close(struct wire *w);

/* A rule that any frame matches. */
DAT_ETH_RULE wire_any(void);
DAT_ETH_RULE_HANDLE wire_rule(struct wire *w, const DAT_ETH_RULE *rule);

/* A frame from the peer to eth0, of a type of the test's own, with a pattern that depends on `seed`. */
size_t wire_frame(const struct wire *w, uint8_t *frame, size_t length, unsigned seed);
void wire_send(const struct wire *w, const void *frame, size_t length);
/* The next frame that eth0 sends, with its VLAN tag. Returns its length. */
size_t wire_receive(const struct wire *w, uint8_t *frame, size_t room);
bool wire_is_silent(const struct wire *w);	/* nothing comes for 100 ms */

/* Polls the ring until there are frames. */
DAT_COUNT wire_poll(struct wire *w, DAT_ETH_FRAME *frames, DAT_COUNT max);
/* One posted receive of `length` bytes at this offset of the memory; its event. */
void wire_post(struct wire *w, size_t offset, size_t length, uint64_t cookie);
DAT_EVENT wire_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number);
DAT_RETURN wire_post_send(struct wire *w, size_t offset, size_t length, uint64_t cookie);
DAT_RETURN wire_post_send_how(struct wire *w, size_t length, uint64_t cookie, const DAT_ETH_SEND *how);

void wire_command(const char *command);	/* must succeed */
/* Whether the kernel finishes the frames that this device sends, instead of handing checksums and segmentation
 * on: then the other end sees what a wire would carry. */
void wire_finish_frames(const char *netdev, bool finish);
/* An IPv4 or IPv6 header at frame + `l3`, and a TCP header: `payload` bytes of a pattern follow; checksums and IP length are
 * 0. Returns the length of the headers. */
size_t wire_tcp(const struct wire *w, uint8_t *frame, size_t l3, int version, size_t payload);
/* The one's complement sum of IP header and of TCP or UDP with the pseudo header, both must be 0xffff. */
bool wire_checksums_are_right(const uint8_t *frame, size_t l3);
/* Fills them in, for IPv4 without options. */
void wire_finish_checksums(uint8_t *frame, size_t l3, size_t l4_checksum);
/* In an IPv4 header at `ip`, followed by UDP: both checksums are left 0. */
size_t wire_udp(const struct wire *w, uint8_t *frame, const char *to, uint16_t port, size_t payload);

#endif
