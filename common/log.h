/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* log.h - messages for people: one line per real failure, nothing on success.
 * Each library has its own copy of this state (hidden symbols): libdat2 reads
 * DAT_DBG_TYPE and DAT_DBG_DEST, the providers DAPL_DBG_TYPE, DAPL_DBG_LEVEL and
 * DAPL_DBG_DEST. Records for machines and for post-mortems are trace.h's job. */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H
#include <stdbool.h>

/* Where lines go. The default is standard error; 1, 2 and 3 are the values of
 * DAT_DBG_DEST and DAPL_DBG_DEST (spec/extensions.md 6, spec/registry.md 11). */
enum log_dest { LOG_TO_STDERR = 0, LOG_TO_STDOUT = 1, LOG_TO_SYSLOG = 2, LOG_TO_BOTH = 3 };

/* Names the library ("dat", "dapl"), reads its variables; unset or bad values give
 * default_mask (a bad value also gives one line). Callable again: reads anew. */
void log_init(const char *prefix, const char *type_var, const char *level_var,
	      const char *dest_var, unsigned default_mask);

extern unsigned log_mask;	/* bits that are printed; read it through log_on() */

static inline bool log_on(unsigned bit)
{
	return (__atomic_load_n(&log_mask, __ATOMIC_RELAXED) & bit) != 0;
}

/* Prints "prefix: text\n" as one write when one of `bits` is on. */
void log_line(unsigned bits, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Reads an unsigned number (decimal, or hex with 0x) from the environment through
 * secure_getenv. Unset: *value stays, returns false. Not a number, or outside
 * [min, max]: one line that names variable, found and expected; *value stays. */
bool log_env_number(const char *name, unsigned long min, unsigned long max,
		    unsigned long *value);

#endif
