/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* steps.c - see steps.h. */
#include "test/unit/softeth/steps.h"
#include "test/unit/unit.h"

char steps[512];
const char *failing;

void forget_steps(void)
{
	*steps = 0;
	failing = NULL;
}

int step(const char *word)
{
	assert_true(strlen(steps) + strlen(word) + 2 < sizeof steps);
	if (*steps)
		strcat(steps, " ");
	strcat(steps, word);
	if (!failing || strcmp(word, failing))
		return 0;
	errno = ENOBUFS;
	return -1;
}

void steps_are(const char *expected)
{
	assert_string_equal(steps, expected);
	*steps = 0;
}
