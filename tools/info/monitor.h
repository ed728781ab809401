/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* monitor.h - datinfo --monitor: a line for each change of the network, until a signal. */
#ifndef TOOLS_INFO_MONITOR_H
#define TOOLS_INFO_MONITOR_H
#include <stdbool.h>

/* `kinds`: "mtu,link,..."; NULL: mtu, link, address, route and rdma. Ends the program for an unknown word. */
int monitor_show(const char *kinds, bool json);

#endif
