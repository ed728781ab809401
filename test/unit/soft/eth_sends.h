/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_sends.h - a raw Ethernet QP whose sends a test follows: its port, the clocks, the timer and the send CQ are
 * replaced. The frame of a send is the byte of its number in a memory, so the number says which frame the port got. */
#ifndef TEST_SOFT_ETH_SENDS_H
#define TEST_SOFT_ETH_SENDS_H
#include "dapl/soft/eth/raw.h"
#include "test/unit/unit.h"

/* LENGTH bytes of a frame take LENGTH us at RATE bit/s. */
enum { QUEUE = 128, BATCH = 64, SGES = 30, LENGTH = 100, RATE = 8000000 };
#define US 1000ull
#define MS 1000000ull
#define SECOND 1000000000ull

extern struct soft_qp qp;
extern struct soft_eth eth;
extern uint64_t now;			/* CLOCK_MONOTONIC */

extern uint64_t timer_wait;		/* 0: it does not run */
extern unsigned timer_sets;
extern bool timer_open;
extern int fails_timer, fails_watch;	/* an errno value, or 0 */
extern size_t fails_size;		/* of an element in the allocation that fails */

extern int left_count;			/* frames that the port took */
extern int error_of[QUEUE];		/* its answer to a frame */
extern bool check_refuses;
extern uint64_t stamp_time;		/* of the last frame; 0: not known yet */
extern unsigned stamps_taken, batches;

extern struct ibv_wc completions[2 * QUEUE];
extern unsigned completed;
extern bool unregistered[QUEUE];	/* memory of a frame */

int sends_set_up(void **state);
int sends_tear_down(void **state);
void sends_restart(void);		/* with another QP */

struct ibv_sge sge_of(int number);
int post_how(int number, const struct dapl_eth_send *how);	/* NULL: without offloads */
/* These succeed. */
void post(int number);
void post_flags(int number, uint32_t flags);
void post_at(int number, uint64_t launch);	/* by `now`, like the next */
struct dapl_eth_send launched(uint32_t flags, uint64_t launch);
void fill_ring(int n);			/* the first one waits for 1 ms */
void set_rate(uint64_t rate, uint32_t burst);

void await_timer(void);			/* the time goes on until the timer fires */
void wake_too_early(void);		/* it was set anew meanwhile */

void assert_left(int from, int until);	/* the numbers of frames, in this order, and no others behind them */
void assert_completed(uint64_t number, enum ibv_wc_status status);	/* the next completion */
void assert_all_completed(unsigned from, unsigned until);	/* with success, and there are no others */

#endif
