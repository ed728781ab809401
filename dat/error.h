/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* error.h - how libdat2 makes a DAT_RETURN, and marks what it exports. */
#ifndef DAT_PRIVATE_ERROR_H
#define DAT_PRIVATE_ERROR_H
#include <dat/udat.h>

/* What a call returns: the headers' enumerators lack the class bit. */
#define DAT_ERROR(type, subtype) ((DAT_RETURN)(DAT_CLASS_ERROR | (type) | (subtype)))

/* The libraries are built with hidden symbols; the version script names these again. */
#define EXPORT __attribute__((visibility("default")))

#endif
