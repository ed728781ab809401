/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sources.h - the sources of the entries of the static registry: DAT_OVERRIDE, or dat.conf
 * with dat.conf.d, and the devices present. Their grammar is in conf.h. */
#ifndef DAT_SOURCES_H
#define DAT_SOURCES_H
#include "dat/conf.h"

struct sources {
	struct conf conf;
	char **files;		/* the names that conf's entries point to */
	size_t file_count;
	char *origin;		/* for messages: "in /etc/dat.conf"; NULL: no memory */
	bool unreadable;	/* the main file; this has been reported */
	int shortage;		/* error number of a shortage while reading */
	bool again;		/* set by the caller: files that are not regular are unreadable, since
				 * opening or reading them may wait */
	unsigned faults;	/* lines that are no entries, and files that could not be read */
};

/* Reads all sources, and reports what is wrong in them. `with_soft`: the generated entries
 * include the software device. Returns 0, or the error number of a shortage of memory or
 * descriptors: then no entry is kept, and a later call may find more. */
int sources_read(struct sources *sources, bool with_soft);
void sources_free(struct sources *sources);

/* Appends the entries of the devices present, whatever the files say. Returns 0, or an error number of
 * devices_make_entries(). */
int sources_generate(struct conf *conf, bool with_soft);
/* Returns whether a file that entries point to is one of dat.conf.d. */
bool sources_is_drop_in(const char *file);

#endif
