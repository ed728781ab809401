/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parameter_range.c - reads numbers, and has the ranges of parameters (parameter_range.h). */
#include "common/parameter_range.h"
#include "common/variables.h"
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct range {
	const char *name;
	unsigned long min, max;
} ranges[] = {
#define X(name, library, min, max, by_default, meaning) { #name, min, max },
	ENVIRONMENT_VARIABLES(X)
#undef X
};

/* strtoul takes signs, blanks and octal; none of them is meant here. */
bool parameter_number(const char *text, unsigned long *value)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char *end;

	if (hex ? !isxdigit((unsigned char)text[2]) : !isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*value = strtoul(text, &end, hex ? 16 : 10);
	return !errno && !*end;
}

bool parameter_number_in(const char *text, unsigned long min, unsigned long max, unsigned long *value)
{
	return parameter_number(text, value) && *value >= min && *value <= max;
}

bool parameter_range(const char *name, unsigned long *min, unsigned long *max)
{
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
		if (!strcmp(ranges[i].name, name)) {
			*min = ranges[i].min;
			*max = ranges[i].max;
			return *max > 0;
		}
	return false;
}
