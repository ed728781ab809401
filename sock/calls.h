/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* calls.h - what the files with interposed functions (calls_*.c) share. Include it first: the functions are defined
 * under the names that libc exports, so the headers must not redirect or check them. */
#ifndef SOCK_CALLS_H
#define SOCK_CALLS_H
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "sock/conn.h"
#include "sock/epoll.h"
#include "sock/move.h"
#include "sock/real.h"
#include "sock/settings.h"
#include "sock/stream.h"

#define EXPORT __attribute__((visibility("default")))
#define ALIAS(name) __attribute__((visibility("default"), alias(#name)))

enum { BACK_FOR_EVER = -1 };

/* A child of vfork() makes a copy of a descriptor, or keeps it, for the program that it will execute: the connection
 * goes back to TCP. Does nothing in other processes. */
void process_passes_on(int fd);

#endif
