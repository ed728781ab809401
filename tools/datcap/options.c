/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* options.c - see options.h. */
#include "options.h"
#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rule.h"
#include "tools/cli.h"
#include "tools/version.h"

static struct options o = { .promiscuous = true, .filter = "" };

/* --- values: each function reads the text of `option` ------------------------------------------- */

/* Reads a number of bytes above 0, perhaps with K, M or G after it, which stand for powers of 1024. Returns 0 for
 * any other text. */
static double scaled(const char *text, char **end)
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
			n *= 1024;
	}
	return n;
}

/* Reads frames or bits a second: "100k/s", or "10Gb/s". */
static void read_rate(const char *option, const char *text)
{
	double n;
	enum cli_rate rate = cli_rate(text, CLI_NO_RATE, &n);

	if (rate == CLI_NO_RATE)
		usage_error("%s \"%s\": expected frames or bits a second with their unit, like 100k/s or 1Gb/s",
			    option, text);
	*(rate == CLI_BITS ? &o.bit_rate : &o.rate) = n;
}

static void read_vary(const char *option, const char *text)
{
	if (o.vary_count == MAX_VARIES)
		usage_error("%s: at most %d", option, MAX_VARIES);
	o.varies[o.vary_count++] = text;
}

static void read_ring(const char *option, const char *text)
{
	char *end;
	unsigned long files = strtoul(text, &end, 10);
	double size;

	if (!isdigit((unsigned char)*text) || files < 2 || files > 10000 || *end != 'x')
		usage_error("%s \"%s\": expected FILESxSIZE, like 10x1G, with 2 to 10000 files", option, text);
	o.ring_files = (unsigned)files;
	size = scaled(end + 1, &end);
	if (!(size > 0) || *end)
		usage_error("%s \"%s\": expected FILESxSIZE, like 10x1G", option, text);
	o.ring_size = (uint64_t)size;
}

static void read_rule(const char *option, const char *text)
{
	char wrong[300];

	if (o.rule_count == MAX_RULES)
		usage_error("%s: at most %d rules", option, MAX_RULES);
	if (!rule_parse(text, &o.rules[o.rule_count], wrong, sizeof wrong))
		usage_error("%s: %s", option, wrong);
	o.rule_count++;
}

static void read_mac(const char *option, const char *text, uint8_t mac[6], bool *set)
{
	if (!rule_parse_mac(text, mac))
		usage_error("%s \"%s\": expected an Ethernet address like 02:00:00:00:00:01", option, text);
	*set = true;
}

static void read_dst(const char *option, const char *text)
{
	read_mac(option, text, o.dst, &o.set_dst);
}

static void read_src(const char *option, const char *text)
{
	read_mac(option, text, o.src, &o.set_src);
}

static void read_format(const char *option, const char *text)
{
	o.pcap = !strcmp(text, "pcap");
	if (!o.pcap && strcmp(text, "pcapng"))
		usage_error("%s \"%s\": expected pcapng or pcap", option, text);
}

static void read_clock(const char *option, const char *text)
{
	o.hardware_time = !strcmp(text, "hw");
	o.software_time = !strcmp(text, "sw");
	if (!o.hardware_time && !o.software_time)
		usage_error("%s \"%s\": expected hw or sw", option, text);
}

static void read_interface(const char *option, const char *text)
{
	if (o.interface_count == MAX_DEVICES)
		usage_error("%s: at most %d devices", option, MAX_DEVICES);
	for (unsigned i = 0; i < o.interface_count; i++)
		if (!strcmp(o.interfaces[i], text))
			usage_error("%s: \"%s\" found twice", option, text);
	o.interfaces[o.interface_count++] = text;
	o.interface = o.interfaces[0];
}

static void read_direction(const char *option, const char *text)
{
	o.direction = !strcmp(text, "in") ? INCOMING : !strcmp(text, "out") ? OUTGOING : BOTH_WAYS;
	if (!o.direction)
		usage_error("%s \"%s\": expected in or out", option, text);
}

static void read_duration(const char *option, const char *text)
{
	o.duration = cli_microseconds(option, text) * 1e3;
}

static void read_size(const char *option, const char *text)
{
	char *end;
	double size = scaled(text, &end);

	if (!(size >= 1) || *end)
		usage_error("%s \"%s\": expected bytes, like 500K, 100M or 2G", option, text);
	o.size = (uint64_t)size;
}

static void read_count(const char *option, const char *text)
{
	o.count = cli_number(option, text, 1, ~0ul);
}

static void read_seed(const char *option, const char *text)
{
	o.seed = cli_number(option, text, 1, ~0ul);
}

static void read_pid(const char *option, const char *text)
{
	o.pid = (int)cli_number(option, text, 1, 1 << 22);
}

static void read_speed(const char *option, const char *text)
{
	o.speed = cli_positive(option, text, 1e6);
}

