/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* present.c - dat_ia_query returns the present MTU and port state, not those of the open; what an earlier
 * query returned stays readable; many queries and changes do not use more and more memory. The software
 * device is on the loopback interface of a network namespace of its own; another device of LIFE_DEVICE is on
 * the interface that LIFE_NETDEV names. */
#include "life.h"
#include <malloc.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "test/own_network.h"
#include "test/variables.h"

enum { THREADS = 8, QUERIES = 500, CHANGES = 200, SMALL = 700 /* bytes */ };

static const char *netdev(void)
{
	const char *name = getenv("LIFE_NETDEV");

	return life_on_soft() ? "lo" : name ? name : "";
}

static bool request(unsigned long what, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool done;

	snprintf(ifr->ifr_name, sizeof ifr->ifr_name, "%s", netdev());
	done = !ioctl(fd, what, ifr);
	close(fd);
	return done;
}

static int mtu(void)
{
	struct ifreq ifr = { 0 };

	EXPECT(request(SIOCGIFMTU, &ifr));
	return ifr.ifr_mtu;
}

static void set_mtu(int to)
{
	struct ifreq ifr = { .ifr_mtu = to };

	EXPECT(request(SIOCSIFMTU, &ifr));
}

static void set_link(bool up)
{
	struct ifreq ifr = { 0 };

	EXPECT(request(SIOCGIFFLAGS, &ifr));
	ifr.ifr_flags = (short)(up ? ifr.ifr_flags | IFF_UP : ifr.ifr_flags & ~IFF_UP);
	EXPECT(request(SIOCSIFFLAGS, &ifr));
}

static const char *told(DAT_IA_HANDLE ia, const char *name)
{
	DAT_PROVIDER_ATTR attr;

	OK(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	for (int i = 0; i < attr.num_provider_specific_attr; i++)
		if (!strcmp(attr.provider_specific_attr[i].name, name))
			return attr.provider_specific_attr[i].value;
	fail("no attribute %s", name);
}

#define MTU "DAT_IB_TRANSPORT_MTU"
#define STATUS "DAT_IB_PORT_STATUS"

/* The device may notice a change a little later. */
static const char *await_told(DAT_IA_HANDLE ia, const char *name, const char *value)
{
	double end = life_now() + 20 * SLOWER;
	const char *found;

	while (strcmp(found = told(ia, name), value)) {
		if (life_now() > end)
			fail("expected %s %s, found %s", name, value, found);
		sched_yield();
	}
	return found;
}

static DAT_IA_HANDLE open_it(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct ifreq ifr = { 0 };
	DAT_IA_HANDLE ia;

	if (life_on_soft()) {
		own_network();
		set_mtu(1500);	/* smaller than the largest MTU of the device */
	} else if (!request(SIOCGIFMTU, &ifr)) {
		skip("LIFE_NETDEV names no interface");
	}
	OK(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &async, &ia));
	return ia;
}

