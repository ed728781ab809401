/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* baseline_verbs.c - measures libibverbs without DAT (baseline_verbs.h). The peer is a child process, which
 * opens the device for itself. The two exchange their addresses over a socket pair; the child ends when
 * the parent closes it. */
#include "baseline_verbs.h"
#include "../call.h"
#include "../cli.h"
#include "../libverbs.h"
#include "patience.h"
#include "stats.h"
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	DEPTH = 32,      /* requests in flight, like LINK_DEPTH of an endpoint */
	CREDIT = 16,     /* received messages for each update of the counter */
	ROUNDS = 100000, /* of a latency */
	WARM_UP = 100,
	STREAM_CHUNK = 64, /* requests between two reads of the clock */
	LIMIT = 20,        /* seconds without progress after which the parent fails */
	PAGE = 4096
};

/* The data that the peer needs, in host byte order, since both processes run on one host. */
struct address {
	uint32_t qp_number;
	uint16_t lid;
	union ibv_gid gid;
	uint64_t target;
	uint32_t rkey;
};

/* One side: a connected queue pair with its memory, which is `out`, `in` and a page with a counter. */
struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *requests, *receives;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *out;
	volatile char *in;
	volatile uint64_t *counter; /* messages that the peer has taken */
	size_t size;
	struct address peer;
	unsigned unfinished; /* requests */
	int fd;              /* to the peer */
	pid_t child;         /* 0: this is the child */
};

static struct {
	char device[64];
	unsigned port, reads;
	int gid_index;
} chosen;

static char reason[512];

/* --- the device -------------------------------------------------------------- */

/* Opens the chosen device. If that fails, returns NULL and stores why in `reason`. */
static struct ibv_context *open_device(void)
{
	struct ibv_device **list = lib.ibv_get_device_list(NULL), **at;
	struct ibv_context *context = NULL;

	for (at = list; at && *at; at++)
		if (!strcmp(lib.ibv_get_device_name(*at), chosen.device))
			break;
	if (!list || !*at) {
		snprintf(reason, sizeof reason, "%s is no RDMA device that libibverbs offers",
			 chosen.device);
	} else if ((*at)->transport_type == IBV_TRANSPORT_IWARP) {
		snprintf(reason, sizeof reason,
			 "%s is an iWARP device: libibverbs alone cannot connect queue pairs there",
			 chosen.device);
	} else {
		context = lib.ibv_open_device(*at);
		if (!context)
			snprintf(reason, sizeof reason, "%s cannot be opened: %s", chosen.device,
				 strerror(errno));
	}
	if (list)
		lib.ibv_free_device_list(list);
	return context;
}

/* Returns the index of the GID in the table of the port, or 0 if it is not there. */
static int find_gid(struct ibv_context *context, const char *text)
{
	union ibv_gid wanted, gid;

	if (inet_pton(AF_INET6, text, wanted.raw) != 1)
		return 0;
	for (int i = 0; !lib.ibv_query_gid(context, (uint8_t)chosen.port, i, &gid); i++)
		if (!memcmp(&gid, &wanted, sizeof gid))
			return i;
	return 0;
}

const char *baseline_verbs_find(const char *device, unsigned port, const char *gid, unsigned reads)
{
	struct ibv_context *context;
	const char *why = libverbs_load();

	if (why)
		return why;
	snprintf(chosen.device, sizeof chosen.device, "%s", device);
	chosen.port = port;
	chosen.reads = reads;
	context = open_device();
	if (!context)
		return reason;
	chosen.gid_index = find_gid(context, gid);
	lib.ibv_close_device(context);
	return NULL;
}

/* --- connecting -------------------------------------------------------------- */

/* Ends the process if a step has failed. The child prints nothing, since the parent detects its end. */
static void must(const struct side *s, bool done, const char *what)
{
	if (done)
		return;
	if (!s->child)
		_exit(1);
	fail("raw verbs on %s: %s: %m", chosen.device, what);
}

static void must_not(const struct side *s, int err, const char *what)
{
	errno = err;
	must(s, !err, what);
}

