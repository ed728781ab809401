/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conf_text.h - the text of the dat.conf that the registry reads, in place of the file that DAT_OVERRIDE names: for
 * programs that are linked with --wrap=open64 (conf_text.c). */
#ifndef TEST_UNIT_DAT_CONF_TEXT_H
#define TEST_UNIT_DAT_CONF_TEXT_H
#include "dat/entry_table.h"

#define CONF_FILE "dat.conf"
#define LINE(name, kind, library, params) \
	name " u2.0 nonthreadsafe " kind " " library " dapl.2.0 \"" params "\" \"\"\n"

extern const char *conf_text;
extern int conf_shortage;		/* reading fails with this error; 0: it does not */
extern bool conf_unreadable;
extern unsigned conf_reads;		/* how often the file was opened */

/* A table of the entries of a text, which is read. */
struct entry_table table_of(const char *text);
/* u2.0 nonthreadsafe */
DAT_PROVIDER_INFO key_of(const char *name);

#endif
