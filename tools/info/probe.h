/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe.h - opens an IA, reads its attributes and registers some memory in a child process, so that a
 * provider that crashes, hangs or prints does not disturb datinfo. */
#ifndef TOOLS_INFO_PROBE_H
#define TOOLS_INFO_PROBE_H
#include <dat/udat.h>
#include <dat/dat_entries.h>
#include <jansson.h>

enum { PROBE_BYTES = 1 << 20 };	/* of memory that a working IA lets its consumer register */

/* Makes the libraries print all failures on stderr, and nothing else. Call it before any DAT call. */
void probe_init(void);

/* Returns an object:
 *   "state"	"open", "failed", "crashed" or "hung"
 *   "call"	of what failed: "dat_ia_open"; "dat_lmr_create" although the state is "open"
 *   "result"	its return code as words
 *   "message"	the last line that the libraries printed, without their names
 *   "message_id", "message_error"	of the last line: DAT_MESSAGE's `id` and `error`, if it has them
 *   "signal"	of a crash: the signal's name
 *   "ia_attributes", "provider_attributes", "named", "extensions"	attributes of an open IA
 * The call returns at most `seconds` later. */
json_t *probe_ia(const DAT_PROVIDER_INFO *info, unsigned seconds);

/* Lists the entries (dat_entries.h). Stores what the registry printed in `*messages`, an array of lines. */
DAT_RETURN probe_entries(DAT_ENTRY **list, DAT_COUNT *count, json_t **messages);

#endif
