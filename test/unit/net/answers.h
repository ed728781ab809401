/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* answers.h - the kernel's answers to requests over rtnetlink, given by a test in place of net_ask(), and a record
 * of these requests. Needs -Wl,--wrap=net_ask. */
#ifndef TEST_NET_ANSWERS_H
#define TEST_NET_ANSWERS_H
#include "test/unit/net/messages.h"

enum { ANSWERS = 16 };		/* more than a case needs; a further request fails the case */

extern struct nl_msg *requests[ANSWERS];	/* since answers_forget() */
extern size_t request_count;

/* The next request gets `msg`, or none if it is NULL, and then this errno or 0. */
void answer_with(struct nl_msg *msg, int err);
/* Frees requests and answers. */
void answers_forget(void);
/* The structure behind a request's header of netlink. */
const void *request_head(size_t i);
const struct nlattr *request_attribute(size_t i, size_t head, int kind);	/* NULL: it has none */

#endif
