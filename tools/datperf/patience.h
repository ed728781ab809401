/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* patience.h - the number of empty polls after which a polling thread yields the processor. */
#ifndef DATPERF_PATIENCE_H
#define DATPERF_PATIENCE_H

/* Returns the number of polls. It is small if this process has only one processor, which the peer may
 * need. */
unsigned long patience(void);

#endif
