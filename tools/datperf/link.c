/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.c - see link.h. What is measured, and how, is measure.c's job. */
#include "device_memory.h"
#include "link.h"
#include "../cli.h"
#include "../names.h"
#include <dat/dat_ib_extensions.h>
#include <endian.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* What each side tells the other as private data. Network byte order. */
struct hello {
	uint32_t magic;
	uint32_t context;
	uint64_t target;
};
enum { MAGIC = 0x64706632, MEMORY = 3 * LINK_BLOCK };

void good(DAT_RETURN rc, const char *call)
{
	const char *major = "?", *minor = "";

	if (rc == DAT_SUCCESS)
		return;
	dat_strerror(rc, &major, &minor);
	fail("%s: %s %s", call, major, minor);
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* --- opening ----------------------------------------------------------------- */

/* Of a file without a name that can't shrink, for a shared mapping; -1: there is none. */
static int nameless_file(void)
{
	int fd = memfd_create("datperf", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && !ftruncate(fd, MEMORY) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static DAT_MEM_PRIV_FLAGS rights(const struct link *l)
{
	return (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG |
				    (l->atomics ? DAT_IB_MEM_PRIV_REMOTE_ATOMIC : 0));
}

static DAT_RETURN register_memory(struct link *l, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region)
{
	DAT_VLEN length;
	DAT_VADDR start;

	return dat_lmr_create(l->ia, type, region, MEMORY, l->pz, rights(l),
		DAT_VA_TYPE_VA, &l->lmr, &l->lmr_context, &l->rmr_context, &length, &start);
}

/* Under a name that no other process has. */
static DAT_RETURN register_shared(struct link *l)
{
	char name[DAT_LMR_COOKIE_SIZE] = "";
	DAT_REGION_DESCRIPTION region = { .for_shared_memory = { l->out, &name } };

	snprintf(name, sizeof name, "datperf %ld", (long)getpid());
	return register_memory(l, DAT_MEM_TYPE_SHARED_VIRTUAL, region);
}

/* What an adapter does not take as shared memory is registered as any other. */
static void create_host_memory(struct link *l, bool private)
{
	int fd = private ? -1 : nameless_file();
	DAT_REGION_DESCRIPTION region;

	l->out = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
		      fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if (l->out == MAP_FAILED)
		fail("no memory");
	memset(l->out, 0, MEMORY);
	region.for_va = l->out;
	l->shared = fd >= 0 && register_shared(l) == DAT_SUCCESS;
	if (!l->shared)
		good(register_memory(l, DAT_MEM_TYPE_VIRTUAL, region), "dat_lmr_create");
	if (fd >= 0)
		close(fd);
}

static void create_memory(struct link *l, enum memory_kind kind)
{
	if (kind == MEMORY_DEVICE)
		device_memory_take(l, MEMORY, rights(l));
	else
		create_host_memory(l, kind == MEMORY_PRIVATE);
	l->in = l->out + LINK_BLOCK;
	l->target = l->in + LINK_BLOCK;
}

static DAT_EVD_HANDLE create_evd(struct link *l, DAT_COUNT length, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd;

	good(dat_evd_create(l->ia, length, DAT_HANDLE_NULL, flags, &evd), "dat_evd_create");
	return evd;
}

/* What the IA has beyond DAT itself. */
static void find_features(struct link *l)
{
	DAT_IA_ATTR ia;
	DAT_PROVIDER_ATTR provider;

	good(dat_ia_query(l->ia, NULL, DAT_IA_FIELD_ALL, &ia, DAT_PROVIDER_FIELD_ALL, &provider),
	     "dat_ia_query");
	l->reads = ia.max_rdma_read_per_ep_out < LINK_READS ? ia.max_rdma_read_per_ep_out
							    : LINK_READS;
	if (ia.max_rdma_read_per_ep_in < l->reads)
		l->reads = ia.max_rdma_read_per_ep_in;
	for (int i = 0; i < provider.num_provider_specific_attr; i++) {
		const char *name = provider.provider_specific_attr[i].name;

		l->atomics |= !strcmp(name, DAT_IB_ATTR_FETCH_AND_ADD);
		l->immediate |= !strcmp(name, DAT_IB_ATTR_IMMED_DATA);
	}
}

static DAT_EVD_FLAGS dto_flags(const struct link *l)
{
	return (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG |
			       (l->atomics || l->immediate ? DAT_IB_EVD_EXTENSION_FLAG : 0));
}

void link_open(struct link *l, const char *ia, enum memory_kind kind)
{
	DAT_RETURN rc;

	*l = (struct link){ .name = ia };
	rc = dat_ia_open((char *)ia, 8, &l->async, &l->ia);
	if (rc != DAT_SUCCESS) {
		char call[DAT_NAME_MAX_LENGTH + 32];
		snprintf(call, sizeof call, "dat_ia_open of %s", ia);
		good(rc, call);
	}
	find_features(l);
	good(dat_pz_create(l->ia, &l->pz), "dat_pz_create");
	good(dat_cno_create(l->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &l->cno), "dat_cno_create");
	l->cr = create_evd(l, 8, DAT_EVD_CR_FLAG);
	l->conn = create_evd(l, 8, DAT_EVD_CONNECTION_FLAG);
	l->probe_conn = create_evd(l, 8, DAT_EVD_CONNECTION_FLAG);
	l->request = create_evd(l, 2 * LINK_DEPTH, dto_flags(l));
	l->recv = create_evd(l, 2 * LINK_DEPTH, dto_flags(l));
	good(dat_evd_modify_cno(l->request, l->cno), "dat_evd_modify_cno");
	good(dat_evd_modify_cno(l->recv, l->cno), "dat_evd_modify_cno");
	create_memory(l, kind);
}

void link_address(struct link *l, struct sockaddr_storage *address)
{
	DAT_IA_ATTR attr;
	const struct sockaddr *own;

	good(dat_ia_query(l->ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL), "dat_ia_query");
	own = (const struct sockaddr *)attr.ia_address_ptr;
	memset(address, 0, sizeof *address);
	memcpy(address, own,
	       own->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					  : sizeof(struct sockaddr_in));
}

void link_close(struct link *l)
{
	good(dat_lmr_free(l->lmr), "dat_lmr_free");
	if (l->dm)
		device_memory_free(l);
	if (l->psp)
		good(dat_psp_free(l->psp), "dat_psp_free");
	good(dat_evd_free(l->recv), "dat_evd_free");
	good(dat_evd_free(l->request), "dat_evd_free");
	good(dat_evd_free(l->conn), "dat_evd_free");
	good(dat_evd_free(l->probe_conn), "dat_evd_free");
	good(dat_cno_free(l->cno), "dat_cno_free");
	good(dat_evd_free(l->cr), "dat_evd_free");
	good(dat_pz_free(l->pz), "dat_pz_free");
	good(dat_ia_close(l->ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
	if (!l->dm)
		munmap(l->out, MEMORY);
}

/* --- posting and reaping ----------------------------------------------------- */

static DAT_LMR_TRIPLET local(struct link *l, const char *from, size_t size)
{
	return (DAT_LMR_TRIPLET){ .virtual_address = (uintptr_t)from - l->base,
				  .segment_length = size,
				  .lmr_context = l->lmr_context };
}

static DAT_RMR_TRIPLET remote(struct link *l, size_t size)
{
	return (DAT_RMR_TRIPLET){ .virtual_address = l->peer_target,
				  .segment_length = size,
				  .rmr_context = l->peer_context };
}

static const DAT_DTO_COMPLETION_EVENT_DATA *completed(const DAT_EVENT *e, const char *what)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &e->event_data.dto_completion_event_data;

	if (e->event_number != DAT_DTO_COMPLETION_EVENT && (int)e->event_number != DAT_IB_DTO_EVENT)
		fail("%s: %s instead of a completion", what, event_name(e->event_number));
	if (dto->status != DAT_DTO_SUCCESS)
		fail("%s failed: %s%s", what, dto_status_name(dto->status),
		     dto->status == DAT_DTO_ERR_FLUSHED
			     ? " (the connection broke: has the peer ended?)"
			     : "");
	return dto;
}

/* Empty polls until another process may run: few where the peer has no processor of its own. */
static unsigned long patience(void)
{
	static unsigned long polls;
	cpu_set_t ours;

	if (!polls)
		polls = !sched_getaffinity(0, sizeof ours, &ours) && CPU_COUNT(&ours) == 1 ? 16
											   : 4096;
	return polls;
}

/* Lets another process run, and gives up in the end, when polling finds nothing. */
static void idle(unsigned long *polls, double *since, const char *what)
{
	if (++*polls % patience())
		return;
	if (*polls == patience())
		*since = now();
	else if (now() - *since > LINK_TIMEOUT)
		fail("%s: nothing came within %d s", what, LINK_TIMEOUT);
	sched_yield();
}

static void poll_event(DAT_EVD_HANDLE evd, DAT_EVENT *event, const char *what)
{
	unsigned long polls = 0;
	double since = 0;
	DAT_RETURN rc;

	while ((rc = dat_evd_dequeue(evd, event)) != DAT_SUCCESS) {
		if (DAT_GET_TYPE(rc) != DAT_QUEUE_EMPTY)
			good(rc, "dat_evd_dequeue");
		idle(&polls, &since, what);
	}
}

static void timed_out(DAT_RETURN rc, const char *call, const char *what)
{
	if (DAT_GET_TYPE(rc) == DAT_TIMEOUT_EXPIRED || DAT_GET_TYPE(rc) == DAT_QUEUE_EMPTY)
		fail("%s: nothing came within %d s", what, LINK_TIMEOUT);
	good(rc, call);
}

/* The CNO serves both EVDs: what the other one has is taken by its own turn. */
static void wait_cno(struct link *l, DAT_EVD_HANDLE evd, DAT_EVENT *event, const char *what)
{
	DAT_EVD_HANDLE triggered;
	DAT_RETURN rc;

	while ((rc = dat_evd_dequeue(evd, event)) != DAT_SUCCESS) {
		if (DAT_GET_TYPE(rc) != DAT_QUEUE_EMPTY)
			good(rc, "dat_evd_dequeue");
		timed_out(dat_cno_wait(l->cno, LINK_TIMEOUT * 1000000, &triggered), "dat_cno_wait",
			  what);
	}
}

static void next_event(struct link *l, DAT_EVD_HANDLE evd, enum wake wake, DAT_EVENT *event,
		       const char *what)
{
	DAT_COUNT more;

	switch (wake) {
	case WAKE_POLL: poll_event(evd, event, what); break;
	case WAKE_CNO: wait_cno(l, evd, event, what); break;
	case WAKE_WAIT:
		timed_out(dat_evd_wait(evd, LINK_TIMEOUT * 1000000, 1, event, &more),
			  "dat_evd_wait", what);
		break;
	}
}

static void reap_request_by(struct link *l, enum wake wake)
{
	DAT_EVENT event;

	next_event(l, l->request, wake, &event, "request");
	completed(&event, "request");
	l->unfinished--;
}

static void reap_request(struct link *l)
{
	reap_request_by(l, WAKE_POLL);
}

static void make_room(struct link *l)
{
	while (l->unfinished >= LINK_DEPTH)
		reap_request(l);
	l->unfinished++;
}

void link_finish_by(struct link *l, enum wake wake)
{
	while (l->unfinished)
		reap_request_by(l, wake);
}

void link_finish(struct link *l)
{
	link_finish_by(l, WAKE_POLL);
}

static const DAT_DTO_COOKIE no_cookie;

void link_send(struct link *l, size_t size)
{
	DAT_LMR_TRIPLET from = local(l, l->out, size);

	make_room(l);
	good(dat_ep_post_send(l->ep, 1, &from, no_cookie, DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ep_post_send");
}

void link_write(struct link *l, size_t size)
{
	DAT_LMR_TRIPLET from = local(l, l->out, size);
	DAT_RMR_TRIPLET to = remote(l, size);

	make_room(l);
	good(dat_ep_post_rdma_write(l->ep, 1, &from, no_cookie, &to, DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ep_post_rdma_write");
}

void link_read(struct link *l, size_t size)
{
	DAT_LMR_TRIPLET to = local(l, l->target, size);
	DAT_RMR_TRIPLET from = remote(l, size);

	make_room(l);
	good(dat_ep_post_rdma_read(l->ep, 1, &to, no_cookie, &from, DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ep_post_rdma_read");
}

void link_fetch_add(struct link *l)
{
	DAT_LMR_TRIPLET to = local(l, l->out, sizeof(uint64_t));
	DAT_RMR_TRIPLET word = remote(l, sizeof(uint64_t));

	make_room(l);
	good(dat_ib_post_fetch_and_add(l->ep, 1, &to, no_cookie, &word,
				       DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ib_post_fetch_and_add");
}

void link_write_immediate(struct link *l, size_t size, uint32_t data)
{
	DAT_LMR_TRIPLET from = local(l, l->out, size);
	DAT_RMR_TRIPLET to = remote(l, size);

	make_room(l);
	good(dat_ib_post_rdma_write_immed(l->ep, 1, &from, no_cookie, &to, data,
					  DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ib_post_rdma_write_immed");
}

static void post_receive(struct link *l)
{
	DAT_LMR_TRIPLET to = local(l, l->in, LINK_BLOCK);

	good(dat_ep_post_recv(l->ep, 1, &to, no_cookie, DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ep_post_recv");
}

size_t link_receive_by(struct link *l, enum wake wake)
{
	DAT_EVENT event;

	next_event(l, l->recv, wake, &event, "receive");
	post_receive(l);
	return completed(&event, "receive")->transfered_length;
}

size_t link_receive(struct link *l)
{
	return link_receive_by(l, WAKE_POLL);
}

bool link_wait(struct link *l, size_t *size)
{
	DAT_EVENT event;
	DAT_COUNT more;

	good(dat_evd_wait(l->recv, DAT_TIMEOUT_INFINITE, 1, &event, &more), "dat_evd_wait");
	if (event.event_data.dto_completion_event_data.status == DAT_DTO_ERR_FLUSHED)
		return false;
	*size = completed(&event, "receive")->transfered_length;
	post_receive(l);
	return true;
}

void link_spin_byte(const volatile uint8_t *byte, uint8_t value)
{
	unsigned long polls = 0;
	double since = 0;

	while (__atomic_load_n(byte, __ATOMIC_ACQUIRE) != value)
		idle(&polls, &since, "RDMA write of the peer");
}

/* --- connecting -------------------------------------------------------------- */

static void create_endpoint(struct link *l)
{
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = LINK_BLOCK,
		.max_rdma_size = LINK_BLOCK,
		.qos = DAT_QOS_BEST_EFFORT,
		.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.max_recv_dtos = LINK_DEPTH,
		.max_request_dtos = LINK_DEPTH,
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.max_rdma_read_in = l->reads,
		.max_rdma_read_out = l->reads,
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = 1,
	};

	good(dat_ep_create(l->ia, l->pz, l->recv, l->request, l->conn, &attr, &l->ep),
	     "dat_ep_create");
	for (int i = 0; i < LINK_DEPTH; i++)
		post_receive(l);
}

static struct hello our_hello(struct link *l)
{
	return (struct hello){ .magic = htobe32(MAGIC),
			       .context = htobe32(l->rmr_context),
			       .target = htobe64((uintptr_t)l->target - l->base) };
}

/* Why the peer's private data is none of datperf's; NULL if it is. */
static const char *take_hello(struct link *l, const void *data, DAT_COUNT size)
{
	struct hello h;

	if (!data || size < (DAT_COUNT)sizeof h)
		return "the peer is not datperf: its private data is too short";
	memcpy(&h, data, sizeof h);
	if (be32toh(h.magic) != MAGIC)
		return "the peer is not datperf, or another version of it";
	l->peer_context = be32toh(h.context);
	l->peer_target = be64toh(h.target);
	return NULL;
}

static DAT_EVENT wait_on(DAT_EVD_HANDLE conn, DAT_EVENT_NUMBER expected, const char *what)
{
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_RETURN rc = dat_evd_wait(conn, LINK_TIMEOUT * 1000000, 1, &event, &more);

	if (DAT_GET_TYPE(rc) == DAT_TIMEOUT_EXPIRED)
		fail("%s: no answer within %d s", what, LINK_TIMEOUT);
	good(rc, what);
	if (event.event_number != expected) {
		const char *hint = connection_hint(event.event_number);

		fail("%s: %s%s%s%s", what, event_name(event.event_number), *hint ? " (" : "", hint,
		     *hint ? ")" : "");
	}
	return event;
}

static DAT_EVENT wait_connection(struct link *l, DAT_EVENT_NUMBER expected, const char *what)
{
	return wait_on(l->conn, expected, what);
}

void link_listen(struct link *l, DAT_CONN_QUAL port)
{
	good(dat_psp_create(l->ia, port, l->cr, DAT_PSP_CONSUMER_FLAG, &l->psp), "dat_psp_create");
}

void link_accept(struct link *l)
{
	struct hello ours = our_hello(l);
	DAT_CR_PARAM cr;
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_CR_HANDLE handle;
	const char *fault;

	create_endpoint(l);
	good(dat_evd_wait(l->cr, DAT_TIMEOUT_INFINITE, 1, &event, &more), "dat_evd_wait");
	handle = event.event_data.cr_arrival_event_data.cr_handle;
	good(dat_cr_query(handle, DAT_CR_FIELD_ALL, &cr), "dat_cr_query");
	fault = take_hello(l, cr.private_data, cr.private_data_size);
	if (fault) {
		char address[ADDRESS_TEXT];

		address_text((const struct sockaddr *)cr.remote_ia_address_ptr, address);
		good(dat_cr_reject(handle, 0, NULL), "dat_cr_reject");
		fail("request from %s rejected: %s", address, fault);
	}
	good(dat_cr_accept(handle, l->ep, sizeof ours, &ours), "dat_cr_accept");
	wait_connection(l, DAT_CONNECTION_EVENT_ESTABLISHED, "accept");
}

void link_connect(struct link *l, const struct sockaddr *to, DAT_CONN_QUAL port)
{
	struct hello ours = our_hello(l);
	char address[ADDRESS_TEXT], what[ADDRESS_TEXT + 64];
	const char *fault;
	DAT_EVENT event;

	create_endpoint(l);
	snprintf(what, sizeof what, "connect to %s port %llu", address_text(to, address),
		 (unsigned long long)port);
	good(dat_ep_connect(l->ep, (DAT_IA_ADDRESS_PTR)to, port, LINK_TIMEOUT * 1000000,
			    sizeof ours, &ours, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
	     "dat_ep_connect");
	event = wait_connection(l, DAT_CONNECTION_EVENT_ESTABLISHED, what);
	fault = take_hello(l, event.event_data.connect_event_data.private_data,
			   event.event_data.connect_event_data.private_data_size);
	if (fault)
		fail("%s: %s", what, fault);
}

static void drain(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS)
		;
}

static void free_endpoint(struct link *l)
{
	good(dat_ep_free(l->ep), "dat_ep_free");
	l->ep = DAT_HANDLE_NULL;
	drain(l->recv);
	drain(l->request);
	l->unfinished = 0;
}

void link_disconnect(struct link *l)
{
	good(dat_ep_disconnect(l->ep, DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
	wait_connection(l, DAT_CONNECTION_EVENT_DISCONNECTED, "disconnect");
	free_endpoint(l);
}

void link_drop(struct link *l)
{
	if (!l->ep)
		return;
	free_endpoint(l);
	drain(l->conn);
}

/* --- probes ------------------------------------------------------------------ */

static DAT_EP_HANDLE create_probe(struct link *l)
{
	DAT_EP_HANDLE ep;

	good(dat_ep_create(l->ia, l->pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, l->probe_conn, NULL,
			   &ep),
	     "dat_ep_create");
	return ep;
}

double link_probe(struct link *l, const struct sockaddr *to, DAT_CONN_QUAL port)
{
	struct hello ours = our_hello(l);
	DAT_EP_HANDLE ep = create_probe(l);
	double start = now(), took;

	good(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)to, port, LINK_TIMEOUT * 1000000, sizeof ours,
			    &ours, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
	     "dat_ep_connect");
	wait_on(l->probe_conn, DAT_CONNECTION_EVENT_ESTABLISHED, "connect");
	took = now() - start;
	good(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
	wait_on(l->probe_conn, DAT_CONNECTION_EVENT_DISCONNECTED, "disconnect");
	good(dat_ep_free(ep), "dat_ep_free");
	return took;
}

void link_accept_probe(struct link *l)
{
	DAT_EP_HANDLE ep = create_probe(l);
	DAT_EVENT event;
	DAT_COUNT more;

	timed_out(dat_evd_wait(l->cr, LINK_TIMEOUT * 1000000, 1, &event, &more), "dat_evd_wait",
		  "connection request");
	good(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL),
	     "dat_cr_accept");
	wait_on(l->probe_conn, DAT_CONNECTION_EVENT_ESTABLISHED, "accept");
	wait_on(l->probe_conn, DAT_CONNECTION_EVENT_DISCONNECTED, "disconnect");
	good(dat_ep_free(ep), "dat_ep_free");
}
