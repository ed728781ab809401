/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_hosts.c - what the library asks datsockd, and what it makes of the answers. The test plays the service, in a
 * directory of its own. */
#include "sock/hosts.h"
#include <sys/stat.h>
#include <sys/un.h>
#include "sock/service.h"
#include "test/unit/unit.h"

static char directory[64], path[128];
static int listener = -1, process = -1; /* the service's end */
static struct conn connector, acceptor;
static struct hosts_answer told;
static char told_ia[SOCK_SERVICE_IA];
static struct conn *told_to;
static unsigned tellings;

void service_host_answered(struct conn *c, const struct hosts_answer *answer)
{
	told_to = c;
	told = *answer;
	if (answer->ia)
		strcpy(told_ia, answer->ia);
	tellings++;
}

static void serve(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	strcpy(sa.sun_path, path);
	unlink(path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	assert_return_code(bind(listener, (void *)&sa, sizeof sa), errno);
	assert_return_code(listen(listener, 5), errno);
}

static void hang_up(void)
{
	close(process);
	process = -1;
}

static int set_up(void **state)
{
	strcpy(directory, "/tmp/test_hosts.XXXXXX");
	assert_non_null(mkdtemp(directory));
	setenv("DAT_TEST_ROOT", directory, 1);
	snprintf(path, sizeof path, "%s/run", directory);
	mkdir(path, 0755);
	snprintf(path, sizeof path, "%s%s", directory, SOCK_SERVICE_DIRECTORY);
	mkdir(path, 0755);
	snprintf(path, sizeof path, "%s%s", directory, SOCK_SERVICE_PATH);
	connector = (struct conn){ .connector = true, .fd = 0 };
	acceptor = (struct conn){ .acceptor = true, .fd = 0 };
	serve();
	told_to = NULL;
	tellings = 0;
	return 0;
}

static int tear_down(void **state)
{
	hosts_after_fork();
	close(listener);
	hang_up();
	unlink(path);
	*strrchr(path, '/') = 0, rmdir(path);
	*strrchr(path, '/') = 0, rmdir(path);
	return rmdir(directory);
}

/* The next request; stores whether a descriptor came with it. */
static struct sock_service_request take_request(bool *descriptor)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct sock_service_request r;
	struct iovec iov = { &r, sizeof r };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof control };
	struct cmsghdr *h;

	if (process < 0)
		process = accept(listener, NULL, NULL);
	assert_int_equal(recvmsg(process, &msg, MSG_DONTWAIT), sizeof r);
	assert_true(sock_service_is_request(&r, sizeof r));
	h = CMSG_FIRSTHDR(&msg);
	*descriptor = h;
	if (h)
		close(*(int *)CMSG_DATA(h));
	return r;
}

static uint32_t take(enum sock_service_type type, bool with_descriptor)
{
	bool descriptor;
	struct sock_service_request r = take_request(&descriptor);

	assert_int_equal(r.type, type);
	assert_int_equal(descriptor, with_descriptor);
	return r.id;
}

static struct sock_service_answer answer_to(enum sock_service_type type, uint32_t id)
{
	return (struct sock_service_answer){ .magic = SOCK_SERVICE_MAGIC, .version = SOCK_SERVICE_VERSION, .type = type,
		.id = id, .key = "0123456789abcde", .peer = { [10] = 0xff, 0xff, 10, 1, 2, 3 },
		.qualifier = type == SOCK_SERVICE_ASK ? 4000 : 0, .ia = "ia0" };
}

static void answer(struct sock_service_answer a)
{
	assert_int_equal(send(process, &a, sizeof a, 0), sizeof a);
	hosts_dispatch();
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, tear_down)

TEST(connector_learns_where_its_peer_is)
{
	const struct sockaddr_in *in = (const void *)&told.peer;

	assert_int_equal(hosts_ask(&connector), 0);
	assert_true(hosts_fd() >= 0);
	answer(answer_to(SOCK_SERVICE_ASK, take(SOCK_SERVICE_ASK, true)));
	assert_ptr_equal(told_to, &connector);
	assert_int_equal(told.result, SOCK_SERVICE_OK);
	assert_string_equal(told_ia, "ia0");
	assert_int_equal(told.qualifier, 4000);
	assert_memory_equal(told.key, "0123456789abcde", SOCK_SERVICE_KEY);
	assert_int_equal(in->sin_family, AF_INET);
	assert_int_equal(in->sin_addr.s_addr, htonl(0x0a010203));
}

