/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* foreign_peer.h - a device, and a peer of another implementation: a socket on which the test speaks MPA,
 * DDP and RDMAP, correctly or not. For the parts of test_foreign_peer (foreign_tests.h) and for tests of both
 * sides of a handshake. */
#ifndef TEST_SOFT_FOREIGN_PEER_H
#define TEST_SOFT_FOREIGN_PEER_H
#include <netinet/in.h>
#include <stdio.h>
#include "dapl/core/device.h"
#include "dapl/soft/wire/wire.h"
#include "test/unit/device_harness.h"
#include "test/unit/unit.h"

#define OK(call) assert_int_equal((call), 0)

extern const struct dapl_device_ops *const ops;

/* Waits for the only upcall of this kind since the endpoint exists. */
struct upcall await(enum upcall_kind kind);

/* --- the device's end -------------------------------------------------------------- */

enum { BUFFER = 1 << 20 };	/* bytes that are registered */

extern struct device_end {
	struct dapl_device *dev;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct dapl_conn *conn;
	struct dapl_listener *listener;
	uint16_t port;
	char *buf;
} we;

void open_device_end(void);
void close_device_end(void);
/* Replaces the endpoint of a connection that has ended. */
void restart_device_end(void);
struct dapl_conn_params params(const struct sockaddr_in *to);
void post_recv(uint64_t id, uint32_t offset, uint32_t length);
void post(uint64_t id, enum ibv_wr_opcode op, uint32_t offset, uint32_t length, uint64_t remote, uint32_t rkey);
/* The next completion, which is of this request. */
struct ibv_wc completion(uint64_t id, enum ibv_wc_status status);
/* The next two completions are of these requests. */
void in_any_order(uint64_t a, uint64_t b);

/* --- the foreign peer -------------------------------------------------------------- */

extern int peer_socket;	/* its own end of the connection */
extern int cut;		/* bytes per send; 0: all */
extern const struct wire_mpa four_reads;

void reset_foreign_peer(bool crc);
struct sockaddr_in loopback(uint16_t port);
void dial(void);
/* Returns a listening socket, whose address is *at. */
int listen_for_device(struct sockaddr_in *at);
/* These two move bytes. False: the stream has ended. */
void put(const void *p, size_t n);
bool get(void *p, size_t n);
/* These two move a ULPDU in an FPDU. False: the stream has ended. */
void put_fpdu(const uint8_t *ulpdu, uint16_t n);
bool get_fpdu(uint8_t *ulpdu, uint16_t *n);
void put_segment(struct wire_segment seg, const void *body, uint16_t n);
void put_mpa(bool reply, uint8_t flags, uint8_t revision, const struct wire_mpa *enhanced, const void *pdata,
	     uint16_t n);
/* False: the stream has ended. */
bool get_mpa(bool reply, struct wire_mpa *mpa, uint8_t *pdata, size_t *n);
struct wire_segment send_seg(uint32_t msn, uint32_t mo, bool last);

/* --- both -------------------------------------------------------------------------- */

/* The foreign peer connects; the device accepts. Returns its Reply. */
struct wire_mpa passive_up(uint8_t flags, uint8_t revision, const struct wire_mpa *enhanced);
/* Opens the device and connects. */
void foreign_peer_up(bool crc);
void foreign_peer_down(void);
/* For cmocka: a device whose peer has not dialed yet, and the end of both. */
int set_up_device_alone(void **state);
int tear_down_foreign_peer(void **state);
/* Sends, writes and reads, both ways. */
void talk(void);

#endif
