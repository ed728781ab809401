/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reported.c - see reported.h. */
#include "test/unit/reported.h"
#include <stdarg.h>
#include <stdio.h>

struct reported reported;

void log_report(enum log_id id, const struct log_fields *fields, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(reported.text, sizeof reported.text, fmt, args);
	va_end(args);
	reported.id = id;
	reported.err = fields ? fields->err : 0;
	reported.lines++;
}
