/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* session.c - a program that uses every kind of object: two connected endpoints, one on an
 * SRQ, transfers of all kinds, a window, a reservation that is refused, datagrams, a common
 * service point, a CNO, a multicast group; a tool asks it, and it watches the network. It knows nothing of faults but
 * that a call may fail (session.h). */
#include <dat/udat.h>
#include <dat/dat_ib_extensions.h>
#include <dat/dat_mcast_extensions.h>
#include <dat/dat_net_extensions.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "common/control.h"
#include "session.h"

enum { MEMORY = 65536, MOMENT = 8000000 /* us; longer than any wait for an event takes */ };
#define IA_NAME "ofa-v2-fault"

struct end {
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE recv, request, conn;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	DAT_EP_HANDLE ep;
	char *at;
};

static struct program {
	struct outcome *outcome;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, requests, soft;
	DAT_CNO_HANDLE cno;
	DAT_SRQ_HANDLE srq;
	DAT_PSP_HANDLE psp, any;
	DAT_RSP_HANDLE rsp;
	DAT_CSP_HANDLE csp;
	DAT_RMR_HANDLE rmr;
	DAT_LMR_HANDLE within, shared;
	DAT_CR_HANDLE cr;
	DAT_SOCK_ADDR6 address;
	struct end a, b, ud_a, ud_b, late;
} p;
static char (*memory)[MEMORY];	/* shared, for the LMR of shared memory */

/* --- attempts: the first failure is kept, and ends the work -------------------------------- */

static bool stop(int end, const char *step)
{
	p.outcome->end = end;
	snprintf(p.outcome->step, sizeof p.outcome->step, "%.150s", step);
	return false;
}

static bool attempt(const char *step, DAT_RETURN ret)
{
	if (ret == DAT_SUCCESS)
		return true;
	p.outcome->ret = ret;
	return stop(CALL_FAILED, step);
}
#define TRY(call) do { if (!attempt(#call, (call))) return false; } while (0)
#define DO(step) do { if (!(step)) return false; } while (0)
#define HOLDS(condition) do { if (!(condition)) return stop(WRONG_DATA, #condition); } while (0)

static bool is_completion(int number)
{
	return number == (int)DAT_DTO_COMPLETION_EVENT || number == (int)DAT_IB_DTO_EVENT;
}

static bool as_expected(const char *step, const DAT_EVENT *event, int expected)
{
	int status = 0;

	if (is_completion((int)event->event_number))
		status = event->event_data.dto_completion_event_data.status;
	if (event->event_number == DAT_RMR_BIND_COMPLETION_EVENT)
		status = event->event_data.rmr_completion_event_data.status;
	p.outcome->event = event->event_number;
	p.outcome->status = status;
	return ((int)event->event_number == expected && !status) || stop(EVENT_FAILED, step);
}

/* A thread that waits for a completion looks at the connection as well. */
static bool connection_ended(const char *step)
{
	DAT_EVD_HANDLE conns[] = { p.a.conn, p.b.conn };
	DAT_EVENT event;

	for (int i = 0; i < 2; i++)
		if (conns[i] && dat_evd_dequeue(conns[i], &event) == DAT_SUCCESS)
			return !as_expected(step, &event, -1);
	return false;
}

static bool await_within(const char *step, DAT_EVD_HANDLE evd, int expected, DAT_EVENT *event,
			 int limit)
{
	DAT_RETURN ret = DAT_TIMEOUT_EXPIRED;
	DAT_COUNT more;

	for (int waited = 0; waited < limit && DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED; waited += 10000) {
		ret = dat_evd_wait(evd, 10000, 1, event, &more);
		if (ret && is_completion(expected) && connection_ended(step))
			return false;
	}
	if (DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED)
		return stop(NO_EVENT, step);
	return attempt(step, ret) && as_expected(step, event, expected);
}

