/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* calls.c - random DAT calls from several threads, on handles that are live, freed, being freed,
 * or of another kind. Nothing is expected of a call but that it returns, and of all together
 * that no descriptor is left open at the end. Memory errors are for a sanitizer to tell.
 *
 *	calls [--seed N] [--calls N | --seconds N] [--threads N] [--limit SECONDS] [--verbose]
 *
 * --calls counts those of one thread; with --seconds they go on for that time. The seed is printed; it
 * repeats the choices of each thread, though not their interleaving. A thread that is in one call for
 * longer than the limit hangs: the last calls and the stack of each thread are printed. The calls are
 * in calls_objects.c and calls_endpoints.c. */
#include "calls_worker.h"
#include <execinfo.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static unsigned seed, threads = 6, calls = 12000, seconds, limit = 60;
static _Atomic(bool) time_is_up;	/* --seconds have passed */
static bool verbose;
static struct worker workers[MAX_THREADS];

/* --- threads ----------------------------------------------------------------------------------- */

static void random_call(struct worker *w)
{
	static const struct {
		unsigned weight;
		random_call_fn *make;
	} table[] = {
		{ 2, call_ia }, { 4, call_pz }, { 5, call_lmr }, { 4, call_rmr }, { 20, call_evd },
		{ 8, call_cno }, { 16, call_ep }, { 24, call_post }, { 6, call_sp }, { 8, call_cr },
		{ 5, call_srq }, { 2, call_any },
	};
	unsigned total = 0, at;

	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		total += table[i].weight;
	at = roll(w, total);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		if (at < table[i].weight) {
			table[i].make(w, pick_ia(w));
			return;
		}
		at -= table[i].weight;
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	while (seconds ? !time_is_up : w->made < calls)
		random_call(w);
	w->done = true;
	return NULL;
}

/* --- when it goes wrong ------------------------------------------------------------------------- */

static void print_last_calls(void)
{
	for (unsigned i = 0; i < threads; i++) {
		struct worker *w = &workers[i];
		unsigned made = w->made;

		fprintf(stderr, "thread %u, %u calls, %s:", i, made, w->done ? "done" :
			w->since != 0 ? "in the last of" : "after");
		for (unsigned j = made + 1 < LAST_CALLS ? 0 : made + 1 - LAST_CALLS; j <= made; j++)
			if (w->name[j % LAST_CALLS])
				fprintf(stderr, " %s(%p)", w->name[j % LAST_CALLS],
					(void *)w->on[j % LAST_CALLS]);
		fprintf(stderr, "\n");
	}
	fprintf(stderr, "again: --seed %u --calls %u --threads %u\n", seed, calls, threads);
}

static void print_stack(int number)
{
	void *stack[64];
	int n = backtrace(stack, 64);

	(void)number;
	backtrace_symbols_fd(stack, n, 2);
	if (write(2, "\n", 1) < 0)
		_exit(3);
}

static void crashed(int number)
{
	static _Atomic(bool) once;

	signal(number, SIG_DFL);
	if (!atomic_exchange(&once, true)) {
		print_stack(number);
		print_last_calls();
	}
	raise(number);
}

static void hangs(const struct worker *w)
{
	struct timespec moment = { .tv_nsec = 200000000 };

	fprintf(stderr, "thread %u hangs\n", w->number);
	print_last_calls();
	for (unsigned i = 0; i < threads; i++)
		if (!workers[i].done) {
			fprintf(stderr, "thread %u:\n", i);
			pthread_kill(workers[i].thread, SIGUSR2);
			nanosleep(&moment, NULL);	/* for the output's order only */
		}
	_exit(3);
}

/* Until all are done. */
static void watch(void)
{
	struct timespec moment = { .tv_nsec = 20000000 };
	double begun = life_now();
	bool going = true;

	while (going) {
		double now = life_now();

		time_is_up = now - begun >= seconds;
		going = false;
		for (unsigned i = 0; i < threads; i++) {
			double since = workers[i].since;

			going |= !workers[i].done;
			if (since != 0 && now - since > limit)
				hangs(&workers[i]);
		}
		nanosleep(&moment, NULL);
	}
}

