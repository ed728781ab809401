/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_messages.h - lets a program take the lines that libdat2 and the providers would print on
 * standard error, for a log of its own. An addition of this library (symbol version DAT_2.2): the old
 * registry has nothing like it. */
#ifndef _DAT_MESSAGES_H_
#define _DAT_MESSAGES_H_

#include "udat.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One line. The strings are valid during the call of the handler only. Members may be added at the end. */
typedef struct dat_message {
	const char *library;	/* what is printed in front of the text: "dat", "dapl" */
	const char *text;	/* without a newline; printable */
	int priority;		/* of syslog(3): LOG_ERR, LOG_WARNING, LOG_DEBUG */
	const char *kind;	/* of the object that it is about: "ep" for a connection that failed;
				 * NULL: none in particular */
	const char *id;		/* of the message, as in its field MESSAGE_ID in the journal; NULL: it has none */
	int error;		/* the errno value of the failure; 0: none, or not known */
} DAT_MESSAGE;

/* Returns DAT_TRUE if it takes the line, which is not printed then. Threads of the libraries call
 * it, several at once, too, and with locks of the libraries held. So it must not call DAT, nor wait
 * for a thread that may be in a call of DAT. */
typedef DAT_BOOLEAN (DAT_API *DAT_MESSAGE_HANDLER)(IN const DAT_MESSAGE *message);

/* Offers to `handler` the lines of the registry and of the providers that would be printed on standard error; NULL:
 * they are printed again. Lines of levels that DAT_DBG_TYPE and DAPL_DBG_TYPE leave out, and lines for
 * other destinations (DAT_DBG_DEST, DAPL_DBG_DEST), are not offered. A program has one handler; a call
 * that began before the change may still use the old one. Providers of other projects print by
 * themselves. */
extern void DAT_API dats_set_message_handler(IN DAT_MESSAGE_HANDLER handler);

#ifdef __cplusplus
}
#endif

#endif
