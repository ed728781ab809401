/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udat_config.h - which version of the API a program is compiled for. */
#ifndef _UDAT_CONFIG_H_
#define _UDAT_CONFIG_H_

#define DAT_VERSION_MAJOR 2
#define DAT_VERSION_MINOR 0

/* What the dat_ia_open() macro asks the registry for. Programs that want a "threadsafe"
 * entry call dat_ia_openv() themselves. */
#define DAT_THREADSAFE DAT_FALSE

/* dat_extension_op() and the extension ranges of the enumerations are always there; the
 * macro stays because consumers test it. */
#ifndef DAT_EXTENSIONS
#define DAT_EXTENSIONS 1
#endif

#endif
