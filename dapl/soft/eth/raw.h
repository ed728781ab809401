/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* raw.h - a raw Ethernet QP as the files of this folder know it. Types only. */
#ifndef SOFT_ETH_RAW_H
#define SOFT_ETH_RAW_H
#include <infiniband/verbs.h>
#include "dapl/core/base/service.h"
#include "dapl/core/eth_device.h"
#include "dapl/soft/eth/pace.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"

/* A send that waits for its time. */
struct eth_pending {
	struct ibv_send_wr wr;		/* sg_list points into eth->sges */
	struct dapl_eth_send how;
	bool has_how;
	bool waited;			/* for its turn, or behind other sends */
	uint64_t give_up_ns;		/* the frame has left, and its time of departure is awaited until then;
					 * 0: it has not left */
};

struct soft_eth {
	struct ibv_context verbs;	/* of this QP alone */
	struct soft_qp *qp;
	struct eth_port *port;		/* NULL until begun */
	struct dapl_eth_config config;
	struct soft_input input;	/* the port's descriptor in data_epoll */
	/* guarded by qp->lock */
	bool watching;			/* data_epoll has it; may be read without the lock */
	bool armed;
	uint64_t armed_wr;
	uint32_t received;		/* receives that were completed with a frame or an error */
	/* send.c; guarded by qp->lock */
	struct pace pace;
	struct eth_pending *pending;	/* a ring of qp->sq_size entries; NULL until a send has to wait */
	struct ibv_sge *sges;		/* qp->max_send_sge for each of them */
	uint32_t head, tail;		/* [head, tail) wait */
	int timer;			/* a timerfd, or -1 */
	struct dapl_watch timer_watch;
	uint64_t late;			/* sends whose launch time had passed when they were posted */
	/* Sends with ETH_SEND_MORE: [hold_first, tail) may leave, and are held for those that follow. */
	bool holding;			/* then hold_first is head */
	uint32_t hold_first;
	bool hold_timing;		/* the timer runs for held sends */
	uint32_t hold_timed;		/* hold_first when that timer was set */
	bool stamps;			/* a send with ETH_SEND_STAMP was posted */
	struct dapl_timer purge_timer;	/* for what is left of rules that were moved to another QP */
};

#endif
