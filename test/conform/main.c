/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* main.c - chooses tests and runs each in a process of its own, under a time limit: a crash or a hang fails
 * that test only. */
#include "conform.h"
#include "run.h"
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct options options = { .limit = 60 };
struct report *report;

static int passed, failed, skipped;

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* --- one test ------------------------------------------------------------------------------ */

_Noreturn void end_test(enum verdict verdict)
{
	if (getpid() != report->process)
		kill(0, SIGKILL);	/* a second process decides for the whole test */
	_exit(verdict == FAILED);
}

bool wait_is_hopeless(void)
{
	return false;
}

static _Noreturn void run_test(const struct test *test, int output)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!options.verbose) {
		dup2(output, 1);
		dup2(output, 2);
	}
	report->process = getpid();
	reached(test->file, test->line, "the beginning");
	test->run(test->arg);
	report->closing = true;
	close_ia();
	enum verdict undecided = UNDECIDED;
	atomic_compare_exchange_strong(&report->verdict, &undecided, PASSED);
	exit(0);	/* destructors run, and leaks are looked for when so built */
}

/* Returns the wait status of the process, or -1 if it was killed at the time limit. */
static int reap(pid_t pid, double limit)
{
	double end = now() + limit;
	sigset_t child;
	int status;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	while (waitpid(pid, &status, WNOHANG) != pid) {
		double left = end - now();
		if (left <= 0) {
			kill(-pid, SIGKILL);
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		struct timespec t = { (time_t)left, (long)((left - (time_t)left) * 1e9) };
		sigtimedwait(&child, NULL, &t);
	}
	kill(-pid, SIGKILL);	/* processes that it started and left */
	return status;
}

static const char *place(void)
{
	static char text[400];

	snprintf(text, sizeof(text), "%s:%d %.200s", base_name(report->file), report->line,
		 report->what);
	return text;
}

static void print_output(int output)
{
	FILE *f = fdopen(dup(output), "r");
	char line[400];

	if (!f)
		return;
	fflush(stdout);
	rewind(f);
	for (int i = 0; i < 60 && fgets(line, sizeof(line), f); i++)
		fprintf(stderr, "    | %s%s", line, strchr(line, '\n') ? "" : "\n");
	fclose(f);
}

static void judge(const struct test *test, int status, int output)
{
	enum verdict verdict = report->verdict;
	const char *text = report->text, *where = place();
	char seed[40] = "", told[1400] = "";

	if (report->by_chance)
		snprintf(seed, sizeof(seed), " (seed %u)", options.seed);
	if (verdict == FAILED) {
		snprintf(told, sizeof(told), "%s [%s]", text, where);
	} else if (status == -1) {
		verdict = FAILED;
		snprintf(told, sizeof(told), "expected an end, found none in %.0f s [%s]",
			 options.limit, where);
	} else if (WIFSIGNALED(status)) {
		verdict = FAILED;
		snprintf(told, sizeof(told), "expected an end, found a crash by %s [%s]",
			 strsignal(WTERMSIG(status)), where);
	} else if (verdict == PASSED && WEXITSTATUS(status)) {
		verdict = FAILED;
		snprintf(told, sizeof(told), "expected exit status 0 of a test that passed, found %d",
			 WEXITSTATUS(status));
	} else if (verdict == UNDECIDED) {
		verdict = FAILED;
		snprintf(told, sizeof(told), "expected an end, found exit status %d [%s]",
			 WEXITSTATUS(status), where);
	}
	char ids[100], *save;
	snprintf(ids, sizeof(ids), "%s", test->ids);
	for (char *id = strtok_r(ids, " ", &save); id; id = strtok_r(NULL, " ", &save)) {
		if (!is_chosen(id, test->name))
			continue;
		if (verdict == PASSED) {
			printf("ok %s %s%s\n", id, test->name, seed);
			passed++;
		} else if (verdict == SKIPPED) {
			printf("skip %s %s\n", id, text);
			skipped++;
		} else {
			printf("FAIL %s %s: %s%s%s\n", id, test->name,
			       report->closing && report->verdict != PASSED ? "after the test, closing the IA: " : "",
			       told, seed);
			failed++;
		}
	}
	fflush(stdout);
	if (verdict == FAILED && !options.verbose)
		print_output(output);
}

static void run_one(int index)
{
	const struct test *test = tests[index];
	int output = memfd_create("conform-output", MFD_CLOEXEC);
	sigset_t child;

	memset(report, 0, sizeof(*report));
	report->index = index;
	reached(test->file, test->line, "the beginning");
	fflush(stdout);
	pid_t pid = fork();
	if (pid < 0) {
		perror("conform: fork");
		exit(2);
	}
	if (!pid) {
		sigemptyset(&child);
		sigaddset(&child, SIGCHLD);
		sigprocmask(SIG_UNBLOCK, &child, NULL);
		run_test(test, output);
	}
	setpgid(pid, pid);
	double begin = now();
	int status = reap(pid, options.limit);
	judge(test, status, output);
	if (options.verbose)
		fprintf(stderr, "    | %.3f s\n", now() - begin);
	close(output);
}

static void open_and_close(const void *arg __attribute__((unused)))
{
	ia();
}

/* Without an IA no statement means anything. */
static void probe(void)
{
	static struct test opening = { "", "opening", open_and_close, NULL, __FILE__, __LINE__ };
	int output = memfd_create("conform-output", MFD_CLOEXEC);
	pid_t pid = fork();

	if (!pid)
		run_test(&opening, output);
	int status = reap(pid, options.limit);
	if (status || report->verdict == FAILED) {
		fprintf(stderr, "conform: cannot work with IA \"%s\": %s\n", options.ia,
			report->text[0] ? report->text : status == -1 ? "it hangs" : "it crashes");
		print_output(output);
		exit(2);
	}
	close(output);
}

static int help(void)
{
	fputs("usage: conform --ia NAME [options]\n"
	      "  --ia NAME       the interface adapter to test, as dat.conf names it\n"
	      "  --addr ADDRESS  connect to this address (default: what dat_ia_query says)\n"
	      "  --only LIST     statements (EVD-7), areas (EVD) or shell patterns, by commas\n"
	      "  --except LIST   not these, named the same way\n"
	      "  --limit S       seconds for one statement (default 60)\n"
	      "  --seed N        repeat the random choices of an earlier run\n"
	      "  --types-only    compare the types of return values only: no subtype, no class\n"
	      "  --list          print the statements, do not test\n"
	      "  --verbose       let the provider's output through, tell times\n", stdout);
	return 0;
}

static int usage_error(const char *text)
{
	fprintf(stderr, "conform: %s (try --help)\n", text);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{ "ia", 1, NULL, 'i' }, { "addr", 1, NULL, 'a' }, { "only", 1, NULL, 'o' },
		{ "except", 1, NULL, 'x' },
		{ "limit", 1, NULL, 'l' }, { "seed", 1, NULL, 's' }, { "list", 0, NULL, 'L' },
		{ "types-only", 0, NULL, 't' }, { "verbose", 0, NULL, 'v' }, { "help", 0, NULL, 'h' }, { 0 },
	};
	bool list = false;
	sigset_t child;

	options.seed = (uint32_t)time(NULL) * 31 + getpid();
	for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;)
		switch (c) {
		case 'i': options.ia = optarg; break;
		case 'a': options.address = optarg; break;
		case 'o': choose(optarg); break;
		case 'x': except(optarg); break;
		case 'l': options.limit = atof(optarg); break;
		case 's': options.seed = strtoul(optarg, NULL, 0); break;
		case 'L': list = true; break;
		case 't': options.types_only = true; break;
		case 'v': options.verbose = true; break;
		case 'h': return help();
		default: return 2;	/* getopt_long() has reported it */
		}
	if (optind != argc)
		return usage_error("unexpected argument");
	if (!list && !options.ia)
		return usage_error("needs --ia NAME");
	if (options.limit <= 0)
		return usage_error("--limit needs a number of seconds");
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report == MAP_FAILED) {
		perror("conform: mmap");
		return 2;
	}
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	if (!list)
		probe();
	for (int i = 0; i < n_tests; i++) {
		bool wanted = false;
		char ids[100], *save;
		snprintf(ids, sizeof(ids), "%s", tests[i]->ids);
		for (char *id = strtok_r(ids, " ", &save); id; id = strtok_r(NULL, " ", &save)) {
			bool this_one = is_chosen(id, tests[i]->name);
			if (this_one && list)
				printf("%s %s\n", id, tests[i]->name);
			wanted |= this_one;
		}
		if (wanted && !list)
			run_one(i);
	}
	if (list)
		return 0;
	printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
	return failed ? 1 : 0;
}
