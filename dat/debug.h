/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* debug.h - the bits of DAT_DBG_TYPE (registry.md 11). */
#ifndef DAT_DEBUG_H
#define DAT_DEBUG_H

enum dbg {
	DBG_ERROR        = 0x1,		/* the default: what an administrator must know */
	DBG_GENERIC      = 0x2,
	DBG_STATIC       = 0x4,		/* entries of dat.conf */
	DBG_DYNAMIC      = 0x8,		/* providers that register themselves */
	DBG_PROVIDER_API = 0x10,	/* calls of providers */
	DBG_CONSUMER_API = 0x20,	/* calls of programs, except data transfer */
};

#endif
