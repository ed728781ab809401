/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* answers.c - see answers.h. */
#include "net/netlink.h"
#include "test/unit/net/answers.h"
#include "test/unit/unit.h"

struct nl_msg *requests[ANSWERS];
size_t request_count;

static struct {
	struct nl_msg *msg;
	int err;
} answers[ANSWERS];
static size_t answer_count;

REPLACE(net_ask)
int __wrap_net_ask(struct nl_sock *sock, struct nl_msg *msg, void (*each)(struct nl_object *, void *), void *arg)
{
	size_t i = request_count;

	assert_true(i < answer_count);
	requests[request_count++] = msg;
	if (answers[i].msg)
		assert_int_equal(net_parse(answers[i].msg, each, arg), 0);
	return answers[i].err;
}

void answer_with(struct nl_msg *msg, int err)
{
	assert_true(answer_count < ANSWERS);
	answers[answer_count].msg = msg;
	answers[answer_count++].err = err;
}

void answers_forget(void)
{
	while (request_count)
		nlmsg_free(requests[--request_count]);
	while (answer_count)
		nlmsg_free(answers[--answer_count].msg);
}

const void *request_head(size_t i)
{
	assert_true(i < request_count);
	return nlmsg_data(nlmsg_hdr(requests[i]));
}

const struct nlattr *request_attribute(size_t i, size_t head, int kind)
{
	assert_true(i < request_count);
	return nlmsg_find_attr(nlmsg_hdr(requests[i]), (int)head, kind);
}
