/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* log.h - messages for people: one line per real failure, nothing on success.
 * Each library has its own copy of this state (hidden symbols): libdat2 reads
 * DAT_DBG_TYPE and DAT_DBG_DEST, the providers DAPL_DBG_TYPE, DAPL_DBG_LEVEL and
 * DAPL_DBG_DEST. Records for machines and for post-mortems are trace.h's job. */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H
#include "common/log_handler.h"
#include "common/message_ids.h"
#include <stdbool.h>

/* Where lines go: the values of DAT_DBG_DEST and DAPL_DBG_DEST. */
enum log_dest {
	LOG_TO_STDERR = 0,	/* the default */
	LOG_TO_STDOUT = 1,
	LOG_TO_SYSLOG = 2,
	LOG_TO_BOTH = 3,	/* standard output and syslog */
	LOG_TO_JOURNAL = 4,	/* with fields; without a journal standard error */
	LOG_TO_JOURNAL_AND_STDERR = 5,
};

/* Names the library ("dat", "dapl"), reads its variables; unset or bad values give default_mask (a bad
 * value also gives one line). May be called again, and then reads them again. */
void log_init(const char *prefix, const char *type_var, const char *level_var,
	      const char *dest_var, unsigned default_mask);

extern unsigned log_mask;	/* bits that are printed; read it through log_on() */

static inline bool log_on(unsigned bit)
{
	return (__atomic_load_n(&log_mask, __ATOMIC_RELAXED) & bit) != 0;
}

/* Later changes of what log_init() has read. `dest` is a value of the enumeration. */
void log_set_mask(unsigned mask);
void log_set_dest(enum log_dest dest);
/* Offers each line for standard error to `handler` first, if it is not NULL. */
void log_set_handler(log_handler handler);

/* Bits of the mask: errors in every library, warnings in the providers. */
enum { LOG_BIT_ERROR = 0x1, LOG_BIT_WARNING = 0x2 };

/* Prints "prefix: text\n" as one write when one of `bits` is on. */
void log_line(unsigned bits, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same for a line that the caller has written to standard error: only other destinations, and a handler, get it. */
void log_line_printed(unsigned bits, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What a failure is about. Members that are 0 or NULL are not known. */
struct log_fields {
	const char *ia;		/* the adapter's name */
	unsigned class;		/* trace class; 0: the library's, by the message's priority */
	const char *kind;	/* of the object, as in trace records: "ep" */
	const void *object;
	const char *peer;	/* "192.0.2.7 port 45290" */
	int err;		/* an errno value */
	const char *result;	/* what the program gets, by its name in the DAT headers */
};
#define LOG_FIELDS(...) (&(const struct log_fields){ __VA_ARGS__ })

/* Reports a failure that an administrator can mend (message_ids.h): prints "prefix: text\n"
 * as log_line() does; the priority says by which bit: LOG_ERR and worse are errors (bit 1),
 * others are warnings (bit 2) in a library whose default mask has that bit. The text must
 * be complete without the fields, which may be NULL. Of one id RATE_BURST messages a second
 * are printed; the others are counted, and the next message of that id, or log_flush(), tells
 * how many there were. May be called by any thread, with locks held; errno survives. */
void log_report(enum log_id id, const struct log_fields *fields, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* From now on messages of this thread that name no adapter are about this one; NULL: about none. The name
 * is not copied. */
void log_set_ia(const char *name);
/* Reports how many messages were counted and not printed. Called at the end of an operation that may report
 * much. */
void log_flush(void);
/* The library is about to be unloaded: flushes, and closes what the log keeps open. */
void log_fini(void);

/* Reads an unsigned number (decimal, or hex with 0x) that parameters.h finds: set in the running
 * program, in the environment (through secure_getenv), or in dapl.conf. Unset: *value stays, returns false. Not a
 * number, or outside [min, max]: one line that names variable, found and expected; *value stays. */
bool log_env_number(const char *name, unsigned long min, unsigned long max,
		    unsigned long *value);

#endif
