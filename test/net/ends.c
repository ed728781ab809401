/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ends.c - the two ends of a connection in two processes (ends.h). */
#include "ends.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct server *server;

void make_server(void)
{
	server = mmap(NULL, sizeof *server, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* --- one end ----------------------------------------------------------------------- */

void open_end(struct end *e, const char *library, const char *netdev)
{
	char params[32], *memory;

	memset(e, 0, sizeof *e);
	snprintf(params, sizeof params, "%s 0", netdev);
	life_entry("net", library, params);
	memory = aligned_alloc(4096, MEMORY);
	memset(memory, 0, MEMORY);
	OK(end_open(e, "net", (struct end_events){ .cr = 8, .recv = 64, .request = 64, .conn = 8 }));
	OK(end_register(e, memory, MEMORY));
	OK(end_create_ep(e, NULL));
}

void close_end(struct end *e)
{
	OK(end_close(e));
	free(e->memory);
}

static DAT_LMR_TRIPLET block(const struct end *e, int number, unsigned length)
{
	return end_segment(e, e->memory + number * BLOCK, length);
}

void post_receive(struct end *e, int number)
{
	DAT_LMR_TRIPLET at = block(e, number, BLOCK);
	DAT_DTO_COOKIE cookie = { .as_64 = number };

	OK(dat_ep_post_recv(e->ep, 1, &at, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

void post_send(struct end *e, int number, unsigned length)
{
	DAT_LMR_TRIPLET at = block(e, number, length);
	DAT_DTO_COOKIE cookie = { .as_64 = number };

	OK(dat_ep_post_send(e->ep, 1, &at, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

void post_rdma(struct end *e, int from, int to, unsigned length, bool read)
{
	DAT_LMR_TRIPLET here = block(e, from, length);
	DAT_RMR_TRIPLET there = { .rmr_context = server->remote, .segment_length = length,
		.virtual_address = server->at + to * BLOCK };
	DAT_DTO_COOKIE cookie = { .as_64 = from };

	if (read)
		OK(dat_ep_post_rdma_read(e->ep, 1, &here, cookie, &there,
					 DAT_COMPLETION_DEFAULT_FLAG));
	else
		OK(dat_ep_post_rdma_write(e->ep, 1, &here, cookie, &there,
					  DAT_COMPLETION_DEFAULT_FLAG));
}

DAT_DTO_COMPLETION_STATUS done(DAT_EVD_HANDLE evd, unsigned *length)
{
	DAT_EVENT event;

	OK(await(evd, DAT_DTO_COMPLETION_EVENT, DEATH, &event));
	if (length)
		*length = event.event_data.dto_completion_event_data.transfered_length;
	return event.event_data.dto_completion_event_data.status;
}

static void fill(char *p, unsigned length, unsigned seed)
{
	for (unsigned i = 0; i < length; i++)
		p[i] = (char)((i + seed) * 2654435761u >> 24);
}

static void expect_filled(const char *p, unsigned length, unsigned seed)
{
	char *good = malloc(length + 1);

	fill(good, length, seed);
	for (unsigned i = 0; i < length; i++)
		if (p[i] != good[i])
			fail("byte %u of %u is wrong, seed %u", i, length, seed);
	free(good);
}

static unsigned length_of(unsigned round)
{
	return 1 + round * 7919u % (BLOCK - 1);
}

/* --- two processes ----------------------------------------------------------------- */

bool try_quietly(const char *command)
{
	char line[300];

	snprintf(line, sizeof line, "{ %s; } >/dev/null 2>&1", command);
	return system(line) == 0;
}

void must(const char *command)
{
	if (!try_quietly(command))
		fail("%s", command);
}

void accept_one(struct end *e)
{
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	OK(dat_psp_create(e->ia, PORT, e->cr, DAT_PSP_CONSUMER_FLAG, &psp));
	server->remote = e->remote;
	server->at = (uintptr_t)e->memory;
	post_receive(e, 0);
	__atomic_store_n(&server->ready, true, __ATOMIC_RELEASE);
	OK(await(e->cr, DAT_CONNECTION_REQUEST_EVENT, DEATH, &event));
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, e->ep, 0, NULL));
	OK(await(e->conn, DAT_CONNECTION_EVENT_ESTABLISHED, DEATH, NULL));
	__atomic_store_n(&server->connected, true, __ATOMIC_RELEASE);
}

void await_server(pid_t pid)
{
	while (!__atomic_load_n(&server->ready, __ATOMIC_ACQUIRE)) {
		if (waitpid(pid, NULL, WNOHANG))
			fail("the server ended");
		usleep(1000);
	}
}

/* Checks and sends back what comes, until the connection ends. */
void echo(struct end *e)
{
	unsigned length;

	for (unsigned round = 0; done(e->recv, &length) == DAT_DTO_SUCCESS; round++) {
		if (length != length_of(round))
			fail("message %u has %u bytes, expected %u", round, length,
			     length_of(round));
		expect_filled(e->memory, length, round);
		memmove(e->memory + BLOCK, e->memory, length);
		post_receive(e, 0);
		post_send(e, 1, length);
		if (done(e->request, NULL) != DAT_DTO_SUCCESS)
			fail("the echo of message %u did not arrive", round);
	}
	OK(await(e->conn, DAT_CONNECTION_EVENT_DISCONNECTED, DEATH, NULL));
}

DAT_RETURN connect_to(struct end *e, const char *address, DAT_TIMEOUT timeout,
		      DAT_EVENT_NUMBER expected)
{
	struct sockaddr_in to = { .sin_family = AF_INET };

	inet_pton(AF_INET, address, &to.sin_addr);
	OK(dat_ep_connect(e->ep, (DAT_IA_ADDRESS_PTR)&to, PORT, timeout, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	return await(e->conn, expected, DEATH, NULL);
}

void exchange(struct end *e, unsigned rounds)
{
	unsigned length;

	for (unsigned round = 0; round < rounds; round++) {
		post_receive(e, 1);
		fill(e->memory, length_of(round), round);
		post_send(e, 0, length_of(round));
		if (done(e->request, NULL) != DAT_DTO_SUCCESS ||
		    done(e->recv, &length) != DAT_DTO_SUCCESS || length != length_of(round))
			fail("message %u", round);
		expect_filled(e->memory + BLOCK, length, round);
		fill(e->memory + 2 * BLOCK, length, ~round);
		post_rdma(e, 2, 2, length, false);
		post_rdma(e, 3, 2, length, true);
		if (done(e->request, NULL) != DAT_DTO_SUCCESS ||
		    done(e->request, NULL) != DAT_DTO_SUCCESS)
			fail("write or read %u", round);
		expect_filled(e->memory + 3 * BLOCK, length, ~round);
	}
}

void expect_good_end(pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	if (status)
		fail("the other process ended with status 0x%x", status);
}
