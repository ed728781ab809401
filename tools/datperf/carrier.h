/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* carrier.h - what carries the data of this process's connections. */
#ifndef DATPERF_CARRIER_H
#define DATPERF_CARRIER_H
#include <stddef.h>

/* Writes "memory", "tcp" or "tcp+crc", as "datinfo --ports" shows it; of several connections the first. Writes "" if
 * the process has no control socket (DAPL_CONTROL=0), or the provider names no carrier. */
void carrier_find(char *text, size_t size);

#endif
