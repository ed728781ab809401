/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* journal.h - sends entries to systemd's journal in its native protocol: one datagram of fields,
 * or one sealed memory file where a datagram is too small.
 *
 * It does not use libsystemd. The libraries must not need it at load time, and dlopen() is not possible
 * where messages arise: the thread may hold locks that a library's constructor takes while it holds the
 * lock of the dynamic linker. */
#ifndef COMMON_JOURNAL_H
#define COMMON_JOURNAL_H
#include <stddef.h>

struct journal_field {
	const char *name;	/* capitals, digits and _ */
	const char *value;	/* any bytes but NUL; NULL: the field is left out */
};

/* The journal's socket. Only tests set it, those that link this file into themselves. */
extern const char *journal_path;

/* Sends one entry. Never blocks. Returns 0 or an errno value: ENOENT or ECONNREFUSED without a journal,
 * EAGAIN when its queue is full. Changes errno. */
int journal_send(const struct journal_field *fields, size_t count);
/* Closes the socket that journal_send() keeps. */
void journal_close(void);

#endif
