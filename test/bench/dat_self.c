/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_self.c - two connected endpoints of one process, 8-byte messages, one operation at a
 * time: what callgrind counts the instructions of (see instructions). Not for times.
 *
 *   dat_self IA ROUNDS NAP_MS [wait]
 *
 * wait: begins when a line comes on standard input, so that a capture (datcap rdma) can be begun before.
 *
 * The op_* functions are called once a round each, when nothing else goes on and when what
 * they look for is there. So they take the same instructions every time; a round in which a
 * completion was late ends the program. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <dat/udat.h>

enum { MESSAGE = 8, WAIT_US = 30 * 1000 * 1000 };

/* Never inlined, so that callgrind sees them by name. */
#define OP __attribute__((noinline))

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_EVD_HANDLE async_evd, cr_evd, conn_evd, request_evd, recv_evd, other_evd;
static DAT_EP_HANDLE from, to;
static DAT_LMR_TRIPLET source, sink;
static DAT_RMR_TRIPLET target;
static char buffer[2 * MESSAGE];

static void good(DAT_RETURN rc, const char *what)
{
	const char *major = "?", *minor = "?";

	if (rc == DAT_SUCCESS)
		return;
	dat_strerror(rc, &major, &minor);
	fprintf(stderr, "dat_self: %s: %s %s\n", what, major, minor);
	exit(1);
}

static inline void post_send(void)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };

	good(dat_ep_post_send(from, 1, &source, cookie, DAT_COMPLETION_DEFAULT_FLAG), "post_send");
}

static inline void post_write(void)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 3 };

	good(dat_ep_post_rdma_write(from, 1, &source, cookie, &target, DAT_COMPLETION_DEFAULT_FLAG), "post_write");
}

static inline void post_recv(void)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 2 };

	good(dat_ep_post_recv(to, 1, &sink, cookie, DAT_COMPLETION_DEFAULT_FLAG), "post_recv");
}

static inline void reap_send(void)
{
	DAT_EVENT e;

	good(dat_evd_dequeue(request_evd, &e), "the completion of a send");
}

static inline void reap_recv(void)
{
	DAT_EVENT e;

	good(dat_evd_dequeue(recv_evd, &e), "the completion of a receive");
}

static inline void find_none(void)
{
	DAT_EVENT e;

	if (dat_evd_dequeue(recv_evd, &e) == DAT_SUCCESS)
		exit(1);
}

OP static void op_post_send(void) { post_send(); }
OP static void op_post_write(void) { post_write(); }
OP static void op_post_recv(void) { post_recv(); }
OP static void op_reap_send(void) { reap_send(); }
OP static void op_reap_recv(void) { reap_recv(); }
OP static void op_find_none(void) { find_none(); }

static DAT_EVD_HANDLE evd(DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE made;

	good(dat_evd_create(ia, 64, DAT_HANDLE_NULL, flags, &made), "dat_evd_create");
	return made;
}

static DAT_EVENT event(DAT_EVD_HANDLE from_evd, const char *what)
{
	DAT_COUNT more;
	DAT_EVENT e;

	good(dat_evd_wait(from_evd, WAIT_US, 1, &e, &more), what);
	return e;
}

static DAT_LMR_TRIPLET memory(char *at, DAT_RMR_TRIPLET *remote)
{
	DAT_REGION_DESCRIPTION region = { .for_va = at };
	DAT_LMR_TRIPLET triplet = { .virtual_address = (uintptr_t)at, .segment_length = MESSAGE };
	DAT_RMR_CONTEXT rmr;
	DAT_LMR_HANDLE lmr;
	DAT_VLEN length;
	DAT_VADDR start;

	good(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, MESSAGE, pz,
			    DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
			    DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
			    DAT_VA_TYPE_VA, &lmr, &triplet.lmr_context, &rmr, &length, &start),
	     "dat_lmr_create");
	*remote = (DAT_RMR_TRIPLET){ .virtual_address = triplet.virtual_address, .segment_length = MESSAGE,
		.rmr_context = rmr };
	return triplet;
}

static void setup(char *name)
{
	DAT_CONN_QUAL qual = 0;
	DAT_PSP_HANDLE psp;
	DAT_IA_ATTR attr;
	DAT_EVENT e;

	good(dat_ia_open(name, 8, &async_evd, &ia), "dat_ia_open");
	good(dat_ia_query(ia, &async_evd, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL),
	     "dat_ia_query");
	good(dat_pz_create(ia, &pz), "dat_pz_create");
	cr_evd = evd(DAT_EVD_CR_FLAG);
	conn_evd = evd(DAT_EVD_CONNECTION_FLAG);
	request_evd = evd(DAT_EVD_DTO_FLAG);
	recv_evd = evd(DAT_EVD_DTO_FLAG);
	other_evd = evd(DAT_EVD_DTO_FLAG);
	source = memory(buffer, &target);
	sink = memory(buffer + MESSAGE, &target);
	good(dat_ep_create(ia, pz, other_evd, request_evd, conn_evd, NULL, &from), "dat_ep_create");
	good(dat_ep_create(ia, pz, recv_evd, other_evd, conn_evd, NULL, &to), "dat_ep_create");
	good(dat_psp_create_any(ia, &qual, cr_evd, DAT_PSP_CONSUMER_FLAG, &psp),
	     "dat_psp_create_any");
	good(dat_ep_connect(from, attr.ia_address_ptr, qual, WAIT_US, 0, NULL,
			    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG), "dat_ep_connect");
	e = event(cr_evd, "request");
	good(dat_cr_accept(e.event_data.cr_arrival_event_data.cr_handle, to, 0, NULL),
	     "dat_cr_accept");
	event(conn_evd, "connection");
	event(conn_evd, "connection");
}

int main(int argc, char **argv)
{
	struct timespec nap;
	int rounds, ms;

	if (argc < 4 || argc > 5 || (rounds = atoi(argv[2])) < 1 || (ms = atoi(argv[3])) < 1 || ms > 999) {
		fprintf(stderr, "usage: dat_self IA ROUNDS NAP_MS [wait]\n");
		return 2;
	}
	nap = (struct timespec){ 0, ms * 1000 * 1000L };
	setup(argv[1]);
	if (argc == 5)
		getchar();
	post_recv();		/* what is made at the first message is not counted */
	nanosleep(&nap, NULL);
	post_send();
	nanosleep(&nap, NULL);
	reap_send();
	reap_recv();
	post_write();
	nanosleep(&nap, NULL);
	reap_send();
	while (rounds--) {
		op_post_recv();
		nanosleep(&nap, NULL);
		op_post_send();
		nanosleep(&nap, NULL);
		op_reap_send();
		op_reap_recv();
		op_find_none();
		op_post_write();
		nanosleep(&nap, NULL);
		reap_send();
	}
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	return 0;
}
