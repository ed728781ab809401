/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* error.h - builds the DAT_RETURN values of libdat2, and marks its exported functions. */
#ifndef DAT_PRIVATE_ERROR_H
#define DAT_PRIVATE_ERROR_H
#include <dat/udat.h>

/* The enumerators of the headers lack the class bit. ERR-3. */
#define DAT_ERROR(type, subtype) ((DAT_RETURN)(DAT_CLASS_ERROR | (type) | (subtype)))

/* The libraries are built with hidden symbols; the version script lists the exported ones too. */
#define EXPORT __attribute__((visibility("default")))

#endif
