/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* failures.h - what the tests of failed connections share: the lines that a case prints, what
 * dat_ext_last_error() says, and an endpoint that connects. */
#ifndef TEST_LIFE_FAILURES_H
#define TEST_LIFE_FAILURES_H
#include "life.h"
#include <netinet/in.h>
#include <dat/dat_ib_extensions.h>
#include <dat/dat_diag_extensions.h>

/* Parts of patterns (extended regular expressions). */
#define IA "\\(" LIFE_IA "\\)"
#define TIME " after [0-9.]+ m?s"

/* Returns whether a line of the text matches. */
bool matches(const char *text, const char *pattern);
/* Runs `what` in a child, which must exit with 0 and print a line that matches `first`, a line that matches
 * `second`, and nothing else. NULL stands for no line. */
void expect_lines(void (*what)(const void *), const char *first, const char *second);
unsigned port_of(const struct sockaddr_storage *address);
void expect_error(DAT_EP_HANDLE ep, DAT_EVENT_NUMBER event, DAT_DIAG_STEP step, int err,
		  DAT_DIAG_CODE_KIND kind, unsigned code);

struct active {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async, dto, conn;
	DAT_EP_HANDLE ep;
};
void open_active(struct active *a);
void close_active(struct active *a);
DAT_EP_HANDLE new_ep(struct active *a, bool ud);
struct sockaddr_in address_of(const char *text);
/* Connects, and waits for this event. */
void connect_gives(struct active *a, DAT_EP_HANDLE ep, const char *host, unsigned port,
		   DAT_TIMEOUT timeout, DAT_EVENT_NUMBER event);
/* Moves this process into a network namespace with loopback alone. Skips the case where that is not allowed.
 * */
void own_network(void);

#endif
