/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* faults.c - runs the program session.c repeatedly, each time in a process of its own in which another call
 * fails. The program must neither crash nor hang. It gets an error that names the cause, or does its work all
 * the same. Everything is freed, and nothing is left when the libraries are unloaded.
 *
 *   faults [KIND[:N]]...    alloc alloc-on system system-on device device-on; all without
 *
 * With FAULTS_VERBOSE in the environment it prints a line for each run.
 *
 * "alloc": the N-th allocation fails; "alloc-on": it and all after it. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "fault.h"
#include "runs.h"
#include "session.h"
#include "test/own_network.h"

enum {
	JOBS = 3, LIMIT = 60 /* s */,
	QUIET = 3,	/* so many runs without a fault end a kind */
	ENOUGH = 50,	/* so many failures do, too: a program that crashes without a fault would never end */
};

static const struct kind {
	const char *name;
	enum fault_kind kind;
	bool lasting;
} kinds[] = {
	{ "alloc", FAULT_ALLOC, false }, { "alloc-on", FAULT_ALLOC, true },
	{ "system", FAULT_SYSTEM, false }, { "system-on", FAULT_SYSTEM, true },
	{ "device", FAULT_DEVICE, false }, { "device-on", FAULT_DEVICE, true },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The result of a run, in memory shared with its process. */
static struct run {
	pid_t pid;
	unsigned n;
	FILE *output;
	struct outcome outcome;
	bool happened;
	struct fault fault;
	char place[400], leak[400];
	size_t blocks;
	int descriptors, threads;	/* more than before */
	bool whole;			/* it came to its end */
} *runs;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* --- the process in which it happens ------------------------------------------------------- */

static _Noreturn void befall(struct run *run, const struct kind *kind)
{
	int descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
	session_function *session;
	void *provider, *library, *caller;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(fileno(run->output), 1);
	dup2(fileno(run->output), 2);
	/* Stays loaded until the end, so that addresses in it can be printed. */
	provider = dlopen(provider_path(), RTLD_NOW | RTLD_LOCAL);
	fault_arm(kind->kind, run->n, kind->lasting);
	library = dlopen(BUILD "/test/fault/.libs/session.so", RTLD_NOW | RTLD_LOCAL);
	session = library ? (session_function *)dlsym(library, "fault_session") : NULL;
	if (!session) {
		fprintf(stderr, "%s\n", dlerror());
		_exit(2);
	}
	session(&run->outcome);
	fault_disarm();
	run->happened = fault_happened(&run->fault);
	keep_objects();
	place_of(run->fault.caller, run->place, sizeof run->place);
	dlclose(library);
	if (provider)
		dlclose(provider);
	run->blocks = fault_blocks(&caller);
	if (run->blocks)
		place_of(caller, run->leak, sizeof run->leak);
	run->descriptors = entries("/proc/self/fd") - descriptors;
	if (!THREADS_OF_OTHERS)
		run->threads = threads_left(threads);
	run->whole = true;
	exit(0);	/* with a leak check in builds that have it */
}

/* --- what is expected -------------------------------------------------------------------- */

/* Returns whether a call may return this type because of this errno. */
static bool tells(int type, int error)
{
	switch (error) {
	case EADDRINUSE:
		return type == DAT_CONN_QUAL_IN_USE || type == DAT_CONN_QUAL_UNAVAILABLE ||
		       type == DAT_PORT_IN_USE;
	case EIO: case ECONNRESET:
		return type == DAT_INTERNAL_ERROR;
	default:
		return type == DAT_INSUFFICIENT_RESOURCES;
	}
}

static bool names_the_cause(const struct run *run)
{
	for (int i = 0; run->fault.errors[i]; i++)
		if (tells(DAT_GET_TYPE(run->outcome.ret), run->fault.errors[i]))
			return true;
	return false;
}

static bool said(const struct run *run, const char *what)
{
	char line[1000];
	bool found = false;

	rewind(run->output);
	while (fgets(line, sizeof line, run->output))
		found |= strstr(line, what) != NULL;
	return found;
}

/* Returns whether the provider had no memory to register itself. The registry then leaves it loaded, as it
 * may have started threads. */
static bool is_no_provider(const struct run *run)
{
	if (run->outcome.end != CALL_FAILED || !said(run, "registered no"))
		return false;
	return DAT_GET_TYPE(run->outcome.ret) == DAT_INSUFFICIENT_RESOURCES ||
	       (DAT_GET_TYPE(run->outcome.ret) == DAT_PROVIDER_NOT_FOUND && said(run, "no memory"));
}

static const char *wrong(const struct run *run, int status)
{
	static char text[700];
	const struct outcome *o = &run->outcome;

	if (status == -1)
		return "it hangs";
	if (WIFSIGNALED(status))
		return strsignal(WTERMSIG(status));
	if (status || !run->whole)
		return "it does not come to its end";
	if (o->untidy[0])
		return o->untidy;
	if (is_no_provider(run))
		return NULL;
	if (run->blocks || run->descriptors > 0 || run->threads > 0) {
		snprintf(text, sizeof text, "left behind: %zu blocks (%s), %d descriptors, %d threads",
			 run->blocks, run->leak, run->descriptors, run->threads);
		return text;
	}
	switch (o->end) {
	case COMPLETE:
	case EVENT_FAILED:
	case LOST:
		return NULL;
	case NO_EVENT:
		return "nothing is told";
	case WRONG_DATA:
		return "the data are wrong";
	case CALL_FAILED:
		break;
	}
	if (names_the_cause(run))
		return NULL;
	snprintf(text, sizeof text, "the error 0x%x is not what %s must become", (unsigned)o->ret,
		 run->fault.errors[0] ? strerror(run->fault.errors[0]) : "no fault");
	return text;
}

/* --- all of a kind ------------------------------------------------------------------------- */

static void tell(const struct kind *kind, const struct run *run, const char *why)
{
	const struct outcome *o = &run->outcome;
	char line[300];

	printf("FAIL %s:%u %s: %s\n", kind->name, run->n, run->fault.what, why);
	printf("    after %s: end %d, return 0x%x, event 0x%x, status %d\n", o->step, o->end,
	       (unsigned)o->ret, (unsigned)o->event, o->status);
	print_place(stdout, "failed in", run->place);
	if (run->blocks)
		print_place(stdout, "allocated in", run->leak);
	rewind(run->output);
	for (int i = 0; i < 60 && fgets(line, sizeof line, run->output); i++)
		printf("    | %s", line);
}

static void start(struct run *run, const struct kind *kind, unsigned n)
{
	pid_t pid;

	memset(run, 0, sizeof *run);
	run->n = n;
	run->output = tmpfile();
	fflush(NULL);
	pid = fork();
	if (!pid) {
		own_network();	/* so that no other program takes a port that was just freed */
		befall(run, kind);
	}
	if (pid < 0) {
		perror("faults: fork");
		exit(2);
	}
	run->pid = pid;
}

struct sums {
	int passed, failed, told, made_good;
};

/* Returns false if no fault happened in the run. */
static bool judge(const struct kind *kind, struct run *run, struct sums *sums)
{
	int status = await_end(run->pid, LIMIT);
	const char *why = wrong(run, status);
	bool more = run->happened || status || !run->whole;

	if (why) {
		tell(kind, run, why);
		sums->failed++;
	} else if (run->happened) {
		sums->passed++;
		if (run->outcome.end == COMPLETE)
			sums->made_good++;
		else
			sums->told++;
	}
	if (getenv("FAULTS_VERBOSE"))
		printf("  %s:%u %s after %s: end %d return 0x%x event 0x%x\n", kind->name, run->n,
		       run->fault.what, run->outcome.step, run->outcome.end, (unsigned)run->outcome.ret,
		       (unsigned)run->outcome.event);
	fclose(run->output);
	return more;
}

/* Runs JOBS at a time. They may end in any order. */
static struct sums all_of(const struct kind *kind, unsigned first, unsigned last)
{
	struct sums sums = { 0 };
	unsigned next = first, oldest = first;
	int quiet = 0;
	bool go_on;

	while ((go_on = next <= last && quiet < QUIET && sums.failed < ENOUGH) || oldest < next) {
		if (go_on && next - oldest < JOBS) {
			start(&runs[next % JOBS], kind, next);
			next++;
			continue;
		}
		quiet = judge(kind, &runs[oldest % JOBS], &sums) ? 0 : quiet + 1;
		oldest++;
	}
	return sums;
}

static bool wanted(const char *arg, const struct kind *kind, unsigned *first, unsigned *last)
{
	size_t length = strcspn(arg, ":");

	if (strlen(kind->name) != length || strncmp(arg, kind->name, length))
		return false;
	if (arg[length])
		*first = *last = (unsigned)atoi(arg + length + 1);
	return true;
}

int main(int argc, char **argv)
{
	struct sums all = { 0 };

	make_conf(FAULT_IA, provider_path(), "lo 0");
	runs = mmap(NULL, JOBS * sizeof *runs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (runs == MAP_FAILED)
		return 2;
	for (int k = 0; k < KINDS; k++) {
		unsigned first = 1, last = 1000000;
		bool chosen = argc < 2;
		struct sums sums;
		double begin = now();

		for (int i = 1; i < argc; i++)
			chosen |= wanted(argv[i], &kinds[k], &first, &last);
		if (!chosen)
			continue;
		sums = all_of(&kinds[k], first, last);
		printf("%s %s: %d faults, %d told, %d made good  %.1f s\n", sums.failed ? "FAIL" : "ok",
		       kinds[k].name, sums.passed + sums.failed, sums.told, sums.made_good, now() - begin);
		all.passed += sums.passed;
		all.failed += sums.failed;
	}
	printf("%d passed, %d failed\n", all.passed, all.failed);
	return all.failed || !all.passed;
}
