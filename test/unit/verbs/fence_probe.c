/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fence_probe ADDRESS: RDMA reads and writes in both directions of one connection, on
 * libibverbs and librdmacm alone. Each side keeps GROUPS groups posted, of a read and a write.
 * Three kinds of traffic:
 *   plain    no fence, and no more reads out than the peer allows: must complete everywhere
 *   fence    each write has IBV_SEND_FENCE: it waits for the read before it
 *   reads    no fence, but reads are posted that must wait until the peer allows them
 * In Linux 6.1's siw, `fence` stands still, often after some hundred requests: a request that waits
 * occupies the transmitter of its queue pair, and when this is so at both ends, neither end answers
 * the reads that the other waits for. `reads` waits in the same place, but was not seen to stand
 * still over the loopback. dapl/verbs/siw_queue.c is there for that reason. A device on which they pass is
 * no failure: what they do is only said. Needs a device, so it runs in the test machine. Prints
 * "N passed, M failed". */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	READS = 4,		/* RDMA reads outstanding, as agreed */
	GROUPS = 24,		/* posted at a time */
	LENGTH = 4096,
	ROUNDS = 4000,		/* groups of each side */
	STALL = 8,		/* seconds without a completion at either end */
	PORT = 7471,
};

enum kind { PLAIN, FENCE, MANY_READS };
static const char *const kind_name[] = { "plain", "fence", "reads" };

struct side {
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t memory[3 * LENGTH];	/* the peer reads the first third and writes the last */
	unsigned posted, completed;	/* groups posted; requests completed */
	unsigned reads;			/* outstanding */
	bool failed;
};

static struct side sides[2];
static enum kind kind;
static pthread_barrier_t start;
static unsigned last_total;
static double last_progress;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void need(bool good, const char *what)
{
	if (good)
		return;
	printf("FAIL %s: %s\n0 passed, 1 failed\n", what, strerror(errno));
	exit(1);
}

/* Counts both sides. */
static bool stands_still(void)
{
	unsigned total = __atomic_load_n(&sides[0].completed, __ATOMIC_RELAXED) +
			 __atomic_load_n(&sides[1].completed, __ATOMIC_RELAXED);
	bool still;

	pthread_mutex_lock(&lock);
	if (total != last_total) {
		last_total = total;
		last_progress = now();
	}
	still = now() - last_progress > STALL;
	pthread_mutex_unlock(&lock);
	return still;
}

static void make_queue_pair(struct side *s)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		.cap = { 2 * GROUPS, 1, 1, 1, 0 } };

	s->cq = ibv_create_cq(s->id->verbs, 4 * GROUPS, NULL, NULL, 0);
	need(s->cq, "ibv_create_cq");
	init.send_cq = init.recv_cq = s->cq;
	need(!rdma_create_qp(s->id, NULL, &init), "rdma_create_qp");
	s->mr = ibv_reg_mr(s->id->pd, s->memory, sizeof s->memory, IBV_ACCESS_LOCAL_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	need(s->mr, "ibv_reg_mr");
}

static void post(struct side *s, const struct side *peer, bool read)
{
	struct ibv_sge sge = { .addr = (uintptr_t)s->memory + (read ? LENGTH : 0),
		.length = read ? LENGTH : 8, .lkey = s->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = read, .sg_list = &sge, .num_sge = 1,
		.opcode = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED }, *bad;
	int err;

	if (kind == FENCE && !read)
		wr.send_flags |= IBV_SEND_FENCE;
	wr.wr.rdma.rkey = peer->mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)peer->memory + (read ? 0 : 2 * LENGTH);
	err = ibv_post_send(s->id->qp, &wr, &bad);
	if (err && !s->failed) {
		printf("# %s: post: %s\n", kind_name[kind], strerror(abs(err)));
		s->failed = true;
	}
}

