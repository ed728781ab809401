/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* text.c - appends formatted text to a buffer (text.h). */
#include <stdarg.h>
#include <stdio.h>
#include "dapl/core/base/text.h"

void dapl_text_add(struct dapl_text *t, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(t->at + t->length, t->size - t->length, fmt, args);
	va_end(args);
	t->length += n > 0 ? (size_t)n : 0;
	if (t->length >= t->size)
		t->length = t->size - 1;
}
