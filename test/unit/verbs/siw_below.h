/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* siw_below.h - a device below the send queue of siw.h, for its tests: records what it gets, and completes that when it
 * is told. One queue pair on one CQ, both ended by siw_end(). */
#ifndef TEST_UNIT_VERBS_SIW_BELOW_H
#define TEST_UNIT_VERBS_SIW_BELOW_H
#include <infiniband/verbs.h>
#include <pthread.h>
#include "test/unit/unit.h"

enum { DEPTH = 16, MAX_SGE = 2, MAX_INLINE = 32, PAGE = 4096 };

/* A request that the device got. */
struct posted {
	struct ibv_send_wr wr;
	struct ibv_sge sge;	/* the first */
	uint8_t bytes[64];	/* inline */
};

/* Guards the record and the device's CQ: the timer of held requests polls on the service thread. */
extern pthread_mutex_t device_lock;
extern pthread_cond_t request_came;
extern struct posted posted[256];
extern unsigned posts;
extern struct ibv_wc cq_entries[64];
extern int cq_count;
extern int refuse;		/* what the next post returns; with -1 the request is in the record all the same */
extern int cq_in_use;		/* what the next destruction of the CQ returns */

extern struct ibv_cq cq;
extern struct ibv_qp qp;
extern uint8_t memory[2 * PAGE];	/* begins with a page */

/* For cmocka: before and after a case. */
int siw_begin(void **state);
int siw_end(void **state);

/* Posts one segment, which names the same address at the peer. Returns what ibv_post_send() returns. */
int post_at(uint64_t id, enum ibv_wr_opcode opcode, unsigned flags, void *at, uint32_t length);
/* 100 bytes; must succeed. */
void post(uint64_t id, enum ibv_wr_opcode opcode, unsigned flags);
void reads(uint64_t id);
void sends(uint64_t id);

/* The device completes post number i. */
void complete_locked(unsigned i, enum ibv_wc_status status);	/* device_lock held */
void complete_with(unsigned i, enum ibv_wc_status status);
void complete(unsigned i);

/* A poll gives one completion, which is this one. */
void handed_out(uint64_t id, enum ibv_wc_status status);
void nothing_handed_out(void);

#endif
