/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shortages.c - what the software device prints and returns when the process lacks something: a line with
 * the limit for each call that gets no descriptor, and the right subtype. */
#include "failures.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define EMPTY "Too many open files \\(the limit is [0-9]+; raise it, ulimit -n\\)$"

static void limit(int resource, rlim_t value)
{
	struct rlimit both;

	getrlimit(resource, &both);
	both.rlim_cur = value;
	if (setrlimit(resource, &both))
		fail("setrlimit");
}

/* Lowers the limit: the process gets no more descriptors. */
static void use_up_descriptors(void)
{
	int fd = dup(2);

	close(fd);
	limit(RLIMIT_NOFILE, fd);
}

static void connect_without(const void *arg)
{
	struct sockaddr_in to = address_of("127.0.0.1");
	DAT_RETURN ret;
	struct active a;
	DAT_EP_HANDLE ep;

	open_active(&a);
	ep = arg ? new_ep(&a, true) : a.ep;
	use_up_descriptors();
	ret = dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&to, 7, MOMENT, 0, NULL,
			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	if (ret != (DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | (DAT_RETURN)DAT_RESOURCE_TEP))
		fail("connect gives %s", life_return(ret));
	limit(RLIMIT_NOFILE, 1024);
	close_active(&a);
}

static void connect_datagrams_without(const void *arg)
{
	(void)arg;
	connect_without("");
}

static void connect_without_descriptors(void)
{
	expect_lines(connect_without, "^dapl: " LIFE_IA ": connect to 127\\.0\\.0\\.1 port 7: " EMPTY, NULL);
	expect_lines(connect_datagrams_without,
		     "^dapl: " LIFE_IA ": connect to 127\\.0\\.0\\.1 port 7: " EMPTY, NULL);
}

static void create_without(const void *arg)
{
	DAT_RETURN tevd = DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | (DAT_RETURN)DAT_RESOURCE_TEVD;
	DAT_EVD_HANDLE evd;
	struct active a;

	(void)arg;
	open_active(&a);
	use_up_descriptors();
	EXPECT(dat_evd_create(a.ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd) == tevd);
	limit(RLIMIT_NOFILE, 1024);
	close_active(&a);
}

static void create_an_evd_without_descriptors(void)
{
	expect_lines(create_without, "^dapl: " LIFE_IA ": EVD creation: " EMPTY, NULL);
}

static void listen_without(const void *arg)
{
	DAT_RETURN device = DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | (DAT_RETURN)DAT_RESOURCE_DEVICE;
	DAT_CONN_QUAL qual;
	DAT_EVD_HANDLE cr;
	DAT_PSP_HANDLE psp;
	struct active a;

	(void)arg;
	open_active(&a);
	OK(dat_evd_create(a.ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &cr));
	use_up_descriptors();
	EXPECT(dat_psp_create_any(a.ia, &qual, cr, DAT_PSP_CONSUMER_FLAG, &psp) == device);
	limit(RLIMIT_NOFILE, 1024);
	close_active(&a);
}

static void listen_without_descriptors(void)
{
	expect_lines(listen_without, "^dapl: " LIFE_IA ": listening: " EMPTY, NULL);
}

/* The output of a case is a file. */
static void wait_for_a_line(void)
{
	struct stat st;

	do
		usleep(1000);
	while (!fstat(2, &st) && !st.st_size);
}

static void accept_without(const void *arg)
{
	struct sockaddr_in to = address_of("127.0.0.1");
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	DAT_CONN_QUAL qual;
	DAT_EVD_HANDLE cr;
	DAT_PSP_HANDLE psp;
	struct active a;

	(void)arg;
	open_active(&a);
	OK(dat_evd_create(a.ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &cr));
	OK(dat_psp_create_any(a.ia, &qual, cr, DAT_PSP_CONSUMER_FLAG, &psp));
	to.sin_port = htons(qual);
	use_up_descriptors();
	EXPECT(!connect(fd, (struct sockaddr *)&to, sizeof to));
	wait_for_a_line();
	limit(RLIMIT_NOFILE, 1024);
	close_active(&a);
	close(fd);
}

static void accept_without_descriptors(void)
{
	expect_lines(accept_without, "^dapl: [^ ]+: accepting connections waits, accept4: " EMPTY, NULL);
}

static const struct life_case cases[] = {
	CASE(connect_without_descriptors),
	CASE(create_an_evd_without_descriptors),
	CASE(listen_without_descriptors),
	CASE(accept_without_descriptors),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
