/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* origin.c - see origin.h. */
#include "origin.h"
#include <stdio.h>
#include <time.h>
#include <unistd.h>

void origin_read(char date[ORIGIN_DATE], char host[ORIGIN_HOST])
{
	time_t seconds = time(NULL);
	struct tm now;

	gmtime_r(&seconds, &now);
	strftime(date, ORIGIN_DATE, "%Y-%m-%dT%H:%M:%SZ", &now);
	if (gethostname(host, ORIGIN_HOST))
		snprintf(host, ORIGIN_HOST, "?");
	host[ORIGIN_HOST - 1] = '\0';
}
