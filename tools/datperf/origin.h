/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* origin.h - when and where results were measured, for charts and JSON. */
#ifndef DATPERF_ORIGIN_H
#define DATPERF_ORIGIN_H

enum { ORIGIN_DATE = 32, ORIGIN_HOST = 72 }; /* bytes */

/* Writes the present time as "2026-01-31T12:00:00Z", and the name of this host. */
void origin_read(char date[ORIGIN_DATE], char host[ORIGIN_HOST]);

#endif
