/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lines.h - prints a captured frame as a line of text, or as a JSON object on a line. */
#ifndef DATCAP_LINES_H
#define DATCAP_LINES_H
#include <stdbool.h>
#include <dat/udat.h>
#include <dat/dat_eth_extensions.h>

/* `device`: its name, NULL if all frames are of one. Returns what print() returns. */
bool lines_print(const DAT_ETH_FRAME *frame, const char *device, bool json);

#endif
