/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* network.h - the modes of datinfo that need libdatnet; without it each ends the program with one line
 * that says so. */
#ifndef TOOLS_INFO_NETWORK_H
#define TOOLS_INFO_NETWORK_H
#include "tools/cli.h"

#ifdef TOOLS_NET
#include "tools/info/monitor.h"
#include "tools/info/routes.h"
#define NETWORK_CALL(call) return call
#else
#define NETWORK_CALL(call) fail("this datinfo was built without libdatnet (libnl-route-3)")
#endif

static inline int network_route(const char *name, bool json)
{
	(void)name, (void)json;
	NETWORK_CALL(routes_show(name, json));
}

static inline int network_neighbour(const char *name, unsigned seconds, bool json)
{
	(void)name, (void)seconds, (void)json;
	NETWORK_CALL(neighbour_show(name, seconds, json));
}

static inline int network_nics(bool json)
{
	(void)json;
	NETWORK_CALL(nics_show(json));
}

static inline int network_monitor(const char *kinds, bool json)
{
	(void)kinds, (void)json;
	NETWORK_CALL(monitor_show(kinds, json));
}

#endif
