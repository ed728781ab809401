/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* diagnosis.c - connections that fail or break: the line with the addresses, the step and the cause; the
 * event; the result of dat_ext_last_error(); the count of repetitions; trace records. Ends that are no
 * failures print no line. */
#include "failures.h"
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOCAL "127\\.0\\.0\\.1"

/* --- a peer that is a plain TCP socket ------------------------------------------------------- */

/* Listens on a port of its own. Each case says what it does with connections. */
static int plain_listener(unsigned *port)
{
	struct sockaddr_in at = address_of("127.0.0.1");
	socklen_t length = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&at, sizeof at) ||
	    getsockname(fd, (struct sockaddr *)&at, &length) || listen(fd, 8))
		fail("listen: %s", strerror(errno));
	*port = ntohs(at.sin_port);
	return fd;
}

static unsigned unused_port(void)
{
	unsigned port;

	close(plain_listener(&port));
	return port;
}

struct answer {
	int listener, calls;
	const void *bytes;
	size_t length;
	pthread_t thread;
};

static void *answer_calls(void *arg)
{
	struct answer *answer = arg;
	char request[512];

	for (int i = 0; i < answer->calls; i++) {
		int fd = accept(answer->listener, NULL, NULL);

		if (recv(fd, request, sizeof request, 0) > 0 && answer->length)
			send(fd, answer->bytes, answer->length, MSG_NOSIGNAL);
		close(fd);
	}
	return NULL;
}

/* --- connecting ---------------------------------------------------------------------------------- */

