/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hosts.h - measures each pair of several hosts, one after another, by a datperf on each that a launcher starts
 * (--hosts). */
#ifndef DATPERF_HOSTS_H
#define DATPERF_HOSTS_H
#include "matrix.h"

struct hosts {
	char *names[MATRIX_HOSTS];
	int count;		/* 0: no --hosts */
	const char *launcher;	/* words in front of a host and the command there: "ssh" */
};

/* Reads the list of --hosts, separated by commas. A usage error unless it has 2 to MATRIX_HOSTS different names. */
void hosts_read(struct hosts *h, const char *list);
/* A usage error unless the launcher is a command of few words. */
void hosts_check_launcher(const struct hosts *h);
/* Measures all pairs on the adapter `device` (NULL: the only one of each host) and that port, each line for
 * `seconds`, and stores the results. `program` is datperf as the hosts find it. A pair that fails is told on
 * standard error. Returns false if one failed. */
bool hosts_measure(const struct hosts *h, const char *program, const char *device, unsigned long port, double seconds,
		   struct matrix *m);

#endif
