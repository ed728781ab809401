/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd.h - event dispatchers as objects (evd.c). */
#ifndef DAPL_EVD_H
#define DAPL_EVD_H
#include "dapl/core/dapl.h"
#include "dapl/core/base/service.h"

/* Streams whose events are queued in the ring, and those whose events are completions of a CQ. */
#define EVD_RING_STREAMS (DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG | \
			  DAT_EVD_ASYNC_FLAG | (int)DAT_IB_EVD_EXTENSION_FLAG)
#define EVD_CQ_STREAMS (DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG)

/* Number of looks at the queue before a waiter sleeps: about a microsecond on real hardware. */
enum { EVD_SPINS = 32 };

/* Descriptors that a thread watches while it is blocked in a wait; -1: other threads do that work. */
struct dapl_blocked {
	int device;		/* of the device's data */
	int loop;		/* of the service loop */
};

/* Called by a consumer's thread before it blocks, with no lock held. `for_data`: it waits for completions. */
static inline struct dapl_blocked dapl_begin_block(struct dapl_ia *ia, bool for_data)
{
	return (struct dapl_blocked){
		.device = dapl_device_ops.sleep ? dapl_device_ops.sleep(ia->dev, for_data) : -1,
		.loop = dapl_device_ops.callbacks_are_short ? dapl_service_block() : -1,
	};
}

/* Called when *device is readable: does the device's work. Sets it to -1 if the thread need not watch it any more. */
static inline void dapl_work_for_device(struct dapl_ia *ia, int *device)
{
	if (!dapl_device_ops.work(ia->dev))
		*device = -1;
}

/* Called when *loop is readable: runs callbacks. Sets it to -1 if the thread need not watch it any more. */
static inline void dapl_work_for_loop(int *loop)
{
	if (!dapl_service_work())
		*loop = -1;
}

static inline void dapl_end_block(struct dapl_ia *ia, const struct dapl_blocked *blocked)
{
	if (dapl_device_ops.callbacks_are_short)
		dapl_service_awake(blocked->loop >= 0);
	if (blocked->device >= 0)
		dapl_device_ops.awake(ia->dev);
}

/* Called when an endpoint, perhaps of another open of the adapter, begins to post connection events to the
 * EVD. The EVD's memory stays until dapl_evd_unpin, even if its IA closes. */
void dapl_evd_pin(struct dapl_evd *evd);
void dapl_evd_unpin(struct dapl_evd *evd);

/* Called after the EVD was killed: makes a thread in dat_evd_wait return, and lets no other begin to
 * wait. */
void dapl_evd_send_waiter_away(struct dapl_evd *evd);
/* Ends an EVD that was killed, that no call is inside and that nothing feeds. */
void dapl_evd_destroy(struct dapl_evd *evd);
DAT_RETURN dapl_evd_make(struct dapl_ia *ia, int qlen, DAT_EVD_FLAGS flags,
			 struct dapl_cno *cno, bool discard, struct dapl_evd **evd);
DAT_RETURN dapl_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT qlen, DAT_CNO_HANDLE cno_handle,
			   DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *handle);
DAT_RETURN dapl_evd_free(DAT_EVD_HANDLE handle);
DAT_RETURN dapl_evd_query(DAT_EVD_HANDLE handle, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *param);
DAT_RETURN dapl_evd_modify_cno(DAT_EVD_HANDLE handle, DAT_CNO_HANDLE cno_handle);
DAT_RETURN dapl_evd_enable(DAT_EVD_HANDLE handle);
DAT_RETURN dapl_evd_disable(DAT_EVD_HANDLE handle);
DAT_RETURN dapl_evd_set_unwaitable(DAT_EVD_HANDLE handle);
DAT_RETURN dapl_evd_clear_unwaitable(DAT_EVD_HANDLE handle);

#endif
