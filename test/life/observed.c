/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* observed.c - threads that send while others read and change what they use: captures of messages, counters,
 * multicast groups, raw Ethernet endpoints. All calls succeed. A thread sanitizer reports races (make
 * check-tsan). LIFE_SECONDS is the time of each case (default: 1). */
#include "life.h"
#include "common/control.h"
#include "test/own_network.h"
#include <arpa/inet.h>
#include <dat/dat_eth_extensions.h>
#include <dat/dat_ib_extensions.h>
#include <dat/dat_mcast_extensions.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { SENDERS = 4, MEMBERS = 2, FRAME = 60, FRAMES_OUT = 64, EXPERIMENTAL = 0x88b5 };

static double end;

static void begin_case(void)
{
	const char *seconds = getenv("LIFE_SECONDS");

	own_network();
	end = life_now() + (seconds ? atof(seconds) : 1);
}

static bool is_over(void)
{
	return life_now() > end;
}

static void run_threads(void *(*const what[])(void *), void *const arg[], int n)
{
	pthread_t thread[16];

	for (int i = 0; i < n; i++)
		EXPECT(!pthread_create(&thread[i], NULL, what[i], arg[i]));
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

/* --- the control socket ---------------------------------------------------------------------- */

/* Returns the address of this process's control socket. */
static socklen_t find_socket(struct sockaddr_un *to)
{
	FILE *file = fopen("/proc/net/unix", "r");
	char line[512], want[64], *at;
	socklen_t length = 0;

	EXPECT(file);
	snprintf(want, sizeof want, " @" CONTROL_PREFIX "%d-", (int)getpid());
	*to = (struct sockaddr_un){ .sun_family = AF_UNIX };
	while (!length && fgets(line, sizeof line, file))
		if ((at = strstr(line, want)) && strstr(line, " 00010000 "))	/* a listener */
			length = offsetof(struct sockaddr_un, sun_path) + 1 +
				 (socklen_t)snprintf(to->sun_path + 1, sizeof to->sun_path - 1, "%.*s",
						     (int)strcspn(at + 2, "\n"), at + 2);
	fclose(file);
	return length;
}

/* Returns false if the answer is an error. */
static bool ask(int fd, unsigned verb, const char *json)
{
	static char packet[sizeof(struct control_header) + CONTROL_BODY];
	struct control_header header = { .length = (uint32_t)strlen(json), .verb = (uint16_t)verb };
	struct iovec parts[] = { { &header, sizeof header }, { (void *)(uintptr_t)json, strlen(json) } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };

	EXPECT(sendmsg(fd, &message, MSG_NOSIGNAL) > 0);
	EXPECT(recv(fd, packet, sizeof packet, 0) > (ssize_t)sizeof header);
	memcpy(&header, packet, sizeof header);
	return !(header.flags & CONTROL_FAILED);
}

static void *capture(void *arg)
{
	struct sockaddr_un to;
	socklen_t length = find_socket(&to);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	unsigned captures = 0;
	char welcome[64];

	(void)arg;
	EXPECT(length && fd >= 0 && !connect(fd, (struct sockaddr *)&to, length));
	EXPECT(recv(fd, welcome, sizeof welcome, 0) > 0);
	while (!is_over()) {
		/* A record of the last capture may still be incomplete: then the next capture is refused. */
		captures += ask(fd, CONTROL_TAP, "{\"client\":1,\"snap\":100}");
		usleep(1000);
		EXPECT(ask(fd, CONTROL_COUNTERS, "{}"));
		EXPECT(ask(fd, CONTROL_ENDPOINTS, "{}"));
		EXPECT(ask(fd, CONTROL_TAP, "{\"client\":1,\"end\":1}"));
	}
	close(fd);
	EXPECT(captures);
	return NULL;
}

static void *exchange(void *arg)
{
	struct session *s = malloc(sizeof *s);

	(void)arg;
	OK(session_open(s, MOMENT));
	for (unsigned i = 0; !i || !is_over(); i++)
		if (!session_exchange(s, i))
			fail("exchange %u: %s", i, s->step);
	OK(session_close(s));
	free(s);
	return NULL;
}

static void messages_are_sent_while_they_are_captured(void)
{
	void *(*const what[])(void *) = { capture, exchange, exchange, exchange };
	void *const nothing[4] = { NULL };
	struct session *s = malloc(sizeof *s);

	begin_case();
	OK(session_open(s, MOMENT));	/* the control socket is there all the time */
	run_threads(what, nothing, 4);
	OK(session_close(s));
	free(s);
}

/* --- multicast ------------------------------------------------------------------------------- */

struct member {
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE recv, request, conn;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT remote;
	char memory[4096];
};
static DAT_IA_HANDLE shared_ia;

static DAT_EVD_HANDLE make_evd(int flags)
{
	DAT_EVD_HANDLE evd;

	OK(dat_evd_create(shared_ia, 64, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)(flags | DAT_IB_EVD_EXTENSION_FLAG), &evd));
	return evd;
}

