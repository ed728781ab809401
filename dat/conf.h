/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conf.h - parses the text of a dat.conf into an array of entries. Which files are read, and
 * what the entries are used for, is decided elsewhere. */
#ifndef DAT_CONF_H
#define DAT_CONF_H
#include <dat/udat.h>
#include <stdbool.h>
#include <stddef.h>

struct conf_entry {
	DAT_PROVIDER_INFO info;	/* name, version and thread safety: the key */
	bool is_default;	/* a "nondefault" entry only hides a generated one */
	bool unlisted;		/* dat_registry_list_providers() leaves it out */
	char *library;
	char *ia_params;
	const char *file;	/* the file of the entry; NULL: generated */
	unsigned line;
};

struct conf {
	struct conf_entry *entries;	/* in the order of the text */
	size_t count, room;
	bool wants_auto;	/* "include auto" was found */
	size_t auto_at;		/* its first place: before this entry */
};

/* A line that is no entry. Texts are printable and valid during the report only. */
struct conf_fault {
	const char *file;
	unsigned line, column;	/* from 1; the column counts bytes */
	const char *field;	/* its name in dat.conf(5); "" if the line as a whole is wrong */
	const char *found, *expected;
	const char *message;	/* all of it but the place, a sentence without full stop */
};
typedef void conf_report(void *arg, const struct conf_fault *fault);

/* Appends the entries of `text` to `conf`, which is zeroed before the first use. `file` is
 * kept, not copied. Returns 0 or ENOMEM. A wrong line is reported and left out. */
int conf_parse(struct conf *conf, const char *text, size_t length, const char *file,
	       conf_report *report, void *arg);

/* Appends a u2.0 nonthreadsafe default entry. Returns 0, ENOMEM, or EINVAL for a name that is
 * empty or too long. */
int conf_add(struct conf *conf, const char *name, const char *library,
	     const char *ia_params);

void conf_free(struct conf *conf);

#endif
