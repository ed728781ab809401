/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* listing.h - the names of adapters that exist (listing.c). */
#ifndef DAT_LISTING_H
#define DAT_LISTING_H

/* Reports a name that no open can find, together with the existing names (unknown_ia.h). Takes the registry's lock. */
void registry_report_unknown(const char *name);

#endif
