/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conf_fuzz.c - any bytes as a dat.conf: no crash, and what comes out keeps its promises. */
#include "dat/conf.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t text_size;

static void demand(bool good)
{
	if (!good)
		abort();
}

/* Messages go to terminals and logs. */
static void check_text(const char *text)
{
	for (; *text; text++)
		demand(*text >= ' ' && *text <= '~');
}

static void check_message(void *arg, const struct conf_fault *fault)
{
	demand(arg == check_message && !strcmp(fault->file, "fuzz"));
	demand(fault->line > 0 && fault->column > 0 && fault->column <= text_size + 1);
	demand(*fault->expected);
	check_text(fault->field);
	check_text(fault->found);
	check_text(fault->expected);
	check_text(fault->message);
}

static void check_entry(const struct conf_entry *e)
{
	size_t length = strnlen(e->info.ia_name, sizeof(e->info.ia_name));

	demand(length > 0 && length < sizeof(e->info.ia_name));
	demand(e->info.is_thread_safe == DAT_TRUE || e->info.is_thread_safe == DAT_FALSE);
	demand(e->library && *e->library && e->ia_params);
	demand(!strcmp(e->file, "fuzz") && e->line > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf conf = { .entries = NULL };

	text_size = size;
	demand(!conf_parse(&conf, (const char *)data, size, "fuzz", check_message,
			   check_message));
	for (size_t i = 0; i < conf.count; i++) {
		check_entry(&conf.entries[i]);
		demand(!i || conf.entries[i - 1].line < conf.entries[i].line);
	}
	demand(!conf.wants_auto || conf.auto_at <= conf.count);
	conf_free(&conf);
	return 0;
}
