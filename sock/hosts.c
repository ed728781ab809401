/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hosts.c - the process's connection to datsockd, and the TCP connections that wait for its answers. See hosts.h. */
#include "sock/hosts.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include "common/address.h"
#include "common/env.h"
#include "sock/conn.h"
#include "sock/real.h"
#include "sock/service.h"

static int service = -1;
static bool was_there; /* so the administrator has enabled it */
static uint32_t last_id;
static struct conn *waiting; /* by next_host: those that have asked, and have not forgotten */

/* Only root answers for the host; below DAT_TEST_ROOT the user, too. */
static bool is_trusted(int fd)
{
	struct ucred cred;
	socklen_t size = sizeof cred;

	return !REAL(getsockopt)(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) &&
	       (cred.uid == 0 || (*test_root() && cred.uid == geteuid()));
}

/* Returns 0 or an errno. */
static int open_service(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd, err, length;

	if (service >= 0)
		return 0;
	length = snprintf(sa.sun_path, sizeof sa.sun_path, "%s%s", test_root(), SOCK_SERVICE_PATH);
	if (length >= (int)sizeof sa.sun_path)
		return ENAMETOOLONG;
	fd = own_fd(REAL(socket)(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return EMFILE;
	err = REAL(connect)(fd, (void *)&sa, sizeof sa) ? errno : is_trusted(fd) ? 0 : EPERM;
	if (err)
		own_fd_close(fd);
	else
		service = fd, was_there = true;
	return err == ENOENT && was_there ? ECONNREFUSED : err;
}

/* Returns 0 or an errno. fd: passed with the request, -1: none. */
static int send_request(enum sock_service_type type, uint32_t id, uint64_t qualifier, int fd)
{
	struct sock_service_request r = { SOCK_SERVICE_MAGIC, SOCK_SERVICE_VERSION, type, id, 0, qualifier };
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof fd)] = { 0 };
	struct iovec iov = { &r, sizeof r };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *head;

		msg.msg_control = control, msg.msg_controllen = sizeof control;
		head = CMSG_FIRSTHDR(&msg);
		*head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET,
					  .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(head), &fd, sizeof fd);
	}
	return REAL(sendmsg)(service, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof r ? 0 : errno;
}

static struct conn *find(uint32_t id)
{
	for (struct conn *c = waiting; c; c = c->next_host)
		if (c->host_id == id)
			return c;
	return NULL;
}

static void drop(struct conn *c)
{
	struct conn **at = &waiting;

	while (*at != c)
		at = &(*at)->next_host;
	*at = c->next_host;
	c->host_id = 0;
}

/* Those that wait for an answer are told that none comes; those that peers were to find are not found. */
static void close_service(void)
{
	const struct hosts_answer none = { .result = SOCK_SERVICE_NO_PEER };

	own_fd_close(service);
	service = -1;
	while (waiting) {
		struct conn *c = waiting;

		drop(c);
		service_host_answered(c, &none);
	}
}

int hosts_ask(struct conn *c)
{
	int err;

	hosts_forget(c);
	last_id += last_id == UINT32_MAX ? 2 : 1; /* 0: none */
	err = open_service();
	if (!err)
		err = send_request(c->connector ? SOCK_SERVICE_ASK : SOCK_SERVICE_EXPECT, last_id, 0, c->fd);
	if (err)
		return err;
	c->host_id = last_id;
	c->next_host = waiting, waiting = c;
	return 0;
}

void hosts_here(struct conn *c, uint64_t qualifier)
{
	if (c->host_id)
		send_request(SOCK_SERVICE_HERE, c->host_id, qualifier, -1);
}

void hosts_forget(struct conn *c)
{
	if (!c->host_id)
		return;
	if (!c->connector)
		send_request(SOCK_SERVICE_FORGET, c->host_id, 0, -1);
	drop(c);
}

int hosts_fd(void)
{
	return service;
}

static void on_answer(const struct sock_service_answer *a)
{
	struct conn *c = find(a->id);
	struct hosts_answer answer = { .result = a->result, .ia = a->ia, .qualifier = a->qualifier };

	/* The type is that of what was asked: a connector is told where its peer is. */
	if (!c || (a->type == SOCK_SERVICE_ASK) != c->connector)
		return;
	memcpy(answer.key, a->key, sizeof answer.key);
	address_of_gid(&answer.peer, a->peer);
	if (c->connector || a->result)
		drop(c);
	service_host_answered(c, &answer);
}

void hosts_dispatch(void)
{
	while (service >= 0) {
		struct sock_service_answer a;
		ssize_t n = REAL(recv)(service, &a, sizeof a, MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0 || !sock_service_is_answer(&a, (size_t)n))
			close_service();
		else
			on_answer(&a);
	}
}

void hosts_after_fork(void)
{
	own_fd_close(service);
	service = -1;
	was_there = false;
	for (struct conn *c = waiting; c; c = c->next_host)
		c->host_id = 0;
	waiting = NULL;
}
