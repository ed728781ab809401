/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* log.c - prints messages for people, and reads the variables that say which and where.
 * What is worth a message is the caller's decision. */
#include "common/log.h"
#include "common/env.h"
#include "common/file_size.h"
#include "common/journal.h"
#include "common/parameters.h"
#include "common/rate.h"
#include "common/trace.h"
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024

unsigned log_mask = 1;	/* errors, until log_init() has read the variables */

static const char *log_prefix = "dat";
/* A destination of log.h as a set of places. */
enum { TO_STDERR = 1, TO_STDOUT = 2, TO_SYSLOG = 4, TO_JOURNAL = 8 };
static const unsigned places_of[] = {
	[LOG_TO_STDERR] = TO_STDERR,
	[LOG_TO_STDOUT] = TO_STDOUT,
	[LOG_TO_SYSLOG] = TO_SYSLOG,
	[LOG_TO_BOTH] = TO_STDOUT | TO_SYSLOG,
	[LOG_TO_JOURNAL] = TO_JOURNAL,
	[LOG_TO_JOURNAL_AND_STDERR] = TO_JOURNAL | TO_STDERR,
};
static unsigned places = TO_STDERR;
static bool no_journal_reported;
static log_handler program_handler;	/* of lines for standard error; or NULL */
static unsigned warning_bit = LOG_BIT_ERROR;	/* that shows reports which are no errors */

static const char *prefix(void)
{
	return __atomic_load_n(&log_prefix, __ATOMIC_RELAXED);
}