static void connect_nowhere(const void *arg)
{
	unsigned port = unused_port();
	DAT_LAST_ERROR error;
	struct active a;

	(void)arg;
	open_active(&a);
	expect_error(a.ep, 0, 0, 0, 0, 0);
	connect_gives(&a, a.ep, "127.0.0.1", port, MOMENT, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	expect_error(a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, DAT_DIAG_STEP_CONNECT,
		     ECONNREFUSED, DAT_DIAG_CODE_NONE, 0);
	OK(dat_ext_last_error(a.ep, &error));
	EXPECT(port_of(&error.remote) == port);
	EXPECT(DAT_GET_TYPE(dat_ext_last_error(a.ep, NULL)) == DAT_INVALID_PARAMETER);
	EXPECT(DAT_GET_TYPE(dat_ext_last_error(a.conn, &error)) == DAT_INVALID_HANDLE);
	close_active(&a);
}

static void a_refused_connect_is_one_line(void)
{
	expect_lines(connect_nowhere, "^dapl: connect to " LOCAL " port [0-9]+ from " LOCAL " " IA
		     ": connection refused" TIME " \\(nobody listens there\\)$", NULL);
}

enum { ATTEMPTS = 7 };

static void connect_often(struct active *a)
{
	unsigned port = unused_port();

	open_active(a);
	for (int i = 0; i < ATTEMPTS; i++)
		connect_gives(a, i ? new_ep(a, false) : a->ep, "127.0.0.1", port, MOMENT,
			      DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

static void connect_nowhere_often(const void *arg)
{
	struct active a;

	(void)arg;
	connect_often(&a);
	close_active(&a);
}

static void connect_nowhere_often_and_exit(const void *arg)
{
	struct active a;

	(void)arg;
	connect_often(&a);
	end_without_leak_check();
	exit(0);
}

static void repetitions_are_counted(void)
{
	expect_lines(connect_nowhere_often, "connection refused" TIME " \\(nobody listens there\\)$",
		     "^dapl: connect to " LOCAL " port [0-9]+ " IA
		     ": connection refused: 6 more like this$");
}

static void repetitions_are_counted_when_a_program_exits_with_an_open_adapter(void)
{
	expect_lines(connect_nowhere_often_and_exit, "connection refused" TIME " \\(nobody listens there\\)$",
		     "^dapl: connect to " LOCAL " port [0-9]+ " IA
		     ": connection refused: 6 more like this$");
}

static void connect_to_two(const void *arg)
{
	struct active a;

	(void)arg;
	open_active(&a);
	connect_gives(&a, a.ep, "127.0.0.1", unused_port(), MOMENT,
		      DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	connect_gives(&a, new_ep(&a, false), "127.0.0.2", unused_port(), MOMENT,
		      DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	close_active(&a);
}

static void each_peer_has_its_line(void)
{
	expect_lines(connect_to_two, "connect to 127\\.0\\.0\\.1 port",
		     "connect to 127\\.0\\.0\\.2 port");
}

static void connect_without_route(const void *arg)
{
	struct active a;

	(void)arg;
	open_active(&a);
	connect_gives(&a, a.ep, "203.0.113.7", 45290, MOMENT, DAT_CONNECTION_EVENT_UNREACHABLE);
	expect_error(a.ep, DAT_CONNECTION_EVENT_UNREACHABLE, DAT_DIAG_STEP_CONNECT, ENETUNREACH,
		     DAT_DIAG_CODE_NONE, 0);
	close_active(&a);
}

static void an_unreachable_network_is_one_line(void)
{
	own_network();
	expect_lines(connect_without_route, "^dapl: connect to 203\\.0\\.113\\.7 port 45290 from "
		     LOCAL " " IA ": network is unreachable" TIME
		     " \\(ofa-v2-life is on the loopback interface, which reaches this host only\\)$", NULL);
}

static void connect_to_silence(const void *arg)
{
	unsigned port;
	int fd = plain_listener(&port);
	struct active a;

	(void)arg;
	open_active(&a);
	connect_gives(&a, a.ep, "127.0.0.1", port, 200000, DAT_CONNECTION_EVENT_TIMED_OUT);
	expect_error(a.ep, DAT_CONNECTION_EVENT_TIMED_OUT, DAT_DIAG_STEP_REPLY, ETIMEDOUT,
		     DAT_DIAG_CODE_NONE, 0);
	close_active(&a);
	close(fd);
}

static void a_silent_peer_is_one_line(void)
{
	expect_lines(connect_to_silence, "^dapl: connect to " LOCAL " port [0-9]+ from " LOCAL " "
		     IA ": reply: no answer within the caller's time limit: connection timed out"
		     TIME " \\(is the peer's program stopped, or does it not accept\\?\\)$", NULL);
}

static void connect_to(const void *bytes, size_t length, int calls)
{
	struct answer answer = { .bytes = bytes, .length = length, .calls = calls };
	struct active a;
	unsigned port;

	answer.listener = plain_listener(&port);
	if (pthread_create(&answer.thread, NULL, answer_calls, &answer))
		fail("no thread");
	open_active(&a);
	connect_gives(&a, a.ep, "127.0.0.1", port, MOMENT, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	expect_error(a.ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, DAT_DIAG_STEP_REPLY, 0,
		     DAT_DIAG_CODE_NONE, 0);
	close_active(&a);
	pthread_join(answer.thread, NULL);
	close(answer.listener);
}

static void connect_to_another_protocol(const void *arg)
{
	static const char page[] = "HTTP/1.0 400 Bad Request\r\nConnection: close\r\n\r\n";

	(void)arg;
	connect_to(page, sizeof page, 1);
}

static void a_malformed_reply_is_one_line(void)
{
	expect_lines(connect_to_another_protocol, "^dapl: connect to " LOCAL " port [0-9]+ from "
		     LOCAL ".* " IA ": reply: malformed MPA reply: the peer speaks another protocol"
		     TIME "$", NULL);
}

/* The second connection is that of MPA revision 1. */
static void connect_to_one_that_closes(const void *arg)
{
	(void)arg;
	connect_to(NULL, 0, 2);
}

static void a_peer_that_closes_is_one_line(void)
{
	expect_lines(connect_to_one_that_closes, ": reply: the peer closed without an MPA reply"
		     TIME "$", NULL);
}

/* No thread takes requests from the EVD, which has room for one. */
static void connect_too_often(const void *arg)
{
	DAT_EVENT event = { 0 };
	DAT_EVD_HANDLE requests;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	struct active a;

	(void)arg;
	open_active(&a);
	OK(dat_evd_create(a.ia, 1, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests));
	OK(dat_psp_create_any(a.ia, &qual, requests, DAT_PSP_CONSUMER_FLAG, &psp));
	for (int i = 0; i < 32; i++) {
		struct sockaddr_in to = address_of("127.0.0.1");
		DAT_EP_HANDLE ep = i ? new_ep(&a, false) : a.ep;

		OK(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&to, qual, DAT_TIMEOUT_INFINITE, 0, NULL,
				  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	}
	OK(await(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, MOMENT * SLOWER, &event));
	expect_error(event.event_data.connect_event_data.ep_handle,
		     DAT_CONNECTION_EVENT_NON_PEER_REJECTED, DAT_DIAG_STEP_REPLY, 0,
		     DAT_DIAG_CODE_MPA, 0x36);	/* flags of the reply: rejected, enhanced, from this implementation,
						 * refused by the provider */
	_exit(0);	/* the other connections are refused and counted, or are still in progress */
}

static void a_provider_that_refuses_is_one_line(void)
{
	expect_lines(connect_too_often, "^dapl: connect to " LOCAL " port [0-9]+ from " LOCAL ".* "
		     IA ": reply: refused by the peer's provider" TIME " \\(its event queue is full,"
		     " or it takes no endpoint of this kind\\)$", NULL);
}

static void connect_datagrams_nowhere(const void *arg)
{
	struct active a;
	DAT_EP_HANDLE ep;

	(void)arg;
	open_active(&a);
	ep = new_ep(&a, true);
	connect_gives(&a, ep, "127.0.0.1", unused_port(), MOMENT,
		      (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_ERROR_EVENT);
	expect_error(ep, (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_DIAG_STEP_CONNECT,
		     ECONNREFUSED, DAT_DIAG_CODE_NONE, 0);
	close_active(&a);
}

static void a_datagram_endpoint_has_its_line(void)
{
	expect_lines(connect_datagrams_nowhere, "^dapl: UD connect to " LOCAL " port [0-9]+ from "
		     LOCAL " " IA ": connection refused" TIME " \\(nobody listens there\\)$", NULL);
}

/* --- what is no failure ------------------------------------------------------------------------------ */

static struct session *connected(void)
{
	static struct session session;	/* open until this process exits: no leak */

	OK(session_open(&session, MOMENT));
	return &session;
}

static void disconnect_orderly(const void *arg)
{
	struct session *s = connected();

	(void)arg;
	EXPECT(session_exchange(s, 1));
	OK(dat_ep_disconnect(s->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	OK(await(s->a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, MOMENT, NULL));
	OK(await(s->b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, MOMENT, NULL));
	expect_error(s->a.ep, 0, 0, 0, 0, 0);
	expect_error(s->b.ep, 0, 0, 0, 0, 0);
	OK(session_close(s));
}

static void an_orderly_end_is_silent(void)
{
	expect_lines(disconnect_orderly, NULL, NULL);
}

static void reject(const void *arg)
{
	struct sockaddr_in to = address_of("127.0.0.1");
	struct active a;
	DAT_EVD_HANDLE requests;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_EVENT event;

	(void)arg;
	open_active(&a);
	OK(dat_evd_create(a.ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests));
	OK(dat_psp_create_any(a.ia, &qual, requests, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_connect(a.ep, (DAT_IA_ADDRESS_PTR)&to, qual, MOMENT, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	OK(await(requests, DAT_CONNECTION_REQUEST_EVENT, MOMENT, &event));
	OK(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
	OK(await(a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, MOMENT, NULL));
	expect_error(a.ep, DAT_CONNECTION_EVENT_PEER_REJECTED, DAT_DIAG_STEP_REPLY, 0,
		     DAT_DIAG_CODE_MPA, 0x32);	/* flags of the reply: rejected, enhanced, from this implementation */
	close_active(&a);
}

static void a_reject_of_the_program_is_silent(void)
{
	expect_lines(reject, NULL, NULL);
}

/* --- connections that break ---------------------------------------------------------------------------- */

/* Both ends are in this process, and each prints a line. */
static void write_out_of_range(const void *arg)
{
	struct session *s = connected();
	DAT_LMR_TRIPLET from = { .lmr_context = s->a.local, .segment_length = 64,
		.virtual_address = (uintptr_t)s->a.memory };
	DAT_RMR_TRIPLET to = { .rmr_context = s->b.remote, .segment_length = 64,
		.virtual_address = (uintptr_t)s->b.memory + SIDE_MEMORY };
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };

	(void)arg;
	OK(dat_ep_post_rdma_write(s->a.ep, 1, &from, cookie, &to, DAT_COMPLETION_DEFAULT_FLAG));
	OK(await(s->a.conn, DAT_CONNECTION_EVENT_BROKEN, MOMENT, NULL));
	OK(await(s->b.conn, DAT_CONNECTION_EVENT_BROKEN, MOMENT, NULL));
	expect_error(s->a.ep, DAT_CONNECTION_EVENT_BROKEN, DAT_DIAG_STEP_TRANSFER, 0,
		     DAT_DIAG_CODE_TERMINATE_RECEIVED, 0x1101);
	expect_error(s->b.ep, DAT_CONNECTION_EVENT_BROKEN, DAT_DIAG_STEP_TRANSFER, 0,
		     DAT_DIAG_CODE_TERMINATE_SENT, 0x1101);
	OK(session_close(s));
}

static void an_access_out_of_range_is_a_line_of_each_end(void)
{
	expect_lines(write_out_of_range, "^dapl: connection to " LOCAL " port [0-9]+ from " LOCAL
		     " port [0-9]+ " IA ": transfer: Terminate received: remote access: out of range"
		     " \\(1/1/1\\)" TIME " \\(compare RMR context, range and access rights with the"
		     " peer's LMR\\)$", "^dapl: connection to .*: transfer: Terminate sent: remote"
		     " access: out of range \\(1/1/1\\)" TIME "$");
}

static void accept_a_call(struct session *s)
{
	DAT_EVENT event;

	OK(await(s->cr, DAT_CONNECTION_REQUEST_EVENT, MOMENT * SLOWER, &event));
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, s->a.ep, 0, NULL));
	OK(await(s->a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, MOMENT * SLOWER, NULL));
}

/* The peer is a program that speaks iWARP without this library. It sends a request of MPA revision 1 with
 * these flags, and then a frame. */
static void take_frame(uint8_t flags, const uint8_t *frame, size_t length, unsigned kind,
		       unsigned code)
{
	uint8_t request[20] = "MPA ID Req Frame", reply[20];
	struct sockaddr_in at = address_of("127.0.0.1");
	struct session *s = connected();
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	OK(dat_ep_disconnect(s->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	OK(await(s->a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, MOMENT, NULL));
	OK(dat_ep_reset(s->a.ep));
	at.sin_port = htons(s->qual);
	request[16] = flags;
	request[17] = 1;
	if (connect(fd, (struct sockaddr *)&at, sizeof at) ||
	    send(fd, request, sizeof request, 0) != sizeof request)
		fail("connect: %s", strerror(errno));
	accept_a_call(s);
	if (recv(fd, reply, sizeof reply, MSG_WAITALL) != sizeof reply ||
	    send(fd, frame, length, 0) != (ssize_t)length)
		fail("exchange: %s", strerror(errno));
	OK(await(s->a.conn, DAT_CONNECTION_EVENT_BROKEN, MOMENT * SLOWER, NULL));
	expect_error(s->a.ep, DAT_CONNECTION_EVENT_BROKEN, DAT_DIAG_STEP_TRANSFER, 0, kind, code);
	close(fd);
	OK(session_close(s));
}

static void take_bad_crc(const void *arg)
{
	static const uint8_t frame[28] = { 0, 20 };

	(void)arg;
	take_frame(0x40, frame, sizeof frame, DAT_DIAG_CODE_TERMINATE_SENT, 0x2002);
}

static void a_crc_error_is_one_line(void)
{
	expect_lines(take_bad_crc, "^dapl: connection to " LOCAL " port [0-9]+ from " LOCAL
		     " port [0-9]+ " IA ": transfer: Terminate sent: CRC error \\(2/0/2\\)" TIME "$",
		     NULL);
}

/* Untagged, queue 2, message 1: remote access, no such right. */
static void take_terminate(const void *arg)
{
	static const uint8_t frame[28] = { 0, 22, 0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1,
		0, 0, 0, 0, 0x01, 0x02, 0, 0 };

	(void)arg;
	take_frame(0, frame, sizeof frame, DAT_DIAG_CODE_TERMINATE_RECEIVED, 0x0102);
}

static void a_terminate_is_one_line(void)
{
	expect_lines(take_terminate, ": transfer: Terminate received: remote access: no such right"
		     " \\(0/1/2\\)" TIME " \\(compare RMR context", NULL);
}

/* This process listens. The other one connects, and is killed. */
static void survive(const void *arg)
{
	struct session *s = connected();
	struct sockaddr_in to = address_of("127.0.0.1");
	DAT_LAST_ERROR error;
	struct active a;
	int status;
	pid_t pid;

	(void)arg;
	OK(dat_ep_disconnect(s->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	OK(await(s->a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, MOMENT, NULL));
	OK(dat_ep_reset(s->a.ep));
	pid = fork();
	if (!pid) {
		open_active(&a);
		OK(dat_ep_connect(a.ep, (DAT_IA_ADDRESS_PTR)&to, s->qual, MOMENT * SLOWER, 0, NULL,
				  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
		pause();
	}
	accept_a_call(s);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	OK(await(s->a.conn, DAT_CONNECTION_EVENT_BROKEN, MOMENT * SLOWER, NULL));
	OK(dat_ext_last_error(s->a.ep, &error));
	EXPECT(error.event == DAT_CONNECTION_EVENT_BROKEN);
	EXPECT(error.step == DAT_DIAG_STEP_TRANSFER && error.code_kind == DAT_DIAG_CODE_NONE);
	EXPECT(error.error == 0 || error.error == ECONNRESET);
	EXPECT(port_of(&error.local) == s->qual);
	OK(session_close(s));
}

/* TCP resets the connection of a process that had not read everything. */
#define KILLED "^dapl: connection to " LOCAL " port [0-9]+ from " LOCAL " port [0-9]+ " IA \
	": transfer: (the peer's process ended without disconnecting" TIME "$|connection reset by " \
	"peer" TIME " \\(did the peer's process end\\?\\)$)"

static void a_killed_peer_is_one_line(void)
{
	expect_lines(survive, KILLED, NULL);
	setenv("DAPL_SOFT_SHM", "0", 1);
	expect_lines(survive, KILLED, NULL);
}

/* --- traces, and the switch ------------------------------------------------------------------------------- */

static void level_3_shows_every_step(void)
{
	static const char *const patterns[] = {
		"^5C3 .* ep .* active_connection_pending was unconnected \\(connect\\), local " LOCAL
			", remote " LOCAL " port [0-9]+$",
		"^5C3 .* conn .* waiting for the reply was connecting \\(request sent\\), local "
			LOCAL, "^5C3 .* conn .* requested was waiting for the request",
		"^5C3 .* conn .* open was waiting for the first frame \\(established\\), local "
			LOCAL " port [0-9]+, remote " LOCAL " port [0-9]+$",
		"^5C3 .* ep .* connected was completion_pending \\(established\\), local " LOCAL
			" port [0-9]+, remote " LOCAL " port [0-9]+$",
	};
	struct child_result result;

	setenv("DAPL_TRACE_LEVEL", "3", 1);
	result = run(disconnect_orderly, NULL);
	EXPECT(!result.status);
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
		if (!matches(result.text, patterns[i]))
			fail("no record \"%s\" in: %s", patterns[i], result.text);
	result = run(connect_nowhere, NULL);
	if (!matches(result.text, "^5C4 .* ep .* disconnected connect to .*: connection refused"))
		fail("the cause is not traced: %s", result.text);
}

static void level_3_shows_datagram_peers(void)
{
	struct child_result result;

	setenv("DAPL_TRACE_LEVEL", "3", 1);
	result = run(connect_datagrams_nowhere, NULL);
	EXPECT(!result.status);
	if (!matches(result.text, "^5C3 .* ep .* datagram active peer [^ ]*: connect, local " LOCAL
		     ", remote " LOCAL " port [0-9]+$") ||
	    !matches(result.text, "^5C3 .* conn .* connecting was new \\(connect\\), datagrams, local ") ||
	    !matches(result.text, "^5C4 .* ep .* UD connect to .*: connection refused"))
		fail("steps of a datagram endpoint are missing: %s", result.text);
}

static void the_lines_can_be_switched_off(void)
{
	setenv("DAPL_DBG_TYPE", "1", 1);	/* errors, no warnings */
	expect_lines(connect_nowhere, NULL, NULL);
}

/* --- ia_params -------------------------------------------------------------------------------------------- */

static void open_nothing(const void *arg)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	(void)arg;
	EXPECT(dat_ia_open((DAT_NAME_PTR)"absent", 8, &async, &ia) != DAT_SUCCESS);
}

static void absent(const char *params, const char *line)
{
	life_entry("absent", "libdaplsoft.so.2", params);
	expect_lines(open_nothing, line, NULL);
}

static void absent_addresses_have_their_reason(void)
{
	own_network();
	if (system("ip link add down0 type veth peer name down1 2>/dev/null"))
		skip("no veth in this kernel, or no namespace to be had");
	absent("127.3.2.1 0", "no such local address; as an address of the loopback network it can be"
	       " added to lo: ip address add 127\\.3\\.2\\.1/8 dev lo$");
	absent("192.0.2.77 0", "\"192\\.0\\.2\\.77 0\": no such local address; no interface of this"
	       " host has it$");
	absent("down0 0", "\"down0 0\": interface down0 is down and has no IP address$");
	absent("gone0 0", "\"gone0 0\": no such interface or local address$");
}

static const struct life_case cases[] = {
	CASE(a_refused_connect_is_one_line),
	CASE(repetitions_are_counted),
	CASE(repetitions_are_counted_when_a_program_exits_with_an_open_adapter),
	CASE(each_peer_has_its_line),
	CASE(an_unreachable_network_is_one_line),
	CASE(a_silent_peer_is_one_line),
	CASE(a_malformed_reply_is_one_line),
	CASE(a_peer_that_closes_is_one_line),
	CASE(a_provider_that_refuses_is_one_line),
	CASE(a_datagram_endpoint_has_its_line),
	CASE(an_orderly_end_is_silent),
	CASE(a_reject_of_the_program_is_silent),
	CASE(an_access_out_of_range_is_a_line_of_each_end),
	CASE(a_crc_error_is_one_line),
	CASE(a_terminate_is_one_line),
	CASE(a_killed_peer_is_one_line),
	CASE(level_3_shows_every_step),
	CASE(level_3_shows_datagram_peers),
	CASE(the_lines_can_be_switched_off),
	CASE(absent_addresses_have_their_reason),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