static void mtu_and_link_are_those_of_now(void)
{
	DAT_IA_HANDLE ia = open_it();
	int usual = mtu();
	const char *at_open = told(ia, MTU);
	char *copy = strdup(at_open);

	EXPECT(!strcmp(told(ia, STATUS), "PORT_ACTIVE"));
	set_mtu(SMALL);
	/* InfiniBand has MTUs that are powers of two, with room for the headers */
	await_told(ia, MTU, life_on_soft() ? "700" : "512");
	EXPECT(!strcmp(at_open, copy));
	set_mtu(usual);
	await_told(ia, MTU, copy);
	set_link(false);
	await_told(ia, STATUS, "PORT_DOWN");
	EXPECT(!strcmp(told(ia, MTU), copy));
	set_link(true);
	await_told(ia, STATUS, "PORT_ACTIVE");
	EXPECT(!strcmp(at_open, copy));
	free(copy);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

struct asker {
	DAT_IA_HANDLE ia;
	const char *usual;
	atomic_bool *stop;
	pthread_t thread;
};

static void *ask(void *arg)
{
	struct asker *asker = arg;
	const char *first = told(asker->ia, MTU);
	char *copy = strdup(first);

	while (!atomic_load(asker->stop)) {
		const char *found = told(asker->ia, MTU);

		if (strcmp(found, asker->usual) && strcmp(found, life_on_soft() ? "700" : "512"))
			fail("an MTU of %s", found);
	}
	EXPECT(!strcmp(first, copy));
	free(copy);
	return NULL;
}

static void eight_threads_query_meanwhile(void)
{
	DAT_IA_HANDLE ia = open_it();
	struct asker askers[THREADS];
	atomic_bool stop = false;
	int usual = mtu();
	char *text = strdup(told(ia, MTU));

	for (int i = 0; i < THREADS; i++) {
		askers[i] = (struct asker){ .ia = ia, .usual = text, .stop = &stop };
		EXPECT(!pthread_create(&askers[i].thread, NULL, ask, &askers[i]));
	}
	for (int i = 0; i < CHANGES; i++) {
		set_mtu(i % 2 ? usual : SMALL);
		told(ia, MTU);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(askers[i].thread, NULL);
	await_told(ia, MTU, text);
	free(text);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void queries_and_changes_keep_no_memory(void)
{
	DAT_IA_HANDLE ia = open_it();
	int usual = mtu();
	size_t before;

	set_mtu(SMALL);
	await_told(ia, MTU, life_on_soft() ? "700" : "512");	/* its block exists */
	before = mallinfo2().uordblks;
	for (int i = 0; i < CHANGES; i++) {
		set_mtu(i % 2 ? SMALL : usual);
		for (int n = 0; n < QUERIES / 10; n++)
			told(ia, MTU);
	}
	set_mtu(usual);
	/* a block for each change would be 600 KiB */
	if (!SANITIZED && mallinfo2().uordblks > before + 16384)
		fail("%zu bytes in use before, %zu after", before, mallinfo2().uordblks);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* Change k, from 1: an odd one sets the next MTU, an even one sets the link down or up. So after k changes: */
static int mtu_after(unsigned k)
{
	return 600 + (int)((k + 1) / 2 % 20);	/* few values: the IA keeps the text of each */
}

static bool is_up_after(unsigned k)
{
	return k / 2 % 2 == 0;
}

struct changes {
	atomic_uint begun, done;	/* numbers of changes */
	atomic_bool stop;
};

static void *change_all_the_time(void *arg)
{
	struct changes *changes = arg;

	for (unsigned k = 1; !atomic_load(&changes->stop); k++) {
		atomic_store(&changes->begun, k);
		if (k % 2)
			set_mtu(mtu_after(k));
		else
			set_link(is_up_after(k));
		atomic_store(&changes->done, k);
	}
	return NULL;
}

/* Reads both attributes in one query. */
static void query_both(DAT_IA_HANDLE ia, int *found, bool *active)
{
	DAT_PROVIDER_ATTR attr;

	OK(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	for (int i = 0; i < attr.num_provider_specific_attr; i++) {
		const DAT_NAMED_ATTR *a = &attr.provider_specific_attr[i];

		if (!strcmp(a->name, MTU))
			*found = atoi(a->value);
		else if (!strcmp(a->name, STATUS))
			*active = !strcmp(a->value, "PORT_ACTIVE");
	}
}

/* A query that begins after change `done` and ends before change `begun` + 1 has the values after one of these
 * changes. */
static void check_query(DAT_IA_HANDLE ia, struct changes *changes)
{
	unsigned done = atomic_load(&changes->done), begun;
	bool active = false, known_mtu = false, known_link = false;
	int found = 0;

	query_both(ia, &found, &active);
	begun = atomic_load(&changes->begun);
	for (unsigned k = done; k <= begun; k++) {
		known_mtu |= found == mtu_after(k);
		known_link |= active == is_up_after(k);
	}
	if (!known_mtu || !known_link)
		fail("MTU %d, port %s; after changes %u to %u: MTU %d to %d", found, active ? "active" : "down", done,
		     begun, mtu_after(done), mtu_after(begun));
}

/* LIFE_QUERIES sets their number: 1000000 in `make check-long`. */
static void no_answer_is_older_than_a_change_that_is_done(void)
{
	long queries = (long)variable_number("LIFE_QUERIES", 4000);
	struct changes changes = { .stop = false };
	DAT_IA_HANDLE ia;
	pthread_t thread;

	if (!life_on_soft())
		skip("the device may learn of a change later");
	ia = open_it();
	set_mtu(mtu_after(0));
	EXPECT(!pthread_create(&thread, NULL, change_all_the_time, &changes));
	for (long i = 0; i < queries || atomic_load(&changes.done) < 10; i++)
		check_query(ia, &changes);
	atomic_store(&changes.stop, true);
	pthread_join(thread, NULL);
	check_query(ia, &changes);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static const struct life_case cases[] = {
	CASE(mtu_and_link_are_those_of_now),
	CASE(eight_threads_query_meanwhile),
	CASE(queries_and_changes_keep_no_memory),
	CASE(no_answer_is_older_than_a_change_that_is_done),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
