/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* patience.h - how often a poll may be empty until the polling thread lets another process run. */
#ifndef DATPERF_PATIENCE_H
#define DATPERF_PATIENCE_H

/* Few polls where the peer has no processor of its own. */
unsigned long patience(void);

#endif