TEST(acceptor_says_where_it_listens)
{
	bool descriptor;
	struct sock_service_request r;
	uint32_t id;

	assert_int_equal(hosts_ask(&acceptor), 0);
	id = take(SOCK_SERVICE_EXPECT, true);
	answer(answer_to(SOCK_SERVICE_EXPECT, id));
	assert_ptr_equal(told_to, &acceptor);
	hosts_here(&acceptor, 4321);
	r = take_request(&descriptor);
	assert_int_equal(r.type, SOCK_SERVICE_HERE);
	assert_int_equal(r.id, id);
	assert_int_equal(r.qualifier, 4321);
	hosts_forget(&acceptor);
	assert_int_equal(take(SOCK_SERVICE_FORGET, false), id);
	hosts_forget(&acceptor); /* nothing more */
	assert_int_equal(recv(process, &r, sizeof r, MSG_DONTWAIT), -1);
}

TEST(late_and_wrong_answers_are_dropped)
{
	uint32_t first, second;

	assert_int_equal(hosts_ask(&connector), 0);
	first = take(SOCK_SERVICE_ASK, true);
	hosts_forget(&connector);
	answer(answer_to(SOCK_SERVICE_ASK, first));
	assert_int_equal(hosts_ask(&connector), 0);
	second = take(SOCK_SERVICE_ASK, true);
	assert_int_not_equal(first, second);
	answer(answer_to(SOCK_SERVICE_ASK, first));
	answer(answer_to(SOCK_SERVICE_ASK, second + 1));
	answer(answer_to(SOCK_SERVICE_EXPECT, second)); /* a connector is told where */
	assert_int_equal(tellings, 0);
	answer(answer_to(SOCK_SERVICE_ASK, second));
	answer(answer_to(SOCK_SERVICE_ASK, second));
	assert_int_equal(tellings, 1);
}

TEST(garbage_ends_the_service_for_all)
{
	assert_int_equal(hosts_ask(&connector), 0);
	assert_int_equal(hosts_ask(&acceptor), 0);
	take(SOCK_SERVICE_ASK, true);
	assert_int_equal(send(process, "x", 1, 0), 1);
	hosts_dispatch();
	assert_int_equal(tellings, 2);
	assert_int_equal(told.result, SOCK_SERVICE_NO_PEER);
	assert_int_equal(hosts_fd(), -1);
}

TEST(service_may_end_and_begin_again)
{
	assert_int_equal(hosts_ask(&connector), 0);
	take(SOCK_SERVICE_ASK, true);
	hang_up();
	hosts_dispatch();
	assert_int_equal(tellings, 1);
	assert_int_equal(told.result, SOCK_SERVICE_NO_PEER);
	close(listener);
	assert_int_equal(hosts_ask(&connector), ECONNREFUSED);
	unlink(path);
	assert_int_equal(hosts_ask(&connector), ECONNREFUSED); /* as while it is started again */
	assert_int_equal(hosts_fd(), -1);
	serve();
	assert_int_equal(hosts_ask(&connector), 0);
	answer(answer_to(SOCK_SERVICE_ASK, take(SOCK_SERVICE_ASK, true)));
	assert_int_equal(tellings, 2);
	assert_int_equal(told.result, SOCK_SERVICE_OK);
}

TEST(service_that_has_never_been_there_is_told)
{
	unlink(path);
	assert_int_equal(hosts_ask(&connector), ENOENT);
}

TEST(child_asks_by_itself)
{
	uint32_t id;

	assert_int_equal(hosts_ask(&connector), 0);
	id = take(SOCK_SERVICE_ASK, true);
	hosts_after_fork();
	assert_int_equal(hosts_fd(), -1);
	assert_int_equal(connector.host_id, 0);
	hang_up();
	assert_int_equal(hosts_ask(&connector), 0);
	assert_int_not_equal(take(SOCK_SERVICE_ASK, true), id);
}

UNIT_MAIN(NULL, NULL)
