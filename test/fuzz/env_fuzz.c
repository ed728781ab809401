/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* env_fuzz.c - any bytes as dapl.conf, as values of the environment variables of variables.h, and as
 * values that a running program is told. Each value is a number of its range or the default; a reader
 * of this file, which shares no code with theirs, says which. A message is one line of printable text.
 *
 * An input is pieces that end with a zero byte. The first is dapl.conf. Of each other one the first byte
 * selects a variable, or (from 128 on) a parameter that is set while the program runs. */
#include "common/log.h"
#include "common/parameters.h"
#include "common/trace.h"
#include "common/variables.h"
#include "dapl/core/base/settings.h"
#include "dapl/core/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SAID_MAX = 1 << 20, PIECE_MAX = 4000 };	/* bytes */

static const char *const names[] = {
#define X(name, library, min, max, by_default, meaning) #name,
	ENVIRONMENT_VARIABLES(X)
#undef X
};
enum { NAMES = sizeof names / sizeof *names };

static char root[64];
static int said, terminal, conf;	/* memory files of messages and dapl.conf */

static void demand(bool good, const char *what, const char *name)
{
	if (good)
		return;
	fprintf(stderr, "env_fuzz: %s: %s\n", name, what);
	abort();
}

/* --- the other reader ---------------------------------------------------------------------- */

static int digit_of(char c, unsigned base)
{
	const char *digits = "0123456789abcdef", *at;

	if (c >= 'A' && c <= 'F')
		c += 'a' - 'A';
	at = c ? strchr(digits, c) : NULL;
	return at && at - digits < (long)base ? (int)(at - digits) : -1;
}

static bool read_number(const char *text, unsigned long min, unsigned long max, long *value)
{
	unsigned base = text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10;
	unsigned __int128 number = 0;

	text += base == 16 ? 2 : 0;
	if (!*text)
		return false;
	for (; *text; text++) {
		int digit = digit_of(*text, base);

		if (digit < 0)
			return false;
		number = number > max ? number : number * base + (unsigned)digit;
	}
	*value = (long)number;
	return number >= min && number <= max;
}

/* --- messages ------------------------------------------------------------------------------ */

static void listen_to_messages(void)
{
	demand(!ftruncate(said, 0) && lseek(said, 0, SEEK_SET) == 0, "no file", "messages");
	fflush(NULL);
	dup2(said, STDERR_FILENO);
	dup2(said, STDOUT_FILENO);
}

/* "dat: " or "dapl: ", printable text, a newline. */
static void check_messages(void)
{
	static char text[SAID_MAX + 1];
	ssize_t n = pread(said, text, SAID_MAX, 0);
	char *rest = text, *line;

	dup2(terminal, STDERR_FILENO);
	dup2(terminal, STDOUT_FILENO);
	demand(n >= 0 && strnlen(text, n) == (size_t)n, "a zero byte", "messages");
	text[n] = '\0';
	demand(!n || text[n - 1] == '\n', "the last line does not end", "messages");
	while ((line = strsep(&rest, "\n")) != NULL && rest) {
		demand(!strncmp(line, "dat: ", 5) || !strncmp(line, "dapl: ", 6), "a line without name",
		       "messages");
		for (; *line; line++)
			demand((unsigned char)*line >= ' ' && *line != 0x7f, "a control character",
			       "messages");
	}
}

/* --- what must hold ------------------------------------------------------------------------ */

static bool is_state(const char *name)
{
	return !strcmp(name, "DAPL_TRACE_LEVEL") || !strcmp(name, "DAPL_DBG_TYPE");
}

static void check_value(const struct dapl_parameter *p)
{
	enum parameter_origin origin;
	long value = dapl_settings_value(p, &origin), wanted;
	const char *text = getenv(p->name);

	demand(value == p->by_default || (value >= (long)p->min && value <= (long)p->max),
	       "outside its range", p->name);
	if (is_state(p->name) || origin == PARAMETER_SET || !text)
		return;
	if (!read_number(text, p->min, p->max, &wanted))
		wanted = p->by_default;
	demand(value == wanted, "not what the environment says", p->name);
}

/* The copy that the libraries use. */
static void check_copies(void)
{
	const struct {
		const char *name;
		long value;
	} copies[] = {
		{ "DAPL_WR_MAX", (long)dapl_settings.wr_max },
		{ "DAPL_ACK_TIMER", dapl_settings.ack_timer },
		{ "DAPL_ACK_RETRY", (long)dapl_settings.ack_retry },
		{ "DAPL_CM_TOS", dapl_settings.tos },
		{ "DAPL_DSCP_LOW_LATENCY", (long)dapl_settings.dscp_low_latency },
	};
	enum parameter_origin origin;
	struct dapl_parameter p;

	for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
		demand(dapl_settings_find(copies[i].name, &p), "unknown", copies[i].name);
		demand(dapl_settings_value(&p, &origin) == copies[i].value,
		       "used with another value than told", copies[i].name);
	}
}