static void open_member(struct member *m)
{
	DAT_REGION_DESCRIPTION region = { .for_va = m->memory };
	DAT_EP_ATTR attr = { .service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD, .max_message_size = 512,
		.max_recv_dtos = 16, .max_request_dtos = 4, .max_recv_iov = 1, .max_request_iov = 1,
		.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG };

	OK(dat_pz_create(shared_ia, &m->pz));
	m->recv = make_evd(DAT_EVD_DTO_FLAG);
	m->request = make_evd(DAT_EVD_DTO_FLAG);
	m->conn = make_evd(DAT_EVD_CONNECTION_FLAG);
	OK(dat_lmr_create(shared_ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof m->memory, m->pz, DAT_MEM_PRIV_ALL_FLAG,
			  DAT_VA_TYPE_VA, &m->lmr, &m->context, &m->remote, NULL, NULL));
	OK(dat_ep_create(shared_ia, m->pz, m->recv, m->request, m->conn, &attr, &m->ep));
}

/* Takes what has come, so that there are always posted receives and room in the EVD. */
static void receive_all(struct member *m, DAT_LMR_TRIPLET *to)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(m->recv, &event) == DAT_SUCCESS)
		OK(dat_ep_post_recv(m->ep, 1, to, (DAT_DTO_COOKIE){ .as_64 = 0 }, DAT_COMPLETION_DEFAULT_FLAG));
}

static void send_some(struct member *m, DAT_IB_ADDR_HANDLE *group)
{
	DAT_LMR_TRIPLET at = { .lmr_context = m->context, .segment_length = 100,
		.virtual_address = (uintptr_t)m->memory };

	for (int i = 0; i < 8; i++) {
		OK(dat_ib_post_send_ud(m->ep, 1, &at, group, (DAT_DTO_COOKIE){ .as_64 = 0 },
				       DAT_COMPLETION_DEFAULT_FLAG));
		OK(await(m->request, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT, MOMENT, NULL));
	}
}

