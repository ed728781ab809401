/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* descriptors.h - reports that the process or the system is out of file descriptors. */
#ifndef COMMON_DESCRIPTORS_H
#define COMMON_DESCRIPTORS_H
#include <errno.h>
#include <stdbool.h>

static inline bool is_out_of_descriptors(int err)
{
	return err == EMFILE || err == ENFILE;
}

/* Prints one line with the limit in force if `err` is such an errno value; `what` failed on
 * adapter `ia`. */
void report_no_descriptors(const char *ia, int err, const char *what);

#endif
