/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wire.h - a veth pair in a network namespace of the test's own: the IA is on one end, "eth0", the test
 * sends and receives by a packet socket on the other, "peer". Nothing else sends there. With ETH_NICS in the
 * environment eth0 and peer are there already: two NICs with a wire between them. */
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

/* Returns whether the process is root. If it is not, prints a line that says so; main() then returns
 * WIRE_SKIPPED. */
bool wire_possible(void);
#define WIRE_SKIPPED 77
void wire_await_up(void);		/* waits until both ends of the pair have a carrier */
bool wire_on_soft(void);		/* whether the device is the software device; else ETH_LIBRARY names it */

/* Makes the namespace and the pair, and opens the packet socket of the peer. Skips the case if that is not
 * possible. */
void wire_network(struct wire *w);
void wire_ia(struct wire *w);		/* opens the IA, and what endpoints need */
void wire_ia_params(struct wire *w, const char *params);	/* with these ia_params instead of "eth0 0" */
void wire_open(struct wire *w);		/* wire_network() and wire_ia() */
DAT_EP_ATTR wire_attr(void);		/* the attributes of a raw endpoint with posted receives */
/* Makes w->ep, a raw endpoint. `ring_frames` is the attribute eth_frames of its ring, or "" for posted
 * receives; `snap` is eth_snap, or NULL for the default. */
void wire_endpoint(struct wire *w, const char *ring_frames, const char *snap);
void wire_close(struct wire *w);

/* A rule that any frame matches. */
DAT_ETH_RULE wire_any(void);
DAT_ETH_RULE_HANDLE wire_rule(struct wire *w, const DAT_ETH_RULE *rule);

/* A frame from the peer to eth0, of a type of the test's own, with a pattern that depends on `seed`. */
size_t wire_frame(const struct wire *w, uint8_t *frame, size_t length, unsigned seed);
void wire_send(const struct wire *w, const void *frame, size_t length);
/* Receives the next frame that eth0 sends, with its VLAN tag. Returns its length. */
size_t wire_receive(const struct wire *w, uint8_t *frame, size_t room);
bool wire_is_silent(const struct wire *w);	/* whether no frame comes within 100 ms */

/* Polls the ring until it has frames. Returns their number. */
DAT_COUNT wire_poll(struct wire *w, DAT_ETH_FRAME *frames, DAT_COUNT max);
/* Posts a receive of `length` bytes at this offset of the memory. */
void wire_post(struct wire *w, size_t offset, size_t length, uint64_t cookie);
/* Waits for the next event, which must have this number. */
DAT_EVENT wire_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number);
/* Waits for the next completion of a send, which must have this cookie and status. */
void wire_expect_send(const struct wire *w, uint64_t cookie, DAT_DTO_COMPLETION_STATUS status);
DAT_RETURN wire_post_send(struct wire *w, size_t offset, size_t length, uint64_t cookie);
DAT_RETURN wire_post_send_how(struct wire *w, size_t length, uint64_t cookie, const DAT_ETH_SEND *how);

/* Fails unless the call returns this type, with whatever subtype. */
#define FAILS(call, type) wire_expect_type(__LINE__, #call, (call), type)
void wire_expect_type(int line, const char *call, DAT_RETURN ret, int type);
uint64_t wire_now(void);		/* CLOCK_REALTIME in ns, as frames have their times */

void wire_command(const char *command);	/* runs a shell command, which must succeed */
/* Sets whether the kernel fills in checksums and segments the frames that this device sends. If it does, the
 * other end sees what a wire would carry; else it sees what the device is given. */
void wire_finish_frames(const char *netdev, bool finish);
/* Writes an Ethernet header, an IPv4 or IPv6 header at frame + `l3`, a TCP header, and `payload` bytes of a
 * pattern. Checksums and IP length are 0. Returns the length of the headers. */
size_t wire_tcp(const struct wire *w, uint8_t *frame, size_t l3, int version, size_t payload);
/* Returns whether the one's complement sums of the IPv4 header, and of TCP or UDP with the pseudo header,
 * are 0xffff. */
bool wire_checksums_are_right(const uint8_t *frame, size_t l3);
/* Fills in the checksums of an IPv4 packet without options. `l4_checksum` is the offset of that of TCP or
 * UDP in the frame. */
void wire_finish_checksums(uint8_t *frame, size_t l3, size_t l4_checksum);
/* Writes a frame with a UDP datagram from 10.77.0.2 to the address `to`, both at this port. Its checksums
 * are 0. Returns its length. */
size_t wire_udp(const struct wire *w, uint8_t *frame, const char *to, uint16_t port, size_t payload);

#endif
