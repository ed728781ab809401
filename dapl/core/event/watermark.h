/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* watermark.h - counts the SRQ buffers that an endpoint holds, and reports that it holds more than
 * its watermarks allow (watermark.c). The report is made on the service thread. */
#ifndef DAPL_WATERMARK_H
#define DAPL_WATERMARK_H
#include "dapl/core/dapl.h"

/* Called when a completion of an SRQ buffer of this endpoint was polled, with the lock of its EVD held. */
void dapl_watermark_took_buffer(struct dapl_ep *ep);
/* The functions below are called with ep->lock held. `evd` is the EVD of the endpoint's receives, or
 * NULL. */
/* Sets the watermarks, and reports the soft one if the endpoint already holds more buffers. Returns false
 * and sets nothing if it holds more than the hard one. */
bool dapl_watermark_set(struct dapl_ep *ep, struct dapl_evd *evd, int soft, int hard);
bool dapl_watermark_is_set(struct dapl_ep *ep, struct dapl_evd *evd);
/* Called when the endpoint was reset, and so holds no buffers. */
void dapl_watermark_forget(struct dapl_ep *ep, struct dapl_evd *evd);

#endif
