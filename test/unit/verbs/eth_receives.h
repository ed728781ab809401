/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_receives.h - a raw QP above a device that records receives, and completes what its test says. Takes the place of
 * libibverbs, of the clock and of the rules for eth_recv.c. */
#ifndef TEST_UNIT_VERBS_ETH_RECEIVES_H
#define TEST_UNIT_VERBS_ETH_RECEIVES_H
#include "dapl/verbs/eth_types.h"
#include "test/unit/unit.h"

enum { RECEIVES = 8, MAX_FRAME = 1514, LONGEST = MAX_FRAME + HW_ETH_TAGS, TAG = 5, RULE_TAG = 500 };

extern struct hw_eth q;
extern struct hw_eth_device eth;
extern struct dapl_eth_frame frames[RECEIVES];	/* q.config.frames */
extern struct ibv_qp device_qp;
extern struct ibv_wq wq;			/* unused until q.wq is set */

/* What the device has. */
extern bool clock_works;		/* stamp n is the time 1000 + n */
extern uint64_t known_flags;		/* of the CQs; ~0: it has no extended ones */
extern int bad_region;			/* this registration of memory fails; -1: none */
extern int refuse_at;			/* this receive is refused; -1: none */
extern int no_notify;			/* errno of a request for an event of the CQ; 0: it succeeds */

/* What it was asked for. */
extern struct ibv_cq plain_cq;
extern struct ibv_cq_ex extended_cq;
extern uint64_t tried[8];		/* flags of each CQ, but for IBV_WC_EX_WITH_BYTE_LEN */
extern int tries;
extern uint32_t cqe_asked;
extern struct ibv_mr mrs[2];
extern struct posted_receive {
	uint64_t wr_id;
	struct ibv_sge sge[4];
	int num_sge;
	bool by_wq;
} posted[64];
extern unsigned posts;
extern int notifies;			/* requests for an event of the CQ */
extern uint32_t bytes_hit, tag_hit;	/* of the last frame that was counted for a rule */

struct completion {
	uint64_t wr_id, stamp;
	enum ibv_wc_status status;
	uint32_t length;
	bool checksums;
};
extern int ready;			/* completions that were not polled yet */

/* For cmocka: before and after a case. The end fails if memory or a CQ is left. */
int receives_begin(void **state);
int receives_end(void **state);

void open_posted(void);
void open_ring(uint32_t slots, uint32_t snap);	/* and fills it */
/* A receive with two segments: at 0x1000 with key 1, at 0x2000 with key 2. */
int post_two(uint64_t id, uint32_t first, uint32_t second);
void complete(struct completion c);
void frame_comes(uint64_t id, uint32_t length);

#endif
