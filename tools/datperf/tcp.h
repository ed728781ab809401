/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tcp.h - TCP between the two hosts of a measurement, on the addresses of the adapters (--compare): what the same path
 * gives without RDMA. */
#ifndef DATPERF_TCP_H
#define DATPERF_TCP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The server's side. tcp_listen() returns a socket that listens on a free port of the address, and stores the port; -1
 * if that fails. tcp_serve() accepts one connection there, and serves it until the client closes it: echoes messages of
 * `size` bytes, or receives them and acknowledges groups of them. It waits a bounded time, and closes the socket. */
int tcp_listen(const struct sockaddr *at, uint16_t *port);
void tcp_serve(int listener, size_t size, bool echo);

/* The client's side. Connects to the address and port. Returns NULL, or the reason why that fails; the text is
 * valid until the next call. */
const char *tcp_connect(const struct sockaddr *to, uint16_t port, int *fd);
/* Measure for about `seconds`, and close the connection. tcp_latency() returns the median of half a round trip of
 * `size` bytes, in microseconds; tcp_bandwidth() the bytes a second of messages of that size. */
double tcp_latency(int fd, size_t size, double seconds);
double tcp_bandwidth(int fd, size_t size, double seconds);

#endif
