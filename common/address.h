/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* address.h - length, port, text, GID, copy and comparison of IP socket addresses. Families other than IPv4 and IPv6
 * have length 0 and port 0. */
#ifndef COMMON_ADDRESS_H
#define COMMON_ADDRESS_H
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

socklen_t address_length(const struct sockaddr *address);
/* Zeroes what `from` does not fill. */
void address_copy(struct sockaddr_storage *to, const struct sockaddr *from);
uint16_t address_port(const struct sockaddr *address);	/* host byte order */
void address_set_port(struct sockaddr *address, uint16_t port);
/* Writes the IP address without its port. Returns `text`, or NULL if the address is of another family. */
const char *address_host(const struct sockaddr *address, char text[INET6_ADDRSTRLEN]);
/* The GID that RoCE makes of an address; 0 for another family. */
void address_gid(const struct sockaddr *address, uint8_t gid[16]);
/* The address of which address_gid() makes these bytes; the rest is 0. */
void address_of_gid(struct sockaddr_storage *address, const uint8_t gid[16]);
bool address_is_loopback(const struct sockaddr *address);
/* Same family and IP address; ports are not compared. A link-local address without a scope equals
 * the same address with any. */
bool address_same_host(const struct sockaddr *a, const struct sockaddr *b);

#endif
