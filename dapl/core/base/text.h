/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* text.h - text that grows in a buffer of fixed size (text.c). Text that does not fit is cut off. */
#ifndef DAPL_TEXT_H
#define DAPL_TEXT_H
#include <stddef.h>

struct dapl_text {
	char *at;
	size_t length, size;	/* bytes: of the text without its NUL, and of the buffer */
};

/* Appends text. The buffer stays terminated by a NUL. */
void dapl_text_add(struct dapl_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
