/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* descriptors.c - reports that file descriptors ran out (descriptors.h). */
#include "common/descriptors.h"
#include "common/log.h"
#include <string.h>
#include <sys/resource.h>

void report_no_descriptors(const char *ia, int err, const char *what)
{
	struct rlimit limit;

	if (!is_out_of_descriptors(err))
		return;
	if (err == EMFILE && !getrlimit(RLIMIT_NOFILE, &limit))
		log_report(REPORT_NO_DESCRIPTORS, LOG_FIELDS(.ia = ia, .err = err),
			   "%s: %s: %s (the limit is %llu; raise it, ulimit -n)", ia, what,
			   strerror(err), (unsigned long long)limit.rlim_cur);
	else
		log_report(REPORT_NO_DESCRIPTORS, LOG_FIELDS(.ia = ia, .err = err), "%s: %s: %s",
			   ia, what, strerror(err));
}
