/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stop.c - see stop.h. */
#include "stop.h"
#include <stddef.h>

volatile sig_atomic_t stop_requested;

static void request_stop(int signal)
{
	(void)signal;
	stop_requested = 1;
}

void stop_on_signals(void)
{
	struct sigaction stop = { .sa_handler = request_stop };

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
}
