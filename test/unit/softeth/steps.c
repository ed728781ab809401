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
	return step_fails(word);
}

int step_fails(const char *word)
{
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

static int compare_words(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void sort_words(char *to, size_t room, const char *first, const char *rest)
{
	char copy[2 * sizeof steps], *words[64], *next = copy;
	size_t n = 0;

	assert_true(snprintf(copy, sizeof copy, "%s %s", first, rest) < (int)room);
	while ((words[n] = strsep(&next, " ")))
		n += *words[n] != 0;
	qsort(words, n, sizeof *words, compare_words);
	*to = 0;
	for (size_t i = 0; i < n; i++)
		strcat(strcat(to, i ? " " : ""), words[i]);
}

void words_are_at(const char *objects, const char *expected, const char *file, int line)
{
	char is[2 * sizeof steps], should_be[2 * sizeof steps];

	sort_words(is, sizeof is, objects, steps);
	sort_words(should_be, sizeof should_be, "", expected);
	*steps = 0;
	_assert_string_equal(is, should_be, file, line);
}
