/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conf.h - reads datsock.conf, the settings of all programs of the host. Not responsible for: what the settings mean
 * (settings.h). */
#ifndef SOCK_CONF_H
#define SOCK_CONF_H
#include <stdbool.h>

/* Takes a setting. Returns NULL, or a clause that says what is wrong. */
typedef const char *conf_take(const char *name, const char *value);
/* Calls take() for each line with a setting. Returns false, with a line on stderr for each fault, if the file has one,
 * or cannot be read or trusted. A file that does not exist has no fault. */
bool conf_read(conf_take *take);

#endif
