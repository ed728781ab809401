/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* help.c - messages for users: the help file, and the text of DAT errors. */
#include "help.h"
#include "common/file_size.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "opal/util/show_help.h"

void udapl_add_help_dir(void)
{
	Dl_info info;
	char *dir, *slash;

	if (!dladdr(&mca_btl_udapl_component, &info) || !(dir = strdup(info.dli_fname)))
		return;
	slash = strrchr(dir, '/');
	if (slash) {
		*slash = '\0';
		opal_show_help_add_dir(dir);
	}
	free(dir);
}

void udapl_show_help(const char *topic, ...)
{
	va_list args;
	char *text;

	va_start(args, topic);
	text = opal_show_help_vstring("help-mpi-btl-udapl.txt", topic, true, args);
	va_end(args);
	if (text)
		file_write(STDERR_FILENO, text, strlen(text));
	free(text);
}

const char *udapl_error(DAT_RETURN rc)
{
	static __thread char buffer[128];
	const char *major = "unknown error", *minor = "";

	dat_strerror(rc, &major, &minor);
	snprintf(buffer, sizeof buffer, "%s %s", major, minor);
	return buffer;
}
