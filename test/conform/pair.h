/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pair.h - things to test with: protection zones, memory, event dispatchers, endpoints,
 * listeners, and two endpoints of this process connected to each other. Making them is
 * expected to succeed. They go with the IA. */
#ifndef CONFORM_PAIR_H
#define CONFORM_PAIR_H
#include "conform.h"

/* --- memory ---------------------------------------------------------------------------- */

struct region {
	char *at;	/* zeroed, on a page of its own */
	DAT_VLEN size;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
};
#define LOCAL_RIGHTS ((DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
#define ALL_RIGHTS DAT_MEM_PRIV_ALL_FLAG
char *some_memory(size_t size);
struct region a_region(DAT_PZ_HANDLE pz, DAT_VLEN size, DAT_MEM_PRIV_FLAGS rights);
/* The same memory once more: another PZ, other rights. */
struct region a_region_at(char *at, DAT_VLEN size, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS rights);
/* dat_lmr_create of virtual memory, for the tests of its arguments. */
DAT_RETURN register_memory(void *at, DAT_VLEN size, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS rights,
			   DAT_LMR_HANDLE *lmr);

/* The same, with a remote context that the peer does not know. */
struct region forged(const struct region *real);
DAT_LMR_TRIPLET segment(const struct region *region, size_t offset, size_t length);
DAT_RMR_TRIPLET target(const struct region *region, size_t offset, size_t length);
/* The arguments of posts. */
#define SEGMENT(region, offset, length) ((DAT_LMR_TRIPLET[]){ segment(region, offset, length) })
#define TARGET(region, offset, length) ((DAT_RMR_TRIPLET[]){ target(region, offset, length) })
#define COOKIE(n) ((DAT_DTO_COOKIE){ .as_64 = (n) })

/* Bytes that tell where they belong. */
void fill(char *at, size_t length, unsigned seed);
bool is_filled(const char *at, size_t length, unsigned seed);
bool is_zero(const char *at, size_t length);

/* Lengths on both sides of the border up to which devices inline (DAPL_MAX_INLINE is 64, the
 * software device inlines 1024 bytes). */
enum { INLINE_LENGTHS = 7 };
extern const uint32_t inline_lengths[INLINE_LENGTHS];
/* Does the device send so few bytes without a look at their context? */
bool may_be_inlined(uint32_t length);

/* --- objects ----------------------------------------------------------------------------- */

DAT_PZ_HANDLE a_pz(void);
DAT_CNO_HANDLE a_cno(void);
DAT_EVD_HANDLE an_evd(DAT_EVD_FLAGS flags);	/* of 64 entries */
DAT_EVD_HANDLE an_evd_of(DAT_COUNT qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags);
/* A software event that carries this number. */
DAT_RETURN post_number(DAT_EVD_HANDLE evd, uintptr_t number);
/* A software EVD with the numbers 1 to n on it. */
DAT_EVD_HANDLE an_evd_with_numbers(int n);
/* The numbers first to last are dequeued, in order, and then the EVD is empty. */
void expect_numbers(DAT_EVD_HANDLE evd, uintptr_t first, uintptr_t last);
#define NUMBER(event) ((uintptr_t)(event).event_data.software_event_data.pointer)
DAT_EVD_PARAM evd_param(DAT_EVD_HANDLE evd);
DAT_EP_PARAM ep_param(DAT_EP_HANDLE ep);

/* --- endpoints ----------------------------------------------------------------------------- */

/* 16 requests and receives, 4 segments (what the device has, if less), RDMA reads both
 * ways, every completion notified. */
DAT_EP_ATTR ep_attr(void);

