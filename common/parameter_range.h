/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parameter_range.h - which numbers a parameter takes, by the table of variables.h: for dapl.conf, and for
 * tools that check a value before a program reads it. No state. */
#ifndef COMMON_PARAMETER_RANGE_H
#define COMMON_PARAMETER_RANGE_H
#include <stdbool.h>

enum { PARAMETER_NUMBER = 24 };	/* bytes of the text of a number, with the zero byte */

/* Returns false if `text` is no decimal or hexadecimal (0x) number of unsigned long. Changes errno. */
bool parameter_number(const char *text, unsigned long *value);
/* Like parameter_number(), but also returns false if the number is outside of min to max. */
bool parameter_number_in(const char *text, unsigned long min, unsigned long max, unsigned long *value);
/* Returns false if variables.h does not have the name, or its value is no number. */
bool parameter_range(const char *name, unsigned long *min, unsigned long *max);

#endif
