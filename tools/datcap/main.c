/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* main.c - the command line of datcap. */
#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "datcap.h"
#include "options.h"
#include "print.h"
#include "rule.h"
#include "stop.h"
#include "wireshark.h"
#include "tools/cli.h"
#include "tools/messages.h"

/* --- help: less than a screen for each command ----------------------------------------------- */

#define CAPTURE_LINE "datcap capture -i DEVICE [-w FILE] [OPTIONS]  frames: lines, or a file\n"
#define STAT_LINE "datcap stat -i DEVICE [OPTIONS]               rates, once a second\n"
#define REPLAY_LINE "datcap replay -i DEVICE FILE [OPTIONS]        frames of a file\n"
#define MAKE_LINE "datcap make -i DEVICE FILE | --frame TEXT     frames described in words\n"
#define RDMA_LINE "datcap rdma [--pid N | --ia NAME] [OPTIONS]   messages of programs\n"
#define CAPS_LINE "datcap caps -i DEVICE [--json]                what the device can do\n"
#define DEVICES_LINE "datcap devices [--json]                       network devices\n"
#define FIRST "usage: "
#define NEXT "       "

static const char usage[] =
	FIRST CAPTURE_LINE NEXT STAT_LINE NEXT REPLAY_LINE NEXT MAKE_LINE NEXT RDMA_LINE NEXT CAPS_LINE
	NEXT DEVICES_LINE
	"\n"
	"  -i, --interface DEVICE  network device, or IA of dat.conf\n"
	"  -c, --count N           ends after N frames (rdma: messages; stat: seconds)\n"
	"  -D, --list-devices      like the command devices\n"
	"  -h, --help, --version   behind a command, --help lists its options\n";

static const struct command {
	const char *name, *head;	/* head: the first line of its help */
	int (*run)(const struct options *o);
	bool needs_file;
} commands[COMMANDS] = {
	[CAPTURE] = { "capture", FIRST CAPTURE_LINE, capture_run, false },
	[STAT] = { "stat", FIRST STAT_LINE, stat_run, false },
	[REPLAY] = { "replay", FIRST REPLAY_LINE, replay_run, true },
	[MAKE] = { "make", FIRST MAKE_LINE, make_run, false },
	[RDMA] = { "rdma", FIRST RDMA_LINE, rdma_run, false },
	[CAPS] = { "caps", FIRST CAPS_LINE, caps_run, false },
	[DEVICES] = { "devices", FIRST DEVICES_LINE, devices_run, false },
};

/* Returns COMMANDS if there is none of this name. */
static enum command_id find_command(const char *name)
{
	enum command_id id = 0;

	while (id < COMMANDS && strcmp(commands[id].name, name))
		id++;
	return id;
}

static void read_arguments(struct options *o, int argc, char **argv)
{
	if (o->list && optind < argc)
		usage_error("-D takes no command: \"%s\" found", argv[optind]);
	if (o->list) {
		o->command = "devices";
		return;
	}
	if (optind == argc)
		usage_error("no command: expected capture, stat, replay, make, rdma, caps or devices");
	o->command = argv[optind++];
	if ((!strcmp(o->command, "replay") || !strcmp(o->command, "make")) && optind < argc)
		o->file = argv[optind++];
	if (optind < argc)
		usage_error("\"%s\" is one argument too many%s", argv[optind],
			    !strcmp(o->command, "capture") || !strcmp(o->command, "stat") ? ": a filter follows -f" :
			    !strcmp(o->command, "make") ? ": the words of a frame follow --frame, within quotes" :
			    !strcmp(o->command, "replay") ? ": replay sends one file" : "");
}

/* Completes the rules of the command line. If there are none, adds a rule for all frames. */
static void complete_rules(struct options *o)
{
	bool all = !o->rule_count, joins = false;

	if (o->take && o->direction == OUTGOING)
		usage_error("--take and --direction out exclude each other: it takes frames that come in");
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
		r->flags = (o->take || o->direction == INCOMING ? 0 : DAT_ETH_EGRESS) |
			   (o->promiscuous ? DAT_ETH_ALL : 0) | (join ? DAT_ETH_JOIN : 0);
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

/* Checks the device, the file and the programs that the options name. */
static void check_names(const struct options *o, enum command_id id)
{
	bool writes = id == CAPTURE || id == RDMA;

	if (!o->interface && id != RDMA && id != DEVICES)
		usage_error("%s needs -i DEVICE", o->command);
	if (o->interface_count > 1 && id != CAPTURE && id != STAT)
		usage_error("%s takes one device: %s and %s found", o->command, o->interfaces[0], o->interfaces[1]);
	if (o->interface_count > 1 && o->pcap)
		usage_error("--format pcap has no place for the device of a frame: expected pcapng for several");
	if (o->size && !o->file)
		usage_error("--size needs -w FILE");
	if (o->size && o->ring_files)
		usage_error("--size and --ring exclude each other");
	if (commands[id].needs_file && !o->file)
		usage_error("%s needs a file to send", o->command);
	if (o->file && !*o->file)
		usage_error("the name of the file is \"\"");
	if (o->ring_files && !strcmp(o->file ? o->file : "-", "-"))
		usage_error("--ring needs -w FILE, not standard output");
	if (o->file && !strcmp(o->file, "-") && writes && isatty(STDOUT_FILENO))
		usage_error("-w -: standard output is a terminal: expected a pipe or a file");
	if (o->wireshark && !*o->wireshark)
		usage_error("--wireshark: the name of the directory is \"\"");
	if (o->pid && o->ia)
		usage_error("--pid and --ia exclude each other");
}

int main(int argc, char **argv)
{
	enum command_id id = argc > 1 ? find_command(argv[1]) : COMMANDS;
	struct options *o;

	cli_init("datcap", usage);
	messages_init();
	if (id < COMMANDS)
		cli_set_command(commands[id].name, options_help(id, commands[id].head));
	o = options_read(argc, argv);
	read_arguments(o, argc, argv);
	id = find_command(o->command);
	if (id == COMMANDS)
		usage_error("\"%s\" is no command: expected capture, stat, replay, make, rdma, caps or devices",
			    o->command);
	options_check_command(id, o->command);
	check_names(o, id);
	check_sending(o, id == MAKE);
	complete_rules(o);
	if (o->wireshark) {
		wireshark_write(o->wireshark);
		print_finish(0);
	}
	stop_on_signals();
	signal(SIGPIPE, SIG_IGN);
	print_finish(commands[id].run(o));
}
