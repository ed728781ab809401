/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hw.h - the open device as the files of the verbs device know it. Types only; each file has a header of its own for
 * its functions. It is not device.h, because it does not belong to device.c, whose table is declared in
 * dapl/core/device.h. Locks and lifetimes are explained in cm.c. The prefix hw_ means a device of libibverbs, also one
 * that the kernel emulates (rxe, siw); soft_ means that of dapl/soft. */
#ifndef HW_H
#define HW_H
#include "common/lock.h"
#include "dapl/core/device.h"
#include "dapl/core/base/service.h"

struct dapl_device {
	struct ibv_context *verbs;		/* our own, so no other code reads its async_fd */
	struct rdma_event_channel *channel;
	void *ia;
	struct dapl_watch cm_watch, async_watch;
	struct dapl_device_attr attr;		/* constant once open */
	uint16_t pkey_index;
	int qp_access;				/* what peers may do through a queue pair */
	struct ibv_cq *siw_filler;		/* hw_probe(); NULL on other devices */
	struct hw_eth_device *eth;		/* NULL: no raw Ethernet QPs */
	unsigned next_vector;			/* atomic; spreads CQs over interrupts */
	struct dapl_task close_task;
	struct dapl_mutex lock;			/* guards conns */
	struct dapl_conn *conns;
	bool removed;				/* service thread only */
};

#endif
