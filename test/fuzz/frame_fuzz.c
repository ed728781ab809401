/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* frame_fuzz.c - frames in words (tools/datcap/frame_parse.c): a line with a frame, perhaps one with a range. What is
 * accepted is built within its room, and each value of the range gives a frame or a fault. */
#include <stdlib.h>
#include <string.h>
#include "tools/datcap/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 9014 };

static void check_fault(const struct frame_fault *fault, size_t size)
{
	if (fault->column > size + 2 || !*fault->text || strnlen(fault->text, sizeof fault->text) == sizeof fault->text)
		abort();
}

static void build(const struct frame *frame)
{
	uint8_t *bytes = malloc(ROOM);	/* no byte more, for the sanitizer */
	struct frame_fault fault;
	uint32_t length = frame_build(frame, bytes, ROOM, &fault);

	if (length > ROOM)
		abort();
	if (!length)
		check_fault(&fault, 0);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t source[6] = { 2, 0, 0, 0, 0, 1 };
	static struct frame frame;
	struct frame_vary vary;
	struct frame_fault fault = { .column = 0 };
	char *text = malloc(size + 1), *second;

	memcpy(text, data, size);
	text[size] = 0;
	second = strchr(text, '\n');
	if (second)
		*second++ = 0;
	if (!frame_parse(text, source, &frame, &fault)) {
		check_fault(&fault, size);
	} else {
		build(&frame);
		if (second && !frame_parse_vary(second, &frame, &vary, &fault)) {
			check_fault(&fault, size);
		} else if (second) {
			uint64_t count = frame_vary_count(&vary), values[] = { 0, count / 2, count - 1 };

			for (int i = 0; i < 3; i++) {
				frame_vary_set(&vary, values[i]);
				build(&frame);
			}
		}
	}
	free(text);
	return 0;
}
