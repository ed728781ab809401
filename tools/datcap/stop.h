/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stop.h - the signals that end a command early: it finishes its file and prints its summary. */
#ifndef DATCAP_STOP_H
#define DATCAP_STOP_H
#include <signal.h>

extern volatile sig_atomic_t stop_requested;

/* From now on SIGINT, SIGTERM and SIGHUP set stop_requested. */
void stop_on_signals(void);

#endif
