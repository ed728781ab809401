/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* env.h - reads environment variables. All count as unset in set-user-id programs. */
#ifndef COMMON_ENV_H
#define COMMON_ENV_H
#include "config.h"
#include <stdlib.h>
#include <unistd.h>

static inline const char *env_get(const char *name)
{
#ifdef HAVE_SECURE_GETENV
	return secure_getenv(name);
#else
	if (getuid() != geteuid() || getgid() != getegid())
		return NULL;
	return getenv(name);
#endif
}

/* Returns the directory that tests put in front of the system's paths; otherwise "". */
static inline const char *test_root(void)
{
	const char *dir = env_get("DAT_TEST_ROOT");

	return dir ? dir : "";
}

#endif
