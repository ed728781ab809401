/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pair.h - objects to test with: protection zones, memory, event dispatchers, endpoints, listeners, and two
 * endpoints of this process that are connected to each other. A test fails if one cannot be made. They are
 * freed with the IA. */
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
/* Registers memory once more, in another PZ or with other rights. */
struct region a_region_at(char *at, DAT_VLEN size, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS rights);
/* dat_lmr_create of virtual memory, for the tests of its arguments. */
DAT_RETURN register_memory(void *at, DAT_VLEN size, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS rights,
			   DAT_LMR_HANDLE *lmr);

/* Returns the region with a remote context that no region has. */
struct region forged(const struct region *real);
DAT_LMR_TRIPLET segment(const struct region *region, size_t offset, size_t length);
DAT_RMR_TRIPLET target(const struct region *region, size_t offset, size_t length);
/* Arguments of posts. */
#define SEGMENT(region, offset, length) ((DAT_LMR_TRIPLET[]){ segment(region, offset, length) })
#define TARGET(region, offset, length) ((DAT_RMR_TRIPLET[]){ target(region, offset, length) })
#define COOKIE(n) ((DAT_DTO_COOKIE){ .as_64 = (n) })

/* Writes bytes that depend on their place and the seed. */
void fill(char *at, size_t length, unsigned seed);
bool is_filled(const char *at, size_t length, unsigned seed);
bool is_zero(const char *at, size_t length);

/* Lengths on both sides of the border up to which devices inline (DAPL_MAX_INLINE is 64, the
 * software device inlines 1024 bytes). */
enum { INLINE_LENGTHS = 7 };
extern const uint32_t inline_lengths[INLINE_LENGTHS];
/* Returns whether the device may send so few bytes without a check of their context. */
bool may_be_inlined(uint32_t length);

/* --- objects ----------------------------------------------------------------------------- */

DAT_PZ_HANDLE a_pz(void);
DAT_CNO_HANDLE a_cno(void);
DAT_EVD_HANDLE an_evd(DAT_EVD_FLAGS flags);	/* of 64 entries */
DAT_EVD_HANDLE an_evd_of(DAT_COUNT qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags);
/* Posts a software event that carries this number. */
DAT_RETURN post_number(DAT_EVD_HANDLE evd, uintptr_t number);
/* Returns a software EVD with events that carry the numbers 1 to n. */
DAT_EVD_HANDLE an_evd_with_numbers(int n);
/* Dequeues events, which must carry the numbers first to last in order. Then the EVD must be empty. */
void expect_numbers(DAT_EVD_HANDLE evd, uintptr_t first, uintptr_t last);
#define NUMBER(event) ((uintptr_t)(event).event_data.software_event_data.pointer)
DAT_EVD_PARAM evd_param(DAT_EVD_HANDLE evd);
DAT_EP_PARAM ep_param(DAT_EP_HANDLE ep);

/* --- endpoints ----------------------------------------------------------------------------- */

/* Returns attributes: 16 requests and receives, 4 segments or what the device has if that is less, RDMA
 * reads in both directions, a notification for each completion. */
DAT_EP_ATTR ep_attr(void);

#define END_MEMORY 65536
struct end {
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE recv, request, conn;
	DAT_EP_HANDLE ep;
	struct region mem;	/* END_MEMORY bytes, all rights */
};
/* new_end() makes what is NULL here. */
struct end_options {
	DAT_PZ_HANDLE pz;
	const DAT_EP_ATTR *attr;
	DAT_EVD_HANDLE recv, request, conn;
	DAT_SRQ_HANDLE srq;
};
struct end new_end(const struct end_options *options);
#define AN_END(...) new_end(&(struct end_options){ __VA_ARGS__ })
/* A datagram endpoint gets addresses to send to when it connects or joins a group. */
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
/* A listener on a large qualifier (new_large_qual). */
struct listener a_large_listener(DAT_EVD_HANDLE evd);
/* The one-shot service point of an EP, on a qualifier of its own. */
struct reservation {
	DAT_RSP_HANDLE rsp;
	DAT_EVD_HANDLE evd;
	DAT_CONN_QUAL qual;
};
struct reservation a_reservation(DAT_EP_HANDLE ep);
struct reservation a_large_reservation(DAT_EP_HANDLE ep);
/* Calls dat_ep_connect() without private data, with AMPLE_TIME. */
void dial(DAT_EP_HANDLE ep, DAT_CONN_QUAL qual);
DAT_RETURN try_dial(DAT_EP_HANDLE ep, DAT_CONN_QUAL qual);
#define AMPLE_TIME 60000000	/* microseconds to connect */
/* Arguments of dat_csp_create(): this IA's kind of communication; its address with a port. */
DAT_COMM *csp_comm(DAT_COMM *comm);
DAT_IA_ADDRESS_PTR csp_address(struct sockaddr_storage *where, DAT_CONN_QUAL port);
/* Waits for a connection request. */
DAT_CR_HANDLE request_on(DAT_EVD_HANDLE evd);
DAT_CR_PARAM cr_param(DAT_CR_HANDLE cr);

void connect_ends(const struct end *a, const struct end *b);
/* a connected, and b accepted. Each has a PZ of its own, unless the options have one. */
struct pair {
	struct end a, b;
};
struct pair a_pair(const struct end_options *options);
#define CONNECTED_PAIR(...) a_pair(&(struct end_options){ __VA_ARGS__ })
void hang_up(const struct end *end);	/* disconnects abruptly; does not wait for the event */

/* Sends a message each way, which must arrive. */
void expect_working(const struct end *a, const struct end *b);
#define WORKS(a, b) (AT("messages between " #a " and " #b), expect_working(&(a), &(b)))

/* Posts sends of a, with cookie 900, for which b has no receive: the connection then stays in
 * DISCONNECT_PENDING. Skips the test on devices that break such a connection. */
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
/* Returns the i-th handle, in the order of the fields of struct zoo. */
DAT_HANDLE zoo_handle(const struct zoo *zoo, int i);
DAT_HANDLE_TYPE zoo_type(int i);

#endif