/* --- the table ---------------------------------------------------------------------------------- */

#define RECEIVES(help) [CAPTURE] = help, [STAT] = help
#define WRITES(help) [CAPTURE] = help, [RDMA] = help
#define SENDS(help) [REPLAY] = help, [MAKE] = help

/* One row an option, in the order of the help. A row has one place for what the option sets. */
static const struct row {
	char letter;			/* 0: it has none */
	const char *name, *value;	/* value: as its help calls it; NULL: the option has none */
	bool *on, *off;
	const char **text;
	unsigned *number, max;		/* 1 to max */
	void (*read)(const char *option, const char *text);
	const char *help[COMMANDS];	/* NULL: the command does not take the option */
} rows[] = {
	{ 'i', "interface", "DEVICE", .read = read_interface, .help = {
		RECEIVES("network device, or IA of dat.conf; may be repeated"),
		SENDS("network device, or IA of dat.conf"),
		[CAPS] = "network device, or IA of dat.conf" } },
	{ 'D', "list-devices", .on = &o.list, .help = { [DEVICES] = "" } },
	{ 0, "pid", "N", .read = read_pid, .help = {
		[RDMA] = "messages of this process; else of all of this user" } },
	{ 0, "ia", "NAME", .text = &o.ia, .help = { [RDMA] = "of processes that have this IA open" } },
	{ 0, "wireshark", "DIR", .text = &o.wireshark, .help = {
		[RDMA] = "writes a profile for Wireshark, and ends" } },
	{ 0, "exact", .on = &o.exact, .help = { [REPLAY] = "at the times of the file; keeps a processor busy" } },
	{ 0, "speed", "X", .read = read_speed, .help = { [REPLAY] = "X times as fast as captured" } },
	{ 0, "frame", "TEXT", .text = &o.frame, .help = { [MAKE] = "like 'ip 10.0.0.1>10.0.0.2 udp 1>2 len 64'" } },
	{ 0, "vary", "TEXT", .read = read_vary, .help = { [MAKE] = "a frame for each value, as 'sport 1-1000'" } },
	{ 0, "seed", "N", .read = read_seed, .help = { [MAKE] = "of random values: the same frames again" } },
	{ 'w', "write", "FILE", .text = &o.file, .help = {
		[CAPTURE] = "file (- is standard output); else it prints lines",
		[RDMA] = "file to write; else it prints lines" } },
	{ 'c', "count", "N", .read = read_count, .help = {
		[CAPTURE] = "ends after N frames", [STAT] = "ends after N seconds", SENDS("ends after N frames"),
		[RDMA] = "ends after N messages" } },
	{ 0, "duration", "TIME", .read = read_duration, .help = {
		RECEIVES("ends after this time, as 500ms or 60s"), SENDS("ends after this time, as 500ms or 60s"),
		[RDMA] = "ends after this time, as 500ms or 60s" } },
	{ 0, "size", "SIZE", .read = read_size, .help = { WRITES("ends when the file has this size (K, M, G)") } },
	{ 's', "snap", "BYTES", .number = &o.snap, .max = 65536, .help = { WRITES("keeps so much of each frame") } },
	{ 'F', "format", "FORMAT", .read = read_format, .help = { WRITES("pcapng (the default) or pcap") } },
	{ 0, "ring", "NxSIZE", .read = read_ring, .help = {
		WRITES("N files FILE.0, FILE.1, ... of this size (K, M, G)") } },
	{ 'f', "filter", "TEXT", .text = &o.filter, .help = {
		RECEIVES("keeps frames that match; see pcap-filter(7)") } },
	{ 'Q', "direction", "in|out", .read = read_direction, .help = {
		RECEIVES("only frames that come in, or that this host sends") } },
	{ 0, "rule", "TEXT", .read = read_rule, .help = {
		RECEIVES("receives only what matches; several are allowed") } },
	{ 0, "take", .on = &o.take, .help = { RECEIVES("the kernel does not get what the rules match") } },
	{ 0, "xdp", .on = &o.xdp, .help = { RECEIVES("takes it by AF_XDP, before the kernel's stack") } },
	{ 0, "join", .on = &o.join, .help = { RECEIVES("joins the groups that the rules name") } },
	{ 'p', "no-promiscuous", .off = &o.promiscuous, .help = { RECEIVES("not the frames to other stations") } },
	{ 0, "frames", "N", .number = &o.frames, .max = 1 << 20, .help = {
		RECEIVES("frames that the ring in the kernel holds (64 MB)") } },
	{ 'v', "verbose", .on = &o.verbose, .help = { RECEIVES("tells which part of the filter became a rule") } },
	{ 0, "time", "hw|sw", .read = read_clock, .help = {
		RECEIVES("time stamps of the NIC or the kernel, else the best") } },
	{ 0, "rate", "N", .read = read_rate, .help = { SENDS("frames (100k/s) or bits (1Gb/s) a second") } },
	{ 0, "yes", .on = &o.yes, .help = { SENDS("sends even on the device of the default route") } },
	{ 0, "loop", "N", .number = &o.loops, .max = 1000000000, .help = {
		[REPLAY] = "sends them N times (1)", [MAKE] = "sends them N times (until a signal)" } },
	{ 0, "dst", "MAC", .read = read_dst, .help = {
		[REPLAY] = "replaces the destination address in each frame" } },
	{ 0, "src", "MAC", .read = read_src, .help = { [REPLAY] = "replaces the source address in each frame" } },
	{ 0, "cut", .on = &o.cut, .help = { [REPLAY] = "cuts frames that are too long for the device" } },
	{ 0, "tso", .on = &o.tso, .help = { [REPLAY] = "has the device make TCP segments of such frames" } },
	{ 0, "stats", .on = &o.stats, .help = { WRITES("prints a line every second") } },
	{ 0, "strict", .on = &o.strict, .help = {
		RECEIVES("exit status 3 if frames were lost"), [RDMA] = "exit status 3 if messages were lost" } },
	{ 0, "user", "NAME", .text = &o.user, .help = {
		RECEIVES("becomes this user once the device is open"),
		SENDS("becomes this user once the device is open") } },
	{ 0, "json", .on = &o.json, .help = {
		RECEIVES("prints JSON"), SENDS("prints JSON"), [RDMA] = "prints JSON", [CAPS] = "prints JSON",
		[DEVICES] = "prints JSON" } },
};

