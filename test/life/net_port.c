/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net_port.c - dat_net_port: one qualifier on two IAs of the software device, or on none. */
#include "life.h"
#include <arpa/inet.h>
#include <dat/dat_ib_extensions.h>
#include <dat/dat_net_port.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "test/own_network.h"

enum { IAS = 2 };
static const char *const names[IAS] = { "one", "two" };
static const char *const addresses[IAS] = { "127.0.0.1", "127.0.0.2" };

struct place {
	DAT_IA_HANDLE ias[IAS];
	DAT_EVD_HANDLE evds[IAS], async[IAS];
	DAT_PSP_HANDLE psps[IAS];
	struct dat_net_port_list list;
};

static void open_all(struct place *p)
{
	char conf[1000];

	memset(p, 0, sizeof *p);
	own_network();
	if (system("ip addr add 127.0.0.2/8 dev lo 2>/dev/null"))
		skip("no network namespace here");
	conf[0] = '\0';
	for (int i = 0; i < IAS; i++)
		snprintf(conf + strlen(conf), sizeof conf - strlen(conf),
			 "%s u2.0 nonthreadsafe default %s dapl.2.0 \"%s 0\" \"\"\n", names[i],
			 life_library("libdaplsoft.so.2"), addresses[i]);
	life_conf(conf);
	for (int i = 0; i < IAS; i++) {
		OK(dat_ia_open((DAT_NAME_PTR)(uintptr_t)names[i], 8, &p->async[i], &p->ias[i]));
		OK(dat_evd_create(p->ias[i], 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &p->evds[i]));
	}
	p->list = (struct dat_net_port_list){ p->ias, p->evds, IAS };
}

static void close_all(struct place *p)
{
	for (int i = 0; i < IAS; i++)
		OK(dat_ia_close(p->ias[i], DAT_CLOSE_ABRUPT_FLAG));
}

/* Listens without DAT. Returns the descriptor, or -1. */
static int listen_on(const char *address, unsigned port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, address, &to.sin_addr);
	if (fd >= 0 && !bind(fd, (struct sockaddr *)&to, sizeof to) && !listen(fd, 1))
		return fd;
	close(fd);
	return -1;
}

