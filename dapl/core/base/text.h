/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* text.h - text that grows in a buffer of fixed size (text.c). What does not fit is cut. */
#ifndef DAPL_TEXT_H
#define DAPL_TEXT_H
#include <stddef.h>

struct dapl_text {
	char *at;
	size_t length, size;	/* bytes, without and with the final NUL */
};

/* Appends. The text stays terminated. */
void dapl_text_add(struct dapl_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
