/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rtnl.c - see rtnl.h. */
#include "common/rtnl.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DATAGRAM_BYTES = 16384 };	/* of a dump the kernel fills no more than the buffer of recv() */

struct answer {
	void (*each)(const struct nlmsghdr *, void *);
	void *arg;
	bool whole;		/* the last message was read */
	int err;
};

static int error_of(const struct nlmsghdr *head)
{
	const struct nlmsgerr *error = NLMSG_DATA(head);

	return head->nlmsg_len < NLMSG_LENGTH(sizeof error->error) ? EBADMSG : -error->error;
}

static void take_message(struct answer *a, const struct nlmsghdr *head)
{
	if (head->nlmsg_flags & NLM_F_DUMP_INTR)
		a->err = EINTR;
	if (head->nlmsg_type == NLMSG_ERROR) {
		a->whole = true;
		a->err = error_of(head);
	} else if (head->nlmsg_type == NLMSG_DONE) {
		a->whole = true;
	} else {
		a->each(head, a->arg);
		a->whole = !(head->nlmsg_flags & NLM_F_MULTI);
	}
}

/* NLMSG_OK for a signed length: what is left becomes negative behind a message without padding. */
static bool is_message(const struct nlmsghdr *head, int left)
{
	return left >= (int)sizeof *head && head->nlmsg_len >= sizeof *head && head->nlmsg_len <= (unsigned)left;
}

static int read_answer(int fd, struct answer *a)
{
	char bytes[DATAGRAM_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *head;
	ssize_t n;
	int left;	/* bytes */

	while (!a->whole) {
		do
			n = recv(fd, bytes, sizeof bytes, MSG_TRUNC);
		while (n < 0 && errno == EINTR);
		if (n < 0)
			return errno;
		if ((size_t)n > sizeof bytes)
			return EMSGSIZE;
		left = (int)n;
		head = (const void *)bytes;
		if (!is_message(head, left))
			return EBADMSG;
		for (; !a->whole && is_message(head, left); head = NLMSG_NEXT(head, left))
			take_message(a, head);
	}
	return a->err;
}

int rtnl_request(struct nlmsghdr *request, void (*each)(const struct nlmsghdr *, void *), void *arg)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), err = 0;
	struct answer a = { .each = each, .arg = arg };

	if (fd < 0)
		return errno;
	if (send(fd, request, request->nlmsg_len, 0) < 0)
		err = errno;
	if (!err)
		err = read_answer(fd, &a);
	close(fd);
	return err;
}

const void *rtnl_attribute(const struct rtattr *at, int length, int kind, size_t size)
{
	for (; RTA_OK(at, length); at = RTA_NEXT(at, length))
		if ((at->rta_type & NLA_TYPE_MASK) == kind && RTA_PAYLOAD(at) >= size)
			return RTA_DATA(at);
	return NULL;
}

bool rtnl_is_text(const struct rtattr *at, int kind, const char *text)
{
	size_t length = strlen(text);

	return (at->rta_type & NLA_TYPE_MASK) == kind && RTA_PAYLOAD(at) > length &&
	       !memcmp(RTA_DATA(at), text, length + 1);
}