static void print_tally(void)
{
	struct worker all = { .number = 0 };

	for (unsigned i = 0; i < threads; i++)
		for (unsigned j = 0; j < NAMES && workers[i].tally[j].name; j++)
			for (unsigned k = 0; k < NAMES; k++)
				if (!all.tally[k].name ||
				    !strcmp(all.tally[k].name, workers[i].tally[j].name)) {
					all.tally[k].name = workers[i].tally[j].name;
					all.tally[k].made += workers[i].tally[j].made;
					all.tally[k].succeeded += workers[i].tally[j].succeeded;
					break;
				}
	for (unsigned k = 0; k < NAMES && all.tally[k].name; k++)
		printf("%-36s %8u %8u\n", all.tally[k].name, all.tally[k].made,
		       all.tally[k].succeeded);
}

static unsigned number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (!*text || *end) {
		fprintf(stderr, "calls: %s is no number\n", text);
		exit(2);
	}
	return (unsigned)n;
}

static void arguments(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' }, { "calls", required_argument, NULL, 'c' },
		{ "seconds", required_argument, NULL, 'S' },
		{ "threads", required_argument, NULL, 't' }, { "limit", required_argument, NULL, 'l' },
		{ "verbose", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 } };
	int c;

	seed = 20;	/* `make check` repeats itself */
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 's': seed = number(optarg); break;
		case 'c': calls = number(optarg); break;
		case 'S': seconds = number(optarg); break;
		case 't': threads = number(optarg); break;
		case 'l': limit = number(optarg); break;
		case 'v': verbose = true; break;
		default: exit(2);
		}
	if (!threads || threads > MAX_THREADS) {
		fprintf(stderr, "calls: 1 to %d threads\n", MAX_THREADS);
		exit(2);
	}
}

static void catch_signals(void)
{
	void *stack[1];

	backtrace(stack, 1);	/* loads what it needs */
	signal(SIGUSR2, print_stack);
	signal(SIGABRT, crashed);
	if (!SANITIZED) {
		signal(SIGSEGV, crashed);
		signal(SIGBUS, crashed);
	}
}

int main(int argc, char **argv)
{
	unsigned made = 0, succeeded = 0;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE anchor;
	int descriptors;

	setvbuf(stdout, NULL, _IOLBF, 0);
	arguments(argc, argv);
	if (seconds)
		printf("seed %u, %u threads, %u seconds\n", seed, threads, seconds);
	else
		printf("seed %u, %u threads, %u calls each\n", seed, threads, calls);
	catch_signals();
	life_entry(LIFE_IA, "libdaplsoft.so.2", "lo 0");
	setenv("DAPL_DBG_TYPE", "0", 1);	/* messages about broken connections are not wanted here */
	/* What calls return that are in progress when the last IA closes: dapl(7). */
	if (dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &async, &anchor) != DAT_SUCCESS) {
		fprintf(stderr, "calls: cannot open " LIFE_IA "\n");
		return 1;
	}
	descriptors = open_descriptors();
	for (unsigned i = 0; i < IAS; i++) {
		DAT_EVD_HANDLE none = DAT_HANDLE_NULL;
		DAT_IA_HANDLE ia;

		if (dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &none, &ia) == DAT_SUCCESS)
			handles[i][IA][0] = (uintptr_t)ia;
	}
	for (unsigned i = 0; i < threads; i++) {
		workers[i].number = i;
		workers[i].random = seed * 31 + i;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	watch();
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		made += workers[i].made;
		succeeded += workers[i].succeeded;
	}
	for (unsigned i = 0; i < IAS; i++)
		dat_ia_close((DAT_IA_HANDLE)handles[i][IA][0], DAT_CLOSE_ABRUPT_FLAG);
	if (verbose)
		print_tally();
	printf("%u calls, %u of them succeeded\n", made, succeeded);
	/* connections that were abandoned end in the background */
	for (int i = 0; i < 10000 && open_descriptors() != descriptors; i++)
		usleep(1000);
	if (open_descriptors() != descriptors) {
		printf("%d descriptors are open, %d were before: %s\n", open_descriptors(), descriptors,
		       what_is_open());
		return 1;
	}
	return dat_ia_close(anchor, DAT_CLOSE_GRACEFUL_FLAG) == DAT_SUCCESS ? 0 : 1;
}
