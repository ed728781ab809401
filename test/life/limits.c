/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* limits.c - limits of the system: descriptors, at every number from too few upwards, locked memory,
 * threads. Calls fail with a documented error, nothing leaks, and calls work again once there is enough. */
#include "life.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void limit(int resource, rlim_t value)
{
	struct rlimit both;

	getrlimit(resource, &both);
	both.rlim_cur = value < both.rlim_max ? value : both.rlim_max;
	if (setrlimit(resource, &both))
		fail("setrlimit");
}

/* The limit counts from the lowest number, and a descriptor that the caller of this program
 * left open far above leaves room below it. */
static void close_ranks(void)
{
	int fd;

	do
		fd = dup(2);
	while (fd >= 0 && fd != open_descriptors() - 1);
	close(fd);
}

/* Returns whether this is a documented error of a lack of resources. */
static bool documented(DAT_RETURN ret)
{
	switch (DAT_GET_TYPE(ret)) {
	case DAT_INSUFFICIENT_RESOURCES: case DAT_TIMEOUT_EXPIRED: case DAT_PROVIDER_NOT_FOUND:
		return true;
	case DAT_ABORT:		/* await: another event */
		switch (ret & 0xffff) {
		case DAT_CONNECTION_EVENT_TIMED_OUT: case DAT_CONNECTION_EVENT_UNREACHABLE:
		case DAT_CONNECTION_EVENT_NON_PEER_REJECTED: case DAT_CONNECTION_EVENT_BROKEN:
		case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR: case DAT_CONNECTION_EVENT_DISCONNECTED:
			return true;
		}
	}
	return false;
}

static void starve(const void *arg)
{
	struct session *s = calloc(1, sizeof *s);
	int descriptors, null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	rlim_t more = *(const int *)arg;
	DAT_RETURN ret;

	/* The messages are not checked here. */
	dup2(null, 2);
	close(null);
	close_ranks();
	descriptors = open_descriptors();
	limit(RLIMIT_NOFILE, descriptors + more);
	ret = session_open(s, 300000 * SLOWER);
	if (ret != DAT_SUCCESS && !documented(ret))
		fail("%d descriptors: %s gives %s", (int)more, s->step, life_return(ret));
	if (!more && DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
		fail("no dat.conf could be read, but %s gives %s", s->step, life_return(ret));
	if (ret == DAT_SUCCESS && !session_exchange(s, 1))
		fail("%d descriptors: connected, but no exchange: %s", (int)more, s->step);
	limit(RLIMIT_NOFILE, 1024);
	OK(session_close(s));
	/* librdmacm keeps a device open after its first use: two descriptors of the process */
	if (open_descriptors() > descriptors + (life_on_soft() ? 0 : 2))
		fail("%d descriptors: %d were not closed:%s", (int)more,
		     open_descriptors() - descriptors, what_is_open());
	whole_session();
	free(s);
	exit(ret == DAT_SUCCESS ? 0 : 1);
}

static void descriptors_from_none_upwards(void)
{
	int more, worked = 0;

	for (more = 0; worked < 2 && more < 64; more++) {
		struct child_result result = run(starve, &more);

		if (result.status && result.status != 1 << 8)
			fail("%d descriptors: status 0x%x: %s", more, result.status, result.text);
		worked += !result.status;
	}
	EXPECT(worked == 2);
	EXPECT(more > 5);
}

/* Rejects the requests that wait. A request that came while there was no descriptor is delivered once there
 * is one, though its initiator may have given up. It holds a descriptor until it is answered. */
static void refuse_leftovers(DAT_EVD_HANDLE cr_evd)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(cr_evd, &event) == DAT_SUCCESS)
		dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL);
}

/* Compares one reading of the number of descriptors: between two readings a request from the backlog may
 * take a descriptor. */
static void await_descriptors(struct session *s, int before, rlim_t more)
{
	int now = open_descriptors();

	for (int i = 0; now > before && i < 20000; i++) {
		refuse_leftovers(s->cr);
		usleep(1000);
		now = open_descriptors();
	}
	if (now > before)
		fail("%d descriptors: %d were not closed:%s", (int)more, now - before, what_is_open());
}

