/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dm.h - rows of device memory, beside memory of the process: for data(). */
#ifndef BENCH_SOFT_DM_H
#define BENCH_SOFT_DM_H

void dm_rows(void);

#endif
