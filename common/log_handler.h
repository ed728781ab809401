/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* log_handler.h - how lines for standard error are offered to the program before they are printed. Providers
 * find the call in libdat2 (DAT_2.2); the registries of other projects lack it. The program's side is
 * dat/dat_messages.h. */
#ifndef COMMON_LOG_HANDLER_H
#define COMMON_LOG_HANDLER_H
#include <stdbool.h>

struct log_message {
	const char *library;	/* "dat", "dapl": what is printed in front of the text */
	const char *text;	/* one line, without its newline; valid during the call */
	int priority;		/* of syslog(3) */
	const char *kind;	/* of the object that it is about: "ep" of a failed connection; or NULL */
	const char *id;		/* of the message, message_ids.h; NULL: it has none */
	int error;		/* the errno value that it is about; 0: none */
};

/* Returns true if it takes the line, which is not printed then. */
typedef bool (*log_handler)(const struct log_message *message);

/* In libdat2. Returns whether the program's handler takes the line. */
bool dats_offer_message(const struct log_message *message);

#endif
