/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* watermark.h - counts the SRQ buffers that an endpoint holds, and reports that it holds more than
 * its watermarks allow (watermark.c). The report is made on the service thread. */
#ifndef DAPL_WATERMARK_H
#define DAPL_WATERMARK_H
#include "dapl/core/dapl.h"

/* A completion of an SRQ buffer of this endpoint was polled. The lock of its EVD is held. */
void dapl_watermark_took_buffer(struct dapl_ep *ep);
/* With ep->lock held; `evd` is the EVD of its receives, or NULL. */
/* Sets the watermarks, and reports the soft one if the endpoint holds more already. Returns false, and sets
 * nothing, if it holds more than the hard one. */
bool dapl_watermark_set(struct dapl_ep *ep, struct dapl_evd *evd, int soft, int hard);
bool dapl_watermark_is_set(struct dapl_ep *ep, struct dapl_evd *evd);
/* The endpoint was reset: it holds none. */
void dapl_watermark_forget(struct dapl_ep *ep, struct dapl_evd *evd);

#endif
