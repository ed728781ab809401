/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dat/environment.h"
#include "common/env.h"
#include "common/log.h"
#include "common/trace.h"
#include "common/variables.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME_BYTES 64		/* longer than any known name */
#define NEAR 2			/* edits; a name that needs more is another word */

static const char *const known[] = {
#define X(name, library, by_default, meaning) #name,
	ENVIRONMENT_VARIABLES(X)
#undef X
};
enum { KNOWN = sizeof(known) / sizeof(*known) };

static unsigned min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Returns the number of insertions, deletions and replacements that turn `a` into `b`. Both
 * are shorter than NAME_BYTES. */
static unsigned edit_distance(const char *a, const char *b)
{
	unsigned row[NAME_BYTES], length = strlen(b);

	for (unsigned j = 0; j <= length; j++)
		row[j] = j;
	for (unsigned i = 0; a[i]; i++) {
		unsigned diagonal = row[0]++;

		for (unsigned j = 0; j < length; j++) {
			unsigned replaced = diagonal + (a[i] != b[j]);

			diagonal = row[j + 1];
			row[j + 1] = min(replaced, 1 + min(diagonal, row[j]));
		}
	}
	return row[length];
}

/* Returns NULL if no known name is near. */
static const char *nearest(const char *name)
{
	unsigned best = NEAR + 1, distance;
	const char *found = NULL;

	for (unsigned i = 0; i < KNOWN; i++) {
		distance = edit_distance(name, known[i]);
		if (distance < best) {
			best = distance;
			found = known[i];
		}
	}
	return found;
}

static bool is_known(const char *name)
{
	for (unsigned i = 0; i < KNOWN; i++)
		if (!strcmp(known[i], name))
			return true;
	return false;
}

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
	if (is_known(name))
		return;
	near = nearest(name);
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
