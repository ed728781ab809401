/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* choose.c - the list of tests, and which of them are chosen. main.c and other programs run them. */
#include "conform.h"
#include "run.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct test **tests;
int n_tests;

void test_register(struct test *test)
{
	tests = realloc(tests, (n_tests + 1) * sizeof(*tests));
	tests[n_tests++] = test;
}

#define MAX_PATTERNS 64
static const char *patterns[MAX_PATTERNS];
static const char *excepted[MAX_PATTERNS];
static int n_excepted;
static int n_patterns;

static void add_patterns(const char **to, int *n, char *list)
{
	char *save;

	for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save))
		if (*n < MAX_PATTERNS)
			to[(*n)++] = p;
}

/* "EVD-7" chooses that statement, "EVD" the whole area. Shell patterns match ids and names. */
static bool matches(const char *pattern, const char *id, const char *name)
{
	size_t n = strlen(pattern);

	return !strcmp(pattern, id) || (!strncmp(id, pattern, n) && id[n] == '-') ||
	       !fnmatch(pattern, id, 0) || !fnmatch(pattern, name, 0);
}

bool is_chosen(const char *id, const char *name)
{
	for (int i = 0; i < n_excepted; i++)
		if (matches(excepted[i], id, name))
			return false;
	for (int i = 0; i < n_patterns; i++)
		if (matches(patterns[i], id, name))
			return true;
	return !n_patterns;
}

void choose(char *list)
{
	add_patterns(patterns, &n_patterns, list);
}

void except(char *list)
{
	add_patterns(excepted, &n_excepted, list);
}