/* Lowers the limit while the IA is open and in use. */
static void starve_in_use(const void *arg)
{
	struct session *s = calloc(1, sizeof *s), *t = calloc(1, sizeof *t);
	int descriptors, null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	rlim_t more = *(const int *)arg;
	DAT_EVD_HANDLE evd[64];
	DAT_EP_HANDLE ep[64];
	DAT_RETURN ret;

	dup2(null, 2);
	close(null);
	OK(session_open(s, MOMENT));
	close_ranks();
	descriptors = open_descriptors();
	limit(RLIMIT_NOFILE, descriptors + more);
	for (int i = 0; i < 64; i++) {
		ret = dat_evd_create(s->ia, 8, DAT_HANDLE_NULL,
				     DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &evd[i]);
		if (ret != DAT_SUCCESS && !documented(ret))
			fail("EVD %d gives %s", i, life_return(ret));
		ep[i] = evd[i] = ret == DAT_SUCCESS ? evd[i] : DAT_HANDLE_NULL;
		if (!evd[i])
			continue;
		ret = dat_ep_create(s->ia, s->a.pz, evd[i], evd[i], evd[i], NULL, &ep[i]);
		if (ret != DAT_SUCCESS && !documented(ret))
			fail("EP %d gives %s", i, life_return(ret));
		ep[i] = ret == DAT_SUCCESS ? ep[i] : DAT_HANDLE_NULL;
	}
	*t = *s;	/* two more endpoints of this IA, connected or not */
	if (ep[0] && ep[1]) {
		t->a.ep = ep[0];
		t->a.conn = evd[0];
		t->b.ep = ep[1];
		t->b.conn = evd[1];
		ret = session_connect(t, 300000 * SLOWER);
		if (ret != DAT_SUCCESS && !documented(ret))
			fail("%d descriptors: %s gives %s", (int)more, t->step, life_return(ret));
	}
	if (!session_exchange(s, 3))	/* the connection from before still works */
		fail("%d descriptors: the first connection fails at %s", (int)more, s->step);
	limit(RLIMIT_NOFILE, 1024);
	for (int i = 0; i < 64; i++) {
		if (ep[i])
			OK(dat_ep_free(ep[i]));
		if (evd[i])
			OK(dat_evd_free(evd[i]));
	}
	await_descriptors(s, descriptors, more);
	OK(session_close(s));
	whole_session();
	free(s);
	free(t);
}

static void sessions_survive_a_lack_of_descriptors(void)
{
	for (int more = 0; more < 9; more++) {
		struct child_result result = run(starve_in_use, &more);

		expect_quiet(&result, 0);
	}
}

static DAT_RETURN register_much(struct session *s, DAT_LMR_HANDLE *lmr)
{
	static char memory[64 << 20];
	size_t size = sizeof memory;
	DAT_REGION_DESCRIPTION region = { .for_va = memory };

	return dat_lmr_create(s->ia, DAT_MEM_TYPE_VIRTUAL, region, size, s->a.pz,
			      DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, lmr, NULL, NULL, NULL, NULL);
}

/* The limit does not hold for root. */
static void give_up_root_s_leave(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, data))
		fail("capget");
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	data[0].permitted &= ~(1u << CAP_IPC_LOCK);
	if (syscall(SYS_capset, &head, data))
		fail("capset");
}

/* The software device locks no memory. Other devices lock the memory of each LMR. LMRs from before the limit
 * was reached still work. */
static void lock_nothing(const void *arg)
{
	struct session *s = calloc(1, sizeof *s);
	DAT_LMR_HANDLE lmr;
	DAT_RETURN ret;

	(void)arg;
	give_up_root_s_leave();		/* called first: a device that is open needs no further rights */
	OK(session_open(s, MOMENT));
	limit(RLIMIT_MEMLOCK, 0);
	ret = register_much(s, &lmr);
	if (life_on_soft() ? ret != DAT_SUCCESS : DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
		fail("registering 64 MiB gives %s", life_return(ret));
	if (ret == DAT_SUCCESS)
		OK(dat_lmr_free(lmr));
	EXPECT(session_exchange(s, 1));
	OK(session_close(s));
	free(s);
}

static void no_memory_may_be_locked(void)
{
	struct child_result result = run(lock_nothing, NULL);

	if (result.status)
		fail("status 0x%x: %s", result.status, result.text);
	EXPECT(result.lines <= 1);	/* why, on a device that locks */
}

static const struct life_case cases[] = {
	CASE(descriptors_from_none_upwards),
	CASE(sessions_survive_a_lack_of_descriptors),
	CASE(no_memory_may_be_locked),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
