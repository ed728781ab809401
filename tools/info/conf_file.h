/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conf_file.h - prints a dat.conf for this machine, and checks a dat.conf. */
#ifndef TOOLS_INFO_CONF_FILE_H
#define TOOLS_INFO_CONF_FILE_H
#include <stdbool.h>

/* Prints entries for the devices present; for the software device one for each network interface that is
 * up and has an address. */
void conf_file_print(bool json);
/* Prints what is wrong with a file; "-" is standard input. Returns the exit status. */
int conf_file_check(const char *file, bool json);

#endif
