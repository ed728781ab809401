/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* printed.h - what a function prints on standard error (printed.c). */
#ifndef TEST_PRINTED_H
#define TEST_PRINTED_H

/* Calls body(arg). The text is valid until the next call, and cut at 8 KiB. */
const char *printed_by(void (*body)(void *arg), void *arg);
/* How often `what` is in a text. */
unsigned times_in(const char *text, const char *what);

#endif
