/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conf_text.c - see conf_text.h. */
#include "test/unit/dat/conf_text.h"
#include "test/unit/unit.h"

const char *conf_text = "";
int conf_shortage;
bool conf_unreadable;
unsigned conf_faults, conf_reads;

REPLACE(sources_read)
int __wrap_sources_read(struct sources *sources, bool with_soft)
{
	int err = conf_shortage;

	conf_reads++;
	sources->unreadable = conf_unreadable;
	sources->faults = conf_faults;
	if (!err)
		err = conf_parse(&sources->conf, conf_text, strlen(conf_text), "dat.conf", NULL, NULL);
	if (err)
		conf_free(&sources->conf);
	return err;
}

struct entry_table table_of(const char *text)
{
	struct entry_table table;
	struct reading *reading;

	conf_text = text;
	reading = reading_make(false, false);
	assert_non_null(reading);
	assert_true(table_make(&table, reading));
	return table;
}

DAT_PROVIDER_INFO key_of(const char *name)
{
	DAT_PROVIDER_INFO info = { .dapl_version_major = 2 };

	strncpy(info.ia_name, name, sizeof info.ia_name - 1);
	return info;
}
