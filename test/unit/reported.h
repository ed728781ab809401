/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reported.h - records what log_report() is told, and prints nothing: a program with reported.c has it in place of the
 * library's. */
#ifndef TEST_REPORTED_H
#define TEST_REPORTED_H
#include "common/log.h"

extern struct reported {
	unsigned lines;
	/* of the last line */
	enum log_id id;
	int err;
	char text[400];
} reported;

#endif
