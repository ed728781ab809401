/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* netlink.c - see netlink.h. */
#include "tools/control/netlink.h"
#include <errno.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <stdbool.h>

struct dump {
	void (*each)(struct nlmsghdr *head, void *arg);
	void *arg;
	bool done;
	int err;
};

static int on_valid(struct nl_msg *msg, void *arg)
{
	struct dump *dump = arg;

	dump->each(nlmsg_hdr(msg), dump->arg);
	return NL_OK;
}

static int on_end(struct nl_msg *msg, void *arg)
{
	(void)msg;
	((struct dump *)arg)->done = true;
	return NL_STOP;
}

static int on_error(struct sockaddr_nl *from, struct nlmsgerr *error, void *arg)
{
	struct dump *dump = arg;

	(void)from;
	dump->done = true;
	dump->err = error->error ? -error->error : EIO;
	return NL_STOP;
}

/* Answers that arrive before a failure are passed to each(), too, and the tools show them. */
static int receive(struct nl_sock *sock, struct dump *dump)
{
	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, on_valid, dump);
	nl_socket_modify_cb(sock, NL_CB_FINISH, NL_CB_CUSTOM, on_end, dump);
	nl_socket_modify_err_cb(sock, NL_CB_CUSTOM, on_error, dump);
	while (!dump->done)
		if (nl_recvmsgs_default(sock) < 0 && !dump->done)
			return EIO;
	return dump->err;
}

int netlink_dump(int protocol, struct nl_msg *msg, void (*each)(struct nlmsghdr *head, void *arg), void *arg)
{
	struct dump dump = { .each = each, .arg = arg };
	struct nl_sock *sock = msg ? nl_socket_alloc() : NULL;
	int err = sock ? 0 : ENOMEM;

	errno = 0;
	if (!err && nl_connect(sock, protocol))
		err = errno ? errno : EIO;
	if (!err && nl_send_auto(sock, msg) < 0)
		err = EIO;
	if (!err)
		err = receive(sock, &dump);
	nl_socket_free(sock);
	nlmsg_free(msg);
	return err;
}