enum { ROWS = sizeof rows / sizeof *rows, OPT_ROW = 256, OPT_HELP = 'h', OPT_VERSION = OPT_ROW + ROWS };

static bool given[ROWS];	/* options of the command line */

/* --- help and parsing ---------------------------------------------------------------------------- */

const char *options_help(enum command_id command, const char *head)
{
	static char help[4096];
	size_t used = (size_t)snprintf(help, sizeof help, "%s\n", head);

	for (const struct row *r = rows; r < rows + ROWS; r++) {
		char letter[8] = "    ", name[40];

		if (!r->help[command] || !*r->help[command])
			continue;
		if (r->letter)
			snprintf(letter, sizeof letter, "-%c, ", r->letter);
		snprintf(name, sizeof name, "--%s%s%s", r->name, r->value ? " " : "", r->value ? r->value : "");
		used += (size_t)snprintf(help + used, sizeof help - used, "  %s%-19s %s\n", letter, name,
					 r->help[command]);
	}
	return help;
}

static void read_row(const struct row *r, const char *text)
{
	char option[32];

	snprintf(option, sizeof option, "--%s", r->name);
	if (r->on)
		*r->on = true;
	else if (r->off)
		*r->off = false;
	else if (r->text)
		*r->text = text;
	else if (r->number)
		*r->number = (unsigned)cli_number(option, text, 1, r->max);
	else
		r->read(option, text);
	given[r - rows] = true;
}

struct options *options_read(int argc, char **argv)
{
	struct option names[ROWS + 3] = { { NULL, 0, NULL, 0 } };
	char letters[2 * ROWS + 3] = ":h", *next = letters + 2;
	int c;

	for (int i = 0; i < ROWS; i++) {
		const struct row *r = &rows[i];

		names[i] = (struct option){ r->name, r->value ? 1 : 0, NULL, r->letter ? r->letter : OPT_ROW + i };
		if (r->letter) {
			*next++ = r->letter;
			if (r->value)
				*next++ = ':';
		}
	}
	names[ROWS] = (struct option){ "help", 0, NULL, OPT_HELP };
	names[ROWS + 1] = (struct option){ "version", 0, NULL, OPT_VERSION };
	while ((c = getopt_long(argc, argv, letters, names, NULL)) != -1) {
		const struct row *r = rows;

		if (c == OPT_HELP)
			cli_print_help();
		if (c == OPT_VERSION)
			version_print();
		if (c == '?' || c == ':')
			usage_error_option(argv, names, c);
		while (names[r - rows].val != c)
			r++;
		read_row(r, optarg);
	}
	return &o;
}

void options_check_command(enum command_id command, const char *name)
{
	for (int i = 0; i < ROWS; i++) {
		char letter[8] = "";

		if (command == RDMA && o.wireshark && given[i] && rows[i].text != &o.wireshark && rows[i].help[RDMA])
			usage_error("--wireshark and --%s exclude each other", rows[i].name);
		if (!given[i] || rows[i].help[command])
			continue;
		if (rows[i].letter)
			snprintf(letter, sizeof letter, "-%c, ", rows[i].letter);
		usage_error("%s--%s is no option of %s", letter, rows[i].name, name);
	}
}