static void create_queue_pair(struct side *s)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1,
					 .cap = { .max_send_wr = DEPTH + 1,
						  .max_recv_wr = DEPTH,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = (uint8_t)chosen.port,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						       IBV_ACCESS_REMOTE_READ |
						       IBV_ACCESS_REMOTE_ATOMIC };

	init.send_cq = s->requests = lib.ibv_create_cq(s->context, DEPTH + 1, NULL, NULL, 0);
	init.recv_cq = s->receives = lib.ibv_create_cq(s->context, DEPTH, NULL, NULL, 0);
	must(s, s->requests && s->receives, "ibv_create_cq");
	s->qp = lib.ibv_create_qp(s->pd, &init);
	must(s, s->qp, "ibv_create_qp");
	must_not(s,
		 lib.ibv_modify_qp(s->qp, &attr,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					   IBV_QP_ACCESS_FLAGS),
		 "ibv_modify_qp to INIT");
}

static void create_memory(struct side *s)
{
	size_t area = (s->size + PAGE - 1) / PAGE * PAGE;
	void *memory = NULL;

	must_not(s, posix_memalign(&memory, PAGE, 2 * area + PAGE), "memory");
	memset(memory, 0, 2 * area + PAGE);
	s->out = memory;
	s->in = s->out + area;
	s->counter = (uint64_t *)(s->out + 2 * area);
	s->mr = lib.ibv_reg_mr(s->pd, memory, 2 * area + PAGE,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	must(s, s->mr, "ibv_reg_mr");
}

/* Exchanges data with the peer. Both sides send before they receive. */
static void swap(const struct side *s, const void *own, void *theirs, size_t size)
{
	bool done = send(s->fd, own, size, MSG_NOSIGNAL) == (ssize_t)size &&
		    recv(s->fd, theirs, size, MSG_WAITALL) == (ssize_t)size;

	if (!done)
		errno = EPIPE;
	must(s, done, "the other process");
}

static void exchange_addresses(struct side *s)
{
	struct address own = { .qp_number = s->qp->qp_num,
			       .target = (uintptr_t)s->in,
			       .rkey = s->mr->rkey };
	struct ibv_port_attr port;

	memset(&port, 0, sizeof port);
	must_not(s, lib.ibv_query_port(s->context, (uint8_t)chosen.port, &port), "ibv_query_port");
	own.lid = port.lid;
	must(s, !lib.ibv_query_gid(s->context, (uint8_t)chosen.port, chosen.gid_index, &own.gid),
	     "ibv_query_gid");
	swap(s, &own, &s->peer, sizeof own);
}

static enum ibv_mtu path_mtu(struct side *s)
{
	struct ibv_port_attr port;

	memset(&port, 0, sizeof port);
	must_not(s, lib.ibv_query_port(s->context, (uint8_t)chosen.port, &port), "ibv_query_port");
	return port.active_mtu;
}

/* Timers and retries are those of rdma_cm: a timeout of 2^14 x 4 us, 7 retries, and endless retries while
 * the receiver is not ready. */
static void connect_queue_pair(struct side *s)
{
	struct ibv_qp_attr to_receive = { .qp_state = IBV_QPS_RTR,
					  .path_mtu = path_mtu(s),
					  .dest_qp_num = s->peer.qp_number,
					  .max_dest_rd_atomic = (uint8_t)chosen.reads,
					  .min_rnr_timer = 12,
					  .ah_attr = { .dlid = s->peer.lid,
						       .port_num = (uint8_t)chosen.port } };
	struct ibv_qp_attr to_send = { .qp_state = IBV_QPS_RTS,
				       .timeout = 14,
				       .retry_cnt = 7,
				       .rnr_retry = 7,
				       .max_rd_atomic = (uint8_t)chosen.reads };

	if (!s->peer.lid) { /* no LID: on Ethernet, addresses are GIDs */
		to_receive.ah_attr.is_global = 1;
		to_receive.ah_attr.grh = (struct ibv_global_route){
			.dgid = s->peer.gid,
			.sgid_index = (uint8_t)chosen.gid_index,
			.hop_limit = 64,
		};
	}
	must_not(s,
		 lib.ibv_modify_qp(s->qp, &to_receive,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER),
		 "ibv_modify_qp to RTR");
	must_not(s,
		 lib.ibv_modify_qp(s->qp, &to_send,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC),
		 "ibv_modify_qp to RTS");
}

/* --- requests ---------------------------------------------------------------- */

/* Returns whether the peer has closed its socket, or has ended. */
static bool peer_has_ended(const struct side *s)
{
	char byte;

	return recv(s->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

struct poll {
	unsigned long empty;
	double since; /* seconds, monotonic */
};

/* Called after each empty poll. The parent fails if its peer has ended, or after LIMIT seconds. The child
 * waits until the parent ends. */
static void idle(const struct side *s, struct poll *p)
{
	bool ended;

	if (++p->empty % patience())
		return;
	if (p->empty == patience())
		p->since = now();
	ended = peer_has_ended(s);
	if (!s->child && ended)
		_exit(0);
	if (s->child && (ended || now() - p->since > LIMIT))
		fail("raw verbs on %s: the other process does not answer", chosen.device);
	sched_yield();
}

static void reap(struct side *s, struct ibv_cq *cq)
{
	struct poll p = { 0 };
	struct ibv_wc wc;
	int got;

	while (!(got = ibv_poll_cq(cq, 1, &wc)))
		idle(s, &p);
	errno = EIO;
	must(s, got == 1 && wc.status == IBV_WC_SUCCESS, "completion of a request");
}

static void reap_request(struct side *s)
{
	reap(s, s->requests);
	s->unfinished--;
}

static void post_receive(struct side *s)
{
	struct ibv_sge to = { (uintptr_t)s->in, (uint32_t)s->size, s->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &to, .num_sge = 1 }, *bad;

	must_not(s, ibv_post_recv(s->qp, &wr, &bad), "ibv_post_recv");
}

static void reap_receive(struct side *s)
{
	reap(s, s->receives);
	post_receive(s);
}

static void post_request(struct side *s, enum ibv_wr_opcode opcode, void *at, size_t size,
			 uint64_t target)
{
	struct ibv_sge local = { (uintptr_t)at, (uint32_t)size, s->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &local, .num_sge = 1, .opcode = opcode }, *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = target;
		wr.wr.atomic.rkey = s->peer.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = target;
		wr.wr.rdma.rkey = s->peer.rkey;
	}
	must_not(s, ibv_post_send(s->qp, &wr, &bad), "ibv_post_send");
	s->unfinished++;
}

static void post(struct side *s, enum verbs_op op)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[VERBS_SEND] = IBV_WR_SEND,
		[VERBS_WRITE] = IBV_WR_RDMA_WRITE,
		[VERBS_WRITE_IMMEDIATE] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[VERBS_READ] = IBV_WR_RDMA_READ,
		[VERBS_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	};

	post_request(s, opcodes[op], s->out, s->size, s->peer.target);
}

/* Returns the last byte of a write. It differs from that of the round before, and from 0, its initial
 * value. */
static char mark(uint32_t round)
{
	return (char)(round % 127 + 1);
}

static void write_mark(struct side *s, uint32_t round)
{
	s->out[s->size - 1] = mark(round);
	post(s, VERBS_WRITE);
}

static void spin_mark(struct side *s, uint32_t round)
{
	struct poll p = { 0 };

	while (s->in[s->size - 1] != mark(round))
		idle(s, &p);
}

/* --- the child --------------------------------------------------------------- */

/* Echoes each message. */
static void echo(struct side *s, enum verbs_op op)
{
	for (uint32_t round = 1;; round++) {
		if (op == VERBS_WRITE) {
			spin_mark(s, round);
			write_mark(s, round);
		} else {
			reap_receive(s);
			post(s, op);
		}
		reap_request(s);
	}
}

/* Receives messages, and writes their number to the counter of the parent. It lies behind `in`, at the same
 * distance as here. */
static void take(struct side *s)
{
	uint64_t *number = (uint64_t *)s->counter,
		 target = s->peer.target + ((uintptr_t)s->counter - (uintptr_t)s->in);

	for (;;) {
		for (int i = 0; i < CREDIT; i++)
			reap_receive(s);
		*number += CREDIT;
		post_request(s, IBV_WR_RDMA_WRITE, number, sizeof *number, target);
		reap_request(s);
	}
}

static void serve(struct side *s, enum verbs_op op, bool stream)
{
	char byte;

	if (stream && op == VERBS_SEND)
		take(s);
	if (!stream && op < VERBS_READ)
		echo(s, op);
	(void)!recv(s->fd, &byte, 1, 0); /* the adapter executes the requests without this process */
	_exit(0);
}

/* --- the parent -------------------------------------------------------------- */

static struct side open_sides(enum verbs_op op, size_t size, bool stream)
{
	struct side s = { .size = size };
	int fds[2];
	char ready;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		fail("socketpair: %m");
	s.child = fork();
	if (s.child < 0)
		fail("fork: %m");
	s.fd = fds[s.child == 0];
	close(fds[s.child != 0]);
	s.context = open_device();
	must(&s, s.context, "ibv_open_device");
	s.pd = lib.ibv_alloc_pd(s.context);
	must(&s, s.pd, "ibv_alloc_pd");
	create_memory(&s);
	create_queue_pair(&s);
	for (int i = 0; i < DEPTH; i++)
		post_receive(&s);
	exchange_addresses(&s);
	connect_queue_pair(&s);
	/* the peer may send only when this queue pair is ready, too */
	swap(&s, "", &ready, 1);
	if (!s.child)
		serve(&s, op, stream);
	return s;
}

static void close_sides(struct side *s)
{
	close(s->fd);
	while (waitpid(s->child, NULL, 0) < 0)
		;
	lib.ibv_destroy_qp(s->qp);
	lib.ibv_destroy_cq(s->requests);
	lib.ibv_destroy_cq(s->receives);
	lib.ibv_dereg_mr(s->mr);
	lib.ibv_dealloc_pd(s->pd);
	lib.ibv_close_device(s->context);
	free(s->out);
}

/* Returns the seconds of half a round trip, or of a whole read or atomic. */
static double time_round(struct side *s, enum verbs_op op, uint32_t round)
{
	double start = now(), took;

	if (op == VERBS_WRITE) {
		write_mark(s, round);
		spin_mark(s, round);
		took = (now() - start) / 2;
		reap_request(s);
	} else if (op < VERBS_READ) {
		post(s, op);
		reap_receive(s);
		took = (now() - start) / 2;
		reap_request(s);
	} else {
		post(s, op);
		reap_request(s);
		took = now() - start;
	}
	return took;
}

double baseline_verbs_latency(enum verbs_op op, size_t size, double seconds)
{
	double *took = calloc(ROUNDS, sizeof *took), end, median;
	struct side s = open_sides(op, size, false);
	uint32_t n = 0;

	if (!took)
		fail("no memory");
	end = now() + seconds;
	for (uint32_t round = 1; n < ROUNDS && (now() < end || !n); round++) {
		double time = time_round(&s, op, round);

		if (round > WARM_UP)
			took[n++] = time * 1e6;
	}
	median = stats_of(took, n).median;
	close_sides(&s);
	free(took);
	return median;
}

/* Waits until the peer has taken all but `left` of the messages sent. */
static void wait_taken(struct side *s, uint64_t sent, uint64_t left)
{
	struct poll p = { 0 };

	while (sent - *s->counter > left)
		idle(s, &p);
}

double baseline_verbs_bandwidth(enum verbs_op op, size_t size, double seconds)
{
	struct side s = open_sides(op, size, true);
	double start = now(), took;
	uint64_t sent = 0;

	do {
		for (int i = 0; i < STREAM_CHUNK; i++, sent++) {
			if (op == VERBS_SEND)
				wait_taken(&s, sent, DEPTH - 1);
			while (s.unfinished >= DEPTH)
				reap_request(&s);
			post(&s, op);
		}
	} while (now() - start < seconds);
	while (s.unfinished)
		reap_request(&s);
	if (op == VERBS_SEND)
		wait_taken(&s, sent, 0);
	took = now() - start;
	close_sides(&s);
	return (double)sent * size / took;
}
