/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hw.h - the structure of an open device, which the files of this folder share, and what they need of
 * libibverbs and librdmacm themselves. dapl/core/device.h declares the table of device.c. cm.c
 * explains locks and lifetimes. The prefix hw_ stands for a device of libibverbs, also one that the kernel
 * emulates (rxe, siw); soft_ stands for the device of dapl/soft. */
#ifndef HW_H
#define HW_H
#include "common/lock.h"
#include "dapl/core/device.h"
#include "dapl/core/base/service.h"

struct dapl_device {
	struct ibv_context *verbs;		/* opened here, so that no other code reads its async_fd */
	struct rdma_event_channel *channel;
	void *ia;
	struct dapl_watch cm_watch, async_watch;
	struct dapl_device_attr attr;		/* constant once open */
	uint16_t pkey_index;
	int qp_access;				/* IBV_ACCESS_*: what peers may do through a queue pair */
	struct ibv_cq *siw_filler;		/* covers an offset libsiw misreads (probe.c), or NULL */
	struct hw_eth_device *eth;		/* NULL: no raw Ethernet QPs */
	unsigned next_vector;			/* atomic; spreads CQs over interrupts */
	struct dapl_task close_task;
	struct dapl_mutex lock;			/* guards conns */
	struct dapl_conn *conns;
	bool late_refusals;			/* a disconnect may overtake a refusal (late_refusal.c) */
	bool removed;				/* service thread only */
};

/* Of a call that returns an int: 0, an errno, a negative errno (siw), or -1 with errno set. Returns 0 or a positive
 * errno; EIO if the call returned -1 and errno is 0. */
int hw_errno(int rc);
/* Of a call that returned NULL: errno, or EIO if errno is 0. */
int hw_null_errno(void);

/* librdmacm stays loaded until the process ends, also when the provider is unloaded. It opens every RDMA device at its
 * first use and never closes one. If it were unloaded, the next copy would open the devices again, and two
 * descriptors a device would leak. May be called again. */
void hw_keep_librdmacm(void);

#endif
