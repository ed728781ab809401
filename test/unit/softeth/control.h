/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control.h - control messages that come with a message of a socket that a test replaces. */
#ifndef TEST_SOFTETH_CONTROL_H
#define TEST_SOFTETH_CONTROL_H
#include <stddef.h>
#include <sys/socket.h>

/* Appends one to the `*used` bytes that are there. A case fails if its receiver has no room for it. */
void control_add(struct msghdr *message, size_t *used, int level, int type, const void *data, size_t size);

#endif
