/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_platform_specific.h - the basic types, spelled for POSIX systems. */
#ifndef _DAT_PLATFORM_SPECIFIC_H_
#define _DAT_PLATFORM_SPECIFIC_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>	/* not needed here; old programs get it from <dat2/udat.h> */
#include <sys/types.h>
#include <sys/socket.h>

/* Calling convention and direction of parameters: for the reader only. */
#define DAT_API
#define DAT_EXPORT extern
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef INOUT
#define INOUT
#endif

/* Numbers are in host byte order. */
typedef uint32_t DAT_UINT32;
typedef uint64_t DAT_UINT64;
#ifdef __GNUC__
__extension__	/* C89 has no long long */
#endif
typedef unsigned long long DAT_UVERYLONG;
typedef void *DAT_PVOID;
typedef int DAT_COUNT;
typedef DAT_UINT64 DAT_PADDR;
typedef int DAT_FD;

#ifndef UINT64_C	/* C++ before C++11 */
#define UINT64_C(c) c##ULL
#endif

/* Bytes. Buffers that start at a multiple of this move fastest. */
#ifndef DAT_OPTIMAL_ALIGNMENT
#define DAT_OPTIMAL_ALIGNMENT 256
#endif

/* Addresses are those of sockets. DAT_SOCK_ADDR6 is complete once <netinet/in.h> is
 * included. */
typedef struct sockaddr DAT_SOCK_ADDR;
typedef struct sockaddr_in6 DAT_SOCK_ADDR6;
#define DAT_AF_INET  AF_INET
#define DAT_AF_INET6 AF_INET6

/* The three arguments of socket(2), for common service points. */
typedef struct dat_comm {
	int domain;
	int type;
	int protocol;
} DAT_COMM;

#define DAT_IA_HANDLE_TO_UL(a) ((unsigned long)(a))
#define DAT_UL_TO_IA_HANDLE(a) ((DAT_IA_HANDLE)(a))

#endif
