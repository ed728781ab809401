/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rss.c - spreads IPv4 frames over endpoints, with a thread for each: the frames of a connection come to one of them.
 *
 *	rss IA ENDPOINTS FRAMES
 *
 * Prints each frame's hash and endpoint. Needs CAP_NET_RAW.
 *
 *	cc -D_GNU_SOURCE -o rss rss.c raw.c -ldat2 -lpthread */
#include <pthread.h>
#include <stdio.h>
#include <sys/random.h>
#include "raw.h"

enum { MAX_WORKERS = 16, TABLE = 128 };

struct worker {
	pthread_t thread;
	unsigned number;
	DAT_EVD_HANDLE ready;
	DAT_EP_HANDLE ep;
};

static struct raw raw;
static struct worker workers[MAX_WORKERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_came = PTHREAD_COND_INITIALIZER;
static unsigned long long left;

static void make_endpoint(struct worker *worker)
{
	DAT_NAMED_ATTR ring = { "eth_receive", "ring" };
	DAT_EP_ATTR attr = { .service_type = DAT_ETH_SERVICE_TYPE_RAW, .qos = DAT_QOS_BEST_EFFORT,
		.ep_provider_specific_count = 1, .ep_provider_specific = &ring };

	CHECK(dat_evd_create(raw.ia, 16, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &worker->ready));
	CHECK(dat_ep_create(raw.ia, raw.pz, worker->ready, DAT_HANDLE_NULL, DAT_HANDLE_NULL, &attr, &worker->ep));
}

/* Each endpoint has an equal share of the table. */
static void make_group(unsigned n)
{
	DAT_ETH_RULE rule = { .mode = DAT_ETH_COPY, .key.ip_version = 4, .mask.ip_version = 0xff };
	uint16_t table[TABLE];
	DAT_ETH_RSS rss = { .fields = DAT_ETH_RSS_IP | DAT_ETH_RSS_PORTS, .table_size = TABLE, .table = table };
	DAT_EP_HANDLE eps[MAX_WORKERS];
	DAT_ETH_GROUP_HANDLE group;
	DAT_ETH_RULE_HANDLE handle;

	for (unsigned i = 0; i < n; i++)
		eps[i] = workers[i].ep;
	for (unsigned i = 0; i < TABLE; i++)
		table[i] = (uint16_t)(i % n);
	if (getrandom(rss.key, sizeof rss.key, 0) != sizeof rss.key)
		raw_check("getrandom", DAT_INTERNAL_ERROR);
	CHECK(dat_eth_group_create(raw.ia, (DAT_COUNT)n, eps, &rss, &group));
	CHECK(dat_eth_rule_add(group, &rule, &handle));
}

static void show(const struct worker *worker, const DAT_ETH_FRAME *frame)
{
	pthread_mutex_lock(&lock);
	if (left) {
		printf("hash 0x%08x: endpoint %u\n", frame->hash, worker->number);
		if (!--left)
			pthread_cond_signal(&all_came);
	}
	pthread_mutex_unlock(&lock);
}

static void *work(void *worker)
{
	struct worker *own = worker;
	DAT_ETH_FRAME frame;
	DAT_COUNT got, more;
	DAT_EVENT event;

	for (;;) {
		if (dat_eth_poll(own->ep, &frame, 1, &got) == DAT_SUCCESS) {
			show(own, &frame);
			CHECK(dat_eth_release(own->ep, 1));
			continue;
		}
		CHECK(dat_eth_arm(own->ep));
		CHECK(dat_evd_wait(own->ready, DAT_TIMEOUT_INFINITE, 1, &event, &more));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long long n;

	if (argc != 4 || !raw_number(argv[2], MAX_WORKERS, &n) || !raw_number(argv[3], 1000000, &left)) {
		fprintf(stderr, "usage: rss IA ENDPOINTS FRAMES\n");
		return 2;
	}
	raw_open(&raw, argv[1]);
	for (unsigned i = 0; i < n; i++) {
		workers[i].number = i;
		make_endpoint(&workers[i]);
	}
	make_group((unsigned)n);
	for (unsigned i = 0; i < n; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	printf("waiting\n");
	fflush(stdout);
	pthread_mutex_lock(&lock);
	while (left)
		pthread_cond_wait(&all_came, &lock);
	pthread_mutex_unlock(&lock);
	return 0;	/* the threads, and all that was made, end with the process */
}