static void check_values(void)
{
	struct dapl_parameter p;

	for (unsigned i = 0; dapl_settings_at(i, &p); i++)
		check_value(&p);
	check_copies();
}

/* --- inputs -------------------------------------------------------------------------------- */

static void set_parameter(uint8_t which, const char *text)
{
	enum parameter_origin origin;
	struct dapl_parameter p;
	char why[160] = "";
	unsigned count = 0;
	bool good, done;
	long wanted = 0;

	while (dapl_settings_at(count, &p))
		count++;
	dapl_settings_at(which % count, &p);
	good = p.when != PARAMETER_NEVER &&
	       (!strcmp(text, "default") || read_number(text, p.min, p.max, &wanted));
	done = dapl_settings_set(p.name, text, why, sizeof why);
	demand(done == good, "set or refused wrongly", p.name);
	demand(done || *why, "refused without a reason", p.name);
	if (done && strcmp(text, "default"))
		demand(dapl_settings_value(&p, &origin) == wanted, "has not the value that was set",
		       p.name);
}

static void write_conf(const char *text)
{
	ssize_t length = (ssize_t)strlen(text);

	demand(!ftruncate(conf, 0) && pwrite(conf, text, length, 0) == length, "cannot be written",
	       "dapl.conf");
}

/* Not DAT_TEST_ROOT, where dapl.conf is. Messages to the system's log would be those of real programs. */
static void take_variable(const char *piece)
{
	const char *name = names[(uint8_t)piece[0] % NAMES];
	long dest;

	if (!strcmp(name, "DAT_TEST_ROOT"))
		return;
	if (strstr(name, "_DBG_DEST") && read_number(piece + 1, 2, 5, &dest))
		return;
	setenv(name, piece + 1, 1);
}

static void forget_all(void)
{
	for (int i = 0; i < NAMES; i++) {
		unsetenv(names[i]);
		parameter_unset(names[i]);
	}
	setenv("DAT_TEST_ROOT", root, 1);
}

static void make_conf(void)
{
	char path[4096], target[32];

	snprintf(path, sizeof path, "%s", parameters_file());
	for (char *at = path + strlen(root); (at = strchr(at + 1, '/'));) {
		*at = '\0';
		mkdir(path, 0700);
		*at = '/';
	}
	conf = memfd_create("dapl.conf", MFD_CLOEXEC);
	snprintf(target, sizeof target, "/proc/self/fd/%d", conf);
	demand(conf >= 0 && !fchmod(conf, 0600) && !symlink(target, path), "cannot be made", path);
}

static void remove_all(void)
{
	char path[4096], *end;

	forget_all();
	snprintf(path, sizeof path, "%s", parameters_file());
	unlink(path);
	while ((end = strrchr(path, '/')) != NULL && end - path >= (long)strlen(root)) {
		*end = '\0';
		rmdir(path);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	strcpy(root, "/tmp/env_fuzz-XXXXXX");
	said = memfd_create("messages", MFD_CLOEXEC);
	terminal = dup(STDERR_FILENO);
	demand(mkdtemp(root) && said >= 0 && terminal >= 0, "cannot be made", root);
	demand(dapl_device_ops.parameters, "has no parameters", dapl_device_ops.name);
	forget_all();
	make_conf();
	atexit(remove_all);
	return 0;
}

/* The piece that begins at *at, in *piece; false: there are no more. */
static bool next_piece(const uint8_t **at, size_t *left, char piece[PIECE_MAX])
{
	size_t length = strnlen((const char *)*at, *left), kept = length;

	if (!*left)
		return false;
	if (kept >= PIECE_MAX)
		kept = PIECE_MAX - 1;
	memcpy(piece, *at, kept);
	piece[kept] = '\0';
	length += length < *left;
	*at += length;
	*left -= length;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char sets[16][PIECE_MAX], piece[PIECE_MAX];
	int count = 0;

	forget_all();
	if (!next_piece(&data, &size, piece))
		return 0;
	write_conf(piece);
	while (next_piece(&data, &size, piece))
		if (!((uint8_t)piece[0] & 128))
			take_variable(piece);
		else if (count < 16)
			strcpy(sets[count++], piece);
	listen_to_messages();
	log_init("dat", "DAT_DBG_TYPE", NULL, "DAT_DBG_DEST", 3);
	trace_init("DAT_TRACE_LEVEL");
	log_init("dapl", "DAPL_DBG_TYPE", "DAPL_DBG_LEVEL", "DAPL_DBG_DEST", 3);
	trace_init("DAPL_TRACE_LEVEL");
	dapl_settings_read();
	check_messages();
	check_values();
	for (int i = 0; i < count; i++) {
		listen_to_messages();
		set_parameter((uint8_t)sets[i][0] & 127, sets[i] + 1);
		check_messages();
	}
	check_values();
	return 0;
}
