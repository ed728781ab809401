/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control.c - the control socket as a client finds it: when it is there, which users get answers, what they
 * say, and what clients that misbehave do to the program. The client is in control_client.c. The tools are tested in
 * test/tools. */
#include "control_client.h"
#include "life.h"
#include "common/control.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static DAT_IA_HANDLE open_ia(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	OK(dat_ia_open((char *)LIFE_IA, 8, &async, &ia));
	return ia;
}

/* --- being there ------------------------------------------------------------------------------ */

static void it_is_there_while_an_ia_is_open(void)
{
	DAT_IA_HANDLE ia, other;
	char names[4][108];

	EXPECT(find_names(getpid(), names, 4) == 0);
	for (int i = 0; i < 3; i++) {
		ia = open_ia();
		other = open_ia();
		EXPECT(find_names(getpid(), names, 4) == 1);
		OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
		ask(CONTROL_LIST, "");
		EXPECT(!answer.failed);
		OK(dat_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
		EXPECT(find_names(getpid(), names, 4) == 0);
	}
}

static void it_can_be_switched_off(void)
{
	char names[4][108];
	DAT_IA_HANDLE ia;

	setenv("DAPL_CONTROL", "0", 1);
	ia = open_ia();
	EXPECT(find_names(getpid(), names, 4) == 0);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* Programs that are set-user-id, or that guard secrets, are not dumpable. */
static void a_process_that_may_not_be_looked_into_has_none(void)
{
	char names[4][108];
	DAT_IA_HANDLE ia;
	int fd;

	ia = open_ia();
	fd = connect_here();
	EXPECT(!prctl(PR_SET_DUMPABLE, 0));
	EXPECT(ask_on(fd, CONTROL_LIST, "") || true);	/* accepted before or after: either */
	close(fd);
	expect_refusal(name_here(), "only the user of the program");
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	ia = open_ia();
	EXPECT(find_names(getpid(), names, 4) == 0);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0700);
	struct stat stat;
	char *bytes;

	EXPECT(in >= 0 && out >= 0 && !fstat(in, &stat));
	bytes = malloc(stat.st_size);
	EXPECT(read(in, bytes, stat.st_size) == stat.st_size);
	EXPECT(write(out, bytes, stat.st_size) == stat.st_size);
	free(bytes);
	close(in);
	close(out);
}

/* Each copy of the library has a service thread and a control socket, and the names of the sockets differ.
 * */
static void two_libraries_have_two_sockets(void)
{
	char path[] = "/tmp/dapl-control-XXXXXX", copy[64], names[4][108], conf[1024];
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia, other;

	EXPECT(mkdtemp(path));
	snprintf(copy, sizeof copy, "%s/libcopy.so.2", path);
	copy_file(life_library("libdaplsoft.so.2"), copy);
	snprintf(conf, sizeof conf, LIFE_IA " u2.0 nonthreadsafe default %s dapl.2.0 \"lo 0\" \"\"\n"
		 "ofa-v2-other u2.0 nonthreadsafe default %s dapl.2.0 \"lo 0\" \"\"\n",
		 life_library("libdaplsoft.so.2"), copy);
	life_conf(conf);
	ia = open_ia();
	OK(dat_ia_open((char *)"ofa-v2-other", 8, &async, &other));
	unlink(copy);
	rmdir(path);
	EXPECT(find_names(getpid(), names, 4) == 2);
	for (int i = 0; i < 2; i++) {
		int fd = connect_to(names[i]);

		EXPECT(ask_on(fd, CONTROL_LIST, "") && !answer.failed);
		close(fd);
	}
	OK(dat_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* --- which users get answers ---------------------------------------------------------------------------- */

static void ask_as_another_user(const void *name)
{
	EXPECT(!setgid(65534) && !setuid(65534));
	expect_refusal(name, "only the user of the program, and root, get answers");
	_exit(0);
}

static void other_users_get_no_answer(void)
{
	char names[4][108];
	struct child_result result;
	DAT_IA_HANDLE ia;

	if (getuid())
		skip("only root can become another user");
	ia = open_ia();
	EXPECT(find_names(getpid(), names, 4) == 1);
	result = run(ask_as_another_user, names[0]);
	expect_quiet(&result, 0);
	ask(CONTROL_LIST, "");
	EXPECT(!answer.failed);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* --- answers ------------------------------------------------------------------------------------- */

static void it_tells_of_ias_endpoints_and_counters(void)
{
	static struct session s;
	char part[64];

	OK(session_open(&s, MOMENT));
	EXPECT(session_exchange(&s, 1));
	ask(CONTROL_LIST, "{}");
	expect_text("\"name\":\"" LIFE_IA "\"");
	expect_text("\"endpoints\":2");
	snprintf(part, sizeof part, "\"pid\":%d,", (int)getpid());
	expect_text(part);
	ask(CONTROL_ENDPOINTS, "");
	snprintf(part, sizeof part, "\"object\":\"%p\"", (void *)s.a.ep);
	expect_text(part);
	expect_text("\"state\":\"connected\"");
	if (life_on_soft())
		expect_text("\"carrier\":\"memory\"");
	snprintf(part, sizeof part, ":%llu\"", (unsigned long long)s.qual);
	expect_text(part);
	ask(CONTROL_COUNTERS, "");
	expect_text("\"POST_SEND\":");
	expect_text("\"CM_ACTIVE_EST\":1");
	OK(session_close(&s));
}

static bool is_listed(const void *service_point)
{
	char part[64];

	ask(CONTROL_SERVICE_POINTS, "");
	snprintf(part, sizeof part, "\"object\":\"%p\"", service_point);
	return strstr(answer.text, part);
}

/* Service points of each kind are listed. A qualifier above 65535 is shown with its port. An RSP ends with
 * its first request. */
static void it_tells_of_service_points(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	DAT_COMM comm = { .domain = AF_INET, .type = SOCK_STREAM, .protocol = IPPROTO_TCP };
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_CSP_HANDLE csp;
	static struct session s;
	DAT_EP_HANDLE ep;
	char part[128];

	OK(session_open(&s, MOMENT));
	EXPECT(is_listed(s.psp));
	snprintf(part, sizeof part, "\"port\":%llu,\"qualifier\":\"%llu\",\"services\":[\"RC\"",
		 (unsigned long long)s.qual, (unsigned long long)s.qual);
	expect_text(part);
	OK(dat_psp_create(s.ia, 0x100001234, s.cr, DAT_PSP_CONSUMER_FLAG, &psp));
	OK(dat_ep_create(s.ia, s.a.pz, s.a.recv, s.a.request, s.a.conn, NULL, &ep));
	OK(dat_rsp_create(s.ia, 45301, ep, s.cr, &rsp));
	OK(dat_csp_create(s.ia, &comm, (DAT_IA_ADDRESS_PTR)&at, s.cr, &csp));
	EXPECT(is_listed(psp) && is_listed(rsp) && is_listed(csp));
	snprintf(part, sizeof part, "\"port\":%u,\"qualifier\":\"4294971956\"",
		 33534 + (unsigned)(0x100001234 % 32001));
	expect_text(part);
	expect_text("\"type\":\"RSP\",\"address\":\"127.0.0.1\",\"port\":45301,");
	expect_text("\"type\":\"CSP\",\"address\":\"127.0.0.1\",\"port\":");
	OK(dat_psp_free(psp));
	OK(dat_rsp_free(rsp));
	OK(dat_csp_free(csp));
	EXPECT(is_listed(s.psp) && !is_listed(psp) && !is_listed(rsp) && !is_listed(csp));
	OK(dat_ep_free(ep));
	OK(session_close(&s));
}

enum { MANY = 400 };	/* endpoints: about ten pieces */

static void long_answers_come_in_pieces(void)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = open_ia();
	DAT_EP_HANDLE ep[MANY];
	DAT_PZ_HANDLE pz;
	int found = 0;

	OK(dat_pz_create(ia, &pz));
	OK(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &evd));
	for (int i = 0; i < MANY; i++)
		OK(dat_ep_create(ia, pz, evd, evd, evd, NULL, &ep[i]));
	ask(CONTROL_ENDPOINTS, "");
	EXPECT(answer.pieces > 3);
	for (const char *at = answer.text; (at = strstr(at, "\"object\"")); at++)
		found++;
	EXPECT(found == MANY);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void expect_refused(unsigned verb, const char *body, const char *why)
{
	ask(verb, body);
	EXPECT(answer.failed);
	expect_text(why);
}

static void parameters_can_be_set(void)
{
	DAT_IA_HANDLE ia = open_ia();

	ask(CONTROL_GET, "{\"name\":\"DAPL_ACK_TIMER\"}");
	expect_text("\"value\":null,\"default\":null,\"min\":0,\"max\":31,\"when\":\"now\",\"from\":\"default\"");
	ask(CONTROL_SET, "{\"name\":\"DAPL_ACK_TIMER\",\"value\":\"14\"}");
	expect_text("\"value\":14,\"default\":null,\"min\":0,\"max\":31,\"when\":\"now\",\"from\":\"set\"");
	ask(CONTROL_SET, "{\"name\":\"DAPL_ACK_TIMER\",\"value\":\"default\"}");
	expect_text("\"value\":null,\"default\":null,\"min\":0,\"max\":31,\"when\":\"now\",\"from\":\"default\"");
	ask(CONTROL_SET, "{\"name\":\"DAPL_ACK_TIMER\",\"value\":\"14\"}");
	ask(CONTROL_SET, "{\"value\":8,\"name\":\"DAPL_CM_TOS\"}");
	expect_text("\"value\":8");
	ask(CONTROL_GET, "");
	expect_text("\"DAPL_ACK_TIMER\",\"value\":14");
	expect_text("\"DAPL_SOFT_CRC\",\"value\":0,\"default\":0,\"min\":0,\"max\":1,\"when\":\"next IA\"");
	expect_refused(CONTROL_SET, "{\"name\":\"DAPL_ACK_TIMER\",\"value\":\"32\"}",
		       "\\\"32\\\" found, a number from 0 to 31, or");
	expect_refused(CONTROL_SET, "{\"name\":\"DAPL_ACK_TIMER\",\"value\":\"-1\"}", "-1");
	expect_refused(CONTROL_SET, "{\"name\":\"DAPL_ACK_TIMER\",\"value\":\"1x\"}", "1x");
	expect_refused(CONTROL_SET, "{\"name\":\"PATH\",\"value\":\"1\"}", "no parameter PATH");
	expect_refused(CONTROL_SET, "{\"name\":\"DAPL_CONTROL\",\"value\":\"0\"}", "cannot be changed");
	expect_refused(CONTROL_SET, "{\"name\":\"DAPL_CM_TOS\"}", "no member \\\"value\\\"");
	expect_refused(CONTROL_GET, "{\"name\":", "the request, byte 9");
	expect_refused(77, "", "unknown verb 77");
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* DAPL_SOFT_SHM is read when an IA is opened, and the connections of later IAs go over TCP. */
static void a_parameter_counts_for_the_next_ia(void)
{
	static struct session s;
	DAT_IA_HANDLE ia;

	if (!life_on_soft())
		skip("a parameter of the software device");
	ia = open_ia();		/* keeps the library loaded */
	ask(CONTROL_SET, "{\"name\":\"DAPL_SOFT_SHM\",\"value\":0}");
	OK(session_open(&s, MOMENT));
	ask(CONTROL_ENDPOINTS, "");
	expect_text("\"carrier\":\"tcp\"");
	OK(session_close(&s));
	ask(CONTROL_SET, "{\"name\":\"DAPL_SOFT_CRC\",\"value\":1}");
	OK(session_open(&s, MOMENT));
	ask(CONTROL_ENDPOINTS, "");
	expect_text("\"carrier\":\"tcp+crc\"");
	OK(session_close(&s));
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void trace_for_a_moment(const void *arg)
{
	DAT_IA_HANDLE ia = open_ia(), other;

	(void)arg;
	ask(CONTROL_DUMP, "");
	expect_text("\"level\":0,\"records\":[]");
	ask(CONTROL_TRACE, "{\"level\":3}");
	expect_text("\"was\":0,\"level\":3");
	other = open_ia();
	ask(CONTROL_DUMP, "");
	expect_text("5C3 ");
	expect_text(LIFE_IA);
	OK(dat_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
	ask(CONTROL_TRACE, "{\"level\":0}");
	expect_text("\"was\":3,\"level\":0");
	expect_refused(CONTROL_TRACE, "{\"level\":11}", "from 0 to 10");
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void the_trace_level_can_be_set(void)
{
	struct child_result result = run(trace_for_a_moment, NULL);

	if (result.status || !strstr(result.text, "5C3 ") || !strstr(result.text, "5C7 "))
		fail("status %x: %s", result.status, result.text);
}

/* --- clients that misbehave ------------------------------------------------------------------- */

static void bad_packets_end_the_connection(void)
{
	static const struct {
		struct control_header header;
		size_t body;
	} bad[] = {
		{ { 5, CONTROL_LIST, 0 }, 0 }, { { 0, CONTROL_LIST, 0 }, 5 },
		{ { 0xffffffff, CONTROL_LIST, 0 }, 4 }, { { CONTROL_BODY + 1, CONTROL_LIST, 0 },
		CONTROL_BODY + 1 }, { { 0, CONTROL_LIST, 1 }, 0 }, { { 0, CONTROL_NEXT, 0 }, 0 },
		{ { CONTROL_BODY + 900, CONTROL_LIST, 0 }, CONTROL_BODY + 900 },
	};
	static struct {
		struct control_header header;
		char body[2 * CONTROL_BODY];
	} packet;
	DAT_IA_HANDLE ia = open_ia();

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int fd = connect_here();

		packet.header = bad[i].header;
		EXPECT(send(fd, &packet, sizeof packet.header + bad[i].body, MSG_NOSIGNAL) > 0);
		expect_cut_off(fd);
	}
	for (size_t length = 1; length < sizeof packet.header; length++) {
		int fd = connect_here();

		EXPECT(send(fd, &packet, length, MSG_NOSIGNAL) > 0);
		expect_cut_off(fd);
	}
	ask(CONTROL_LIST, "");
	EXPECT(!answer.failed);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void silent_clients_are_cut_off(void)
{
	DAT_IA_HANDLE ia = open_ia();
	int fd = connect_here(), half = connect_here();

	EXPECT(ask_on(half, CONTROL_LIST, ""));
	expect_cut_off(fd);
	expect_cut_off(half);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void a_client_that_does_not_read_is_cut_off(void)
{
	struct timeval patience = { .tv_sec = CONTROL_CLIENT_MS / 1000 };
	DAT_IA_HANDLE ia = open_ia();
	int fd = connect_here(), sent = 0;

	EXPECT(!setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience));
	while (send_request(fd, CONTROL_GET, "") && sent < 100000)
		sent++;
	EXPECT(sent < 100000 && (errno == EPIPE || errno == ECONNRESET));
	close(fd);
	ask(CONTROL_LIST, "");
	EXPECT(!answer.failed);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void eight_are_served_at_a_time(void)
{
	DAT_IA_HANDLE ia = open_ia();
	int fd[CONTROL_CLIENTS], last;

	for (int i = 0; i < CONTROL_CLIENTS; i++)
		fd[i] = connect_here();
	expect_refusal(name_here(), "too many connections");
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		close(fd[i]);
	for (int i = 0; ; i++) {	/* the program frees their slots soon */
		last = connect_raw(name_here());
		if (get_packet(last, answer.text, sizeof answer.text) == 10 &&
		    ask_on(last, CONTROL_LIST, "") && !answer.failed)
			break;
		close(last);
		EXPECT(i < 10000);
		usleep(1000);
	}
	close(last);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* --- process ------------------------------------------------------------------------------------ */

static void child_with_an_ia_of_its_own(const void *arg)
{
	char names[4][108];
	DAT_IA_HANDLE ia;

#ifdef __SANITIZE_THREAD__
	skip("the thread sanitizer knows no threads in children of processes with threads");
#endif
	(void)arg;
	EXPECT(find_names(getpid(), names, 4) == 0);
	ia = open_ia();
	ask(CONTROL_LIST, "");
	EXPECT(!answer.failed);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* The child's copies of the sockets are closed, so that a client of the parent sees its end. */
static void a_child_does_not_answer_for_its_parent(void)
{
	DAT_IA_HANDLE ia = open_ia();
	int fd = connect_here();
	struct child_result result;

	EXPECT(ask_on(fd, CONTROL_LIST, ""));
	for (int i = 0; i < 3; i++) {
		result = run(child_with_an_ia_of_its_own, NULL);
		expect_quiet(&result, 0);
		ask(CONTROL_LIST, "");
		EXPECT(!answer.failed);
	}
	expect_cut_off(fd);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static int done;

static void *come_and_go(void *arg)
{
	(void)arg;
	for (int i = 0; i < 40; i++) {
		struct session *s = malloc(sizeof *s);

		if (session_open(s, MOMENT) == DAT_SUCCESS)
			session_exchange(s, i);
		OK(session_close(s));
		free(s);
	}
	__atomic_add_fetch(&done, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void objects_come_and_go_while_it_answers(void)
{
	DAT_IA_HANDLE ia = open_ia();
	pthread_t threads[3];
	int answers = 0;

	for (int i = 0; i < 3; i++)
		EXPECT(!pthread_create(&threads[i], NULL, come_and_go, NULL));
	while (__atomic_load_n(&done, __ATOMIC_RELAXED) < 3) {
		static const unsigned verbs[] = { CONTROL_LIST, CONTROL_ENDPOINTS, CONTROL_COUNTERS,
			CONTROL_GET };

		ask(verbs[answers++ % 4], "");
		EXPECT(!answer.failed);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	EXPECT(answers > 3);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* The socket is closed while clients ask. Each client gets an answer, or the connection ends. */
static void *ask_all_the_time(void *arg)
{
	char names[4][108];

	(void)arg;
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED))
		for (int i = find_names(getpid(), names, 4) - 1; i >= 0 && i < 4; i--) {
			struct sockaddr_un to = { .sun_family = AF_UNIX };
			size_t length = strlen(names[i]);
			int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

			memcpy(to.sun_path + 1, names[i], length);
			if (!connect(fd, (struct sockaddr *)&to,
				     offsetof(struct sockaddr_un, sun_path) + 1 + length) &&
			    get_packet(fd, answer.text, sizeof answer.text) > 0)
				ask_on(fd, CONTROL_ENDPOINTS, "");
			close(fd);
		}
	return NULL;
}

static void the_last_close_ends_it_while_clients_ask(void)
{
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, ask_all_the_time, NULL));
	for (int i = 0; i < 100; i++)
		OK(dat_ia_close(open_ia(), DAT_CLOSE_ABRUPT_FLAG));
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(it_is_there_while_an_ia_is_open),
		CASE(it_can_be_switched_off),
		CASE(a_process_that_may_not_be_looked_into_has_none),
		CASE(two_libraries_have_two_sockets),
		CASE(other_users_get_no_answer),
		CASE(it_tells_of_ias_endpoints_and_counters),
		CASE(it_tells_of_service_points),
		CASE(long_answers_come_in_pieces),
		CASE(parameters_can_be_set),
		CASE(a_parameter_counts_for_the_next_ia),
		CASE(the_trace_level_can_be_set),
		CASE(bad_packets_end_the_connection),
		CASE(silent_clients_are_cut_off),
		CASE(a_client_that_does_not_read_is_cut_off),
		CASE(eight_are_served_at_a_time),
		CASE(a_child_does_not_answer_for_its_parent),
		CASE(objects_come_and_go_while_it_answers),
		CASE(the_last_close_ends_it_while_clients_ask),
	};

	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
