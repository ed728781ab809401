/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* entry_text.c - formats entries and their positions for messages (entry_text.h). */
#include "dat/entry_text.h"
#include "common/log.h"
#include "dat/debug.h"
#include <stdio.h>

const char *entry_where(const struct entry *e, struct where *w)
{
	if (!e->conf->file)
		return "devices present";
	snprintf(w->text, sizeof(w->text), "%s:%u", e->conf->file, e->conf->line);
	return w->text;
}

void entry_log(const struct entry *e)
{
	struct where w;

	if (log_on(DBG_STATIC))
		log_line(DBG_STATIC, "%s: " KEY_FMT " %s \"%s\"", entry_where(e, &w),
			 KEY_ARGS(&e->conf->info), e->conf->library, e->conf->ia_params);
}
