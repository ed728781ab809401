/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* environment.c - reports environment variables that no library reads (environment.h). */
#include "dat/environment.h"
#include "common/env.h"
#include "common/log.h"
#include "common/nearest.h"
#include "common/trace.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME_BYTES 64		/* longer than any known name */

static void check(const char *variable)
{
	size_t length = strcspn(variable, "=");
	char name[NAME_BYTES];
	const char *near;

	if (strncmp(variable, "DAT_", 4) && strncmp(variable, "DAPL_", 5))
		return;
	if (length >= sizeof(name)) {
		log_report(REPORT_UNKNOWN_VARIABLE, NULL, "the variable %.60s... has no meaning",
			   variable);
		return;
	}
	memcpy(name, variable, length);
	name[length] = '\0';
	if (variable_is_known(name))
		return;
	near = variable_nearest(name);
	if (near)
		log_report(REPORT_UNKNOWN_VARIABLE, NULL,
			   "the variable %s has no meaning; is %s meant?", name, near);
	else
		log_report(REPORT_UNKNOWN_VARIABLE, NULL, "the variable %s has no meaning", name);
}

/* Returns whether the providers' trace level is 3 or more. An invalid level counts as none;
 * the providers report it. */
static bool providers_trace(void)
{
	const char *level = env_get("DAPL_TRACE_LEVEL");

	return level && strtoul(level, NULL, 0) >= TRC_LVL_NORMAL;
}

void environment_check(void)
{
	bool tracing = __atomic_load_n(&trace_level, __ATOMIC_RELAXED) >= TRC_LVL_NORMAL;

	if (!tracing && !providers_trace())
		return;
	for (char **variable = environ; variable && *variable; variable++)
		check(*variable);
}