static void *join_and_leave(void *arg)
{
	struct sockaddr_in group = { .sin_family = AF_INET, .sin_addr = { htonl(0xefff0101u) } };
	struct member *m = arg;
	DAT_LMR_TRIPLET to = { .lmr_context = m->context, .segment_length = 1024,
		.virtual_address = (uintptr_t)m->memory + 1024 };
	DAT_IB_ADDR_HANDLE handle;
	DAT_EVENT event;

	for (int i = 0; i < 16; i++)
		OK(dat_ep_post_recv(m->ep, 1, &to, (DAT_DTO_COOKIE){ .as_64 = 0 }, DAT_COMPLETION_DEFAULT_FLAG));
	do {
		OK(dat_mcast_join(m->ep, (struct sockaddr *)&group, 0, (DAT_CONTEXT){ .as_64 = 1 }));
		OK(await(m->conn, (DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, MOMENT, &event));
		handle = ((DAT_IB_EXTENSION_EVENT_DATA *)event.event_extension_data)->remote_ah;
		send_some(m, &handle);
		receive_all(m, &to);
		OK(dat_mcast_leave(m->ep, (struct sockaddr *)&group));
	} while (!is_over());
	return NULL;
}

static void groups_are_joined_and_left_while_datagrams_come(void)
{
	static struct member members[MEMBERS + 1];
	void *(*const what[])(void *) = { join_and_leave, join_and_leave, join_and_leave, capture };
	void *const each[] = { &members[0], &members[1], &members[2], NULL };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	begin_case();
	OK(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &async, &shared_ia));
	for (int i = 0; i <= MEMBERS; i++)
		open_member(&members[i]);
	run_threads(what, each, MEMBERS + 2);
	OK(dat_ia_close(shared_ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* --- raw Ethernet ---------------------------------------------------------------------------- */

static struct raw {
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE ready, sent;
	DAT_EP_HANDLE ep;
	DAT_LMR_CONTEXT context;
	unsigned char frame[FRAME];
	_Atomic(int) out;	/* frames that may still be posted */
} raw;

static DAT_RETURN make_raw(DAT_EP_HANDLE *ep)
{
	DAT_EP_ATTR attr = { .service_type = DAT_ETH_SERVICE_TYPE_RAW, .qos = DAT_QOS_BEST_EFFORT,
		.max_request_dtos = FRAMES_OUT, .max_request_iov = 1, .max_recv_dtos = 4, .max_recv_iov = 1,
		.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG };

	return dat_ep_create(shared_ia, raw.pz, raw.ready, raw.sent, DAT_HANDLE_NULL, &attr, ep);
}

static void open_raw(void)
{
	DAT_REGION_DESCRIPTION region = { .for_va = raw.frame };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_LMR_HANDLE lmr;

	life_entry("raw", "libdaplsoft.so.2", "raw:lo 0");
	OK(dat_ia_open((DAT_NAME_PTR) "raw", 8, &async, &shared_ia));
	OK(dat_pz_create(shared_ia, &raw.pz));
	OK(dat_evd_create(shared_ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &raw.ready));
	OK(dat_evd_create(shared_ia, 4 * FRAMES_OUT, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &raw.sent));
	OK(dat_lmr_create(shared_ia, DAT_MEM_TYPE_VIRTUAL, region, FRAME, raw.pz, DAT_MEM_PRIV_LOCAL_READ_FLAG,
			  DAT_VA_TYPE_VA, &lmr, &raw.context, NULL, NULL, NULL));
	raw.frame[12] = EXPERIMENTAL >> 8;
	raw.frame[13] = EXPERIMENTAL & 255;
	raw.out = FRAMES_OUT;
}

static void *send_frames(void *arg)
{
	DAT_LMR_TRIPLET from = { .lmr_context = raw.context, .segment_length = FRAME,
		.virtual_address = (uintptr_t)raw.frame };

	(void)arg;
	while (!is_over()) {
		if (atomic_fetch_sub(&raw.out, 1) > 0) {
			OK(dat_ep_post_send(raw.ep, 1, &from, (DAT_DTO_COOKIE){ .as_64 = 1 },
					    DAT_COMPLETION_DEFAULT_FLAG));
			continue;
		}
		raw.out++;
		usleep(100);
	}
	return NULL;
}

static void *take_sent(void *arg)
{
	unsigned sent = 0;
	DAT_COUNT more;
	DAT_EVENT event;

	(void)arg;
	do {
		if (dat_evd_wait(raw.sent, 10000, 1, &event, &more) != DAT_SUCCESS)
			continue;
		EXPECT(event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
		raw.out++;
		sent++;
	} while (!is_over());
	EXPECT(sent);
	return NULL;
}

static void *come_and_go(void *arg)
{
	DAT_ETH_STATS stats = { .size = sizeof stats };
	DAT_EP_HANDLE ep;

	(void)arg;
	do {
		OK(make_raw(&ep));
		OK(dat_eth_stats(raw.ep, &stats));
		OK(dat_ep_free(ep));
	} while (!is_over());
	return NULL;
}

static void frames_are_sent_while_endpoints_come_and_go(void)
{
	void *(*const what[])(void *) = { send_frames, send_frames, send_frames, take_sent, come_and_go };
	void *const nothing[5] = { NULL };
	DAT_RETURN ret;

	begin_case();
	open_raw();
	ret = make_raw(&raw.ep);
	if (DAT_GET_TYPE(ret) == DAT_PRIVILEGES_VIOLATION)
		skip("raw endpoints need root, or CAP_NET_RAW");
	OK(ret);
	run_threads(what, nothing, 5);
	OK(dat_ia_close(shared_ia, DAT_CLOSE_ABRUPT_FLAG));
}

static const struct life_case cases[] = {
	CASE(messages_are_sent_while_they_are_captured),
	CASE(groups_are_joined_and_left_while_datagrams_come),
	CASE(frames_are_sent_while_endpoints_come_and_go),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
