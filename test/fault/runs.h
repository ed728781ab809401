/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* runs.h - what the programs that run another program repeatedly with faults share (faults.c, statements.c):
 * an interface adapter of the libraries that are linked for faults, a wait for a child in bounded time, and
 * the source lines of addresses. */
#ifndef FAULT_RUNS_H
#define FAULT_RUNS_H
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Returns the path of libdaplfault.so, which is beside libfault.so. */
const char *provider_path(void);
/* From now on dat.conf has this entry alone. */
#define FAULT_IA "ofa-v2-fault"
void make_conf(const char *name, const char *library, const char *params);

/* Waits for the process. Returns its wait status, or -1 if it was killed, with its process group, after
 * `limit` seconds. */
int await_end(pid_t pid, double limit);

/* Returns the number of entries of a directory such as /proc/self/fd or /proc/self/task. */
int entries(const char *path);
/* Returns how many threads there are more than `before`. Waits for up to 2 s: the kernel lists a thread for
 * a moment after it was joined. */
int threads_left(int before);
/* The thread sanitizer starts a thread of its own beside the first thread of the program. */
#ifdef __SANITIZE_THREAD__
#define THREADS_OF_OTHERS 1
#else
#define THREADS_OF_OTHERS 0
#endif

/* Keeps the addresses of the libraries that are loaded now, for place_of() after they were unloaded. */
void keep_objects(void);
/* Writes "OBJECT OFFSET" for an address in one of these libraries. */
void place_of(const void *caller, char *text, size_t size);
/* Prints "    LABEL function at file:line" for a text of place_of(). */
void print_place(FILE *to, const char *label, const char *place);

#endif
