/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* answers.c - the control socket of a process, for datsock. See answers.h. */
#include "sock/answers.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "common/clock.h"
#include "sock/closer.h"
#include "sock/conn.h"
#include "sock/move.h"
#include "sock/real.h"
#include "sock/remote.h"
#include "sock/service.h"
#include "sock/settings.h"

static int listener = -1;

int answers_open(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int length = offsetof(struct sockaddr_un, sun_path) + 1 +
		     sprintf(sa.sun_path + 1, "datsock1-control-%d", (int)getpid());

	listener = own_fd(REAL(socket)(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (listener >= 0 && (bind(listener, (void *)&sa, length) || listen(listener, 8))) {
		own_fd_close(listener);
		listener = -1;
	}
	return listener;
}

static void write_address(FILE *out, const char *name, struct sockaddr_storage *sa)
{
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_in *in = (const void *)sa;
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(sa->ss_family,
		  sa->ss_family == AF_INET6 ? (const void *)&in6->sin6_addr : (const void *)&in->sin_addr, text,
		  sizeof text);
	fprintf(out, "\"%s\":\"%s\",\"%s_port\":%u,", name, text, name, ntohs(in->sin_port));
}

static const char *carrier(const struct conn *c, bool ring)
{
	return !ring ? "tcp" : c->remote ? "rdma" : "memory";
}

static void write_conn(FILE *out, struct conn *c)
{
	struct sockaddr_storage local = { 0 }, peer = { 0 };
	socklen_t n = sizeof local, m = sizeof peer;
	char reason[MOVE_REASON];

	getsockname(c->fd, (struct sockaddr *)&local, &n);
	getpeername(c->fd, (struct sockaddr *)&peer, &m);
	fprintf(out, "{\"fd\":%d,", c->fd);
	write_address(out, "local", &local);
	write_address(out, "peer", &peer);
	fprintf(out,
		"\"peer_uid\":%lld,\"connector\":%s,\"in\":\"%s\",\"out\":\"%s\",\"adapter\":\"%s\",\"why\":\"%s\","
		"\"read_tcp\":%llu,\"read_memory\":%llu,"
		"\"written_tcp\":%llu,\"written_memory\":%llu,"
		"\"reads\":%llu,\"writes\":%llu,\"wakeups\":%llu,\"moves\":%llu,"
		"\"backs\":%llu,\"ring_out\":%u,\"since_ms\":%llu}",
		c->peer_inode ? (long long)c->peer_uid : -1ll, c->connector ? "true" : "false",
		carrier(c, c->rx.active), carrier(c, c->tx.active), remote_ia(c),
		c->mode == CONN_ATTACHED ? "" : move_reason(c, reason, sizeof reason), (unsigned long long)c->tcp_in,
		(unsigned long long)c->ring_in, (unsigned long long)c->tcp_out, (unsigned long long)c->ring_out,
		(unsigned long long)c->reads, (unsigned long long)c->writes, (unsigned long long)c->wakeups,
		(unsigned long long)c->moves, (unsigned long long)c->backs, c->mode == CONN_ATTACHED ? c->tx.size : 0,
		c->since ? (unsigned long long)((clock_now_ns() - c->since) / 1000000) : 0ull);
}

static void write_counts(FILE *out, const char *name, const uint64_t counts[32])
{
	const char *comma = "";

	fprintf(out, ",\"%s\":{", name);
	for (int i = 0; i < 32; i++)
		if (counts[i]) {
			fprintf(out, "%s\"%s\":%llu", comma, move_why(i), (unsigned long long)counts[i]);
			comma = ",";
		}
	fputc('}', out);
}

/* The connections in the order of the list; with `detail`, each. */
static void write_state(FILE *out, bool detail)
{
	const char *comma = "";
	unsigned open = 0, attached = 0;

	fputs("\"connections\":[", out);
	dapl_mutex_lock(&sock_lock);
	for (struct conn *c = conn_list; c; c = c->next) {
		if (c->closed || (!c->connector && !c->acceptor))
			continue;
		open++;
		attached += c->mode == CONN_ATTACHED;
		if (detail) {
			fputs(comma, out);
			write_conn(out, c);
			comma = ",";
		}
	}
	dapl_mutex_unlock(&sock_lock);
	fprintf(out, "],\"open\":%u,\"moved_now\":%u,\"moved\":%llu,\"closed\":%llu,\"memory\":%zu,"
		"\"foreign\":%llu,\"strangers\":%llu", open, attached,
		(unsigned long long)service_counts.moved, (unsigned long long)service_counts.closed,
		settings_memory_used(), (unsigned long long)service_counts.foreign,
		(unsigned long long)service_counts.strangers);
	write_counts(out, "refused", service_counts.refused);
	write_counts(out, "backs", service_counts.backs);
}

/* Each back needs the peer, so it is only begun; datsock asks until none has moved. */
static void drain(void)
{
	for (struct conn *c = conn_list, *next; c; c = next) {
		next = c->next;
		if (!c->closed && c->mode == CONN_ATTACHED)
			move_back(c, DAT_SOCKET_WHY_DRAIN, true, 0);
	}
}

static void write_config(FILE *out)
{
	fputs("\"config\":", out);
	settings_write(out);
	fputs(",\"from\":", out);
	settings_write_origins(out);
}

static void answer(int fd, char *request)
{
	char *text = NULL, *value;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	fprintf(out, "{\"pid\":%d,", (int)getpid());
	value = strchr(request, '=');
	if (value) {
		const char *wrong;

		*value++ = 0;
		wrong = settings_set(request, value);
		if (wrong) {
			fputs("\"error\":\"", out);
			for (; *wrong; wrong++)
				if ((unsigned char)*wrong >= ' ' && *wrong != '\\')
					fprintf(out, *wrong == '"' ? "'" : "%c", *wrong);
			fputs("\"", out);
		} else {
			write_config(out);
		}
	} else if (!strcmp(request, "config")) {
		write_config(out);
	} else if (!strcmp(request, "list") || !strcmp(request, "stat") || !strcmp(request, "drain") ||
		   !strcmp(request, "reset")) {
		if (!strcmp(request, "drain"))
			drain();
		write_state(out, !strcmp(request, "list"));
		if (!strcmp(request, "reset"))
			service_counts = (struct service_counts){ 0 };
	} else {
		fputs("\"error\":\"unknown request\"", out);
	}
	fputs("}", out);
	if (fclose(out))
		size = 0;
	for (size_t at = 0; at < size;) {
		size_t n = size - at < 16384 ? size - at : 16384;
		struct pollfd p = { fd, POLLOUT, 0 };

		/* A client that does not read is given up after a second. */
		if (REAL(send)(fd, text + at, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n)
			at += n;
		else if (REAL(poll)(&p, 1, 1000) != 1 || p.revents & (POLLERR | POLLHUP))
			break;
	}
	free(text);
}

bool answers_serve(void)
{
	int fd = own_fd(REAL(accept4)(listener, NULL, NULL, SOCK_CLOEXEC));
	struct ucred cred = { 0 };
	socklen_t length = sizeof cred;
	struct pollfd p = { fd, POLLIN, 0 };
	char request[2048];
	ssize_t n;

	if (fd < 0) {
		/* Without a descriptor for it the request waits, and so does this thread instead of spinning. */
		if (errno != EAGAIN)
			REAL(poll)(NULL, 0, 10);
		return true;
	}
	if (REAL(getsockopt)(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) || (cred.uid != geteuid() && cred.uid)) {
		service_counts.strangers++;
		closer_take(fd);
		return false;
	}
	if (REAL(poll)(&p, 1, 1000) == 1) {
		n = REAL(recv)(fd, request, sizeof request - 1, MSG_DONTWAIT);
		if (n > 0) {
			request[n] = 0;
			answer(fd, request);
		}
	}
	own_fd_close(fd);
	return true;
}
