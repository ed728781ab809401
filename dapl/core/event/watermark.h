/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* watermark.h - counts the SRQ buffers that an endpoint holds, and reports that it holds more than
 * its watermarks allow (watermark.c). The report is made on the service thread. */
#ifndef DAPL_WATERMARK_H
#define DAPL_WATERMARK_H
#include "dapl/core/dapl.h"

/* A completion of an SRQ buffer of this endpoint was polled. The lock of its EVD is held. */
void dapl_watermark_took_buffer(struct dapl_ep *ep);
/* The endpoint already holds more than its new soft watermark. */
void dapl_watermark_pass_soft(struct dapl_ep *ep);

#endif
