/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* runs.h - for programs that run another one again and again with faults (faults.c,
 * statements.c): an interface adapter with the libraries that were linked for it, an end in
 * bounded time, and the places in the code that an address stands for. */
#ifndef FAULT_RUNS_H
#define FAULT_RUNS_H
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* libdaplfault.so, beside libfault.so. */
const char *provider_path(void);
/* From now on dat.conf has this entry alone. */
#define FAULT_IA "ofa-v2-fault"
void make_conf(const char *name, const char *library, const char *params);

/* Waits for it; its wait status, or -1: it and its group were killed after `limit` seconds. */
int await_end(pid_t pid, double limit);

/* How many directory entries: /proc/self/fd, /proc/self/task. */
int entries(const char *path);
/* Threads more than before. One that was joined stands in the list a moment longer: the
 * kernel tells its end first. */
int threads_left(int before);
/* The thread sanitizer starts one beside the first of ours. */
#ifdef __SANITIZE_THREAD__
#define THREADS_OF_OTHERS 1
#else
#define THREADS_OF_OTHERS 0
#endif

/* Notes where the libraries are that are loaded now, */
void keep_objects(void);
/* so that an address in one of them becomes "OBJECT OFFSET", also when it's gone. */
void place_of(const void *caller, char *text, size_t size);
/* "  LABEL function at file:line", from such a place. */
void print_place(FILE *to, const char *label, const char *place);

#endif
