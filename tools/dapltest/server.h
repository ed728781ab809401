/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* server.h - the server of dapltest: serves clients one after the other, and runs the tests that they
 * ask for in threads, until a client asks it to quit. */
#ifndef DAPLTEST_SERVER_H
#define DAPLTEST_SERVER_H
#include "options.h"

/* Returns the exit status. */
int server_run(const struct options *o);

#endif
