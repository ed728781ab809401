/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* make.c - `datcap make`: sends frames that are described on the command line, or in a file, one on each
 * line. --vary makes a frame for each value of its range, or a number of frames with random values of it; several
 * --vary make a frame for each combination of values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "datcap.h"
#include "frame.h"
#include "frame_file.h"
#include "send.h"
#include "tools/cli.h"

enum {
	FRAMES_MAX = 1 << 20,		/* frames in memory */
	BYTES_MAX = 65536,		/* of a frame */
	LINE_MAX_BYTES = 8192,
};

struct made {
	struct sender *sender;
	uint64_t seed;			/* of random values */
	uint64_t count;
};

/* `where` is the place of the text, for messages: an option, or "FILE:LINE". */
static void add(struct made *m, const char *where, const struct frame *frame)
{
	static uint8_t bytes[BYTES_MAX];
	struct frame_fault fault;
	static const uint8_t tagged[14] = { [12] = 0x81 };	/* one tag has this type, the outer one of two 0x88a8 */
	uint32_t most = sender_most(m->sender, tagged, frame->layer[0].tags == 1 ? sizeof tagged : 0);
	uint32_t length = frame_build(frame, bytes, most, &fault);

	if (!length)
		usage_error("%s: %s", where, fault.text);
	if (m->count++ == FRAMES_MAX)
		usage_error("%s: more than %d frames", where, FRAMES_MAX);
	memcpy(sender_add(m->sender, length, 0), bytes, length);
}

/* Adds the frames of all combinations of values in turn. The value of the first --vary changes fastest. */
static void add_combinations(struct made *m, const struct options *o, const char *where, const struct frame *frame,
			     const struct frame_vary *vary)
{
	uint64_t at[MAX_VARIES] = { 0 };
	unsigned i;

	for (i = 0; i < o->vary_count; i++)
		frame_vary_set(&vary[i], 0);
	do {
		for (i = 0; i < o->vary_count; i++)
			if (vary[i].random)
				frame_vary_set(&vary[i], m->count);
		add(m, where, frame);
		for (i = 0; i < o->vary_count; i++) {
			at[i] = (at[i] + 1) % frame_vary_count(&vary[i]);
			frame_vary_set(&vary[i], at[i]);
			if (at[i])
				break;
		}
	} while (i < o->vary_count);
}

/* Adds all frames. Random values multiply the combinations of the others: each field of a frame has one of its own. */
static void add_all(struct made *m, const struct options *o, const char *where, struct frame *frame)
{
	struct frame_vary vary[MAX_VARIES];
	struct frame_fault fault;
	uint32_t rounds = 1;

	for (unsigned i = 0; i < o->vary_count; i++) {
		if (!frame_parse_vary(o->varies[i], frame, &vary[i], &fault))
			usage_error("--vary, column %u: %s", fault.column, fault.text);
		vary[i].seed = m->seed + i;
		rounds = vary[i].random > rounds ? vary[i].random : rounds;
	}
	for (uint32_t round = 0; round < rounds; round++)
		add_combinations(m, o, where, frame, vary);
}

static void parse(struct made *m, const struct options *o, const char *where, const char *separator, const char *text)
{
	struct frame_fault fault;
	static struct frame frame;

	if (!frame_parse(text, sender_attr(m->sender)->address, &frame, &fault))
		usage_error("%s%s%u: %s", where, separator, fault.column, fault.text);
	add_all(m, o, where, &frame);
}

/* Reads a frame from each line. Skips blank lines and lines that begin with #. */
static void read_file(struct made *m, const struct options *o)
{
	char line[LINE_MAX_BYTES], where[300];
	FILE *file = fopen(o->file, "re");

	if (!file)
		fail("%s: %m", o->file);
	if (frame_file_is_capture(o->file))
		usage_error("%s is a capture, expected descriptions of frames: datcap replay sends it", o->file);
	for (unsigned number = 1; fgets(line, sizeof line, file); number++) {
		size_t length = strcspn(line, "\n");

		snprintf(where, sizeof where, "%s:%u", o->file, number);
		if (!line[length] && !feof(file))
			usage_error("%s: a line of more than %d bytes", where, LINE_MAX_BYTES - 2);
		line[length] = 0;
		if (line[strspn(line, " \t\r")] && line[strspn(line, " \t\r")] != '#')
			parse(m, o, where, ":", line);
	}
	if (ferror(file))
		fail("%s: %m", o->file);
	fclose(file);
	if (!m->count)
		usage_error("%s: there is no frame in it", o->file);
}

int make_run(const struct options *o)
{
	struct made m = { .sender = sender_open(o), .seed = o->seed };

	if (!o->seed && getrandom(&m.seed, sizeof m.seed, 0) != sizeof m.seed)
		fail("no random number: %m");
	if (o->frame)
		parse(&m, o, "--frame", ", column ", o->frame);
	else
		read_file(&m, o);
	return sender_run(m.sender);
}
