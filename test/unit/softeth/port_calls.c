/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* port_calls.c - see port_calls.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "test/unit/softeth/port_calls.h"

struct eth_port ports[PORTS];
char calls[128];
const char *failing;

void forget_calls(void)
{
	*calls = 0;
	failing = NULL;
}

int note_call(char letter, const struct eth_port *port)
{
	char call[16];

	snprintf(call, sizeof call, "%c%d", letter, (int)(port - ports));
	if (*calls)
		strncat(calls, " ", sizeof calls - 1 - strlen(calls));
	strncat(calls, call, sizeof calls - 1 - strlen(calls));
	return failing && !strcmp(call, failing) ? ENOSPC : 0;
}
