/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* statements.c - runs each test of the conformance suite repeatedly, each time in a process of its own in which
 * another call fails. The test must neither crash nor hang, nothing may be left, and an error must name the
 * cause, or an event report it. The statement itself may fail then. The tests are those of test/conform.
 *
 *   statements [--only LIST] [--except LIST] [--kinds alloc,system,device]
 *              [--one KIND:N] [--sample SECONDS] [--seed N] [--jobs N]
 *              [--seconds S] [--resume FILE] [--verbose]
 *
 * Without --sample all calls that a test makes fail in turn. --seconds ends it early, and
 * --resume goes on where it ended: FILE names the tests that are done. */
#include "test/conform/conform.h"
#include "test/conform/run.h"
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "runs.h"
#include "statements.h"
#include "test/own_network.h"
#include "test/random.h"

/* A wait that cannot succeed is cut short, so the time limit may be short, too. A test that waited without
 * success, or did not end, is run again with a longer limit. */
enum { PATIENCE = 3, LONG_PATIENCE = 20, LIMIT = 40, LONG_LIMIT = 120 /* s */ };
enum { MAX_JOBS = 16, SAMPLES_OF_A_TEST = 12 };

struct options options;
struct report *report;

static const struct kind kinds[] = {
	{ "alloc", FAULT_ALLOC, false }, { "system", FAULT_SYSTEM, false },
	{ "device", FAULT_DEVICE, false }, { "alloc-on", FAULT_ALLOC, true },
	{ "system-on", FAULT_SYSTEM, true }, { "device-on", FAULT_DEVICE, true },
	{ "none", FAULT_NONE, false },
};
enum { KINDS = sizeof kinds / sizeof *kinds - 1, PLAIN = 3 };
static const struct kind *const none = &kinds[KINDS];

struct run *run;
int output = -1;

/* What all lanes share. */
static struct {
	_Atomic int next;		/* test */
	_Atomic unsigned passed, failed, told, made_good, tests, unfinished;
	_Atomic unsigned untidied;	/* of which it is not checked what they left behind */
} *sums;

static unsigned failures;	/* of this lane */
static double end_of_time;	/* on now()'s clock */
static bool verbose;

/* --- the process in which it happens: its end ---------------------------------------------- */

/* Handles of IAs are small numbers. */
static void close_all(void)
{
	for (uintptr_t i = 1; i < 1024; i++) {
		DAT_RETURN ret = dat_ia_close((DAT_IA_HANDLE)i, DAT_CLOSE_ABRUPT_FLAG);

		if (ret != DAT_SUCCESS && DAT_GET_TYPE(ret) != DAT_INVALID_HANDLE)
			snprintf(run->untidy, sizeof run->untidy, "dat_ia_close gives %s", return_name(ret));
	}
}

/* With --enable-coverage, the end of a process allocates. */
static _Noreturn void leave_at_once(int status)
{
	fault_disarm();
	_exit(status);
}

/* Threads that the test left in calls would use freed objects, or unloaded libraries. */
static _Noreturn void leave(void)
{
	if (helpers || (pid_t)syscall(SYS_gettid) != getpid())
		leave_at_once(0);
	fflush(NULL);
	/* It may be under way. */
	for (int i = 0; report->verdict == FAILED && run->page.happened && !something_tells() &&
	     i < 30 && !is_excused(report->text); i++)
		usleep(10000);
	fault_disarm();
	close_all();
	run->descriptors = entries("/proc/self/fd");
	if (!THREADS_OF_OTHERS)
		run->threads = threads_left(1);
	run->tidied = true;
	exit(0);	/* the libraries' destructors run, and leaks are looked for when so built */
}

_Noreturn void end_test(enum verdict verdict)
{
	if (getpid() != report->process)
		leave_at_once(verdict == FAILED);
	leave();
}

static _Noreturn void befall(const struct test *test, const struct kind *kind, unsigned n)
{
	enum verdict undecided = UNDECIDED;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(output, 1);
	dup2(output, 2);
	report->process = getpid();
	reached(test->file, test->line, "the beginning");
	fault_arm(kind->kind, n, kind->lasting);
	run->page.process = getpid();
	test->run(test->arg);
	report->closing = true;
	close_ia();
	atomic_compare_exchange_strong(&report->verdict, &undecided, PASSED);
	leave();
}

/* --- one test ---------------------------------------------------------------------------------- */

static void tell(const struct test *test, const struct kind *kind, unsigned n, const char *why)
{
	char place[400] = "", line[300], *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size), *from = fdopen(dup(output), "r");

	place_of(run->page.fault.caller, place, sizeof place);
	fprintf(to, "FAIL --only %.*s --one %s:%u %s %s: %s\n", (int)strcspn(test->ids, " "), test->ids,
		kind->name, n, test->name, run->page.fault.what, why);
	fprintf(to, "    reached %s:%d %s\n", report->file, report->line, report->what);
	print_place(to, "failed in", place);
	if (run->page.blocks) {
		place_of(run->page.owner, place, sizeof place);
		print_place(to, "allocated in", place);
	}
	rewind(from);
	for (int i = 0; i < 60 && fgets(line, sizeof line, from); i++)
		fprintf(to, "    | %s%s", line, strchr(line, '\n') ? "" : "\n");
	fclose(from);
	fclose(to);
	if (write(1, text, size) < 0)	/* whole, beside other lanes */
		perror("statements");
	failures++;
	sums->failed++;
	free(text);
}

