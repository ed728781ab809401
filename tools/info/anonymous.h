/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* anonymous.h - replaces addresses and names in a text by words like "ip4-1" and "user-2", the same word for the same
 * value in all texts of a process, so that a reader still sees what belongs together. */
#ifndef TOOLS_INFO_ANONYMOUS_H
#define TOOLS_INFO_ANONYMOUS_H
#include <stdio.h>

/* Writes `text` to `out`. Replaced are IPv4 and IPv6 addresses and GIDs, link-layer addresses and GUIDs (hexadecimal
 * with at least three colons), and words that anonymous_name() was given. Loopback and unspecified addresses, masks
 * and lengths of prefixes stay. If memory lacks, the program fails with one line. */
void anonymous_write(FILE *out, const char *text);
/* Replaces the word `name`, of a host or a user, from now on. */
void anonymous_name(const char *kind, const char *name);

#endif
