/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shortage.h - errors that mean a shortage of memory or descriptors: a later try may succeed. */
#ifndef DAT_SHORTAGE_H
#define DAT_SHORTAGE_H
#include <errno.h>
#include <stdbool.h>

static inline bool is_shortage(int err)
{
	return err == ENOMEM || err == EMFILE || err == ENFILE;
}

#endif
