/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* default_route.h - asks the kernel whether frames that are sent on a device leave where the default route of the host
 * does. */
#ifndef DATCAP_DEFAULT_ROUTE_H
#define DATCAP_DEFAULT_ROUTE_H
#include <stdint.h>

/* `index` is that of the network device. 0: all network devices with this Ethernet address, as for an IA. Returns NULL
 * if no default route uses them, else the rest of a sentence like "carries the default route", valid until the next
 * call. Ends the program if the kernel does not answer. */
const char *default_route_on(unsigned index, const uint8_t address[6]);

#endif
