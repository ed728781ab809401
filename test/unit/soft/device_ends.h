/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_ends.h - two ends for test_device: devices of one process with one of everything, used through
 * dapl_device_ops. Opens, connects, posts, waits. */
#ifndef TEST_SOFT_DEVICE_ENDS_H
#define TEST_SOFT_DEVICE_ENDS_H
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "dapl/core/device.h"
#include "test/unit/device_harness.h"
#include "test/unit/unit.h"

#define OK(call) assert_int_equal((call), 0)

enum { BUFFER = 4 << 20, PAGE = 4096 };

struct end {
	struct dapl_device *dev;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *scq, *rcq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct dapl_conn *conn;
	struct ibv_mr *mr;
	char *buf;
};

#define ALL_ACCESS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 IBV_ACCESS_MW_BIND)

struct options {
	const char *device;
	int depth, sge, inlines, cqe;
	bool sig_all, srq;
	uint8_t reads;
	bool ud;
};

extern const struct dapl_device_ops *const ops;
extern const struct options plain;	/* what most tests use */

/* Waits for an upcall of the device, and takes it from the record. */
struct upcall expect_up(enum upcall_kind kind, void *owner);
void expect_no_up(enum upcall_kind kind, void *owner);

/* --- one end ------------------------------------------------------------------------- */

struct ibv_qp *make_qp(struct end *e, const struct options *o);
void open_end(struct end *e, const struct options *o);
/* Also waits until the device has released it. */
void release_conn(struct end *e);
void close_end(struct end *e);
/* Of the device of the end, with this port. */
struct sockaddr_storage address_of(struct end *e, uint16_t port);
struct dapl_conn_params params_of(struct end *e, const struct options *o, const struct sockaddr_storage *to);
void connect_ends(struct end *a, struct end *b, const struct options *o);
void open_pair(struct end *a, struct end *b, const struct options *o);
void close_pair(struct end *a, struct end *b);

/* --- posting and polling --------------------------------------------------------------- */

struct ibv_sge sge_of(const struct end *e, size_t offset, uint32_t length);
int post_recv(struct end *e, uint64_t id, size_t offset, uint32_t length);
int post_wr(struct end *e, struct ibv_send_wr *wr);
/* To the memory of `to`, if it is not NULL. */
int post(struct end *e, uint64_t id, enum ibv_wr_opcode opcode, unsigned flags, size_t offset, uint32_t length,
	 const struct end *to, size_t remote);
int post_atomic(struct end *e, uint64_t id, bool swap, uint64_t compare_add, uint64_t value, size_t offset,
		const struct end *to, size_t remote);
/* A signaled RDMA write from the beginning of the buffer to any address. */
int write_to(struct end *a, uint64_t id, uint64_t addr, uint32_t rkey, uint32_t n);
/* Returns false if no completion came within `ms` milliseconds. */
bool poll_for(struct ibv_cq *cq, struct ibv_wc *wc, int ms);
struct ibv_wc expect_wc(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status);
struct ibv_wc done(struct ibv_cq *cq, uint64_t id);
void expect_no_wc(struct ibv_cq *cq);
/* Changes the memory of the other end, which the device no longer accesses. A message over a socket orders
 * the two, which a race detector does not see. */
void touch_peer(char *p, int value, size_t n);
void fill(char *p, size_t n, unsigned seed);

#endif
