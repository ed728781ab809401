/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* owner.h - whose a process is: its user, its cgroup, and its job of Slurm, from /proc. */
#ifndef TOOLS_CONTROL_OWNER_H
#define TOOLS_CONTROL_OWNER_H
#include <jansson.h>
#include <stddef.h>
#include <sys/types.h>

enum { OWNER_NAME = 64 };	/* bytes */

/* Stores the name of the effective user of a process, the number of a user without a name, or "" if the process
 * has ended or /proc hides it. Returns `user`. */
const char *owner_user(char user[OWNER_NAME], pid_t pid);
/* Stores the name of a user, or its number. Returns `user`. */
const char *owner_name(char user[OWNER_NAME], uid_t uid);
/* Adds to an object with a member "pid" what is known of this process: "user", "uid", "cgroup" and "slurm_job" (a
 * number). */
void owner_add(json_t *object);

/* For a test: finds the cgroup in the text of /proc/PID/cgroup, which it changes. With several hierarchies it is that
 * of a job, or else the longest path. Stores the number of the job, or -1. Returns NULL if there is none. */
const char *owner_parse_cgroup(char *text, long long *job);

#endif