static bool is_free(const char *address, unsigned port)
{
	int fd = listen_on(address, port);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void number_that_was_asked_for_is_on_all(void)
{
	DAT_CONN_QUAL qual = 7123;
	struct place p;

	open_all(&p);
	OK(dat_net_port(&p.list, DAT_PSP_CONSUMER_FLAG, &qual, p.psps, NULL));
	for (int i = 0; i < IAS; i++) {
		DAT_PSP_PARAM param;

		OK(dat_psp_query(p.psps[i], DAT_PSP_FIELD_ALL, &param));
		EXPECT(param.conn_qual == 7123 && param.ia_handle == p.ias[i]);
		EXPECT(!is_free(addresses[i], 7123));
		OK(dat_psp_free(p.psps[i]));
	}
	close_all(&p);
}

static void number_in_use_leaves_none(void)
{
	DAT_CONN_QUAL qual = 7123;
	DAT_COUNT failed = -1;
	struct place p;
	int fd;

	open_all(&p);
	fd = listen_on(addresses[1], 7123);
	EXPECT(fd >= 0);
	EXPECT(DAT_GET_TYPE(dat_net_port(&p.list, DAT_PSP_CONSUMER_FLAG, &qual, p.psps, &failed)) ==
	       DAT_CONN_QUAL_IN_USE);
	EXPECT(failed == 1 && qual == 7123);
	EXPECT(is_free(addresses[0], 7123));
	close(fd);
	close_all(&p);
}

static void free_number_is_found_among_many_taken(void)
{
	struct rlimit many = { 20000, 20000 };
	DAT_CONN_QUAL qual = 0;
	struct place p;
	unsigned taken = 0;

	setrlimit(RLIMIT_NOFILE, &many);
	open_all(&p);
	if (system("echo 33000 33999 > /proc/sys/net/ipv4/ip_local_port_range"))
		skip("the range of ports cannot be set");
	for (unsigned port = 33000; port < 34000; port += 2)	/* half of the qualifiers, on the second IA */
		taken += listen_on(addresses[1], port) >= 0;
	EXPECT(taken == 500);
	OK(dat_net_port(&p.list, DAT_PSP_CONSUMER_FLAG, &qual, p.psps, NULL));
	EXPECT(qual);
	for (int i = 0; i < IAS; i++) {
		EXPECT(!is_free(addresses[i], (unsigned)qual));
		OK(dat_psp_free(p.psps[i]));
	}
	close_all(&p);
}

static void no_free_number_is_an_error_that_leaves_none(void)
{
	DAT_CONN_QUAL qual = 0;
	DAT_COUNT failed = -1;
	struct place p;
	int before;

	open_all(&p);
	if (system("echo 33000 33999 > /proc/sys/net/ipv4/ip_local_port_range"))
		skip("the range of ports cannot be set");
	p.list.ias = (DAT_IA_HANDLE[]){ p.ias[0], p.ias[0] };	/* its own service has the port each time */
	p.list.evds = (DAT_EVD_HANDLE[]){ p.evds[0], p.evds[0] };
	before = open_descriptors();
	EXPECT(DAT_GET_TYPE(dat_net_port(&p.list, DAT_PSP_CONSUMER_FLAG, &qual, p.psps, &failed)) ==
	       DAT_CONN_QUAL_IN_USE);
	EXPECT(failed == 1 && !qual);
	EXPECT(open_descriptors() == before);
	close_all(&p);
}

static DAT_RETURN listen_for(struct place *p, unsigned protocols, DAT_PSP_HANDLE psps[IAS])
{
	DAT_CONN_QUAL qual = 7123;

	return dat_net_port(&p->list, (DAT_PSP_FLAGS)protocols, &qual, psps, NULL);
}

static void free_points(DAT_PSP_HANDLE psps[IAS])
{
	for (int i = 0; i < IAS; i++)
		OK(dat_psp_free(psps[i]));
}

static void each_protocol_has_numbers_of_its_own(void)
{
	DAT_PSP_HANDLE rc[IAS], ud[IAS], other[IAS];
	DAT_PSP_PARAM param;
	struct place p;

	open_all(&p);
	OK(listen_for(&p, DAT_PSP_RC_FLAG, rc));
	EXPECT(DAT_GET_TYPE(listen_for(&p, DAT_PSP_RC_FLAG, other)) == DAT_CONN_QUAL_IN_USE);
	EXPECT(DAT_GET_TYPE(listen_for(&p, 0, other)) == DAT_CONN_QUAL_IN_USE);
	OK(listen_for(&p, DAT_PSP_UD_FLAG | DAT_PSP_PROVIDER_FLAG, ud));
	EXPECT(DAT_GET_TYPE(listen_for(&p, DAT_PSP_UD_FLAG, other)) == DAT_CONN_QUAL_IN_USE);
	OK(dat_psp_query(ud[0], DAT_PSP_FIELD_ALL, &param));
	EXPECT(param.psp_flags == (DAT_PSP_UD_FLAG | DAT_PSP_PROVIDER_FLAG) && param.conn_qual == 7123);
	free_points(rc);
	EXPECT(DAT_GET_TYPE(listen_for(&p, DAT_PSP_RC_FLAG | DAT_PSP_UD_FLAG, other)) == DAT_CONN_QUAL_IN_USE);
	OK(listen_for(&p, 0, other));	/* for connections only */
	free_points(other);
	free_points(ud);
	OK(listen_for(&p, DAT_PSP_RC_FLAG | DAT_PSP_UD_FLAG, other));
	EXPECT(DAT_GET_TYPE(listen_for(&p, DAT_PSP_UD_FLAG, ud)) == DAT_CONN_QUAL_IN_USE);
	free_points(other);
	EXPECT(DAT_GET_TYPE(listen_for(&p, 0x400, other)) == DAT_INVALID_PARAMETER);
	EXPECT(is_free(addresses[0], 7123));
	close_all(&p);
}

/* Returns the event of a connection to the first IA's service point, which no program accepts; 0: it waits for that. */
static DAT_EVENT_NUMBER answer_to(struct place *p, DAT_SERVICE_TYPE type)
{
	DAT_EP_ATTR attr = { .service_type = type, .max_recv_dtos = 1, .max_request_dtos = 1, .max_recv_iov = 1,
		.max_request_iov = 1 };
	struct sockaddr_in to = { .sin_family = AF_INET };
	DAT_EVD_HANDLE evds[2];
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
	DAT_EVENT event = { .event_number = 0 };
	DAT_COUNT more;

	inet_pton(AF_INET, addresses[0], &to.sin_addr);
	OK(dat_pz_create(p->ias[0], &pz));
	OK(dat_evd_create(p->ias[0], 8, DAT_HANDLE_NULL,
			  (DAT_EVD_FLAGS)(DAT_EVD_CONNECTION_FLAG | DAT_IB_EVD_EXTENSION_FLAG), &evds[0]));
	OK(dat_evd_create(p->ias[0], 8, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_IB_EVD_EXTENSION_FLAG),
			  &evds[1]));
	OK(dat_ep_create(p->ias[0], pz, evds[1], evds[1], evds[0], &attr, &ep));
	OK(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&to, 7123, 5000000, 0, NULL, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	for (int i = 0; i < 100; i++) {
		if (dat_evd_dequeue(p->evds[0], &event) == DAT_SUCCESS) {
			OK(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
			return event.event_number;
		}
		if (dat_evd_wait(evds[0], 50000, 1, &event, &more) == DAT_SUCCESS)
			return event.event_number;
	}
	return 0;
}

static void other_protocols_are_refused(void)
{
	const DAT_SERVICE_TYPE ud = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	struct place p;

	setenv("DAPL_DBG_TYPE", "0", 1);	/* no lines about the two that fail */
	open_all(&p);
	OK(dat_evd_free(p.evds[0]));
	OK(dat_evd_create(p.ias[0], 8, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)(DAT_EVD_CR_FLAG | DAT_IB_EVD_EXTENSION_FLAG),
			  &p.evds[0]));
	p.list.count = 1;
	OK(listen_for(&p, DAT_PSP_UD_FLAG, p.psps));
	EXPECT(answer_to(&p, ud) == (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_REQUEST_EVENT);
	EXPECT(answer_to(&p, DAT_SERVICE_TYPE_RC) == DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	OK(dat_psp_free(p.psps[0]));
	OK(listen_for(&p, DAT_PSP_RC_FLAG, p.psps));
	EXPECT(answer_to(&p, DAT_SERVICE_TYPE_RC) == DAT_CONNECTION_REQUEST_EVENT);
	EXPECT(answer_to(&p, ud) == (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_ERROR_EVENT);
	close_all(&p);
}

static void wrong_arguments_are_refused(void)
{
	DAT_CONN_QUAL qual = 7123;
	struct dat_net_port_list none = { 0 };
	struct place p;

	open_all(&p);
	EXPECT(DAT_GET_TYPE(dat_net_port(NULL, DAT_PSP_CONSUMER_FLAG, &qual, p.psps, NULL)) == DAT_INVALID_PARAMETER);
	EXPECT(DAT_GET_TYPE(dat_net_port(&none, DAT_PSP_CONSUMER_FLAG, &qual, p.psps, NULL)) == DAT_INVALID_PARAMETER);
	EXPECT(DAT_GET_TYPE(dat_net_port(&p.list, DAT_PSP_CONSUMER_FLAG, NULL, p.psps, NULL)) == DAT_INVALID_PARAMETER);
	EXPECT(DAT_GET_TYPE(dat_net_port(&p.list, DAT_PSP_CONSUMER_FLAG, &qual, NULL, NULL)) == DAT_INVALID_PARAMETER);
	close_all(&p);
}

static const struct life_case cases[] = {
	CASE(number_that_was_asked_for_is_on_all),
	CASE(number_in_use_leaves_none),
	CASE(free_number_is_found_among_many_taken),
	CASE(no_free_number_is_an_error_that_leaves_none),
	CASE(each_protocol_has_numbers_of_its_own),
	CASE(other_protocols_are_refused),
	CASE(wrong_arguments_are_refused),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
