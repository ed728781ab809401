/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tapped.h - an RDMA device of the test that can be captured, with one connection: for programs that are linked with
 * --wrap=malloc,--wrap=calloc. */
#ifndef TEST_UNIT_VERBS_TAPPED_H
#define TEST_UNIT_VERBS_TAPPED_H
#include "dapl/core/base/tap.h"
#include "dapl/verbs/conn_types.h"
#include "dapl/verbs/hw.h"
#include "dapl/verbs/tap.h"
#include "test/unit/tap_records.h"
#include "test/unit/unit.h"

enum { SNAP = 100, QPN = 7, OTHER_QPN = QPN + 256 };

/* The connection is established, from 10.0.0.1 port 1000 to 10.0.0.2 port 2000. */
extern struct ibv_context context;
extern struct dapl_device dev;
extern struct dapl_conn conn;
extern struct ibv_qp qp;
extern struct ibv_cq cq;
extern struct ibv_srq srq;
extern char memory[8192];		/* begins with "payload" */
extern bool no_memory;

/* What the device got, and does. */
extern uint64_t posted[8];		/* wr_ids */
extern unsigned posts, receives;
extern uint64_t refused;		/* wr_id of a request; 0: none */
extern struct ibv_wc completions[4];
extern int completed, queries, query_error;
extern bool query_ends_capture;		/* the next query of a queue pair ends the capture */
/* Its functions are those of the context. */
bool is_untouched(void);
int device_poll_cq(struct ibv_cq *of, int n, struct ibv_wc *wc);

/* Before the first case; then for cmocka, before and after a case. */
void tapped_init(void);
int tapped_begin(void **state);
int tapped_begin_captured(void **state);
int tapped_end(void **state);

void begin_capture(uint32_t snap);
void end_capture(void);

void set_address(struct sockaddr_storage *to, const char *ip, uint16_t port);
/* A segment of the memory. */
struct ibv_sge bytes(uint32_t n);
/* Posts the request 64. */
int post(enum ibv_wr_opcode opcode, struct ibv_sge *sge, int sges);
/* A send reaches the device. */
void sends(uint32_t n);
/* A completion reaches the program. */
void completes(uint64_t id, enum ibv_wc_opcode opcode, enum ibv_wc_status status, uint32_t length);

#endif
