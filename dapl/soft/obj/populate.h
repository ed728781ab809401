/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* populate.h - checks that memory can be accessed before it is registered, as a device
 * that pins pages does. */
#ifndef SOFT_POPULATE_H
#define SOFT_POPULATE_H
#include <stdbool.h>
#include <stddef.h>

enum { HUGE_PAGE = 2 << 20 };	/* bytes; the smallest huge page of x86-64 and of arm64 with pages of 4 KiB */

/* Makes the pages of [addr, addr + length) present, writable ones if `write`. The contents
 * stay. EFAULT: a page does not exist, or may not be accessed so. ENOMEM: no memory is left.
 *
 * A region of more than a quarter of the machine's memory is not populated, since that would
 * commit memory that may never be used: only its mappings and their rights are checked. */
int soft_populate(const void *addr, size_t length, bool write);
/* Asks the kernel for huge pages where the region has whole ones, before soft_populate(). By CMA the kernel looks
 * up each page of the source, which takes a third of the time of a copy with pages of 4 KiB. A region that is
 * too large to be populated stays as it is. An advice only: no error. */
void soft_populate_advise_huge(const void *addr, size_t length);

#endif