static bool await_event(const char *step, DAT_EVD_HANDLE evd, int expected, DAT_EVENT *event)
{
	DAT_EVENT it;

	memset(&it, 0, sizeof it);
	return await_within(step, evd, expected, event ? event : &it, MOMENT);
}
#define EVENT(evd, number) \
	DO(await_event(#number " on " #evd, evd, (int)number, NULL))
#define EVENT_IS(evd, number, event) \
	DO(await_event(#number " on " #evd, evd, (int)number, event))

/* --- pieces ------------------------------------------------------------------------------ */

#define ALL_RIGHTS ((DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC))
#define EXTENDED(flags) ((DAT_EVD_FLAGS)((flags) | DAT_IB_EVD_EXTENSION_FLAG))

static DAT_REGION_DESCRIPTION at(void *where)
{
	return (DAT_REGION_DESCRIPTION){ .for_va = where };
}

static DAT_LMR_TRIPLET *piece(const struct end *end, size_t offset, size_t length)
{
	static _Thread_local DAT_LMR_TRIPLET segment;

	segment = (DAT_LMR_TRIPLET){ .virtual_address = (uintptr_t)end->at + offset,
				     .segment_length = length, .lmr_context = end->local };
	return &segment;
}

static DAT_RMR_TRIPLET *there(const struct end *end, DAT_RMR_CONTEXT key, size_t offset,
			      size_t length)
{
	static _Thread_local DAT_RMR_TRIPLET segment;

	segment = (DAT_RMR_TRIPLET){ .virtual_address = (uintptr_t)end->at + offset,
				     .segment_length = length, .rmr_context = key };
	return &segment;
}

#define COOKIE ((DAT_DTO_COOKIE){ .as_64 = 4711 })
#define NOTHING_SPECIAL DAT_COMPLETION_DEFAULT_FLAG

static bool make_end(struct end *end, int index, DAT_SRQ_HANDLE srq, bool ud)
{
	DAT_EP_ATTR attr = {
		.service_type = ud ? (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD : DAT_SERVICE_TYPE_RC,
		.max_message_size = ud ? 1024 : MEMORY, .max_rdma_size = ud ? 0 : MEMORY,
		.max_recv_dtos = 8, .max_request_dtos = 8, .max_recv_iov = 2, .max_request_iov = 2,
		.max_rdma_read_in = ud ? 0 : 2, .max_rdma_read_out = ud ? 0 : 2,
		.max_rdma_read_iov = ud ? 0 : 2, .max_rdma_write_iov = ud ? 0 : 2,
	};

	end->at = memory[index];
	if (!end->pz)
		TRY(dat_pz_create(p.ia, &end->pz));
	TRY(dat_evd_create(p.ia, 16, DAT_HANDLE_NULL, EXTENDED(DAT_EVD_DTO_FLAG), &end->recv));
	TRY(dat_evd_create(p.ia, 16, DAT_HANDLE_NULL, EXTENDED(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG),
			   &end->request));
	TRY(dat_evd_create(p.ia, 16, DAT_HANDLE_NULL, EXTENDED(DAT_EVD_CONNECTION_FLAG), &end->conn));
	TRY(dat_lmr_create(p.ia, DAT_MEM_TYPE_VIRTUAL, at(end->at), MEMORY, end->pz, ALL_RIGHTS,
			   DAT_VA_TYPE_VA, &end->lmr, &end->local, &end->remote, NULL, NULL));
	if (srq)
		TRY(dat_ep_create_with_srq(p.ia, end->pz, end->recv, end->request, end->conn, srq, &attr,
					   &end->ep));
	else
		TRY(dat_ep_create(p.ia, end->pz, end->recv, end->request, end->conn, &attr, &end->ep));
	return true;
}

static bool open_ia(void)
{
	DAT_IA_ATTR attr;
	DAT_PROVIDER_ATTR provider;

	TRY(dat_ia_open(IA_NAME, 8, &p.async, &p.ia));
	TRY(dat_ia_query(p.ia, NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider));
	memcpy(&p.address, attr.ia_address_ptr, sizeof(struct sockaddr_in));
	return true;
}

static bool make_objects(void)
{
	DAT_SRQ_ATTR few = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	static char name[DAT_LMR_COOKIE_SIZE] = "fault";
	DAT_CONN_QUAL qual;

	TRY(dat_pz_create(p.ia, &p.b.pz));
	TRY(dat_srq_create(p.ia, p.b.pz, &few, &p.srq));
	TRY(dat_srq_resize(p.srq, 16));
	DO(make_end(&p.a, 0, DAT_HANDLE_NULL, false));
	DO(make_end(&p.b, 1, p.srq, false));
	TRY(dat_lmr_create(p.ia, DAT_MEM_TYPE_LMR, (DAT_REGION_DESCRIPTION){ .for_lmr_handle = p.b.lmr },
			   MEMORY, p.b.pz, ALL_RIGHTS, DAT_VA_TYPE_VA, &p.within, NULL, NULL, NULL, NULL));
	TRY(dat_lmr_create(p.ia, DAT_MEM_TYPE_SHARED_VIRTUAL, (DAT_REGION_DESCRIPTION){
				.for_shared_memory = { .virtual_address = memory[4],
						       .shared_memory_id = &name } },
			   MEMORY, p.b.pz, ALL_RIGHTS, DAT_VA_TYPE_VA, &p.shared, NULL, NULL, NULL, NULL));
	TRY(dat_cno_create(p.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &p.cno));
	TRY(dat_evd_create(p.ia, 4, p.cno, DAT_EVD_SOFTWARE_FLAG, &p.soft));
	TRY(dat_evd_create(p.ia, 8, DAT_HANDLE_NULL, EXTENDED(DAT_EVD_CR_FLAG), &p.requests));
	TRY(dat_psp_create_any(p.ia, &qual, p.requests, DAT_PSP_CONSUMER_FLAG, &p.psp));
	return true;
}

static bool qual_of(DAT_PSP_HANDLE psp, DAT_CONN_QUAL *qual)
{
	DAT_PSP_PARAM param;

	TRY(dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	*qual = param.conn_qual;
	return true;
}

static bool dial(DAT_EP_HANDLE ep, DAT_CONN_QUAL qual, const char *word)
{
	TRY(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&p.address, qual, MOMENT / 2, (DAT_COUNT)strlen(word),
			   (DAT_PVOID)(uintptr_t)word, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	return true;
}

/* Waits for the request, or for the error event of its initiator: one of them must come. */
static bool request_comes(const struct end *caller, int number)
{
	DAT_EVENT event;
	DAT_COUNT more;

	for (int waited = 0; waited < MOMENT; waited += 10000) {
		if (dat_evd_wait(p.requests, 10000, 1, &event, &more) == DAT_SUCCESS) {
			p.cr = event.event_data.cr_arrival_event_data.cr_handle;
			p.outcome->event = event.event_number;
			return (int)event.event_number == number || stop(EVENT_FAILED, "a request");
		}
		if (dat_evd_dequeue(caller->conn, &event) == DAT_SUCCESS) {
			p.outcome->event = event.event_number;
			return stop(EVENT_FAILED, "the call");
		}
	}
	return stop(NO_EVENT, "a request, or the call's failure");
}

static bool connect_ends(const char *word)
{
	DAT_CONN_QUAL qual;
	DAT_CR_PARAM param;

	DO(qual_of(p.psp, &qual));
	DO(dial(p.a.ep, qual, word));
	DO(request_comes(&p.a, DAT_CONNECTION_REQUEST_EVENT));
	TRY(dat_cr_query(p.cr, DAT_CR_FIELD_ALL, &param));
	HOLDS(param.private_data_size >= (DAT_COUNT)strlen(word) &&
	      !memcmp(param.private_data, word, strlen(word)));
	TRY(dat_cr_accept(p.cr, p.b.ep, 2, (DAT_PVOID)(uintptr_t)"ok"));
	p.cr = DAT_HANDLE_NULL;
	EVENT(p.b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EVENT(p.a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	return true;
}

static bool exchange(unsigned seed, size_t length)
{
	memset(p.a.at, (int)seed, length);
	TRY(dat_srq_post_recv(p.srq, 1, piece(&p.b, 0, length), COOKIE));
	TRY(dat_ep_post_recv(p.a.ep, 1, piece(&p.a, length, length), COOKIE, NOTHING_SPECIAL));
	TRY(dat_ep_post_send(p.a.ep, 1, piece(&p.a, 0, length), COOKIE, NOTHING_SPECIAL));
	EVENT(p.b.recv, DAT_DTO_COMPLETION_EVENT);
	EVENT(p.a.request, DAT_DTO_COMPLETION_EVENT);
	TRY(dat_ep_post_send(p.b.ep, 1, piece(&p.b, 0, length), COOKIE, NOTHING_SPECIAL));
	EVENT(p.a.recv, DAT_DTO_COMPLETION_EVENT);
	EVENT(p.b.request, DAT_DTO_COMPLETION_EVENT);
	HOLDS(!memcmp(p.a.at, p.a.at + length, length));
	return true;
}

static bool rdma(size_t length)
{
	memset(p.a.at, 'w', length);
	TRY(dat_ep_post_rdma_write(p.a.ep, 1, piece(&p.a, 0, length), COOKIE,
				   there(&p.b, p.b.remote, 0, length), NOTHING_SPECIAL));
	EVENT(p.a.request, DAT_DTO_COMPLETION_EVENT);
	TRY(dat_ep_post_rdma_read(p.a.ep, 1, piece(&p.a, length, length), COOKIE,
				  there(&p.b, p.b.remote, 0, length), NOTHING_SPECIAL));
	EVENT(p.a.request, DAT_DTO_COMPLETION_EVENT);
	HOLDS(!memcmp(p.a.at, p.a.at + length, length));
	TRY(dat_ib_post_fetch_and_add(p.a.ep, 3, piece(&p.a, 0, 8), COOKIE, there(&p.b, p.b.remote, 0, 8),
				      NOTHING_SPECIAL));
	EVENT(p.a.request, DAT_IB_DTO_EVENT);
	TRY(dat_srq_post_recv(p.srq, 1, piece(&p.b, 0, 64), COOKIE));
	TRY(dat_ib_post_rdma_write_immed(p.a.ep, 1, piece(&p.a, 0, 64), COOKIE,
					 there(&p.b, p.b.remote, 64, 64), 7, NOTHING_SPECIAL));
	EVENT(p.a.request, DAT_IB_DTO_EVENT);
	EVENT(p.b.recv, DAT_IB_DTO_EVENT);
	return true;
}

/* b opens a window on its memory, a writes through it and has it closed. */
static bool window(void)
{
	DAT_RMR_CONTEXT key;

	TRY(dat_rmr_create(p.b.pz, &p.rmr));
	TRY(dat_rmr_bind(p.rmr, p.b.lmr, piece(&p.b, 0, 4096),
			 DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA,
			 p.b.ep, COOKIE, NOTHING_SPECIAL, &key));
	EVENT(p.b.request, DAT_RMR_BIND_COMPLETION_EVENT);
	TRY(dat_ep_post_rdma_write(p.a.ep, 1, piece(&p.a, 0, 64), COOKIE, there(&p.b, key, 0, 64),
				   NOTHING_SPECIAL));
	EVENT(p.a.request, DAT_DTO_COMPLETION_EVENT);
	return true;
}

static bool resize_and_wait(void)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_EVD_HANDLE which;

	TRY(dat_evd_resize(p.a.request, 600));
	TRY(dat_evd_resize(p.soft, 600));
	TRY(dat_srq_set_lw(p.srq, 1));
	TRY(dat_evd_post_se(p.soft, &event));
	TRY(dat_cno_wait(p.cno, MOMENT, &which));
	HOLDS(which == p.soft);
	EVENT(p.soft, DAT_SOFTWARE_EVENT);
	TRY(dat_evd_modify_cno(p.soft, DAT_HANDLE_NULL));
	return true;
}

static bool hang_up(void)
{
	TRY(dat_ep_disconnect(p.a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	EVENT(p.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	EVENT(p.b.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	return true;
}

/* Uses an endpoint again, and rejects a request on a reservation. */
static bool again(void)
{
	DAT_CONN_QUAL qual = 0;

	TRY(dat_ep_reset(p.a.ep));
	TRY(dat_ep_reset(p.b.ep));
	DO(make_end(&p.late, 4, DAT_HANDLE_NULL, false));
	TRY(dat_psp_create_any(p.ia, &qual, p.requests, DAT_PSP_PROVIDER_FLAG, &p.any));
	TRY(dat_psp_free(p.any));	/* now the qualifier is free for the reservation */
	p.any = DAT_HANDLE_NULL;
	TRY(dat_rsp_create(p.ia, qual, p.late.ep, p.requests, &p.rsp));
	DO(dial(p.a.ep, qual, "again"));
	DO(request_comes(&p.a, DAT_CONNECTION_REQUEST_EVENT));
	TRY(dat_cr_reject(p.cr, 2, (DAT_PVOID)(uintptr_t)"no"));
	p.cr = DAT_HANDLE_NULL;
	EVENT(p.a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
	TRY(dat_ep_reset(p.a.ep));
	return true;
}

static bool datagrams(void)
{
	DAT_CONN_QUAL qual;
	DAT_EVENT event;
	DAT_IB_ADDR_HANDLE to;

	DO(make_end(&p.ud_a, 2, DAT_HANDLE_NULL, true));
	DO(make_end(&p.ud_b, 3, DAT_HANDLE_NULL, true));
	TRY(dat_ep_post_recv(p.ud_b.ep, 1, piece(&p.ud_b, 0, 1024), COOKIE, NOTHING_SPECIAL));
	DO(qual_of(p.psp, &qual));
	DO(dial(p.ud_a.ep, qual, "datagrams"));
	DO(request_comes(&p.ud_a, DAT_IB_UD_CONNECTION_REQUEST_EVENT));
	TRY(dat_cr_accept(p.cr, p.ud_b.ep, 0, NULL));
	p.cr = DAT_HANDLE_NULL;
	EVENT_IS(p.ud_a.conn, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, &event);
	to = ((DAT_IB_EXTENSION_EVENT_DATA *)event.event_extension_data)->remote_ah;
	TRY(dat_ib_post_send_ud(p.ud_a.ep, 1, piece(&p.ud_a, 0, 100), &to, COOKIE, NOTHING_SPECIAL));
	EVENT(p.ud_a.request, DAT_IB_DTO_EVENT);
	/* Datagrams may get lost without an error. */
	return await_within("a datagram", p.ud_b.recv, (int)DAT_IB_DTO_EVENT, &event, 500000) ||
	       (p.outcome->end == NO_EVENT && stop(LOST, "a datagram"));
}

static bool common_point(void)
{
	DAT_COMM comm = { .domain = AF_INET, .type = SOCK_STREAM, .protocol = 0 };
	struct sockaddr_in where;
	DAT_CONN_QUAL qual;

	/* Returns a port that was free. */
	TRY(dat_psp_create_any(p.ia, &qual, p.requests, DAT_PSP_CONSUMER_FLAG, &p.any));
	TRY(dat_psp_free(p.any));
	p.any = DAT_HANDLE_NULL;
	memcpy(&where, &p.address, sizeof where);
	where.sin_port = htons((uint16_t)qual);
	TRY(dat_csp_create(p.ia, &comm, (DAT_IA_ADDRESS_PTR)&where, p.requests, &p.csp));
	return true;
}

/* --- the control socket: a tool asks this program. Its own calls do not fail. ------------------- */

struct packet {
	struct control_header header;
	char body[CONTROL_BODY];
};

/* Connects to the control socket of this process. Returns -1 if the library could not make one. */
static int connect_to_control(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	FILE *file = fopen("/proc/net/unix", "re");
	char line[512], want[32], *at = NULL;
	int fd = -1;

	snprintf(want, sizeof want, " @" CONTROL_PREFIX "%d-", (int)getpid());
	while (file && !at && fgets(line, sizeof line, file))
		at = strstr(line, " 00010000 ") ? strstr(line, want) : NULL;
	if (file)
		fclose(file);
	if (!at)
		return -1;
	at[strcspn(at, "\n")] = '\0';
	snprintf(to.sun_path + 1, sizeof to.sun_path - 1, "%s", at + 2);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&to,
				offsetof(struct sockaddr_un, sun_path) + 1 + strlen(at + 2)))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Receives a packet. Returns its length, 0 if the program cut this client off, or -1 if nothing came. */
static ssize_t read_packet(int fd, struct packet *packet, int limit_ms)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	ssize_t n;

	if (poll(&readable, 1, limit_ms) != 1)
		return -1;
	n = recv(fd, packet, sizeof *packet, 0);
	return n < 0 ? 0 : n;
}

/* Asks a verb. The answer must be complete, or an error, or the program cuts the client off: then `fd` is of
 * no more use. */
static bool ask_verb(int fd, unsigned verb, bool *good)
{
	static struct packet packet;
	ssize_t n;

	do {
		packet.header = (struct control_header){ .verb = packet.header.flags & CONTROL_MORE ?
			CONTROL_NEXT : verb };
		n = send(fd, &packet, sizeof packet.header, MSG_NOSIGNAL);
		n = n < 0 ? 0 : read_packet(fd, &packet, MOMENT / 1000);
		if (n < 0)
			return stop(NO_EVENT, "the answer to a verb");
		if (!n) {
			packet.header.flags = 0;
			*good = false;
			return true;
		}
		HOLDS(n == (ssize_t)(sizeof packet.header + packet.header.length));
	} while (packet.header.flags & CONTROL_MORE);
	HOLDS(packet.header.length && packet.body[packet.header.length - 1] == '}');
	return true;
}

/* Asks verbs that change nothing. Without a greeting the program accepts no clients at present, which tools
 * report. */
static bool ask_control(void)
{
	static const unsigned verbs[] = { CONTROL_LIST, CONTROL_GET, CONTROL_DUMP, CONTROL_COUNTERS,
		CONTROL_ENDPOINTS, CONTROL_SERVICE_POINTS };
	int fd = connect_to_control();
	static struct packet greeting;
	bool good = fd >= 0 && read_packet(fd, &greeting, 2000) > 0 && !greeting.header.flags;
	bool told = true;

	for (size_t i = 0; i < sizeof verbs / sizeof *verbs && good && told; i++)
		told = ask_verb(fd, verbs[i], &good);
	if (fd >= 0)
		close(fd);
	return told;
}

static bool watch_network(void)
{
	TRY(dat_net_watch(p.ia, DAT_NET_MTU | DAT_NET_LINK | DAT_NET_ADDRESS));
	TRY(dat_net_watch(p.ia, 0));
	return true;
}

static bool multicast(void)
{
	struct sockaddr_in group = { .sin_family = AF_INET, .sin_addr = { htonl(0xef010203) } };

	TRY(dat_mcast_join(p.ud_a.ep, (struct sockaddr *)&group, 0, ((DAT_CONTEXT){ .as_64 = 1 })));
	EVENT(p.ud_a.conn, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
	TRY(dat_mcast_leave(p.ud_a.ep, (struct sockaddr *)&group));
	TRY(dat_mcast_join(p.ud_b.ep, (struct sockaddr *)&group, 0, ((DAT_CONTEXT){ .as_64 = 2 })));
	return true;		/* freeing the endpoint leaves */
}

static bool ask_without_opening(void)
{
	DAT_HANDLE query = DAT_HANDLE_NULL;
	DAT_IA_ATTR attr;
	DAT_PROVIDER_ATTR provider;

	TRY(dat_ib_open_query(IA_NAME, &query, DAT_IA_FIELD_ALL, &attr,
			      DAT_PROVIDER_FIELD_ALL, &provider));
	TRY(dat_ib_close_query(query));
	return true;
}

/* --- tidying up: the fault may befall it too, so everything is tried twice ------------------ */

static void untidy(const char *what, DAT_RETURN ret)
{
	if (!p.outcome->untidy[0])
		snprintf(p.outcome->untidy, sizeof p.outcome->untidy, "%.150s gives 0x%x", what, (unsigned)ret);
}
#define FREE(handle, call) do { \
		DAT_RETURN ret_ = DAT_SUCCESS; \
		if ((handle) != DAT_HANDLE_NULL && (ret_ = (call)) != DAT_SUCCESS && \
		    (ret_ = (call)) != DAT_SUCCESS) \
			untidy(#call, ret_); \
		(handle) = DAT_HANDLE_NULL; \
	} while (0)

static void free_end(struct end *end)
{
	FREE(end->ep, dat_ep_free(end->ep));
	FREE(end->lmr, dat_lmr_free(end->lmr));
	FREE(end->recv, dat_evd_free(end->recv));
	FREE(end->request, dat_evd_free(end->request));
	FREE(end->conn, dat_evd_free(end->conn));
}

static void refuse_requests(void)
{
	DAT_EVENT event;

	FREE(p.cr, dat_cr_reject(p.cr, 0, NULL));
	while (p.requests && dat_evd_dequeue(p.requests, &event) == DAT_SUCCESS) {
		p.cr = event.event_data.cr_arrival_event_data.cr_handle;
		FREE(p.cr, dat_cr_reject(p.cr, 0, NULL));
	}
}

static void tidy_up(void)
{
	struct end *ends[] = { &p.a, &p.b, &p.ud_a, &p.ud_b, &p.late };

	FREE(p.psp, dat_psp_free(p.psp));
	FREE(p.any, dat_psp_free(p.any));
	FREE(p.csp, dat_csp_free(p.csp));
	refuse_requests();
	FREE(p.rsp, dat_rsp_free(p.rsp));
	FREE(p.rmr, dat_rmr_free(p.rmr));
	FREE(p.within, dat_lmr_free(p.within));
	FREE(p.shared, dat_lmr_free(p.shared));
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		free_end(ends[i]);
	FREE(p.srq, dat_srq_free(p.srq));
	FREE(p.requests, dat_evd_free(p.requests));
	FREE(p.soft, dat_evd_free(p.soft));
	FREE(p.cno, dat_cno_free(p.cno));
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		FREE(ends[i]->pz, dat_pz_free(ends[i]->pz));
	FREE(p.ia, dat_ia_close(p.ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static bool work(void)
{
	DO(open_ia());
	DO(make_objects());
	DO(connect_ends("hello"));
	DO(exchange(1, 100));
	DO(ask_control());
	DO(watch_network());
	DO(exchange(2, 30000));
	DO(rdma(20000));
	DO(window());
	DO(resize_and_wait());
	DO(hang_up());
	DO(again());
	DO(connect_ends("hello again"));
	DO(exchange(3, 8));
	TRY(dat_ep_disconnect(p.a.ep, DAT_CLOSE_ABRUPT_FLAG));
	DO(datagrams());
	DO(multicast());
	DO(common_point());
	DO(ask_without_opening());
	return true;
}

__attribute__((visibility("default"))) void fault_session(struct outcome *outcome)
{
	memset(&p, 0, sizeof p);
	p.outcome = outcome;
	memory = mmap(NULL, 5 * MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory != MAP_FAILED && work())
		outcome->end = COMPLETE;
	tidy_up();
}
