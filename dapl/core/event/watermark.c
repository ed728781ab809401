/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* watermark.c - the high watermarks of an endpoint on an SRQ (watermark.h). dat_ep_set_watermark is in
 * ep/srq.c. */
#include "dapl/core/event/event.h"
#include "dapl/core/event/async.h"
#include "dapl/core/event/watermark.h"

enum { MARK_SOFT = 1, MARK_HARD = 2 };

static void mark_passed(struct dapl_task *task)
{
	struct dapl_ep *ep = container_of(task, struct dapl_ep, task);
	uint32_t marks = __atomic_exchange_n(&ep->marks, 0, __ATOMIC_ACQ_REL);

	if (marks & MARK_SOFT)
		dapl_async_post(ep->obj.ia, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, ep,
				DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	if (marks & MARK_HARD)
		dapl_conn_hooks.broken(ep, DAPL_CODE_NONE, 0,
			       "it holds more SRQ buffers than its hard high watermark");
	dapl_object_put(&ep->obj);
}

/* The first mark takes a reference, which the task drops. */
static void pass_mark(struct dapl_ep *ep, uint32_t mark)
{
	if (!__atomic_fetch_or(&ep->marks, mark, __ATOMIC_ACQ_REL)) {
		dapl_object_get(&ep->obj);
		dapl_task_queue(&ep->task, mark_passed);
	}
}

/* An endpoint without an EVD has no completions, so it needs no lock. */
static void lock_if_any(struct dapl_evd *evd)
{
	if (evd)
		dapl_spin_lock(&evd->lock);
}

static void unlock_if_any(struct dapl_evd *evd)
{
	if (evd)
		dapl_spin_unlock(&evd->lock);
}

/* SRQ-17, 18 */
void dapl_watermark_took_buffer(struct dapl_ep *ep)
{
	ep->srq_polled++;
	if (ep->soft_hw >= 0 && ep->srq_polled > ep->soft_hw) {
		ep->soft_hw = DAT_WATERMARK_INFINITE;	/* reported once only */
		pass_mark(ep, MARK_SOFT);
	}
	if (ep->hard_hw >= 0 && ep->srq_polled > ep->hard_hw)
		pass_mark(ep, MARK_HARD);
}

bool dapl_watermark_is_set(struct dapl_ep *ep, struct dapl_evd *evd)
{
	bool any;

	lock_if_any(evd);
	any = ep->soft_hw >= 0 || ep->hard_hw >= 0;
	unlock_if_any(evd);
	return any;
}

bool dapl_watermark_set(struct dapl_ep *ep, struct dapl_evd *evd, int soft, int hard)
{
	bool fits;

	assert_held(&ep->lock);
	lock_if_any(evd);
	fits = hard < 0 || ep->srq_polled <= hard;
	if (fits) {
		bool passed = soft >= 0 && ep->srq_polled > soft;

		ep->soft_hw = passed ? DAT_WATERMARK_INFINITE : soft;
		ep->hard_hw = hard;
		if (passed)
			pass_mark(ep, MARK_SOFT);
	}
	unlock_if_any(evd);
	return fits;
}

void dapl_watermark_forget(struct dapl_ep *ep, struct dapl_evd *evd)
{
	assert_held(&ep->lock);
	lock_if_any(evd);
	ep->srq_polled = 0;
	unlock_if_any(evd);
}
