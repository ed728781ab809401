/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* entry_text.h - keys and positions of entries, as messages show them. */
#ifndef DAT_ENTRY_TEXT_H
#define DAT_ENTRY_TEXT_H
#include "dat/entry_table.h"
#include <limits.h>

static inline const char *thread_word(DAT_BOOLEAN thread_safe)
{
	return thread_safe ? "threadsafe" : "nonthreadsafe";
}

/* Format of a key in messages: "name" u2.0 nonthreadsafe. */
#define KEY_FMT "\"%s\" u%u.%u %s"
#define KEY_ARGS(info) \
	(info)->ia_name, (info)->dapl_version_major, (info)->dapl_version_minor, thread_word((info)->is_thread_safe)

/* The position of an entry. */
struct where {
	char text[PATH_MAX + 16];
};

/* Returns the position, in `w` or in static memory. */
const char *entry_where(const struct entry *e, struct where *w);
/* Writes the entry to the log of the static registry. */
void entry_log(const struct entry *e);

#endif
