/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* main.c - the command line of datcap. */
#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "datcap.h"
#include "print.h"
#include "rule.h"
#include "tools/cli.h"
#include "../messages.h"

/* --- help: less than a screen for each command ----------------------------------------------- */

#define CAPTURE_LINE "datcap capture -i DEVICE -w FILE [OPTIONS]    frames into a file\n"
#define STAT_LINE "datcap stat -i DEVICE [OPTIONS]               rates, once a second\n"
#define REPLAY_LINE "datcap replay -i DEVICE FILE [OPTIONS]        frames of a file\n"
#define MAKE_LINE "datcap make -i DEVICE FILE | --frame TEXT     frames described in words\n"
#define RDMA_LINE "datcap rdma [--pid N | --ia NAME] [OPTIONS]   messages of programs\n"
#define CAPS_LINE "datcap caps -i DEVICE [--json]                what the device can do\n"
#define FIRST "usage: "
#define NEXT "       "

static const char usage[] =
	FIRST CAPTURE_LINE NEXT STAT_LINE NEXT REPLAY_LINE NEXT MAKE_LINE NEXT RDMA_LINE NEXT CAPS_LINE
	"\n"
	"  -i, --interface DEVICE  network device, or IA of dat.conf\n"
	"  -c, --count N           ends after N frames (stat: after N seconds)\n"
	"  -h, --help, --version   behind a command, --help lists its options\n";

#define DEVICE_OPTION "\n  -i, --interface DEVICE  network device, or IA of dat.conf\n"
#define RECEIVE_OPTIONS \
"  -f, --filter TEXT       keeps frames that match; see pcap-filter(7)\n" \
"      --rule TEXT         receives only what matches; several are allowed\n" \
"      --take              the kernel does not get what the rules match\n" \
"      --xdp               takes it by AF_XDP, before the kernel's stack\n" \
"      --join              joins the groups that the rules name\n" \
"  -p, --no-promiscuous    not the frames to other stations\n" \
"      --frames N          frames that the ring in the kernel holds (64 MB)\n" \
"  -v, --verbose           tells which part of the filter became a rule\n" \
"      --time hw|sw        time stamps of the NIC or the kernel, else the best\n"
#define FILE_OPTIONS \
"  -s, --snap BYTES        keeps so much of each frame\n" \
"  -F, --format FORMAT     pcapng (the default) or pcap\n" \
"      --ring NxSIZE       N files FILE.0, FILE.1, ... of this size (K, M, G)\n"
#define SEND_OPTIONS \
"  -c, --count N           ends after N frames\n" \
"      --rate N            frames (100k/s) or bits (1Gb/s) a second\n" \
"      --yes               sends even on the device of the default route\n" \
"      --user NAME         becomes this user once the device is open\n" \
"      --json              prints JSON\n"

static const char capture_help[] = FIRST CAPTURE_LINE DEVICE_OPTION
"  -w, --write FILE        file to write; - is standard output\n"
"  -c, --count N           ends after N frames\n"
FILE_OPTIONS RECEIVE_OPTIONS
"      --stats             prints a line every second\n"
"      --strict            exit status 3 if frames were lost\n"
"      --user NAME         becomes this user once the device is open\n"
"      --json              prints JSON\n";
static const char stat_help[] = FIRST STAT_LINE DEVICE_OPTION
"  -c, --count N           ends after N seconds\n"
RECEIVE_OPTIONS
"      --strict            exit status 3 if frames were lost\n"
"      --user NAME         becomes this user once the device is open\n"
"      --json              prints JSON\n";
static const char replay_help[] = FIRST REPLAY_LINE DEVICE_OPTION
"      --exact             at the times of the file; keeps a processor busy\n"
"      --speed X           X times as fast as captured\n"
SEND_OPTIONS
"      --loop N            sends them N times (1)\n"
"      --dst MAC           replaces the destination address in each frame\n"
"      --src MAC           replaces the source address in each frame\n"
"      --cut               cuts frames that are too long for the device\n"
"      --tso               has the device make TCP segments of such frames\n";
static const char make_help[] = FIRST MAKE_LINE DEVICE_OPTION
"      --frame TEXT        like 'ip 10.0.0.1>10.0.0.2 udp 1>2 len 64'\n"
"      --vary TEXT         a frame for each value, as 'sport 1-1000'\n"
SEND_OPTIONS
"      --loop N            sends them N times (until a signal)\n";
static const char rdma_help[] = FIRST RDMA_LINE
"\n"
"      --pid N             messages of this process; else of all of this user\n"
"      --ia NAME           of processes that have this IA open\n"
"  -w, --write FILE        file to write; else it prints lines\n"
"  -c, --count N           ends after N frames\n"
FILE_OPTIONS
"      --stats             prints a line every second\n"
"      --strict            exit status 3 if messages were lost\n"
"      --json              prints JSON\n";
static const char caps_help[] = FIRST CAPS_LINE DEVICE_OPTION
"      --json              prints JSON\n";

