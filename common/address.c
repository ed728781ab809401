/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* address.c - length, port, text, GID, copy and comparison of IP socket addresses. */
#include "common/address.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static const struct sockaddr_in *in4(const struct sockaddr *address)
{
	return (const struct sockaddr_in *)address;
}

static const struct sockaddr_in6 *in6(const struct sockaddr *address)
{
	return (const struct sockaddr_in6 *)address;
}

socklen_t address_length(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:  return sizeof(struct sockaddr_in);
	case AF_INET6: return sizeof(struct sockaddr_in6);
	default:       return 0;
	}
}

void address_copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memset(to, 0, sizeof *to);
	memcpy(to, from, address_length(from));
}

uint16_t address_port(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:  return ntohs(in4(address)->sin_port);
	case AF_INET6: return ntohs(in6(address)->sin6_port);
	default:       return 0;
	}
}

void address_set_port(struct sockaddr *address, uint16_t port)
{
	if (address->sa_family == AF_INET)
		((struct sockaddr_in *)address)->sin_port = htons(port);
	else if (address->sa_family == AF_INET6)
		((struct sockaddr_in6 *)address)->sin6_port = htons(port);
}

const char *address_host(const struct sockaddr *address, char text[INET6_ADDRSTRLEN])
{
	switch (address->sa_family) {
	case AF_INET:  return inet_ntop(AF_INET, &in4(address)->sin_addr, text, INET6_ADDRSTRLEN);
	case AF_INET6: return inet_ntop(AF_INET6, &in6(address)->sin6_addr, text, INET6_ADDRSTRLEN);
	default:       return NULL;
	}
}

void address_gid(const struct sockaddr *address, uint8_t gid[16])
{
	memset(gid, 0, 16);
	if (address->sa_family == AF_INET6) {
		memcpy(gid, &in6(address)->sin6_addr, 16);
	} else if (address->sa_family == AF_INET) {
		gid[10] = gid[11] = 0xff;
		memcpy(gid + 12, &in4(address)->sin_addr, 4);
	}
}

void address_of_gid(struct sockaddr_storage *address, const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	memset(address, 0, sizeof *address);
	if (memcmp(gid, mapped, sizeof mapped)) {
		address->ss_family = AF_INET6;
		memcpy(&((struct sockaddr_in6 *)address)->sin6_addr, gid, 16);
	} else {
		address->ss_family = AF_INET;
		memcpy(&((struct sockaddr_in *)address)->sin_addr, gid + sizeof mapped, 4);
	}
}

bool address_is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(in4(address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6(address)->sin6_addr);
}

/* A scope of 0 is unknown, and so equal to any. */
static bool same_scope(const struct sockaddr_in6 *a, const struct sockaddr_in6 *b)
{
	return !IN6_IS_ADDR_LINKLOCAL(&a->sin6_addr) || !a->sin6_scope_id || !b->sin6_scope_id ||
	       a->sin6_scope_id == b->sin6_scope_id;
}

bool address_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return in4(a)->sin_addr.s_addr == in4(b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       !memcmp(&in6(a)->sin6_addr, &in6(b)->sin6_addr, sizeof(struct in6_addr)) &&
	       same_scope(in6(a), in6(b));
}
