/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sources.h - where the entries of the static registry come from: DAT_OVERRIDE, or
 * dat.conf with dat.conf.d, and the devices present. Their grammar is conf.h's. */
#ifndef DAT_SOURCES_H
#define DAT_SOURCES_H
#include "dat/conf.h"

struct sources {
	struct conf conf;
	char **files;		/* the names that conf's entries point to */
	size_t file_count;
	char *origin;		/* for messages: "in /etc/dat.conf"; NULL: without memory */
	bool unreadable;	/* the main file; that has been told */
	int shortage;		/* an error number, while reading */
};

/* Reads everything; what is wrong becomes a message. `with_soft`: the made-up entries
 * include the software device. 0, or the error number of what the process or the system
 * had run out of (memory, descriptors): then nothing was kept, and a later call may find
 * more. */
int sources_read(struct sources *sources, bool with_soft);
void sources_free(struct sources *sources);

#endif
