/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* options.c - see options.h. A letter may have one meaning for each test, so all letters are collected
 * before they are interpreted. */
#include "options.h"
#include "../cli.h"
#include "../version.h"
#include "../ia_choice.h"
#include "channel.h"
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which tests take an option. */
static const struct {
	char letter;
	const char *modes;
} letters[] = {
	{ 'D', "SQTPLF" }, { 'n', "SQTPLF" }, { 'd', "SQTPLF" }, { 'R', "SQTPLF" }, { 's', "QTPF" },
	{ 't', "T" }, { 'w', "TL" }, { 'i', "TP" }, { 'Q', "T" }, { 'V', "T" }, { 'P', "T" }, { 'r', "T" },
	{ 'm', "PL" }, { 'p', "P" }, { 'f', "F" },
};

static const struct {
	const char *name;
	DAT_QOS qos;
} qualities[] = {
	{ "BE", DAT_QOS_BEST_EFFORT }, { "HT", DAT_QOS_HIGH_THROUGHPUT }, { "LL", DAT_QOS_LOW_LATENCY },
	{ "EC", DAT_QOS_ECONOMY }, { "PM", DAT_QOS_PREMIUM },
};

struct given {
	const char *value[128];		/* of a letter; "" for a flag */
	unsigned debug;
};

static unsigned number(const struct given *g, char letter, unsigned otherwise, unsigned long min, unsigned long max)
{
	char name[] = { '-', letter, '\0' };
	const char *text = g->value[(int)letter];

	return text ? (unsigned)cli_number(name, text, min, max) : otherwise;
}

static DAT_QOS quality(const char *text)
{
	for (size_t i = 0; i < sizeof qualities / sizeof *qualities; i++)
		if (!text || !strcmp(text, qualities[i].name))
			return qualities[i].qos;
	usage_error("-R: \"%s\" found, BE, HT, LL, EC or PM expected", text);
}

/* --- operations --------------------------------------------------------------- */

static bool is_number(const char *word)
{
	return word && isdigit((unsigned char)word[0]);
}

static bool transfer_of(const char *word, enum transfer *transfer)
{
	static const char *const names[] = {
		[TRANSFER_READ] = "RR", [TRANSFER_WRITE] = "RW", [TRANSFER_SEND] = "SR",
	};

	for (int i = 0; i < 3; i++)
		if (word && !strcmp(word, names[i])) {
			*transfer = (enum transfer)i;
			return true;
		}
	return false;
}

/* Parses the transfer, and the size and number of segments, which have defaults. `expected` is the list of transfers
 * that the test has. Returns the address of the next word. */
static char **parse_transfer(char **word, struct op *op, const char *expected)
{
	op->size = 4096;
	op->segments = 1;
	if (!transfer_of(*word, &op->transfer) || !strstr(expected, *word)) {
		if (!*word)
			usage_error("the operation is missing, %s expected", expected);
		usage_error("operation: \"%s\" found, %s expected", *word, expected);
	}
	word++;
	if (is_number(*word))
		op->size = (unsigned)cli_number("size of a segment", *word++, 1, 1 << 30);
	if (is_number(*word))
		op->segments = (unsigned)cli_number("number of segments", *word++, 1, MAX_SEGMENTS);
	return word;
}

static void parse_ops(char **word, struct transaction *t)
{
	unsigned sends[2] = { 0 }, reaped[2] = { 0 };

	while (*word) {
		struct op *op = &t->op[t->ops];

		if (t->ops == WIRE_OPS)
			usage_error("operations: more than %d found", WIRE_OPS);
		op->by_server = !strcmp(*word, "server");
		if (!op->by_server && strcmp(*word, "client"))
			usage_error("operation: \"%s\" found, client or server expected", *word);
		word = parse_transfer(word + 1, op, "SR, RR or RW");
		if (*word && !strcmp(*word, "-f")) {
			op->reap_on_receive = true;
			reaped[op->by_server]++;
			word++;
			if (op->transfer != TRANSFER_SEND)
				usage_error("operation %u: -f is for SR only", t->ops);
		}
		sends[op->by_server] += op->transfer == TRANSFER_SEND;
		t->ops++;
	}
	if (reaped[0] != reaped[1])
		usage_error("-f: %u client and %u server operations found, pairs expected", reaped[0], reaped[1]);
	if (t->validate) {
		if (!t->ops)
			usage_error("no operations, such as: client SR 4096 1 server SR 4096 1");
		return;
	}
	if (!sends[0] || !sends[1])
		usage_error("operations: %u client SR and %u server SR found, at least one of each expected", sends[0],
			    sends[1]);
}

/* --- tests -------------------------------------------------------------------- */

