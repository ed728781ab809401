/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* side.h - where a process of a measurement runs, as far as results depend on it: host, version, processors, NUMA nodes
 * and the governor of the frequency. The server sends it to the client as it is in memory. */
#ifndef DATPERF_SIDE_H
#define DATPERF_SIDE_H

struct side {
	char host[64];
	char version[32];
	char processors[64];	/* those that the process may use: "0-3,8" */
	char nodes[32];		/* NUMA nodes of these: "0" */
	char governor[32];	/* of the first processor: "performance"; "": not known, as in most virtual machines */
};

/* Restricts this process, and the threads and processes that it creates, to the processors of a list like 0-3,8. A
 * list that is none, or has no processor that the process may use, is a usage error of `option`. */
void side_use_processors(const char *option, const char *list);
/* Describes this process. */
void side_read(struct side *s);
/* Replaces what is not printable, and ends each text, in what a peer has sent. */
void side_clean(struct side *s);

#endif
