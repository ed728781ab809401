/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote_stream.h - the objects of streams over DAT: their list, their numbers on a link, their memory. The service
 * thread calls these functions, but for those of which it is said that any thread may. */
#ifndef SOCK_REMOTE_STREAM_H
#define SOCK_REMOTE_STREAM_H
#include <stdint.h>
#include "sock/remote_types.h"

/* Returns NULL without memory. */
struct remote *remote_stream_create(struct conn *c, const unsigned char key[LINK_KEY]);
void remote_stream_destroy(struct remote *r);
/* The first of all; r->next_all is the next one. */
struct remote *remote_stream_all(void);
/* Gives the stream its link, and its number there. */
void remote_stream_enter(struct remote *r, struct link *link, uint32_t number);
struct remote *remote_stream_find(const struct link *link, uint32_t number);
/* Makes the rings of this end. Returns 0 or a DAT_SOCKET_WHY_*. */
int remote_stream_make_rings(struct remote *r, uint32_t ring);
/* Any thread. */
void remote_stream_post(struct remote *r, enum remote_message type, uint64_t a, uint64_t b, uint64_t c);
/* The peer has lied, or both ends do not agree: the connection is reset. No lock held. */
void remote_stream_reset(struct remote *r, const char *what);
/* In a child: the parent's streams are not this process's. */
void remote_stream_forget_all(void);

#endif