/* One write a line, so that lines of several threads and processes do not mix. */
static void write_line(int fd, const char *line, size_t length)
{
	while (length) {
		ssize_t n = file_write(fd, line, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;	/* closed: there is no other place to report it */
		line += n;
		length -= n;
	}
}

/* "prefix: text" of at most LINE_MAX_BYTES, with the newline at its end. Control characters
 * would make two lines of one, or command the terminal. */
static size_t format_line(char *line, const char *fmt, va_list args)
{
	int head = snprintf(line, LINE_MAX_BYTES, "%s: ", prefix());
	int n = vsnprintf(line + head, LINE_MAX_BYTES - head, fmt, args);
	size_t length = head + (n > 0 ? n : 0);

	if (length > LINE_MAX_BYTES - 2) {
		memcpy(line + LINE_MAX_BYTES - 5, "...", 3);
		length = LINE_MAX_BYTES - 2;
	}
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = ' ';
	line[length] = '\0';
	return length;
}

static const struct message {
	const char *id, *title;
	int priority;
} messages[REPORT_COUNT] = {
#define X(name, id, priority, title) { id, title, priority },
	LOG_MESSAGES(X)
#undef X
};

/* Of a message that is no report. */
static const struct message plain[] = {
	[LOG_ERR] = { NULL, NULL, LOG_ERR },
	[LOG_WARNING] = { NULL, NULL, LOG_WARNING },
	[LOG_DEBUG] = { NULL, NULL, LOG_DEBUG },
};

/* Whether the program's handler takes the line. */
static bool is_taken(const struct message *message, const struct log_fields *fields, const char *line)
{
	log_handler handler = __atomic_load_n(&program_handler, __ATOMIC_ACQUIRE);
	const char *library = prefix();
	const struct log_message offered = { .library = library, .text = line + strlen(library) + 2,
					     .priority = message->priority, .kind = fields ? fields->kind : NULL,
					     .id = message->id, .error = fields ? fields->err : 0 };

	return handler && handler(&offered);
}

static void print_line(unsigned where, const struct message *message, const struct log_fields *fields, bool printed,
		       const char *fmt, va_list args)
{
	char line[LINE_MAX_BYTES];
	size_t length = format_line(line, fmt, args);

	if (where & TO_SYSLOG)
		syslog(LOG_USER | message->priority, "%s", line);
	if (where & TO_STDERR && (is_taken(message, fields, line) || printed))
		where &= ~TO_STDERR;
	line[length++] = '\n';
	if (where & TO_STDERR)
		write_line(STDERR_FILENO, line, length);
	if (where & TO_STDOUT)
		write_line(STDOUT_FILENO, line, length);
}

/* --- the journal ------------------------------------------------------------------ */

static unsigned class_of(const struct message *message)
{
	bool error = message->priority <= LOG_WARNING;

	if (!strcmp(prefix(), "dat"))
		return error ? TRC_DAT_ERROR : TRC_DAT_EVENT;
	return error ? TRC_DAPL_ERROR : TRC_DAPL_EVENT;
}

/* log_set_ia(). Not thread-local: the dynamic linker ends a process in which it finds no memory for that. */
static pthread_key_t ia_key;
static bool have_ia_key;		/* atomic */
static pthread_once_t ia_key_once = PTHREAD_ONCE_INIT;

static void create_ia_key(void)
{
	__atomic_store_n(&have_ia_key, !pthread_key_create(&ia_key, NULL), __ATOMIC_RELEASE);
}

__attribute__((destructor)) static void delete_ia_key(void)
{
	if (__atomic_exchange_n(&have_ia_key, false, __ATOMIC_ACQ_REL))
		pthread_key_delete(ia_key);
}

/* Without memory for it, messages name no IA. */
void log_set_ia(const char *name)
{
	pthread_once(&ia_key_once, create_ia_key);
	if (have_ia_key)
		pthread_setspecific(ia_key, name);
}

static const char *thread_ia(void)
{
	return __atomic_load_n(&have_ia_key, __ATOMIC_ACQUIRE) ? pthread_getspecific(ia_key) : NULL;
}

static int send_to_journal(const struct message *message, const struct log_fields *about,
			   const char *text)
{
	static const struct log_fields nothing;
	char priority[12], class[12], object[64], err[12];
	const struct log_fields *f = about ? about : &nothing;
	const struct journal_field fields[] = {
		{ "MESSAGE", text },
		{ "PRIORITY", priority },
		{ "SYSLOG_IDENTIFIER", program_invocation_short_name },
		{ "MESSAGE_ID", message->id },
		{ "DAPL_CLASS", class },
		{ "DAPL_IA", f->ia ? f->ia : thread_ia() },
		{ "DAPL_OBJECT", f->object || f->kind ? object : NULL },
		{ "DAPL_PEER", f->peer },
		{ "DAPL_ERRNO", f->err ? err : NULL },
		{ "DAPL_RETURN", f->result },
	};

	snprintf(priority, sizeof(priority), "%d", message->priority);
	snprintf(class, sizeof(class), "%X", f->class ? f->class : class_of(message));
	if (f->object)
		snprintf(object, sizeof(object), "%s %p", f->kind ? f->kind : "object", f->object);
	else
		snprintf(object, sizeof(object), "%s", f->kind ? f->kind : "");
	snprintf(err, sizeof(err), "%d", f->err);
	return journal_send(fields, sizeof(fields) / sizeof(*fields));
}

/* The whole text, with its newlines; without memory what fits into a line. */
static int print_journal(const struct message *message, const struct log_fields *fields,
			 const char *fmt, va_list args)
{
	char small[LINE_MAX_BYTES], *text = small;
	size_t room = sizeof(small);
	int saved_errno = errno, head, n, err;
	va_list again;

	va_copy(again, args);
	head = snprintf(text, room, "%s: ", prefix());
	n = vsnprintf(text + head, room - head, fmt, args);
	if (n > 0 && (size_t)(head + n) >= room) {
		text = malloc(head + n + 1);
		if (text) {
			memcpy(text, small, head);
			errno = saved_errno;	/* for %m */
			vsnprintf(text + head, n + 1, fmt, again);
		} else {
			text = small;
		}
	}
	va_end(again);
	err = send_to_journal(message, fields, text);
	if (text != small)
		free(text);
	return err;
}

static void report_no_journal(int err)
{
	char line[LINE_MAX_BYTES];
	int n;

	if (__atomic_exchange_n(&no_journal_reported, true, __ATOMIC_RELAXED))
		return;
	n = snprintf(line, sizeof(line), "%s: cannot reach the journal at %s: %s; its messages go to "
		     "standard error\n", prefix(), journal_path, strerror(err));
	write_line(STDERR_FILENO, line, n);
}

/* Prints where the destination says. What the journal does not take goes to standard error. */
/* `printed`: the caller has written the line to standard error. */
static void emit(const struct message *message, const struct log_fields *fields, bool printed,
		 const char *fmt, va_list args)
{
	unsigned where = __atomic_load_n(&places, __ATOMIC_RELAXED);
	int saved_errno = errno, err;
	va_list again;

	va_copy(again, args);
	if (where & TO_JOURNAL) {
		err = print_journal(message, fields, fmt, again);
		if (err) {
			report_no_journal(err);
			where |= TO_STDERR;
		}
	}
	va_end(again);
	errno = saved_errno;	/* for %m */
	if (where & ~TO_JOURNAL)
		print_line(where, message, fields, printed, fmt, args);
}

/* --- lines ------------------------------------------------------------------------ */

/* Of messages that are no reports: bits beyond errors and warnings are for tracing. */
static int priority_of(unsigned bits)
{
	if (bits & LOG_BIT_ERROR)
		return LOG_ERR;
	return bits & LOG_BIT_WARNING ? LOG_WARNING : LOG_DEBUG;
}

void log_line(unsigned bits, const char *fmt, ...)
{
	int saved_errno = errno;
	va_list args;

	if (!log_on(bits))
		return;
	va_start(args, fmt);
	emit(&plain[priority_of(bits)], NULL, false, fmt, args);
	va_end(args);
	errno = saved_errno;
}

void log_line_printed(unsigned bits, const char *fmt, ...)
{
	int saved_errno = errno;
	va_list args;

	if (!log_on(bits))
		return;
	va_start(args, fmt);
	emit(&plain[priority_of(bits)], NULL, true, fmt, args);
	va_end(args);
	errno = saved_errno;
}

/* --- reports -------------------------------------------------------------------- */

static struct rate rates[REPORT_COUNT];

static bool report_on(enum log_id id)
{
	if (messages[id].priority <= LOG_ERR)
		return log_on(LOG_BIT_ERROR);
	return log_on(__atomic_load_n(&warning_bit, __ATOMIC_RELAXED));
}

static void emit_report(enum log_id id, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void emit_report(enum log_id id, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	emit(&messages[id], NULL, false, fmt, args);
	va_end(args);
}

static void report_suppressed(enum log_id id, unsigned suppressed)
{
	if (suppressed)
		emit_report(id, "%u more like this: %s", suppressed, messages[id].title);
}

void log_report(enum log_id id, const struct log_fields *fields, const char *fmt, ...)
{
	int saved_errno = errno;
	unsigned suppressed;
	struct timespec now;
	va_list args;
	bool admitted;

	if (!report_on(id))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	admitted = rate_admit(&rates[id], now.tv_sec * 1000ull + now.tv_nsec / 1000000,
			      &suppressed);
	report_suppressed(id, suppressed);
	if (admitted) {
		errno = saved_errno;	/* for %m */
		va_start(args, fmt);
		emit(&messages[id], fields, false, fmt, args);
		va_end(args);
	}
	errno = saved_errno;
}

void log_flush(void)
{
	int saved_errno = errno;

	for (enum log_id id = 0; id < REPORT_COUNT; id++)
		report_suppressed(id, rate_suppressed(&rates[id]));
	errno = saved_errno;
}

void log_fini(void)
{
	log_flush();
	journal_close();
	parameters_fini();
}

/* --- variables ------------------------------------------------------------------ */

bool log_env_number(const char *name, unsigned long min, unsigned long max,
		    unsigned long *value)
{
	char buffer[PARAMETER_NUMBER];
	enum parameter_origin origin;
	const char *text = parameter_text(name, buffer, &origin);
	unsigned long number;
	int saved_errno = errno;
	bool good;

	if (!text)
		return false;
	good = parameter_number_in(text, min, max, &number);
	errno = saved_errno;
	if (good)
		*value = number;
	else
		log_report(REPORT_BAD_VALUE, NULL,
			   "%s%s%s is \"%s\"; expected a number from %lu to %lu; ignored", name,
			   origin == PARAMETER_FILE ? " in " : "",
			   origin == PARAMETER_FILE ? parameters_file() : "", text, min, max);
	return good;
}

/* A level is the short form of a mask: 0 the default, 1 errors, 2 warnings too, 3 all. */
static unsigned mask_of_level(unsigned long level, unsigned default_mask)
{
	switch (level) {
	case 0:  return default_mask;
	case 1:  return default_mask | 1;
	case 2:  return default_mask | 3;
	default: return ~0u;
	}
}

void log_set_mask(unsigned mask)
{
	__atomic_store_n(&log_mask, mask, __ATOMIC_RELAXED);
}

void log_set_dest(enum log_dest dest)
{
	__atomic_store_n(&places, places_of[dest], __ATOMIC_RELAXED);
}

void log_set_handler(log_handler handler)
{
	__atomic_store_n(&program_handler, handler, __ATOMIC_RELEASE);
}

static void report_bad_value(const char *message)
{
	log_report(REPORT_BAD_VALUE, NULL, "%s", message);
}

void log_init(const char *name, const char *type_var, const char *level_var,
	      const char *dest_var, unsigned default_mask)
{
	unsigned long mask = default_mask, dest, level = 0;

	memset(rates, 0, sizeof(rates));
	__atomic_store_n(&log_prefix, name, __ATOMIC_RELAXED);
	__atomic_store_n(&log_mask, default_mask, __ATOMIC_RELAXED);
	__atomic_store_n(&warning_bit, default_mask & LOG_BIT_WARNING ? LOG_BIT_WARNING : LOG_BIT_ERROR,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&places, TO_STDERR, __ATOMIC_RELAXED);
	__atomic_store_n(&no_journal_reported, false, __ATOMIC_RELAXED);
	parameters_read_file(!strcmp(name, "dat") ? report_bad_value : NULL);
	if (dest_var && log_env_number(dest_var, LOG_TO_STDERR, LOG_TO_JOURNAL_AND_STDERR, &dest))
		__atomic_store_n(&places, places_of[dest], __ATOMIC_RELAXED);
	if (level_var && log_env_number(level_var, 0, UINT_MAX, &level))
		mask = mask_of_level(level, default_mask);
	if (type_var)
		log_env_number(type_var, 0, UINT_MAX, &mask);
	__atomic_store_n(&log_mask, (unsigned)mask, __ATOMIC_RELAXED);
}
