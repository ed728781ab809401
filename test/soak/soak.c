/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* soak.c - options, random numbers, figures, and what is held (soak.h). */
#include "soak.h"
#include "test/random.h"
#include <dirent.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FIGURES = 16 << 10 }; /* bytes for the text of all figures */

unsigned soak_seed;
static unsigned rounds;
static double seconds;
static char *figures;

unsigned soak_rounds(unsigned short_form)
{
	return rounds ? rounds : short_form;
}

double soak_seconds(double short_form)
{
	return seconds > 0 ? seconds : short_form;
}

void soak_figure(const char *format, ...)
{
	size_t used = strlen(figures);
	va_list args;

	va_start(args, format);
	used += (size_t)snprintf(figures + used, FIGURES - used, "# ");
	if (used < FIGURES)
		vsnprintf(figures + used, FIGURES - used, format, args);
	va_end(args);
	used = strlen(figures);
	snprintf(figures + used, FIGURES - used, "\n");
}

/* --- random numbers ---------------------------------------------------------------------- */

uint64_t soak_stream(uint64_t stream)
{
	uint64_t x = ((uint64_t)soak_seed << 32 | 0x9e3779b9) + stream * 0xbf58476d1ce4e5b9ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (x ^ x >> 31) | 1;
}

uint64_t soak_random(uint64_t *state)
{
	return random_next(state) * 0x2545f4914f6cdd1dull >> 16;
}

unsigned soak_below(uint64_t *state, unsigned n)
{
	return (unsigned)(soak_random(state) % n);
}

void *soak_shared(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		fail("no shared memory of %zu bytes", size);
	return at;
}

/* --- what is held ---------------------------------------------------------------------------- */

static int lines_with(const char *path, const char *one, const char *other)
{
	FILE *file = fopen(path, "re");
	char line[600];
	int n = 0;

	while (file && fgets(line, sizeof line, file))
		n += strstr(line, one) || strstr(line, other);
	if (file)
		fclose(file);
	return n;
}

/* The tenth word of a line of /proc/net/tcp is the inode; 0: the kernel alone still has the connection. */
static int tcp_sockets(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned long inode;
	char line[600];
	int n = 0;

	while (file && fgets(line, sizeof line, file))
		n += sscanf(line, " %*u: %*s %*s %*x %*s %*s %*s %*u %*u %lu", &inode) == 1 && inode != 0;
	if (file)
		fclose(file);
	return n;
}

static int entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

struct soak_held soak_hold(void)
{
	return (struct soak_held){
		.descriptors = open_descriptors(),
		.threads = count_threads(NULL),
		.mappings = lines_with("/proc/self/maps", "memfd:", "/dev/shm/"),
		.sockets = tcp_sockets("/proc/net/tcp") + tcp_sockets("/proc/net/tcp6") +
			   lines_with("/proc/net/unix", "@", "@"),
		.files = entries("/dev/shm"),
	};
}

void soak_expect_held(const struct soak_held *most, const char *when, void (*meanwhile)(void))
{
	double begin = life_now();
	struct soak_held now;

	do {
		now = soak_hold();
		if (now.descriptors <= most->descriptors && now.threads <= most->threads &&
		    now.mappings <= most->mappings && now.sockets <= most->sockets &&
		    now.files <= most->files)
			return;
		if (meanwhile)
			meanwhile();
		usleep(5000);
	} while (life_now() - begin < MOMENT / 1e6 * SLOWER);
	fail("seed %u, %s: %d descriptors, %d threads, %d mappings, %d sockets, %d files in "
	     "/dev/shm; "
	     "expected at most %d, %d, %d, %d, %d; open:%s",
	     soak_seed, when, now.descriptors, now.threads, now.mappings, now.sockets, now.files,
	     most->descriptors, most->threads, most->mappings, most->sockets, most->files,
	     what_is_open());
}

long soak_resident(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long size, resident = 0;

	if (file && fscanf(file, "%ld %ld", &size, &resident) != 2)
		resident = 0;
	if (file)
		fclose(file);
	return resident * sysconf(_SC_PAGESIZE);
}

/* --- options ------------------------------------------------------------------------------------ */

static _Noreturn void usage(const char *program, int status)
{
	fprintf(status ? stderr : stdout,
		"usage: %s [--seed N] [--rounds N] [--seconds N] [CASE ...]\n", program);
	exit(status);
}

static double number(const char *program, const char *option, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || value < 0 || value > 4e9) {
		fprintf(stderr, "%s: --%s %s: expected a number from 0 to 4000000000\n", program,
			option, text);
		exit(2);
	}
	return value;
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "seconds", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c, index;

	while ((c = getopt_long(argc, argv, "h", options, &index)) != -1)
		switch (c) {
		case 's': soak_seed = (unsigned)number(argv[0], "seed", optarg); break;
		case 'r': rounds = (unsigned)number(argv[0], "rounds", optarg); break;
		case 't': seconds = number(argv[0], "seconds", optarg); break;
		case 'h': usage(argv[0], 0);
		default: usage(argv[0], 2);
		}
}

int soak_main(int argc, char **argv, const struct life_case *cases, int n)
{
	const char *end_of_a_week = "604800"; /* seconds: stalls are found by the cases */
	int status;

	soak_seed = (unsigned)time(NULL) ^ (unsigned)getpid() << 12;
	parse(argc, argv);
	printf("# seed %u\n", soak_seed);
	fflush(stdout);
	if (rounds || seconds > 0)
		setenv("LIFE_LIMIT", end_of_a_week, 0);
	figures = mmap(NULL, FIGURES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	argv[optind - 1] = argv[0];
	status = life_main(argc - optind + 1, argv + optind - 1, cases, n);
	fputs(figures, stdout);
	return status;
}
