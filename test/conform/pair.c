/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pair.c - makes the things that tests work with (pair.h). */
#include "pair.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* --- memory ------------------------------------------------------------------------------ */

char *some_memory(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		fail("no memory for the test");
	return at;
}

DAT_RETURN register_memory(void *at, DAT_VLEN size, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS rights,
			   DAT_LMR_HANDLE *lmr)
{
	return dat_lmr_create(ia(), DAT_MEM_TYPE_VIRTUAL, (DAT_REGION_DESCRIPTION){ .for_va = at },
			      size, pz, rights, DAT_VA_TYPE_VA, lmr, NULL, NULL, NULL, NULL);
}

struct region a_region_at(char *at, DAT_VLEN size, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS rights)
{
	struct region region = { .at = at, .size = size };
	DAT_VLEN registered_size;
	DAT_VADDR registered_address;

	OK(dat_lmr_create(ia(), DAT_MEM_TYPE_VIRTUAL, (DAT_REGION_DESCRIPTION){ .for_va = at }, size,
			  pz, rights, DAT_VA_TYPE_VA, &region.lmr, &region.local, &region.remote,
			  &registered_size, &registered_address));
	return region;
}

struct region a_region(DAT_PZ_HANDLE pz, DAT_VLEN size, DAT_MEM_PRIV_FLAGS rights)
{
	return a_region_at(some_memory(size), size, pz, rights);
}

const uint32_t inline_lengths[INLINE_LENGTHS] = { 1, 8, 64, 65, 1024, 1025, 4095 };

/* Verbs do not check the key of data that they inline (DOUBTS.md); the software device does. */
bool may_be_inlined(uint32_t length)
{
	return length <= 1024 && !device_is("soft_");
}

struct region forged(const struct region *real)
{
	struct region region = *real;

	region.remote ^= 0x00ffff00;
	return region;
}

DAT_LMR_TRIPLET segment(const struct region *region, size_t offset, size_t length)
{
	return (DAT_LMR_TRIPLET){ .virtual_address = (uintptr_t)region->at + offset,
				  .segment_length = length, .lmr_context = region->local };
}

DAT_RMR_TRIPLET target(const struct region *region, size_t offset, size_t length)
{
	return (DAT_RMR_TRIPLET){ .virtual_address = (uintptr_t)region->at + offset,
				  .segment_length = length, .rmr_context = region->remote };
}

static char pattern(size_t i, unsigned seed)
{
	return (char)(1 + (i * 7 + i / 251 + seed * 31) % 255);
}

void fill(char *at, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		at[i] = pattern(i, seed);
}

bool is_filled(const char *at, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		if (at[i] != pattern(i, seed))
			return false;
	return true;
}

bool is_zero(const char *at, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (at[i])
			return false;
	return true;
}

/* --- objects --------------------------------------------------------------------------------- */

DAT_PZ_HANDLE a_pz(void)
{
	DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;

	OK(dat_pz_create(ia(), &pz));
	return pz;
}

DAT_CNO_HANDLE a_cno(void)
{
	DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;

	OK(dat_cno_create(ia(), DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	return cno;
}

DAT_EVD_HANDLE an_evd_of(DAT_COUNT qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	OK(dat_evd_create(ia(), qlen, cno, flags, &evd));
	return evd;
}

DAT_EVD_HANDLE an_evd(DAT_EVD_FLAGS flags)
{
	return an_evd_of(64, DAT_HANDLE_NULL, flags);
}

DAT_RETURN post_number(DAT_EVD_HANDLE evd, uintptr_t number)
{
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	event.event_number = DAT_SOFTWARE_EVENT;
	event.event_data.software_event_data.pointer = (DAT_PVOID)number;
	return dat_evd_post_se(evd, &event);
}

DAT_EVD_HANDLE an_evd_with_numbers(int n)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_SOFTWARE_FLAG);

	for (int i = 1; i <= n; i++)
		OK(post_number(evd, i));
	return evd;
}

