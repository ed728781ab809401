/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* runs.c - an interface adapter with faults, waits for processes, source lines of addresses (runs.h). */
#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "fault.h"
#include "runs.h"
#include "test/dat_conf.h"

const char *provider_path(void)
{
	static char path[400];
	Dl_info info;

	if (!dladdr((void *)fault_arm, &info))
		return "libdaplfault.so";
	snprintf(path, sizeof path, "%.*s/libdaplfault.so",
		 (int)(strrchr(info.dli_fname, '/') - info.dli_fname), info.dli_fname);
	return path;
}

void make_conf(const char *name, const char *library, const char *params)
{
	char text[1000];
	int err;

	snprintf(text, sizeof text, "%s u2.0 nonthreadsafe default %s dapl.3.0 \"%s\" \"\"\n", name, library, params);
	err = set_dat_conf(text);
	if (err) {
		fprintf(stderr, "writing dat.conf: %s\n", strerror(err));
		exit(2);
	}
}

static double clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int await_end(pid_t pid, double limit)
{
	double end = clock_now() + limit;
	int status;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (clock_now() > end) {
			kill(-pid, SIGKILL);
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		usleep(500);
	}
	return status;
}

int entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int n = 0;

	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

int threads_left(int before)
{
	int left, tries = 2000;

	while ((left = entries("/proc/self/task") - before) > 0 && --tries)
		usleep(1000);
	return left;
}

/* The addresses of libraries while they were loaded. */
static struct object {
	char path[300];
	uintptr_t base, end;
} objects[40];
static int n_objects;

static int keep_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct object *o = &objects[n_objects];

	(void)size;
	(void)arg;
	if (n_objects == sizeof objects / sizeof *objects)
		return 1;
	snprintf(o->path, sizeof o->path, "%s", info->dlpi_name);
	o->base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			o->end = o->base + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	n_objects++;
	return 0;
}

void keep_objects(void)
{
	n_objects = 0;
	dl_iterate_phdr(keep_object, NULL);
}

/* In the form that addr2line reads. */
void place_of(const void *caller, char *text, size_t size)
{
	uintptr_t at = (uintptr_t)caller;

	for (int i = 0; i < n_objects; i++)
		if (objects[i].path[0] && at >= objects[i].base && at < objects[i].end)
			snprintf(text, size, "%.299s 0x%lx", objects[i].path, (long)(at - objects[i].base - 1));
}

void print_place(FILE *to, const char *label, const char *place)
{
	char command[600], line[300];
	FILE *f;

	snprintf(command, sizeof command, "set -- %s; addr2line -spfi -e $1 $2 2>/dev/null", place);
	f = place[0] ? popen(command, "r") : NULL;
	while (f && fgets(line, sizeof line, f))
		fprintf(to, "    %s %s", label, line);
	if (f)
		pclose(f);
}