static void interpret_transaction(struct options *o, const struct given *g, char **words)
{
	struct transaction *t = &o->transaction;

	t->iterations = number(g, 'i', 1000, 1, 1000000000);
	t->threads = number(g, 't', 1, 1, 1000);
	t->eps = number(g, 'w', 1, 1, 1000);
	t->validate = g->value['V'];
	t->poll = g->value['P'];
	t->reserved = g->value['r'];
	t->debug = o->debug;
	t->qos = o->qos;
	t->qualifier = o->qualifier;
	o->cno = g->value['Q'];
	if (o->cno && t->poll)
		usage_error("-Q and -P: one of the two");
	parse_ops(words, t);
}

static void interpret_performance(struct options *o, const struct given *g, char **words)
{
	struct performance *p = &o->performance;
	const char *mode = g->value['m'] ? g->value['m'] : "b";

	if (strcmp(mode, "b") && strcmp(mode, "p"))
		usage_error("-m: \"%s\" found, b or p expected", mode);
	p->poll = mode[0] == 'p';
	p->iterations = number(g, 'i', 1000, 1, 1000000000);
	p->pipeline = number(g, 'p', UINT32_MAX, 0, 1000000);
	p->debug = o->debug;
	p->qos = o->qos;
	p->qualifier = o->qualifier;
	words = parse_transfer(words, &p->op, "RR or RW");
	if (*words)
		usage_error("\"%s\" found after the operation", *words);
}

static void interpret(struct options *o, const struct given *g, char **words)
{
	struct cli_server server = { .host = NULL };

	o->device = ia_choose("-D", g->value['D']);
	if (g->value['s'])
		server = cli_server("-s", g->value['s'], MAX_QUALIFIER);
	o->server = server.host;
	o->qualifier = (unsigned)cli_server_port(&server, "-n", number(g, 'n', 0, 1, MAX_QUALIFIER), DEFAULT_QUALIFIER);
	o->debug = g->debug;
	o->qos = quality(g->value['R']);
	o->maximum = o->mode == 'L' ? number(g, 'm', 0, 1, 1 << 30) : 0;
	o->width = o->mode == 'L' ? number(g, 'w', 1, 1, 100000) : 0;
	o->feature = g->value['f'];
	o->words = words;
	while (words[o->word_count])
		o->word_count++;
	if (!o->server && strchr("QTP", o->mode))
		usage_error("-s, the server, is missing");
	if (o->mode == 'T')
		interpret_transaction(o, g, words);
	else if (o->mode == 'P')
		interpret_performance(o, g, words);
	else if (*words && strchr("SQ", o->mode))
		usage_error("\"%s\" found, only options expected", *words);
}

static void check_letters(char mode, const struct given *g)
{
	for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
		if (g->value[(int)letters[i].letter] && !strchr(letters[i].modes, mode))
			usage_error("option -%c is not one of -T %c", letters[i].letter, mode);
}

/* --- scripts ------------------------------------------------------------------ */

/* Returns the words of a file as a command line. # begins a comment. */
static char **read_script(const char *path, char *program, int *argc)
{
	char **argv = calloc(2, sizeof *argv), *line = NULL;
	FILE *f = fopen(path, "re");
	size_t room = 0;

	if (!f || !argv)
		usage_error("-f %s: %s", path, strerror(errno));
	argv[0] = program;
	for (*argc = 1; getline(&line, &room, f) >= 0;) {
		line[strcspn(line, "#")] = '\0';
		for (char *word = strtok(line, " \t\r\n"); word; word = strtok(NULL, " \t\r\n")) {
			argv = realloc(argv, ((size_t)*argc + 2) * sizeof *argv);
			if (!argv)
				fail("no memory for %s", path);
			argv[(*argc)++] = strdup(word);
			argv[*argc] = NULL;
		}
	}
	if (!feof(f))
		usage_error("-f %s: %s", path, strerror(errno));
	free(line);
	fclose(f);
	return argv;
}

struct options options_parse(int argc, char **argv)
{
	enum { HELP = 256, VERSION };
	static const struct option names[] = {
		{ "help", no_argument, NULL, HELP }, { "version", no_argument, NULL, VERSION }, { NULL, 0, NULL, 0 },
	};
	struct options o = { .mode = 'S' };
	struct given g = { 0 };
	int c;

	if (argc == 3 && !strcmp(argv[1], "-f"))
		argv = read_script(argv[2], argv[0], &argc);
	while ((c = getopt_long(argc, argv, "+:T:D:n:dR:s:t:w:i:QVPrm:p:f:h", names, NULL)) != -1) {
		if (c == '?' || c == ':')
			usage_error_option(argv, names, c);
		if (c == HELP || c == 'h')
			cli_print_help();
		if (c == VERSION)
			version_print();
		g.value[c] = optarg ? optarg : "";
		g.debug += c == 'd';
	}
	if (g.value['T']) {
		o.mode = g.value['T'][0];
		if (!o.mode || g.value['T'][1] || !strchr("SQTPLF", o.mode))
			usage_error("-T: \"%s\" found, S, Q, T, P, L or F expected", g.value['T']);
	}
	check_letters(o.mode, &g);
	interpret(&o, &g, argv + optind);
	return o;
}
