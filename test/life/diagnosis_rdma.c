/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* diagnosis_rdma.c - the lines about failed connections on kernel RDMA. The environment:
 * LIFE_DEVICE names the device, LIFE_ADDRESS is its address, LIFE_NOBODY one that no host has, LIFE_WIRE is "ib" or
 * "iwarp". test/life/diagnosis has what holds for every device: rate limits, traces, the switch. */
#include "failures.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#define ADDRESS "[0-9]+\\.[0-9]+\\.[0-9]+\\.[0-9]+"
enum { UNUSED_PORT = 45290, PATIENCE = 120000000 };	/* us */

static bool iwarp;
static const char *address, *nobody;

static void connect_nowhere(const void *arg)
{
	struct active a;

	(void)arg;
	open_active(&a);
	connect_gives(&a, a.ep, address, UNUSED_PORT, PATIENCE,
		      DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	if (iwarp)
		expect_error(a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, DAT_DIAG_STEP_CONNECT,
			     ECONNREFUSED, DAT_DIAG_CODE_NONE, 0);
	else
		expect_error(a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, DAT_DIAG_STEP_REPLY, 0,
			     DAT_DIAG_CODE_IB_REJECT, 8);
	close_active(&a);
}

static void a_refused_connect_is_one_line(void)
{
	expect_lines(connect_nowhere, iwarp ?
		     "^dapl: connect to " ADDRESS " port 45290 from " ADDRESS " port [0-9]+ " IA
		     ": connection refused" TIME " \\(nobody listens there\\)$" :
		     "^dapl: connect to " ADDRESS " port 45290 from " ADDRESS " port [0-9]+ " IA
		     ": reply: rejected: invalid service ID \\(8\\)" TIME
		     " \\(nobody listens there\\)$", NULL);
}

static void connect_without_listener(const void *arg)
{
	DAT_LAST_ERROR error;
	struct active a;

	(void)arg;
	open_active(&a);
	connect_gives(&a, a.ep, nobody, UNUSED_PORT, PATIENCE, DAT_CONNECTION_EVENT_UNREACHABLE);
	OK(dat_ext_last_error(a.ep, &error));
	EXPECT(iwarp || error.step == DAT_DIAG_STEP_RESOLVE_ADDRESS);
	EXPECT(error.error == ETIMEDOUT || error.error == EHOSTUNREACH ||
	       error.error == ENETUNREACH);
	close_active(&a);
}

static void an_address_that_no_host_has_is_one_line(void)
{
	setenv("DAPL_CM_ARP_TIMEOUT_MS", "500", 1);
	setenv("DAPL_CM_ARP_RETRY_COUNT", "1", 1);
	expect_lines(connect_without_listener, "^dapl: connect to " ADDRESS " port 45290 from " ADDRESS
		     ".* " IA ": ([a-z ]+: )?((connection timed out|no route to host)" TIME
		     " \\(does a host on this network have that address\\?\\)|network is unreachable"
		     TIME " \\(this host has no route to that address\\))$", NULL);
}

static void success_is_silent(void)
{
	expect_lines(in_session, NULL, NULL);
}

static void reject(const void *arg)
{
	struct sockaddr_in to = address_of(address);
	DAT_EVD_HANDLE requests;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_EVENT event;
	DAT_LAST_ERROR error;
	struct active a;

	(void)arg;
	open_active(&a);
	OK(dat_evd_create(a.ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests));
	OK(dat_psp_create_any(a.ia, &qual, requests, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_connect(a.ep, (DAT_IA_ADDRESS_PTR)&to, qual, PATIENCE, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	OK(await(requests, DAT_CONNECTION_REQUEST_EVENT, MOMENT, &event));
	OK(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
	OK(await(a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, MOMENT, NULL));
	OK(dat_ext_last_error(a.ep, &error));
	EXPECT(error.event == DAT_CONNECTION_EVENT_PEER_REJECTED);
	EXPECT(error.step == DAT_DIAG_STEP_REPLY);
	close_active(&a);
}

static void a_reject_of_the_program_is_silent(void)
{
	expect_lines(reject, NULL, NULL);
}

/* The line of the requester has the status of the completion. That of the responder has the event of its
 * device, or says only that the connection ended. */
static void write_out_of_range(const void *arg)
{
	struct session *s = malloc(sizeof *s);
	DAT_LMR_TRIPLET from = { .segment_length = 64 };
	DAT_RMR_TRIPLET to = { .segment_length = 64 };
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_LAST_ERROR error;

	(void)arg;
	OK(session_open(s, MOMENT));
	from.lmr_context = s->a.local;
	from.virtual_address = (uintptr_t)s->a.memory;
	to.rmr_context = s->b.remote;
	to.virtual_address = (uintptr_t)s->b.memory + SIDE_MEMORY;
	OK(dat_ep_post_rdma_write(s->a.ep, 1, &from, cookie, &to, DAT_COMPLETION_DEFAULT_FLAG));
	OK(await(s->a.request, DAT_DTO_COMPLETION_EVENT, MOMENT, NULL));
	OK(await(s->a.conn, DAT_CONNECTION_EVENT_BROKEN, MOMENT, NULL));
	OK(dat_ext_last_error(s->a.ep, &error));
	EXPECT(error.event == DAT_CONNECTION_EVENT_BROKEN);
	EXPECT(error.step == DAT_DIAG_STEP_TRANSFER);
	EXPECT(error.code_kind == DAT_DIAG_CODE_COMPLETION && error.code == IBV_WC_REM_ACCESS_ERR);
	OK(session_close(s));
}

static void an_access_out_of_range_has_its_line(void)
{
	struct child_result result;

	if (iwarp)
		skip("siw completes a write before the peer refuses it, and then disconnects");
	result = run(write_out_of_range, NULL);
	if (result.status || !matches(result.text, "^dapl: connection to " ADDRESS " port [0-9]+ from "
				    ADDRESS " port [0-9]+ " IA ": transfer: remote access error "
				    "\\(10\\)" TIME " \\(compare RMR context, range and access "
				    "rights with the peer's LMR\\)$"))
		fail("status 0x%x: %s", result.status, result.text);
}

/* The other process connects, and is killed while a message to it is in progress. */
static void survive(const void *arg)
{
	struct sockaddr_in to = address_of(address);
	struct session *s = malloc(sizeof *s);
	struct active a;
	DAT_EVENT event;
	int status;
	pid_t pid;

	(void)arg;
	pid = fork();
	if (!pid) {
		DAT_CONN_QUAL qual = UNUSED_PORT;

		open_active(&a);
		do {	/* waits until the parent listens; prints no lines */
			a.ep = new_ep(&a, false);
			OK(dat_ep_connect(a.ep, (DAT_IA_ADDRESS_PTR)&to, qual, PATIENCE, 0, NULL,
					  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
			OK(dat_evd_wait(a.conn, DAT_TIMEOUT_INFINITE, 1, &event, &status));
		} while (event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED);
		pause();
	}
	memset(s, 0, sizeof *s);
	open_active(&a);
	OK(dat_evd_create(a.ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &s->cr));
	OK(dat_psp_create(a.ia, UNUSED_PORT, s->cr, DAT_PSP_CONSUMER_FLAG, &s->psp));
	OK(await(s->cr, DAT_CONNECTION_REQUEST_EVENT, PATIENCE, &event));
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, a.ep, 0, NULL));
	OK(await(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, PATIENCE, NULL));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	OK(dat_evd_wait(a.conn, PATIENCE, 1, &event, &status));
	printf("event 0x%x\n", event.event_number);
	fflush(stdout);
	close_active(&a);
}

/* The kernel disconnects for a process that is killed: an orderly end, which prints no line. */
static void a_killed_peer_is_told_as_the_kernel_tells_it(void)
{
	struct child_result result;

	setenv("DAPL_DBG_TYPE", "3", 1);
	result = run(survive, NULL);
	if (result.status)
		fail("status 0x%x: %s", result.status, result.text);
	if (!matches(result.text, "^event 0x4005$") &&	/* DISCONNECTED */
	    !matches(result.text, "^dapl: connection to .*: transfer: .*"))
		fail("neither disconnected nor a line: %s", result.text);
}

static const struct life_case cases[] = {
	CASE(a_refused_connect_is_one_line),
	CASE(an_address_that_no_host_has_is_one_line),
	CASE(success_is_silent),
	CASE(a_reject_of_the_program_is_silent),
	CASE(an_access_out_of_range_has_its_line),
	CASE(a_killed_peer_is_told_as_the_kernel_tells_it),
};

int main(int argc, char **argv)
{
	address = getenv("LIFE_ADDRESS");
	nobody = getenv("LIFE_NOBODY");
	iwarp = getenv("LIFE_WIRE") && !strcmp(getenv("LIFE_WIRE"), "iwarp");
	if (!address || !nobody) {
		fprintf(stderr, "LIFE_ADDRESS or LIFE_NOBODY is not set\n");
		return 2;
	}
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
