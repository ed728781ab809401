/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nearest.c - compares a misspelt name with the known ones, such as environment variables (nearest.h). */
#include "common/nearest.h"
#include "common/variables.h"
#include <stddef.h>
#include <string.h>

#define NAME_BYTES 64		/* longer than any known variable; longer names are not compared */
#define NEAR 2			/* edits; a name that needs more, or more than half of its letters, is another word */

static const char *const known[] = {
#define X(name, library, min, max, by_default, meaning) #name,
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

const char *nearest_name(const char *name, const char *const *names, size_t count)
{
	unsigned best = NEAR + 1, distance;
	const char *found = NULL;

	if (strlen(name) >= NAME_BYTES)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		if (strlen(names[i]) >= NAME_BYTES)
			continue;
		distance = edit_distance(name, names[i]);
		if (distance < best && 2 * distance <= strlen(names[i])) {
			best = distance;
			found = names[i];
		}
	}
	return found;
}

const char *variable_nearest(const char *name)
{
	return nearest_name(name, known, KNOWN);
}

bool variable_is_known(const char *name)
{
	for (unsigned i = 0; i < KNOWN; i++)
		if (!strcmp(known[i], name))
			return true;
	return false;
}
