/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* options.h - the command line of dapltest, or the script that holds it. */
#ifndef DAPLTEST_OPTIONS_H
#define DAPLTEST_OPTIONS_H
#include "wire.h"

enum { DEFAULT_QUALIFIER = 62000, MAX_QUALIFIER = 65535 };

struct options {
	char mode;			/* the letter of -T */
	const char *device, *server;
	unsigned qualifier;
	unsigned debug;			/* how often -d was given */
	DAT_QOS qos;
	bool cno;
	struct transaction transaction;
	struct performance performance;
	unsigned maximum, width;	/* of a limit test; maximum 0: up to failure */
	const char *feature;		/* of a functional test */
	char *const *words;		/* the limit tests or cases, `word_count` of them */
	int word_count;
};

/* Ends the program with CLI_USAGE, and a line, when the command line is wrong. */
struct options options_parse(int argc, char **argv);

#endif
