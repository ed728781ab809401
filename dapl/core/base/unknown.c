/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unknown.c - the line about a number that this provider does not know (unknown.h). */
#include <stddef.h>
#include "common/log.h"
#include "dapl/core/base/unknown.h"

void dapl_unknown_report(const char *device, const char *what, int number, const char *done)
{
	log_report(REPORT_UNKNOWN_NUMBER, NULL, "%s%s%s %d is not known to this provider, and is %s",
		   device ? device : "", device ? ": " : "", what, number, done);
}