#define END_MEMORY 65536
struct end {
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE recv, request, conn;
	DAT_EP_HANDLE ep;
	struct region mem;	/* END_MEMORY bytes, all rights */
};
/* What is NULL is made. */
struct end_options {
	DAT_PZ_HANDLE pz;
	const DAT_EP_ATTR *attr;
	DAT_EVD_HANDLE recv, request, conn;
	DAT_SRQ_HANDLE srq;
};
struct end new_end(const struct end_options *options);
#define AN_END(...) new_end(&(struct end_options){ __VA_ARGS__ })
/* A datagram endpoint: connecting, or joining a group, gives addresses to send to. */
DAT_EP_ATTR ud_attr(void);
struct end a_ud_end(void);
DAT_IB_EXTENSION_EVENT_DATA *extension(DAT_EVENT *event);

void post_send(const struct end *end, size_t offset, size_t length, uint64_t cookie);
void post_recv(const struct end *end, size_t offset, size_t length, uint64_t cookie);
void post_write(const struct end *end, size_t offset, size_t length, const struct region *to,
		size_t to_offset, uint64_t cookie);
void post_read(const struct end *end, size_t offset, size_t length, const struct region *from,
	       size_t from_offset, uint64_t cookie);

/* --- connections ------------------------------------------------------------------------------ */

struct listener {
	DAT_PSP_HANDLE psp;
	DAT_EVD_HANDLE evd;
	DAT_CONN_QUAL qual;
};
struct listener a_listener(void);
struct listener a_listener_on(DAT_IA_HANDLE ia, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags);
/* On a large qualifier (new_large_qual). */
struct listener a_large_listener(DAT_EVD_HANDLE evd);
/* An EP's one-shot service point, on a qualifier of its own. */
struct reservation {
	DAT_RSP_HANDLE rsp;
	DAT_EVD_HANDLE evd;
	DAT_CONN_QUAL qual;
};
struct reservation a_reservation(DAT_EP_HANDLE ep);
struct reservation a_large_reservation(DAT_EP_HANDLE ep);
/* dat_ep_connect without private data, with time enough. */
void dial(DAT_EP_HANDLE ep, DAT_CONN_QUAL qual);
DAT_RETURN try_dial(DAT_EP_HANDLE ep, DAT_CONN_QUAL qual);
#define AMPLE_TIME 60000000	/* microseconds to connect */
/* What a common service point wants: this IA's kind of communication; its address, and a port. */
DAT_COMM *csp_comm(DAT_COMM *comm);
DAT_IA_ADDRESS_PTR csp_address(struct sockaddr_storage *where, DAT_CONN_QUAL port);
/* The request that arrives. */
DAT_CR_HANDLE request_on(DAT_EVD_HANDLE evd);
DAT_CR_PARAM cr_param(DAT_CR_HANDLE cr);

void connect_ends(const struct end *a, const struct end *b);
/* a called, b accepted. Both have their own PZ, unless one is given. */
struct pair {
	struct end a, b;
};
struct pair a_pair(const struct end_options *options);
#define CONNECTED_PAIR(...) a_pair(&(struct end_options){ __VA_ARGS__ })
void hang_up(const struct end *end);	/* abruptly; the event is not awaited */

/* One more message each way shows that the connection works. */
void expect_working(const struct end *a, const struct end *b);
#define WORKS(a, b) (AT("messages between " #a " and " #b), expect_working(&(a), &(b)))

/* Makes the connection keep a's requests, so that it stays in DISCONNECT_PENDING: sends
 * for which b has no receive. Skips on devices that break such a connection. Cookie 900. */
void hold_requests(const struct pair *pair);

/* --- an object of every kind ------------------------------------------------------------------- */

struct zoo {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;	/* NULL without RMRs */
	DAT_SRQ_HANDLE srq;	/* NULL without SRQs */
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_CSP_HANDLE csp;	/* NULL without CSPs */
	DAT_CR_HANDLE cr;
};
struct zoo a_zoo(void);
#define ZOO_SIZE 12
/* All handles in turn, as they stand above. */
DAT_HANDLE zoo_handle(const struct zoo *zoo, int i);
DAT_HANDLE_TYPE zoo_type(int i);

#endif
