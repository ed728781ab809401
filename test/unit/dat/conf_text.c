/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conf_text.c - see conf_text.h. */
#include "test/unit/dat/conf_text.h"
#include "test/unit/unit.h"

const char *conf_text = "";
int conf_shortage;
bool conf_unreadable;
unsigned conf_reads;

EXTEND(open64)

/* The text is in a file without a name. */
int __wrap_open64(const char *path, int flags, ...)
{
	int fd;

	if (strcmp(path, CONF_FILE))
		return __real_open64(path, flags);
	conf_reads++;
	errno = conf_shortage ? conf_shortage : EACCES;
	if (conf_shortage || conf_unreadable)
		return -1;
	fd = memfd_create("dat.conf", MFD_CLOEXEC);
	assert_true(fd >= 0 && write(fd, conf_text, strlen(conf_text)) == (ssize_t)strlen(conf_text));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

__attribute__((constructor)) static void name_file(void) { setenv("DAT_OVERRIDE", CONF_FILE, 1); }

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
