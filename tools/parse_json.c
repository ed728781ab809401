/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parse_json.c - see parse_json.h. */
#include "tools/parse_json.h"
#include "tools/cli.h"
#include <stdlib.h>

static void *allocate(size_t size)
{
	void *memory = malloc(size);

	if (!memory)
		fail("there is no memory left");
	return memory;
}

json_t *parse_json(const char *text, size_t length)
{
	json_set_alloc_funcs(allocate, free);
	return json_loadb(text, length, 0, NULL);
}

json_t *parse_json_file(FILE *file, json_error_t *error)
{
	json_set_alloc_funcs(allocate, free);
	return json_loadf(file, 0, error);
}