void expect_numbers(DAT_EVD_HANDLE evd, uintptr_t first, uintptr_t last)
{
	DAT_EVENT event;

	for (uintptr_t i = first; i <= last; i++) {
		OK(dat_evd_dequeue(evd, &event));
		EQUAL(event.event_number, DAT_SOFTWARE_EVENT);
		EQUAL(NUMBER(event), i);
	}
	FAILS(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
}

DAT_EVD_PARAM evd_param(DAT_EVD_HANDLE evd)
{
	DAT_EVD_PARAM param;

	memset(&param, 0, sizeof(param));
	OK(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	return param;
}

DAT_EP_PARAM ep_param(DAT_EP_HANDLE ep)
{
	DAT_EP_PARAM param;

	memset(&param, 0, sizeof(param));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	return param;
}

/* --- endpoints --------------------------------------------------------------------------------- */

static DAT_COUNT at_most(DAT_COUNT wanted, DAT_COUNT limit)
{
	return limit < wanted ? limit : wanted;
}

DAT_EP_ATTR ep_attr(void)
{
	const DAT_IA_ATTR *has = ia_attr();

	return (DAT_EP_ATTR){
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = END_MEMORY,
		.max_rdma_size = END_MEMORY,
		.qos = DAT_QOS_BEST_EFFORT,
		.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.max_recv_dtos = 16,
		.max_request_dtos = 16,
		.max_recv_iov = at_most(4, has->max_iov_segments_per_dto),
		.max_request_iov = at_most(4, has->max_iov_segments_per_dto),
		.max_rdma_read_in = at_most(4, has->max_rdma_read_per_ep_in),
		.max_rdma_read_out = at_most(4, has->max_rdma_read_per_ep_out),
		.max_rdma_read_iov = at_most(4, has->max_iov_segments_per_rdma_read),
		.max_rdma_write_iov = at_most(4, has->max_iov_segments_per_rdma_write),
	};
}

struct end new_end(const struct end_options *given)
{
	DAT_EP_ATTR usual = ep_attr();
	struct end end = { .pz = given->pz, .recv = given->recv, .request = given->request,
			   .conn = given->conn };
	const DAT_EP_ATTR *attr = given->attr ? given->attr : &usual;

	if (!end.pz)
		end.pz = a_pz();
	if (!end.recv)
		end.recv = an_evd(DAT_EVD_DTO_FLAG);
	if (!end.request)
		end.request = an_evd(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
	if (!end.conn)
		end.conn = an_evd(DAT_EVD_CONNECTION_FLAG);
	end.mem = a_region(end.pz, END_MEMORY, ALL_RIGHTS);
	if (given->srq)
		OK(dat_ep_create_with_srq(ia(), end.pz, end.recv, end.request, end.conn, given->srq,
					  attr, &end.ep));
	else
		OK(dat_ep_create(ia(), end.pz, end.recv, end.request, end.conn, attr, &end.ep));
	return end;
}

DAT_EP_ATTR ud_attr(void)
{
	DAT_EP_ATTR attr = ep_attr();

	attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	attr.max_message_size = 1024;
	attr.max_rdma_size = 0;
	attr.max_rdma_read_in = attr.max_rdma_read_out = 0;
	attr.max_rdma_read_iov = attr.max_rdma_write_iov = 0;
	return attr;
}

struct end a_ud_end(void)
{
	DAT_EP_ATTR attr = ud_attr();

	return AN_END(.attr = &attr, .request = an_evd((DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_IB_EVD_EXTENSION_FLAG)),
		      .recv = an_evd((DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_IB_EVD_EXTENSION_FLAG)),
		      .conn = an_evd((DAT_EVD_FLAGS)(DAT_EVD_CONNECTION_FLAG | DAT_IB_EVD_EXTENSION_FLAG)));
}

DAT_IB_EXTENSION_EVENT_DATA *extension(DAT_EVENT *event)
{
	return (DAT_IB_EXTENSION_EVENT_DATA *)event->event_extension_data;
}

void post_send(const struct end *end, size_t offset, size_t length, uint64_t cookie)
{
	OK(dat_ep_post_send(end->ep, 1, SEGMENT(&end->mem, offset, length), COOKIE(cookie),
			    DAT_COMPLETION_DEFAULT_FLAG));
}

void post_recv(const struct end *end, size_t offset, size_t length, uint64_t cookie)
{
	OK(dat_ep_post_recv(end->ep, 1, SEGMENT(&end->mem, offset, length), COOKIE(cookie),
			    DAT_COMPLETION_DEFAULT_FLAG));
}

void post_write(const struct end *end, size_t offset, size_t length, const struct region *to,
		size_t to_offset, uint64_t cookie)
{
	OK(dat_ep_post_rdma_write(end->ep, 1, SEGMENT(&end->mem, offset, length), COOKIE(cookie),
				  TARGET(to, to_offset, length), DAT_COMPLETION_DEFAULT_FLAG));
}

void post_read(const struct end *end, size_t offset, size_t length, const struct region *from,
	       size_t from_offset, uint64_t cookie)
{
	OK(dat_ep_post_rdma_read(end->ep, 1, SEGMENT(&end->mem, offset, length), COOKIE(cookie),
				 TARGET(from, from_offset, length), DAT_COMPLETION_DEFAULT_FLAG));
}

/* --- connections ----------------------------------------------------------------------------------- */

static bool taken(DAT_RETURN ret)
{
	return DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE || DAT_GET_TYPE(ret) == DAT_PORT_IN_USE;
}

static struct listener listen_on(DAT_IA_HANDLE on, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
				 DAT_CONN_QUAL (*choose)(void))
{
	struct listener listener = { .evd = evd };
	DAT_RETURN ret = DAT_CONN_QUAL_IN_USE;

	/* Another program on this host may use a qualifier. */
	for (int i = 0; i < 20 && taken(ret); i++) {
		listener.qual = choose();
		ret = dat_psp_create(on, listener.qual, evd, flags, &listener.psp);
	}
	AT("dat_psp_create");
	if (flags == DAT_PSP_PROVIDER_FLAG)
		expect_supported("dat_psp_create with DAT_PSP_PROVIDER_FLAG", ret);
	OK(ret);
	return listener;
}

struct listener a_listener_on(DAT_IA_HANDLE on, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags)
{
	return listen_on(on, evd, flags, new_qual);
}

struct listener a_large_listener(DAT_EVD_HANDLE evd)
{
	return listen_on(ia(), evd, DAT_PSP_CONSUMER_FLAG, new_large_qual);
}

struct listener a_listener(void)
{
	return a_listener_on(ia(), an_evd(DAT_EVD_CR_FLAG), DAT_PSP_CONSUMER_FLAG);
}

static struct reservation reserve(DAT_EP_HANDLE ep, DAT_CONN_QUAL (*choose)(void))
{
	struct reservation r = { .evd = an_evd(DAT_EVD_CR_FLAG) };
	DAT_RETURN ret = DAT_CONN_QUAL_IN_USE;

	for (int i = 0; i < 20 && taken(ret); i++) {
		r.qual = choose();
		ret = dat_rsp_create(ia(), r.qual, ep, r.evd, &r.rsp);
	}
	AT("dat_rsp_create");
	OK(ret);
	return r;
}

struct reservation a_reservation(DAT_EP_HANDLE ep)
{
	return reserve(ep, new_qual);
}

struct reservation a_large_reservation(DAT_EP_HANDLE ep)
{
	return reserve(ep, new_large_qual);
}

DAT_RETURN try_dial(DAT_EP_HANDLE ep, DAT_CONN_QUAL qual)
{
	return dat_ep_connect(ep, address(), qual, AMPLE_TIME, 0, NULL, DAT_QOS_BEST_EFFORT,
			      DAT_CONNECT_DEFAULT_FLAG);
}

void dial(DAT_EP_HANDLE ep, DAT_CONN_QUAL qual)
{
	OK(try_dial(ep, qual));
}

DAT_CR_HANDLE request_on(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event = EVENT(evd, DAT_CONNECTION_REQUEST_EVENT);

	return event.event_data.cr_arrival_event_data.cr_handle;
}

DAT_CR_PARAM cr_param(DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param;

	memset(&param, 0, sizeof(param));
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	return param;
}

void connect_ends(const struct end *a, const struct end *b)
{
	struct listener listener = a_listener();

	dial(a->ep, listener.qual);
	OK(dat_cr_accept(request_on(listener.evd), b->ep, 0, NULL));
	EVENT(a->conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EVENT(b->conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	OK(dat_psp_free(listener.psp));
	OK(dat_evd_free(listener.evd));
}

struct pair a_pair(const struct end_options *options)
{
	struct pair pair = { new_end(options), new_end(options) };

	connect_ends(&pair.a, &pair.b);
	return pair;
}

void hang_up(const struct end *end)
{
	OK(dat_ep_disconnect(end->ep, DAT_CLOSE_ABRUPT_FLAG));
}

DAT_COMM *csp_comm(DAT_COMM *comm)
{
	*comm = (DAT_COMM){ .domain = address()->sa_family, .type = SOCK_STREAM, .protocol = 0 };
	return comm;
}

DAT_IA_ADDRESS_PTR csp_address(struct sockaddr_storage *where, DAT_CONN_QUAL port)
{
	bool six = address()->sa_family == AF_INET6;

	memset(where, 0, sizeof(*where));
	memcpy(where, address(), six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	if (six)
		((struct sockaddr_in6 *)where)->sin6_port = htons((uint16_t)port);
	else
		((struct sockaddr_in *)where)->sin_port = htons((uint16_t)port);
	return (DAT_IA_ADDRESS_PTR)where;
}

static void expect_message(const struct end *from, const struct end *to)
{
	size_t in = END_MEMORY - 256, out = END_MEMORY - 128;

	fill(from->mem.at + out, 100, 77);
	memset(to->mem.at + in, 0, 100);
	post_recv(to, in, 100, 8801);
	post_send(from, out, 100, 8802);
	COMPLETES(from->request, 8802, DAT_DTO_SUCCESS);
	COMPLETES(to->recv, 8801, DAT_DTO_SUCCESS);
	HOLDS(is_filled(to->mem.at + in, 100, 77));
}

void expect_working(const struct end *a, const struct end *b)
{
	expect_message(a, b);
	expect_message(b, a);
}

void hold_requests(const struct pair *pair)
{
	const char *why = "a message that finds no receive ends the connection on this device";

	if (device_is("siw"))	/* how soon it ends depends on the load */
		skip("%s", why);
	post_send(&pair->a, 0, 64, 900);
	/* On other devices that do not wait for a receive, the connection ends now. */
	DAT_EVENT event;
	double end = now() + 0.05;
	while (now() < end)
		if (dat_evd_dequeue(pair->a.conn, &event) == DAT_SUCCESS ||
		    dat_evd_dequeue(pair->b.conn, &event) == DAT_SUCCESS)
			skip("%s", why);
}

/* --- an object of every kind ------------------------------------------------------------------------ */

/* Returns NULL if there are no common service points. */
static DAT_CSP_HANDLE a_csp(DAT_EVD_HANDLE evd)
{
	DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
	DAT_COMM comm;
	struct sockaddr_storage where;

	if (FIND(dat_csp_create) &&
	    FIND(dat_csp_create)(ia(), csp_comm(&comm), csp_address(&where, new_qual()), evd, &csp))
		return DAT_HANDLE_NULL;
	return csp;
}

struct zoo a_zoo(void)
{
	struct zoo zoo = { .ia = ia() };
	struct listener listener = a_listener();
	struct end caller = AN_END(), reserved = AN_END();
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };

	zoo.pz = caller.pz;
	zoo.lmr = caller.mem.lmr;
	/* The tests RMR-1 and SRQ-1 check these calls. */
	if (!ia_attr()->max_rmrs || dat_rmr_create(zoo.pz, &zoo.rmr))
		zoo.rmr = DAT_HANDLE_NULL;
	if (!ia_attr()->max_srqs || dat_srq_create(ia(), zoo.pz, &srq_attr, &zoo.srq))
		zoo.srq = DAT_HANDLE_NULL;
	zoo.csp = a_csp(listener.evd);
	zoo.cno = a_cno();
	zoo.evd = an_evd_of(8, zoo.cno, DAT_EVD_SOFTWARE_FLAG);
	zoo.ep = caller.ep;
	zoo.psp = listener.psp;
	zoo.rsp = a_reservation(reserved.ep).rsp;
	dial(caller.ep, listener.qual);
	zoo.cr = request_on(listener.evd);
	return zoo;
}

DAT_HANDLE zoo_handle(const struct zoo *zoo, int i)
{
	return ((const DAT_HANDLE *)zoo)[i];
}

DAT_HANDLE_TYPE zoo_type(int i)
{
	static const DAT_HANDLE_TYPE types[ZOO_SIZE] = {
		DAT_HANDLE_TYPE_IA, DAT_HANDLE_TYPE_PZ, DAT_HANDLE_TYPE_LMR, DAT_HANDLE_TYPE_RMR,
		DAT_HANDLE_TYPE_SRQ, DAT_HANDLE_TYPE_CNO, DAT_HANDLE_TYPE_EVD, DAT_HANDLE_TYPE_EP,
		DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_RSP, DAT_HANDLE_TYPE_CSP, DAT_HANDLE_TYPE_CR,
	};
	return types[i];
}
