/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* client.h - the clients of dapltest that need a server: quit, transaction and performance test. */
#ifndef DAPLTEST_CLIENT_H
#define DAPLTEST_CLIENT_H
#include "options.h"

/* Returns the exit status. */
int client_run(struct options *o);

#endif
