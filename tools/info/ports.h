/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ports.h - datinfo --ports: which programs listen for connection requests, and on which qualifiers. */
#ifndef TOOLS_INFO_PORTS_H
#define TOOLS_INFO_PORTS_H
#include <stdbool.h>

void ports_show(bool json);

#endif