static int start(const struct test *test, const struct kind *kind, unsigned n, bool patient)
{
	pid_t pid;

	memset(report, 0, sizeof *report);
	memset(run, 0, sizeof *run);
	run->kind = kind;
	for (report->index = 0; tests[report->index] != test;)
		report->index++;
	options.limit = 3 * (patient ? LONG_PATIENCE : PATIENCE);
	if (ftruncate(output, 0) || lseek(output, 0, SEEK_SET))
		perror("statements: memfd");
	pid = __real_fork();
	if (!pid)
		befall(test, kind, n);
	if (pid < 0) {
		perror("statements: fork");
		exit(2);
	}
	setpgid(pid, pid);
	int status = await_end(pid, patient ? LONG_LIMIT : LIMIT);
	kill(-pid, SIGKILL);	/* processes that the test started and did not end */
	return status;
}

/* Returns false if no fault happened in the run. */
static bool try(const struct test *test, const struct kind *kind, unsigned n, const struct run *clean)
{
	int status = start(test, kind, n, false);
	const char *why = wrong(status, clean);

	if (why && (status == -1 || timed_out_waiting())) {	/* perhaps it was but slow */
		status = start(test, kind, n, true);
		why = wrong(status, clean);
	}
	if (verbose)
		printf("  %s %s:%u %s: verdict %d, told %d: %s\n", test->name, kind->name, n,
		       run->page.fault.what, report->verdict, run->told, report->text);
	if (why) {
		tell(test, kind, n, why);
	} else if (run->page.happened) {
		sums->passed++;
		sums->untidied += !run->tidied;
		if (report->verdict == FAILED)
			sums->told++;
		else
			sums->made_good++;
	}
	return run->page.happened || status;
}

/* Runs the test without a fault: counts the calls of each kind, and the descriptors that are left. */
static bool measure(const struct test *test, struct run *clean)
{
	int status = start(test, none, 0, true);
	const char *why = wrong(status, NULL);

	if (why) {
		tell(test, none, 0, why);
		return false;
	}
	memcpy((void *)clean, run, sizeof *clean);
	return true;
}

/* --- all, or some ------------------------------------------------------------------------------ */

static bool kind_chosen[KINDS] = { true, true, true };

static void all_of(const struct test *test, const char *resume)
{
	unsigned before = failures;
	double begin = now();
	struct run clean;

	if (!measure(test, &clean))
		return;
	for (int k = 0; k < KINDS; k++)
		for (unsigned n = 1; kind_chosen[k]; n++) {
			if (now() > end_of_time) {
				sums->unfinished++;
				return;
			}
			if (!try(test, &kinds[k], n, &clean) && n >= clean.page.calls[kinds[k].kind])
				break;
		}
	sums->tests++;
	printf("%s %s %s: %u allocations, %u system calls, %u operations of the device  %.1f s\n",
	       failures > before ? "FAIL" : "ok", test->ids, test->name, clean.page.calls[FAULT_ALLOC],
	       clean.page.calls[FAULT_SYSTEM], clean.page.calls[FAULT_DEVICE], now() - begin);
	if (resume && failures == before) {
		FILE *f = fopen(resume, "a");

		if (f) {
			fprintf(f, "%s %s\n", test->ids, test->name);
			fclose(f);
		}
	}
}

static uint64_t sequence;

static unsigned any_below(unsigned n)
{
	return (unsigned)((random_next(&sequence) >> 32) % n);
}

static void some_of(const struct test *test)
{
	struct run clean;
	double begin = now();

	if (!measure(test, &clean))
		return;
	sums->tests++;
	for (int i = 0; i < SAMPLES_OF_A_TEST && now() < end_of_time && now() < begin + 1; i++) {
		const struct kind *kind = &kinds[any_below(KINDS)];
		unsigned calls = clean.page.calls[kind->kind];

		if (calls)
			try(test, kind, 1 + any_below(calls), &clean);
	}
}

static bool wanted(const struct test *test)
{
	char ids[100], *save;
	bool any = false;

	snprintf(ids, sizeof ids, "%s", test->ids);
	for (char *id = strtok_r(ids, " ", &save); id; id = strtok_r(NULL, " ", &save))
		any |= is_chosen(id, test->name);
	return any;
}

static bool is_done(const struct test *test, const char *resume)
{
	FILE *f = resume ? fopen(resume, "r") : NULL;
	char line[300], name[300];
	bool found = false;

	snprintf(name, sizeof name, "%s %s\n", test->ids, test->name);
	while (f && !found && fgets(line, sizeof line, f))
		found = !strcmp(line, name);
	if (f)
		fclose(f);
	return found;
}

/* Removes the file if the libraries are newer than it. */
static void forget_if_old(const char *resume)
{
	struct stat done, library;

	if (!stat(resume, &done) && !stat(provider_path(), &library) && done.st_mtime < library.st_mtime)
		unlink(resume);
}

