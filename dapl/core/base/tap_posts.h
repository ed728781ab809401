/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap_posts.h - records of verbs work requests and completions, for devices that show their messages
 * (tap.h): what a request does, and the memory for payload that comes with its completion. The device reads
 * that memory, and checks that a capture runs. */
#ifndef DAPL_CORE_TAP_POSTS_H
#define DAPL_CORE_TAP_POSTS_H
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include "common/tap.h"

enum { DAPL_TAP_SGES = 4 };	/* segments of a post that are remembered */

/* The memory for payload that has not arrived yet. */
struct dapl_tap_sink {
	uint64_t wr_id;			/* 0: the entry is free */
	uint32_t sges;
	struct ibv_sge sge[DAPL_TAP_SGES];
	struct tap_record request;	/* of a read or an atomic */
} __attribute__((aligned(64)));

/* Before the first use. */
void dapl_tap_posts_init(void);

/* Fills a zeroed record with the data of a request, except time, QP and connection. Returns false if the
 * request sends no message. */
bool dapl_tap_describe(struct tap_record *to, const struct ibv_send_wr *wr);
/* Returns true if the payload comes with the completion: a read or an atomic. */
static inline bool dapl_tap_fetches(const struct tap_record *record)
{
	return record->op != TAP_SEND && record->op != TAP_WRITE;
}
void dapl_tap_put_address(struct tap_address *to, const struct sockaddr_storage *from);

/* Remembers the memory of a post until it completes. A later post may take the entry: then the payload is
 * not recorded. `request` is the record of a read or an atomic, else NULL. Any locks may be held. */
void dapl_tap_remember(uint64_t wr_id, const struct ibv_sge *sge, int sges, const struct tap_record *request);
void dapl_tap_remember_receives(const struct ibv_recv_wr *wr);

/* Returns true for completions that bring payload or end a receive. */
bool dapl_tap_is_recorded(const struct ibv_wc *wc);
/* Fills the record of such a completion, except time, QP, connection and payload, and writes the memory of
 * the payload to *sink. Returns false if there is no message to show. */
bool dapl_tap_describe_completion(struct tap_record *to, struct dapl_tap_sink *sink, const struct ibv_wc *wc);

#endif