enum { OPT_RULE = 256, OPT_JOIN, OPT_FRAMES, OPT_JSON, OPT_RING, OPT_STATS, OPT_STRICT, OPT_USER, OPT_RATE, OPT_SPEED,
	OPT_PID, OPT_IA, OPT_EXACT, OPT_TIME, OPT_TAKE, OPT_XDP, OPT_FRAME, OPT_VARY,
	OPT_LOOP, OPT_DST, OPT_SRC, OPT_CUT, OPT_TSO, OPT_YES, OPT_VERSION, OPT_END };

/* The options that each command takes. Its help lists the same. */
#define RECEIVES 'f', 'v', OPT_RULE, OPT_TAKE, OPT_XDP, OPT_JOIN, 'p', OPT_FRAMES, OPT_TIME
#define WRITES 'w', 's', 'F', OPT_RING, OPT_STATS
#define SENDS OPT_RATE, OPT_YES, OPT_LOOP, OPT_USER

static const struct command {
	const char *name, *help;
	int (*run)(const struct options *o);
	bool needs_file;
	uint16_t options[25];		/* ends with 0; --help and --version are always allowed */
} commands[] = {
	{ "capture", capture_help, capture_run, true, { 'i', 'c', RECEIVES, WRITES, OPT_STRICT, OPT_USER, OPT_JSON } },
	{ "stat", stat_help, stat_run, false, { 'i', 'c', RECEIVES, OPT_STRICT, OPT_USER, OPT_JSON } },
	{ "replay", replay_help, replay_run, true,
		{ 'i', 'c', SENDS, OPT_EXACT, OPT_SPEED, OPT_DST, OPT_SRC, OPT_CUT, OPT_TSO, OPT_JSON } },
	{ "make", make_help, make_run, false, { 'i', 'c', SENDS, OPT_FRAME, OPT_VARY, OPT_JSON } },
	{ "rdma", rdma_help, rdma_run, false, { 'c', OPT_PID, OPT_IA, WRITES, OPT_STRICT, OPT_JSON } },
	{ "caps", caps_help, caps_run, false, { 'i', OPT_JSON } },
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

/* --- values of options --------------------------------------------------------------------------- */

volatile sig_atomic_t stop_requested;

static void request_stop(int signal)
{
	(void)signal;
	stop_requested = 1;
}

const char *grouped(uint64_t n)
{
	static char texts[4][32];
	static unsigned turn;
	char digits[24], *to = texts[turn++ % 4], *begin = to;
	int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*to++ = ' ';
		*to++ = digits[i];
	}
	*to = 0;
	return begin;
}

/* Reads a number above 0, perhaps with K, M or G after it, which stand for powers of `base`. Returns 0 for
 * any other text. */
static double scaled(const char *text, unsigned base, char **end)
{
	double n = strtod(text, end);
	static const char suffixes[] = "KMG";
	const char *suffix;

	if (*end == text || !(n > 0) || n > 1e15)
		return 0;
	suffix = **end ? strchr(suffixes, toupper((unsigned char)**end)) : NULL;
	if (suffix) {
		(*end)++;
		for (const char *s = suffixes; s <= suffix; s++)
			n *= base;
	}
	return n;
}

/* Reads frames or bits a second: "100k/s", or "10Gb/s". */
static void read_rate(struct options *o, const char *text)
{
	char *end;
	double n = scaled(text, 1000, &end);
	bool bits = *end == 'b';

	end += bits;
	if (!strcmp(end, "/s"))
		end += 2;
	if (!(n > 0) || *end)
		usage_error("--rate \"%s\": expected frames or bits a second, like 100k/s or 1Gb/s", text);
	*(bits ? &o->bit_rate : &o->rate) = n;
}

static void add_vary(struct options *o, const char *text)
{
	if (o->vary_count == MAX_VARIES)
		usage_error("--vary: at most %d", MAX_VARIES);
	o->varies[o->vary_count++] = text;
}

static void read_ring(struct options *o, const char *text)
{
	char *end;
	unsigned long files = strtoul(text, &end, 10);
	double size;

	if (!isdigit((unsigned char)*text) || files < 2 || files > 10000 || *end != 'x')
		usage_error("--ring \"%s\": expected FILESxSIZE, like 10x1G, with 2 to 10000 files", text);
	o->ring_files = (unsigned)files;
	size = scaled(end + 1, 1024, &end);
	if (!(size > 0) || *end)
		usage_error("--ring \"%s\": expected FILESxSIZE, like 10x1G", text);
	o->ring_size = (uint64_t)size;
}

