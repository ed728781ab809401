/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* printed.c - see printed.h. */
#include "test/unit/printed.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *printed_by(void (*body)(void *arg), void *arg)
{
	static char text[8192];
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	ssize_t n;

	if (!file || saved < 0)
		abort();
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	body(arg);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	n = pread(fileno(file), text, sizeof text - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	fclose(file);
	return text;
}

unsigned times_in(const char *text, const char *what)
{
	unsigned times = 0;

	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		times++;
	return times;
}
