/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rendezvous.h - the line of text that a dtest server hands to its client over TCP, before there is a
 * connection of DAT: it tells the client that the server is ready, and the name of its adapter. */
#ifndef DTEST_RENDEZVOUS_H
#define DTEST_RENDEZVOUS_H
#include <sys/socket.h>

enum { RENDEZVOUS_PORT = 15828, RENDEZVOUS_TEXT = 128 };	/* bytes, padded with zeros */

/* A listening socket on all addresses. */
int rendezvous_listen(void);
/* Waits up to `timeout` ms (-1: without limit) for a client and hands out the adapter's name and address. */
void rendezvous_serve(int listener, int timeout, const char *ia, const struct sockaddr *address);
/* Asks the server at `address` and stores the name of its adapter. */
void rendezvous_ask(const struct sockaddr *address, const char *host, char ia[RENDEZVOUS_TEXT]);

#endif
