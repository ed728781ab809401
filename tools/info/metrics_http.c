/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* metrics_http.c - the HTTP server of datinfo --metrics --listen, by libevent. The main thread answers the requests,
 * one after the other, because control_ask_all() runs there only. */
#include "tools/info/metrics.h"
#include "tools/cli.h"
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
	TIMEOUT_S = 10,		/* seconds until a client that is silent is dropped */
	CLIENTS = 16,		/* connections that wait to be accepted */
};

static const char type[] = "text/plain; version=0.0.4; charset=utf-8";

static void answer(struct evhttp_request *request, void *context)
{
	enum evhttp_cmd_type command = evhttp_request_get_command(request);
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	size_t length;
	char *text;

	(void)context;
	if (command != EVHTTP_REQ_GET && command != EVHTTP_REQ_HEAD) {
		evhttp_send_error(request, HTTP_BADMETHOD, NULL);
		return;
	}
	text = metrics_text(&length);
	if (evhttp_add_header(headers, "Content-Type", type) ||
	    evbuffer_add(evhttp_request_get_output_buffer(request), text, length))
		fail("there is no memory left");
	free(text);
	evhttp_send_reply(request, HTTP_OK, "OK", NULL);
}

/* Returns a socket that listens at the address, which the tool has not bound before. */
static int listen_at(const char *host, unsigned long port, const char *where)
{
	const struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM };
	const int on = 1;
	struct addrinfo *address;
	char service[24];
	int error, fd;

	snprintf(service, sizeof service, "%lu", port);
	error = getaddrinfo(host, service, &hints, &address);
	if (error)
		fail("--listen %s: %s", where, gai_strerror(error));
	fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
	    bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, CLIENTS))
		fail("--listen %s: %s", where, strerror(errno));
	freeaddrinfo(address);
	return fd;
}

static void end(evutil_socket_t signal, short what, void *base)
{
	(void)signal, (void)what;
	event_base_loopexit(base, NULL);
}

static void catch_signals(struct event_base *base)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct event *event;

	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		event = evsignal_new(base, signals[i], end, base);
		if (!event || event_add(event, NULL))
			fail("there is no memory left");
	}
}

int metrics_serve(const char *where)
{
	struct cli_server at = { .host = "127.0.0.1" };
	struct event_base *base = event_base_new();
	struct evhttp *server = base ? evhttp_new(base) : NULL;

	if (!server)
		fail("there is no memory left");
	if (strspn(where, "0123456789") == strlen(where))
		at.port = cli_number("--listen", where, 1, UINT16_MAX);
	else
		at = cli_server("--listen", where, UINT16_MAX);
	if (!at.port)
		usage_error("--listen: \"%s\" found, PORT or ADDRESS:PORT expected", where);
	catch_signals(base);
	evhttp_set_timeout(server, TIMEOUT_S);
	if (evhttp_set_cb(server, "/metrics", answer, NULL) ||
	    evhttp_accept_socket(server, listen_at(at.host, at.port, where)))
		fail("--listen %s: the HTTP server does not start", where);
	event_base_dispatch(base);
	evhttp_free(server);
	return 0;
}
