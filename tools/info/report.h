/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* report.h - datinfo --report: one archive with what a support case needs. */
#ifndef TOOLS_INFO_REPORT_H
#define TOOLS_INFO_REPORT_H
#include <stdbool.h>

/* Makes the archive `file`, a tar file that is compressed with gzip. `anonymous`: addresses and the names of hosts and
 * users are replaced. Returns the exit status. */
int report_write(const char *file, bool anonymous);

#endif
