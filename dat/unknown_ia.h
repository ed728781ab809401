/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unknown_ia.h - the line about an interface adapter that does not exist. A program that probes
 * many names gets a few lines: one for each name, UNKNOWN_IA_MAX in a process. */
#ifndef DAT_UNKNOWN_IA_H
#define DAT_UNKNOWN_IA_H
#include <stdbool.h>

#define UNKNOWN_IA_MAX 4	/* lines; more of them tell an administrator nothing new */
#define NAME_LIST_BYTES 400	/* of names in a line: about twenty */

/* Names with blanks between them. */
struct name_list {
	char text[NAME_LIST_BYTES];
	unsigned length, left_out;
};

void unknown_ia_add_name(struct name_list *list, const char *name);

/* Returns whether `name` is to be reported, and remembers it. Called with the registry's lock
 * held. */
bool unknown_ia_is_new(const char *name);
/* Reports `name`. `origin` says where it was looked for: "in /etc/dat.conf". */
void unknown_ia_report(const char *name, const char *origin, const struct name_list *known);

#endif
