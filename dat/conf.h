/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conf.h - the text of a dat.conf as an array of entries.
 * Which files there are, and what is made of the entries, is not decided here. */
#ifndef DAT_CONF_H
#define DAT_CONF_H
#include <dat/udat.h>
#include <stdbool.h>
#include <stddef.h>

struct conf_entry {
	DAT_PROVIDER_INFO info;	/* name, version and thread safety: the key */
	bool is_default;	/* "nondefault" entries only hide made-up ones */
	char *library;
	char *ia_params;
	const char *file;	/* where it stands; NULL: made up */
	unsigned line;
};

struct conf {
	struct conf_entry *entries;	/* in the order of the text */
	size_t count, room;
	bool wants_auto;	/* "include auto" was found, and was first before */
	size_t auto_at;		/* this entry */
};

/* Told of each line that is no entry: where, and a sentence without full stop. */
typedef void conf_report(void *arg, const char *file, unsigned line, const char *message);

/* Appends the entries of `text` to `conf` (zeroed before the first use). `file` is kept,
 * not copied. 0 or ENOMEM; a line that is wrong is reported and left out. */
int conf_parse(struct conf *conf, const char *text, size_t length, const char *file,
	       conf_report *report, void *arg);

/* Appends a u2.0 nonthreadsafe default entry. 0, ENOMEM, or EINVAL for an impossible name. */
int conf_add(struct conf *conf, const char *name, const char *library,
	     const char *ia_params);

void conf_free(struct conf *conf);

#endif
