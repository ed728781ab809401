/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qualifiers.c - connection qualifiers of 64 bits between two processes, each of which may use
 * the stock library: both must compute the same port. Run by suite.
 *
 *   qualifiers IA            serves
 *   qualifiers IA ADDRESS    connects to each qualifier, and to its port as a qualifier
 *
 * The last qualifier is a reserved service point's, which takes one request; its port is not
 * called. */
#include <dat/udat.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ports on this side of 65536, and above it. No two of them have one port. */
static const DAT_CONN_QUAL quals[] = {
	45290, 65535, 65536, 70000, (DAT_CONN_QUAL)1 << 32 | 7, ~(DAT_CONN_QUAL)0, 1000007,
};
enum { QUALS = sizeof quals / sizeof *quals, CONNECTIONS = 2 * QUALS - 1 };
enum { WAIT = 30000000 };	/* microseconds */

#define OK(call) ok(#call, (call))
static void ok(const char *call, DAT_RETURN ret)
{
	const char *major = "?", *minor = "?";

	if (ret == DAT_SUCCESS)
		return;
	dat_strerror(ret, &major, &minor);
	printf("FAILED: %s: %s %s\n", call, major, minor);
	exit(1);
}

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;

static DAT_EVD_HANDLE an_evd(DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd;

	OK(dat_evd_create(ia, 64, DAT_HANDLE_NULL, flags, &evd));
	return evd;
}

static DAT_EP_HANDLE an_ep(DAT_EVD_HANDLE conn)
{
	DAT_EP_HANDLE ep;

	OK(dat_ep_create(ia, pz, an_evd(DAT_EVD_DTO_FLAG), an_evd(DAT_EVD_DTO_FLAG), conn, NULL, &ep));
	return ep;
}

static DAT_EVENT await(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	DAT_COUNT more;
	DAT_EVENT event;

	OK(dat_evd_wait(evd, WAIT, 1, &event, &more));
	if (event.event_number != number) {
		printf("FAILED: event 0x%x, expected 0x%x\n", event.event_number, number);
		exit(1);
	}
	return event;
}

static void serve(void)
{
	DAT_EVD_HANDLE cr = an_evd(DAT_EVD_CR_FLAG), conn = an_evd(DAT_EVD_CONNECTION_FLAG);
	DAT_EP_HANDLE reserved = an_ep(conn);
	DAT_CR_ARRIVAL_EVENT_DATA *data;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_EVENT event;

	for (int i = 0; i < QUALS - 1; i++)
		OK(dat_psp_create(ia, quals[i], cr, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_rsp_create(ia, quals[QUALS - 1], reserved, cr, &rsp));
	printf("ready\n");
	for (int i = 0; i < CONNECTIONS; i++) {
		event = await(cr, DAT_CONNECTION_REQUEST_EVENT);
		data = &event.event_data.cr_arrival_event_data;
		if (data->conn_qual != quals[i / 2]) {
			printf("FAILED: request %d came to %llu, expected %llu\n", i,
			       (unsigned long long)data->conn_qual, (unsigned long long)quals[i / 2]);
			exit(1);
		}
		OK(dat_cr_accept(data->cr_handle, i / 2 == QUALS - 1 ? DAT_HANDLE_NULL : an_ep(conn), 0,
				 NULL));
		await(conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	}
	/* The client ends its connections when it has made them all. */
	for (int i = 0; i < CONNECTIONS; i++)
		await(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void call(const char *name)
{
	DAT_EVD_HANDLE conn = an_evd(DAT_EVD_CONNECTION_FLAG);
	DAT_EP_HANDLE ep[CONNECTIONS];
	struct sockaddr_storage to;
	struct addrinfo *found;

	if (getaddrinfo(name, NULL, NULL, &found)) {
		printf("FAILED: %s is no address\n", name);
		exit(1);
	}
	memset(&to, 0, sizeof to);
	memcpy(&to, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	for (int i = 0; i < CONNECTIONS; i++) {
		DAT_CONN_QUAL qual = quals[i / 2];

		if (i % 2 && qual > 65535)
			qual = qual % 32001 + 33534;
		printf("connecting to %llu\n", (unsigned long long)qual);
		ep[i] = an_ep(conn);
		OK(dat_ep_connect(ep[i], (DAT_IA_ADDRESS_PTR)&to, qual, WAIT, 0, NULL,
				  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
		await(conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		OK(dat_ep_disconnect(ep[i], DAT_CLOSE_ABRUPT_FLAG));
		await(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	}
}

int main(int argc, char **argv)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: qualifiers IA [ADDRESS]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	OK(dat_ia_open(argv[1], 8, &async, &ia));
	OK(dat_pz_create(ia, &pz));
	if (argc == 3)
		call(argv[2]);
	else
		serve();
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	printf("qualifiers agree\n");
	return 0;
}
