/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_port.h - what is around eth/eth.c: the library of packet sockets, its port, the life of the QP, memory
 * and the service thread are replaced, and note what they are asked (eth_port.c). */
#ifndef TEST_SOFT_ETH_PORT_H
#define TEST_SOFT_ETH_PORT_H
#include "common/log.h"
#include "dapl/soft/eth/eth.h"
#include "dapl/soft/eth/raw.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/softeth/port.h"
#include "test/unit/unit.h"

enum { RECEIVES = 128, FRAMES = 8, LENGTH = 60, MTU = 1500, INDEX = 9 };	/* INDEX: of eth9 */

struct eth_around {
	/* What fails: an errno value, or false. */
	const char *tried;		/* of AF_XDP, when open_error comes */
	int query_error, open_error, rule_error, group_error, watch_error, create_error, reset_error;
	uint16_t link_type;		/* that a query finds */
	bool no_library, no_symbol, other_version;
	size_t fails_size;		/* of an element in the allocation that fails; 0: none does */
	bool unregistered;		/* the memory of receives */

	int frames;			/* that wait in the socket */
	bool purge_again;		/* what a purge answers */

	/* What was asked. */
	char steps[256];		/* calls whose order counts, each with a blank behind it */
	unsigned loads, unloads, watches, queries, stamps;
	int timer_fd;			/* of sends; 0: there is none */
	char path[4096], report_text[256];
	unsigned reports;
	enum log_id report;
	bool opened;
	struct dapl_eth_config config;
	bool bypass;
	struct eth_place at, to;
	uint64_t timer_us;		/* of the last start of the timer; 0: none */
	uint32_t ports;			/* of the group that was made last */
	bool watching;

	struct ibv_wc wc[2 * RECEIVES];	/* completions of receives, and of arm */
	unsigned completions;
	enum ibv_wc_status status;	/* of the last receive */
};
extern struct eth_around around;
extern struct dapl_device eth_device;
extern struct ibv_qp *raw;		/* a raw QP that has begun, with posted receives */
extern struct eth_port *const the_port;
extern struct eth_group *const the_group;
extern int eth_socket[2];		/* the port's, and its other end */

int eth_port_set_up(void **state);
int eth_port_tear_down(void **state);
struct soft_eth *eth_of(struct ibv_qp *qp);
struct ibv_recv_wr receive_of(struct ibv_sge *sge);	/* of memory for a frame */
void post_shared(int n);		/* receives to the SRQ */
/* A raw QP that has not begun. With `shared` it takes its receives from the SRQ. */
struct ibv_qp *raw_new(bool shared);
int begin(struct ibv_qp *qp, uint32_t ring_frames);
/* The QP of `raw` is another one. */
void raw_renew(bool srq, uint32_t ring_frames);
int fail_qp(struct ibv_qp *qp);		/* moves it to ERR */
void progress_owner(void);		/* the socket is readable */
void progress_owner_with(uint32_t events);	/* EPOLL* */
void purge_timer_fires(void);
void assert_steps(const char *steps);	/* since the last time */

#endif