static struct {
	const char *resume, *one;
	double seconds, sample;
	int jobs;
} asked = { .jobs = 2 };

static void one_of(const struct test *test)
{
	struct run clean;

	for (int k = 0; k < KINDS; k++) {
		size_t length = strlen(kinds[k].name);

		if (!strncmp(asked.one, kinds[k].name, length) && asked.one[length] == ':' &&
		    measure(test, &clean))
			try(test, &kinds[k], (unsigned)atoi(asked.one + length + 1), &clean);
	}
}

/* Each lane has a network of its own, where no other program takes a port that was just freed. */
static _Noreturn void lane(int which)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	own_network();
	output = memfd_create("statements-output", MFD_CLOEXEC);
	run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (run == MAP_FAILED || report == MAP_FAILED)
		exit(2);
	fault_tell(&run->page);
	sequence = ((uint64_t)options.seed << 16) + (unsigned)which + 1;
	while (now() < end_of_time) {
		int i = asked.sample ? (int)any_below((unsigned)n_tests) : sums->next++;

		if (i >= n_tests)
			break;
		if (!wanted(tests[i]) || is_done(tests[i], asked.resume))
			continue;
		if (asked.one)
			one_of(tests[i]);
		else if (asked.sample)
			some_of(tests[i]);
		else
			all_of(tests[i], asked.resume);
	}
	exit(0);
}

static int usage(void)
{
	fputs("usage: statements [--only LIST] [--except LIST] [--kinds LIST] [--one KIND:N]\n"
	      "       [--sample SECONDS] [--seed N] [--jobs N] [--seconds S] [--resume FILE] [--verbose]\n"
	      "kinds: alloc system device, and alloc-on and so on: all later calls fail too\n", stderr);
	return 2;
}

static void choose_kinds(const char *list)
{
	char padded[200], name[40];

	snprintf(padded, sizeof padded, ",%s,", list);
	for (int k = 0; k < KINDS; k++) {
		snprintf(name, sizeof name, ",%s,", kinds[k].name);
		kind_chosen[k] = strstr(padded, name) != NULL;
	}
}

static bool understood(int argc, char **argv)
{
	static const struct option known[] = {
		{ "only", 1, NULL, 'o' }, { "except", 1, NULL, 'x' }, { "kinds", 1, NULL, 'k' },
		{ "one", 1, NULL, '1' }, { "sample", 1, NULL, 'p' }, { "seed", 1, NULL, 's' },
		{ "jobs", 1, NULL, 'j' }, { "seconds", 1, NULL, 't' }, { "resume", 1, NULL, 'r' },
		{ "verbose", 0, NULL, 'v' }, { 0 },
	};

	for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;)
		switch (c) {
		case 'o': choose(optarg); break;
		case 'x': except(optarg); break;
		case 'k': choose_kinds(optarg); break;
		case '1': asked.one = optarg; break;
		case 'p': asked.sample = atof(optarg); break;
		case 's': options.seed = (uint32_t)strtoul(optarg, NULL, 0); break;
		case 'j': asked.jobs = atoi(optarg); break;
		case 't': asked.seconds = atof(optarg); break;
		case 'r': asked.resume = optarg; break;
		case 'v': verbose = true; break;
		default: return false;
		}
	return optind == argc && asked.jobs > 0 && asked.jobs <= MAX_JOBS;
}

int main(int argc, char **argv)
{
	double begin = now();
	int status, bad = 0;

	options.seed = (uint32_t)time(NULL) * 31 + (uint32_t)getpid();
	options.ia = FAULT_IA;
	if (!understood(argc, argv))
		return usage();
	setvbuf(stdout, NULL, _IOLBF, 0);
	sums = mmap(NULL, sizeof *sums, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sums == MAP_FAILED)
		return 2;
	if (asked.resume)
		forget_if_old(asked.resume);
	end_of_time = begin + (asked.sample ? asked.sample : asked.seconds ? asked.seconds : 1e9);
	make_conf(FAULT_IA, provider_path(), "lo 0");
	/* Stays loaded, so that addresses in it can be printed. */
	if (!dlopen(provider_path(), RTLD_NOW | RTLD_LOCAL)) {
		fprintf(stderr, "statements: %s\n", dlerror());
		return 2;
	}
	keep_objects();
	for (int i = 0; i < asked.jobs; i++)
		if (!__real_fork())
			lane(i);
	while (wait(&status) > 0)
		bad |= status;
	for (int i = sums->next; !asked.sample && i < n_tests; i++)	/* the time was over */
		sums->unfinished += wanted(tests[i]) && !is_done(tests[i], asked.resume);
	if (asked.sample)
		printf("seed %u\n", options.seed);
	printf("%u tests, %u faults told, %u made good; %u left threads, which hid what else they left; "
	       "%u tests not finished  %.1f s\n", sums->tests, sums->told, sums->made_good, sums->untidied,
	       sums->unfinished, now() - begin);
	printf("%u passed, %u failed\n", sums->passed, sums->failed);
	return bad || sums->failed || sums->unfinished || (!sums->passed && !asked.resume);
}