static void poll(struct side *s)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(s->cq, 16, wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS && !s->failed) {
			printf("# %s: status %d\n", kind_name[kind], wc[i].status);
			s->failed = true;
		}
		s->reads -= wc[i].opcode == IBV_WC_RDMA_READ;
		__atomic_add_fetch(&s->completed, 1, __ATOMIC_RELAXED);
	}
}

static void traffic(struct side *s, const struct side *peer)
{
	pthread_barrier_wait(&start);
	while (s->completed < 2 * ROUNDS && !s->failed && !stands_still()) {
		while (s->posted < ROUNDS && 2 * s->posted < s->completed + 2 * GROUPS - 1 &&
		       (kind == MANY_READS || s->reads < READS)) {
			post(s, peer, true);
			s->reads++;
			post(s, peer, false);
			s->posted++;
		}
		poll(s);
	}
	pthread_barrier_wait(&start);
}

static struct rdma_conn_param depths(void)
{
	return (struct rdma_conn_param){ .responder_resources = READS, .initiator_depth = READS,
		.retry_count = 7, .rnr_retry_count = 7 };
}

static void *active(void *address)
{
	struct rdma_conn_param param = depths();
	struct side *s = &sides[1];

	need(!rdma_create_id(NULL, &s->id, NULL, RDMA_PS_TCP), "rdma_create_id");
	need(!rdma_resolve_addr(s->id, NULL, address, 2000), "rdma_resolve_addr");
	need(!rdma_resolve_route(s->id, 2000), "rdma_resolve_route");
	make_queue_pair(s);
	need(!rdma_connect(s->id, &param), "rdma_connect");
	traffic(s, &sides[0]);
	return NULL;
}

/* Returns true if all completed. */
static bool run(struct sockaddr_in *address)
{
	struct rdma_conn_param param = depths();
	struct rdma_cm_id *listener;
	pthread_t thread;
	bool good;

	memset(sides, 0, sizeof sides);
	last_total = 0;
	last_progress = now() + STALL;	/* a connect may take that long */
	address->sin_port = htons(PORT + kind);
	need(!rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	need(!rdma_bind_addr(listener, (struct sockaddr *)address), "rdma_bind_addr");
	need(!rdma_listen(listener, 1), "rdma_listen");
	need(!pthread_create(&thread, NULL, active, address), "pthread_create");
	need(!rdma_get_request(listener, &sides[0].id), "rdma_get_request");
	make_queue_pair(&sides[0]);
	need(!rdma_accept(sides[0].id, &param), "rdma_accept");
	traffic(&sides[0], &sides[1]);
	pthread_join(thread, NULL);
	good = sides[0].completed == 2 * ROUNDS && sides[1].completed == 2 * ROUNDS && !sides[0].failed &&
	       !sides[1].failed;
	if (good)
		printf("# %s: all %u requests completed\n", kind_name[kind], 4 * ROUNDS);
	else
		printf("# %s: stands still after %u and %u requests of %u, with %u and %u reads out\n",
		       kind_name[kind], sides[0].completed, sides[1].completed, 2 * ROUNDS,
		       sides[0].reads, sides[1].reads);
	fflush(stdout);
	for (int i = 0; i < 2; i++)
		rdma_disconnect(sides[i].id);
	for (int i = 0; i < 2; i++) {
		rdma_destroy_qp(sides[i].id);
		ibv_destroy_cq(sides[i].cq);
		ibv_dereg_mr(sides[i].mr);
		rdma_destroy_id(sides[i].id);
	}
	rdma_destroy_id(listener);
	return good;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	bool plain;

	if (argc != 2 || inet_pton(AF_INET, argv[1], &address.sin_addr) != 1)
		return fputs("usage: fence_probe ADDRESS\n", stderr), 2;
	pthread_barrier_init(&start, NULL, 2);
	kind = PLAIN;
	plain = run(&address);
	for (kind = FENCE; kind <= MANY_READS; kind++)
		run(&address);
	printf("%s reads and writes in both directions, no request waits in the device\n",
	       plain ? "ok" : "FAIL");
	printf("%d passed, %d failed\n", plain, !plain);
	return !plain;
}
