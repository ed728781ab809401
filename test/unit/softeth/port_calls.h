/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* port_calls.h - ports of a test that replaces their functions, and a record of the calls of these functions. */
#ifndef TEST_SOFTETH_PORT_CALLS_H
#define TEST_SOFTETH_PORT_CALLS_H
#include "dapl/softeth/port_types.h"

enum { PORTS = 3 };

extern struct eth_port ports[PORTS];
extern char calls[128];			/* a letter and the port of each call */
extern const char *failing;		/* the call that fails, as in `calls`; NULL: none */

void forget_calls(void);
int note_call(char letter, const struct eth_port *port);	/* ENOSPC if it is the call that fails, else 0 */

#endif
