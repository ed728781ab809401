/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* owner.c - see owner.h. A view asks for many processes of few users, so the last names are kept: getpwuid() may ask
 * a server on the network. */
#include "tools/control/owner.h"
#include "tools/info/output.h"
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	KEPT = 64,		/* names */
	CGROUP_TEXT = 16384,	/* bytes of /proc/PID/cgroup: cgroup v1 has a line for each of about 13 controllers */
};

const char *owner_name(char user[OWNER_NAME], uid_t uid)
{
	static struct kept {
		uid_t uid;
		char name[OWNER_NAME];
	} kept[KEPT];
	struct kept *k = &kept[uid % KEPT];
	const struct passwd *entry;

	if (!*k->name || k->uid != uid) {
		entry = getpwuid(uid);
		k->uid = uid;
		if (entry && *entry->pw_name)
			snprintf(k->name, sizeof k->name, "%s", entry->pw_name);
		else
			snprintf(k->name, sizeof k->name, "%u", (unsigned)uid);
	}
	memcpy(user, k->name, OWNER_NAME);
	return user;
}

/* Reads the effective user. The owner of /proc/PID does not tell it: that is root if the process is not dumpable. */
static bool find_uid(pid_t pid, uid_t *uid)
{
	char path[64], line[256];
	bool found = false;
	unsigned effective;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof line, file))
		found = sscanf(line, "Uid: %*u %u", &effective) == 1;
	if (file)
		fclose(file);
	if (found)
		*uid = effective;
	return found;
}

const char *owner_user(char user[OWNER_NAME], pid_t pid)
{
	uid_t uid;

	*user = '\0';
	return find_uid(pid, &uid) ? owner_name(user, uid) : user;
}

/* Returns the number of the job in a path such as /system.slice/slurmstepd.scope/job_7/step_0, or -1. */
static long long job_of(const char *path)
{
	const char *job = strstr(path, "/job_");
	long long number;
	char end = '/';

	if (!strstr(path, "slurm") || !job || sscanf(job, "/job_%lld%c", &number, &end) < 1)
		return -1;
	return end == '/' ? number : -1;
}

const char *owner_parse_cgroup(char *text, long long *job)
{
	const char *best = NULL;
	char *rest = NULL;

	*job = -1;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *path = strchr(line, ':');		/* NUMBER:CONTROLLERS:PATH */

		path = path ? strchr(path + 1, ':') : NULL;
		if (!path++)
			continue;
		if (job_of(path) >= 0 && *job < 0) {
			*job = job_of(path);
			best = path;
		} else if (*job < 0 && (!best || strlen(path) > strlen(best))) {
			best = path;
		}
	}
	return best;
}

static void add_cgroup(json_t *object, pid_t pid)
{
	char path[64], text[CGROUP_TEXT];
	const char *cgroup;
	long long job;
	size_t length;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%ld/cgroup", (long)pid);
	file = fopen(path, "re");
	if (!file)
		return;
	length = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[length] = '\0';
	cgroup = owner_parse_cgroup(text, &job);
	if (cgroup)
		output_set(object, "cgroup", output_text(cgroup));
	if (job >= 0)
		output_set(object, "slurm_job", json_integer(job));
}

void owner_add(json_t *object)
{
	pid_t pid = (pid_t)json_integer_value(json_object_get(object, "pid"));
	char user[OWNER_NAME];
	uid_t uid;

	if (!find_uid(pid, &uid))
		return;
	output_set(object, "user", output_text(owner_name(user, uid)));
	output_set(object, "uid", json_integer(uid));
	add_cgroup(object, pid);
}
