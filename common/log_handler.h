/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* log_handler.h - lets a program take lines that the libraries would print on standard error. Lines for
 * other destinations (DAT_DBG_DEST, DAPL_DBG_DEST) are not offered. The calls are libdat2's (DAT_2.2);
 * the registries of other projects lack them. */
#ifndef COMMON_LOG_HANDLER_H
#define COMMON_LOG_HANDLER_H
#include <stdbool.h>

struct log_message {
	const char *library;	/* "dat", "dapl": what is printed in front of the text */
	const char *text;	/* one line, without its newline; valid during the call */
	int priority;		/* of syslog(3) */
	const char *kind;	/* of the object that it is about: "ep" of a failed connection; or NULL */
};

/* Returns true if it takes the line, which is not printed then. Any thread calls it, with locks of the
 * libraries held: it makes no call of DAT. */
typedef bool (*log_handler)(const struct log_message *message);

/* For programs. NULL: lines are printed again. */
void dats_set_message_handler(log_handler handler);
/* For providers: whether the program's handler takes the line. */
bool dats_offer_message(const struct log_message *message);

#endif
