/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* trace.h - trace records with the AIX hook classes and levels (the AIX uDAPL manual).
 * A record is kept in a ring in memory, one ring a thread, and is printed as one line
 * when the level says so. Off costs one predictable branch. Messages for people are
 * log.h's job. Each library has its own copy of the level (hidden symbol). */
#ifndef COMMON_TRACE_H
#define COMMON_TRACE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/compiler.h"

enum trace_class {
	TRC_DAPL_EVENT = 0x5C3, TRC_DAPL_ERROR = 0x5C4,
	TRC_DAT_EVENT = 0x5C7, TRC_DAT_ERROR = 0x5C8,
};
enum trace_level { TRC_LVL_OFF = 0, TRC_LVL_ERROR = 1, TRC_LVL_NORMAL = 3, TRC_LVL_DETAIL = 7,
	TRC_LVL_MAX = 10 };

extern unsigned trace_level;
extern unsigned trace_gate;	/* trace_level, or all when some kinds are logged as well */

/* What a bit of the log's mask shows: the records of a kind of object, as messages. */
struct trace_logged {
	const char *kind;
	unsigned bit;
};

/* `table` ends with a NULL kind and stays the caller's. Call it after log_init(). */
void trace_log_kinds(const struct trace_logged *table);
void trace_log_again(void);	/* the mask has changed */

/* Reads `level_var` (DAT_TRACE_LEVEL or DAPL_TRACE_LEVEL), 0 to 10. */
void trace_init(const char *level_var);
void trace_set_level(unsigned level);	/* 0 to 10; other values are clamped */

static inline bool trace_on(unsigned level)
{
	return unlikely(__atomic_load_n(&trace_gate, __ATOMIC_RELAXED) >= level);
}

/* One record: level, class, the object's kind and address, its state by name (NULL: none), and
 * a short text. `fmt` must be a string literal; its arguments are formatted at once, so
 * call it only behind trace_on(); the macros below do. */
void trace_record(unsigned level, enum trace_class class, const char *kind, const void *object,
		  const char *state, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

#define trace(level, class, kind, object, state, ...) \
	do { \
		if (trace_on(level)) \
			trace_record(level, class, kind, object, state, __VA_ARGS__); \
	} while (0)

/* Writes the last records of all threads, oldest first, one line each, to fd. Safe to
 * call from a signal handler. */
void trace_dump(int fd);
/* Hands the same records to `each`, without their newline. */
void trace_each(void (*each)(void *arg, const char *text, size_t length), void *arg);
/* Frees the rings (library unload). */
void trace_fini(void);

/* USDT probes, for bpftrace: DAPL_PROBE2(connect, ep, address) and so on; nothing
 * where <sys/sdt.h> is missing. */
#include "config.h"
#ifdef HAVE_SYS_SDT_H
#include <sys/sdt.h>
#define DAPL_PROBE1(name, a) DTRACE_PROBE1(dapl, name, a)
#define DAPL_PROBE2(name, a, b) DTRACE_PROBE2(dapl, name, a, b)
#define DAPL_PROBE3(name, a, b, c) DTRACE_PROBE3(dapl, name, a, b, c)
#else
#define DAPL_PROBE1(name, a) ((void)(a))
#define DAPL_PROBE2(name, a, b) ((void)(a), (void)(b))
#define DAPL_PROBE3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#endif

#endif
