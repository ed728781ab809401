/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* options.h - the command line of datping, and the two roles. */
#ifndef DATPING_OPTIONS_H
#define DATPING_OPTIONS_H
#include <dat/udat.h>
#include <stdbool.h>
#include <stddef.h>

struct options {
	const char *device;  /* NULL: the only one */
	const char *address; /* as given; the server's may be NULL */
	DAT_CONN_QUAL port;
	unsigned long count; /* rounds; 0: endless */
	size_t size;         /* bytes of a round's data */
	double seconds;      /* until the end of the run; 0: no limit */
	double max_rtt;      /* us, of the mean round trip; 0: no limit */
	bool client, server, persistent, show, verify, debug, json;
};

/* Each runs until its end and returns the exit status. */
int run_client(const struct options *o);
int run_server(const struct options *o);

/* Prints a line on stderr if -d was given. */
void debug(const struct options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
