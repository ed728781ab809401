/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unknown_ia.c - reports names of interface adapters that do not exist (unknown_ia.h). */
#include "dat/unknown_ia.h"
#include "common/log.h"
#include <dat/udat.h>
#include <string.h>

void unknown_ia_add_name(struct name_list *list, const char *name)
{
	size_t length = strlen(name);

	/* A blank before it and a NUL after it. Once a name does not fit, later ones are left out. */
	if (list->left_out || list->length + length + 2 > sizeof(list->text)) {
		list->left_out++;
		return;
	}
	list->text[list->length++] = ' ';
	memcpy(list->text + list->length, name, length + 1);
	list->length += length;
}

bool unknown_ia_is_new(const char *name)
{
	static char reported[UNKNOWN_IA_MAX][DAT_NAME_MAX_LENGTH];
	static unsigned count;

	for (unsigned i = 0; i < count; i++)
		if (!strcmp(reported[i], name))
			return false;
	if (count == UNKNOWN_IA_MAX)
		return false;
	strncpy(reported[count++], name, DAT_NAME_MAX_LENGTH - 1);
	return true;
}

void unknown_ia_report(const char *name, const char *origin, const struct name_list *known)
{
	const struct log_fields *fields = LOG_FIELDS(.ia = name,
						     .result = "DAT_PROVIDER_NOT_FOUND");

	if (!known->length)
		log_report(REPORT_UNKNOWN_IA, fields,
			   "no interface adapter \"%s\" %s; there is none", name, origin);
	else if (known->left_out)
		log_report(REPORT_UNKNOWN_IA, fields,
			   "no interface adapter \"%s\" %s; there are:%s, and %u more", name,
			   origin, known->text, known->left_out);
	else
		log_report(REPORT_UNKNOWN_IA, fields,
			   "no interface adapter \"%s\" %s; there are:%s", name, origin,
			   known->text);
}