static void read_rule(struct options *o, const char *text)
{
	char wrong[300];

	if (o->rule_count == MAX_RULES)
		usage_error("--rule: at most %d rules", MAX_RULES);
	if (!rule_parse(text, &o->rules[o->rule_count], wrong, sizeof wrong))
		usage_error("--rule: %s", wrong);
	o->rule_count++;
}

static void read_mac(const char *option, const char *text, uint8_t mac[6], bool *set)
{
	if (!rule_parse_mac(text, mac))
		usage_error("%s \"%s\": expected an Ethernet address like 02:00:00:00:00:01", option, text);
	*set = true;
}

static void read_format(struct options *o, const char *text)
{
	o->pcap = !strcmp(text, "pcap");
	if (!o->pcap && strcmp(text, "pcapng"))
		usage_error("--format \"%s\": expected pcapng or pcap", text);
}

static void read_clock(struct options *o, const char *text)
{
	o->hardware_time = !strcmp(text, "hw");
	o->software_time = !strcmp(text, "sw");
	if (!o->hardware_time && !o->software_time)
		usage_error("--time \"%s\": expected hw or sw", text);
}

/* Sets an option that has a value. */
static void set_value(struct options *o, int c, const char *text)
{
	switch (c) {
	case 'i': o->interface = text; break;
	case 'c': o->count = cli_number("--count", text, 1, ~0ul); break;
	case 'f': o->filter = text; break;
	case 'w': o->file = text; break;
	case 's': o->snap = (unsigned)cli_number("--snap", text, 1, 65536); break;
	case 'F': read_format(o, text); break;
	case OPT_RULE: read_rule(o, text); break;
	case OPT_FRAMES: o->frames = (unsigned)cli_number("--frames", text, 1, 1 << 20); break;
	case OPT_RING: read_ring(o, text); break;
	case OPT_PID: o->pid = (int)cli_number("--pid", text, 1, 1 << 22); break;
	case OPT_IA: o->ia = text; break;
	case OPT_TIME: read_clock(o, text); break;
	case OPT_FRAME: o->frame = text; break;
	case OPT_VARY: add_vary(o, text); break;
	case OPT_USER: o->user = text; break;
	case OPT_RATE: read_rate(o, text); break;
	case OPT_SPEED: o->speed = cli_positive("--speed", text, 1e6); break;
	case OPT_LOOP: o->loops = (unsigned)cli_number("--loop", text, 1, 1000000000); break;
	case OPT_DST: read_mac("--dst", text, o->dst, &o->set_dst); break;
	default: read_mac("--src", text, o->src, &o->set_src); break;
	}
}

static const struct option names[] = {
	{ "interface", 1, NULL, 'i' }, { "count", 1, NULL, 'c' }, { "filter", 1, NULL, 'f' },
	{ "write", 1, NULL, 'w' }, { "snap", 1, NULL, 's' }, { "format", 1, NULL, 'F' },
	{ "no-promiscuous", 0, NULL, 'p' }, { "verbose", 0, NULL, 'v' }, { "rule", 1, NULL, OPT_RULE },
	{ "join", 0, NULL, OPT_JOIN },
	{ "frames", 1, NULL, OPT_FRAMES }, { "json", 0, NULL, OPT_JSON }, { "ring", 1, NULL, OPT_RING },
	{ "stats", 0, NULL, OPT_STATS }, { "strict", 0, NULL, OPT_STRICT }, { "user", 1, NULL, OPT_USER },
	{ "rate", 1, NULL, OPT_RATE }, { "speed", 1, NULL, OPT_SPEED }, { "loop", 1, NULL, OPT_LOOP },
	{ "dst", 1, NULL, OPT_DST }, { "src", 1, NULL, OPT_SRC }, { "cut", 0, NULL, OPT_CUT },
	{ "tso", 0, NULL, OPT_TSO },
	{ "yes", 0, NULL, OPT_YES }, { "help", 0, NULL, 'h' }, { "version", 0, NULL, OPT_VERSION },
	{ "pid", 1, NULL, OPT_PID }, { "ia", 1, NULL, OPT_IA }, { "exact", 0, NULL, OPT_EXACT },
	{ "time", 1, NULL, OPT_TIME },
	{ "take", 0, NULL, OPT_TAKE }, { "xdp", 0, NULL, OPT_XDP },
	{ "frame", 1, NULL, OPT_FRAME }, { "vary", 1, NULL, OPT_VARY },
	{ NULL, 0, NULL, 0 },
};

