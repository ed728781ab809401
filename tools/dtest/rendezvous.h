/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rendezvous.h - the line of text that a dtest server hands to its client over TCP, before there is a
 * connection of DAT. It has the name of the server's adapter, and shows that the server is ready. */
#ifndef DTEST_RENDEZVOUS_H
#define DTEST_RENDEZVOUS_H
#include <sys/socket.h>

enum { RENDEZVOUS_PORT = 15828, RENDEZVOUS_TEXT = 128 };	/* bytes, padded with zeros */

/* Returns a socket that listens on all addresses. */
int rendezvous_listen(void);
/* Waits up to `timeout` ms (-1: without limit) for a client and hands out the adapter's name and address. */
void rendezvous_serve(int listener, int timeout, const char *ia, const struct sockaddr *address);
/* Asks the server at `address` and stores the name of its adapter. */
void rendezvous_ask(const struct sockaddr *address, const char *host, char ia[RENDEZVOUS_TEXT]);

#endif
