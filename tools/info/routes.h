/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* routes.h - datinfo --route, --neighbour and --nics: what libdatnet finds out about the network. */
#ifndef TOOLS_INFO_ROUTES_H
#define TOOLS_INFO_ROUTES_H
#include <stdbool.h>

enum { ROUTES_SOFT_ONLY = 3 };	/* exit status: only the software device reaches the host */

/* Each returns the exit status. `name`: an address, with %INTERFACE if it is link-local, or a host. */
int routes_show(const char *name, bool json);
int neighbour_show(const char *name, unsigned seconds, bool json);
int nics_show(bool json);

#endif