static void set_option(struct options *o, int c, char *const *argv)
{
	switch (c) {
	case 'p': o->promiscuous = false; break;
	case 'v': o->verbose = true; break;
	case OPT_JOIN: o->join = true; break;
	case OPT_JSON: o->json = true; break;
	case OPT_STATS: o->stats = true; break;
	case OPT_STRICT: o->strict = true; break;
	case OPT_TAKE: o->take = true; break;
	case OPT_XDP: o->xdp = true; break;
	case OPT_EXACT: o->exact = true; break;
	case OPT_CUT: o->cut = true; break;
	case OPT_TSO: o->tso = true; break;
	case OPT_YES: o->yes = true; break;
	case 'h': cli_print_help(); break;
	case OPT_VERSION: cli_print_version(); break;
	case '?': case ':': usage_error_option(argv, names, c);
	default: set_value(o, c, optarg);
	}
}

static bool given[OPT_END];		/* options of the command line */

static bool takes(const struct command *command, int c)
{
	const uint16_t *is = command->options;

	while (*is && *is != c)
		is++;
	return *is;
}

/* Treats an option that the command does not take as an error, since it would have no effect. */
static void check_options(const struct command *command)
{
	for (const struct option *is = names; is->name; is++) {
		char letter[8] = "";

		if (!given[is->val] || takes(command, is->val))
			continue;
		if (is->val < OPT_RULE)
			snprintf(letter, sizeof letter, "-%c, ", is->val);
		usage_error("%s--%s is no option of %s", letter, is->name, command->name);
	}
}

static void parse(struct options *o, int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, ":hi:c:f:w:s:F:pv", names, NULL)) != -1) {
		set_option(o, c, argv);
		given[c] = true;
	}
	if (optind == argc)
		usage_error("no command: expected capture, stat, replay, make, rdma or caps");
	o->command = argv[optind++];
	if ((!strcmp(o->command, "replay") || !strcmp(o->command, "make")) && optind < argc)
		o->file = argv[optind++];
	if (optind < argc)
		usage_error("\"%s\" is one argument too many", argv[optind]);
}

/* Completes the rules of the command line. If there are none, adds a rule for all frames. */
static void complete_rules(struct options *o)
{
	bool all = !o->rule_count, joins = false;

	if (o->xdp && !o->take)
		usage_error("--xdp needs --take: it does not copy frames");
	o->rule_count += all;
	for (unsigned i = 0; i < o->rule_count; i++) {
		DAT_ETH_RULE *r = &o->rules[i];
		bool join = o->join && rule_names_group(r);

		if (o->take && !rule_has_condition(r))
			usage_error("--take needs a --rule%s: the host would be cut off",
				    all ? "" : " that leaves frames out");
		r->mode = o->take ? DAT_ETH_TAKE : DAT_ETH_COPY;
		r->priority = r->tag = i;
		r->flags = (o->take ? 0 : DAT_ETH_EGRESS) | (o->promiscuous ? DAT_ETH_ALL : 0) |
			   (join ? DAT_ETH_JOIN : 0);
		joins |= join;
	}
	if (o->join && !joins)
		usage_error("--join needs a --rule with a group, like 'dst 239.1.1.1'");
}

/* Checks and completes the options of `replay` and `make`. */
static void check_sending(struct options *o, bool make)
{
	bool rated = o->rate > 0 || o->bit_rate > 0;

	if (rated && o->speed > 0)
		usage_error("--rate and --speed exclude each other");
	if (o->tso && o->cut)
		usage_error("--tso and --cut exclude each other");
	if (o->exact && (rated || o->speed > 0))
		usage_error("--exact and --%s exclude each other", rated ? "rate" : "speed");
	if (make && !o->frame == !o->file)
		usage_error("make needs either --frame TEXT or a file");
	if (o->exact)
		o->speed = 1;
	if (!o->loops && !make)
		o->loops = 1;
}

int main(int argc, char **argv)
{
	struct options o = { .promiscuous = true, .filter = "" };
	struct sigaction stop = { .sa_handler = request_stop };
	const struct command *command = argc > 1 ? find_command(argv[1]) : NULL;

	cli_init("datcap", usage);
	messages_init();
	if (command)
		cli_set_command(command->name, command->help);
	parse(&o, argc, argv);
	command = find_command(o.command);
	if (!command)
		usage_error("\"%s\" is no command: expected capture, stat, replay, make, rdma or caps", o.command);
	check_options(command);
	if (!o.interface && command->run != rdma_run)
		usage_error("%s needs -i DEVICE", o.command);
	if (command->needs_file && !o.file)
		usage_error("%s needs %s", o.command, command->run == replay_run ? "a file to send" : "-w FILE");
	if (o.file && !*o.file)
		usage_error("the name of the file is \"\"");
	if (o.ring_files && !strcmp(o.file ? o.file : "-", "-"))
		usage_error("--ring needs -w FILE, not standard output");
	if (o.pid && o.ia)
		usage_error("--pid and --ia exclude each other");
	check_sending(&o, command->run == make_run);
	complete_rules(&o);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
	print_finish(command->run(&o));
}
