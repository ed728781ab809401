/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udapl.h - the types of the uDAPL BTL of Open MPI. The component joins Open MPI and libdat2; it
 * does not know providers.
 *
 *	component	one for each process; parameters and the modules
 *	module		an open interface adapter (IA)
 *	endpoint	a process that the module can reach; belongs to one module
 *	conn		a DAT endpoint and its connection; belongs to one endpoint
 *
 * Lock order, outermost first: endpoint->lock, module->lock, module->recv_lock (lock.h). No lock is held
 * during a callback of Open MPI. One thread at a time handles connection events (progress.c). */
#ifndef BTL_UDAPL_H
#define BTL_UDAPL_H

#include "lock.h"
#include "state_table.h"
#include "opal_config.h"
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "opal/class/opal_free_list.h"
#include "opal/class/opal_hash_table.h"
#include "opal/class/opal_list.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/rcache/base/base.h"
#include "opal/util/proc.h"
#include <dat/udat.h>
#include <dat/dat_ib_extensions.h>
#include <dat/dat_map_extensions.h>
#include "compat.h"
#include "atomic.h"
#include "tunables.h"

#define CONTAINER_OF(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

/* Error code of a DAT call, for failures that the component detects itself. */
#define UDAPL_ERROR(type, subtype) ((DAT_RETURN)(DAT_CLASS_ERROR | (type) | (subtype)))

/* --- wire format -------------------------------------------------------------------------
 * All processes of a job have the same byte order and the same version of the component. */

/* Precedes the payload of every message that is sent. */
struct udapl_header {
	uint8_t kind;			/* enum udapl_message */
	mca_btl_base_tag_t tag;
	uint16_t credits;		/* receives re-posted since the previous message */
	uint16_t eager_credits;		/* slots of the eager ring released since then */
	uint16_t reserved;
};

enum udapl_message {
	UDAPL_DATA = 1,		/* payload for the callback of `tag` */
	UDAPL_CREDITS,		/* credits only */
	UDAPL_RING_OFFER,		/* struct udapl_ring_offer follows: an eager ring for the
					 * receiver to write */
	UDAPL_CLOSE		/* close notification: the disconnect that follows is intended */
};

/* The last 8 bytes of a message in an eager ring. It takes the place of the header of a
 * UDAPL_DATA. */
struct udapl_tail {
	union {
		struct {
			uint16_t credits, eager_credits;
		};
		uint32_t piggyback;	/* both credit counts */
	};
	uint16_t length;	/* bytes of payload; ring.h computes where it begins */
	mca_btl_base_tag_t tag;
	uint8_t lap;		/* pass of the writer through the ring: 1 to 255, then 1 again */
};

/* Sizes in bytes, multiples of a cache line. */
struct udapl_ring_shape {
	uint32_t size;
	uint32_t largest;	/* space that the largest message takes */
};

/* Control block behind the ring, for a writer that has mapped it. */
struct udapl_ring_ctl {
	/* Written by the producer: whether it has mapped the ring and reads `consumed`; how
	 * many messages and RDMA operations it posted instead of storing them in the ring. */
	volatile uint32_t mapped, posted;
	uint32_t pad1[14];
	uint32_t consumed;			/* written by the consumer: slots released since
						 * the start */
	uint32_t pad2[15];
};

/* Position of a message: the ring is filled from the top down, so it is where the message ends. */
struct udapl_ring_cursor {
	uint32_t end;
	uint8_t lap;
};

struct udapl_ring_offer {
	uint64_t address;
	uint32_t rmr_context;
	struct udapl_ring_shape shape;
	uint32_t reserved;
};

/* Private data of a connection, in both directions. InfiniBand has room for 52 bytes. */
struct udapl_hello {
	uint32_t magic;
	uint32_t jobid, vpid;		/* name of the process */
	uint32_t qualifier;		/* connection qualifier of its service point */
	uint32_t message_size;		/* bytes of each of its receives */
	uint32_t credits;		/* receives posted for this connection */
};
enum { UDAPL_MAGIC = 0x75444102 };

/* An address of a process, published in the modex. */
struct udapl_address {
	struct sockaddr_in6 at;		/* or a struct sockaddr_in */
	uint32_t qualifier;
	uint32_t prefix;		/* length of the network prefix, in bits */
	char ia[32];			/* adapter name, possibly truncated: adapters of the same
					 * name are preferred */
};

/* Registration handle. Open MPI sends it to peers, which access the memory with rmr_context. */
struct mca_btl_base_registration_handle_t {
	uint32_t rmr_context;
	uint32_t lmr_context;
};

/* --- work: the object that the cookie of a request points to --------------------------------- */

enum udapl_kind {
	UDAPL_SEND,	/* a fragment, sent or written into a ring */
	UDAPL_CONTROL,	/* a control message of the component */
	UDAPL_STAGED,	/* a write into a ring from the staging buffer */
	UDAPL_RECEIVE,
	UDAPL_RDMA	/* put, get or atomic operation */
};

struct udapl_work {
	enum udapl_kind kind;
	struct udapl_conn *conn;	/* connection of the request; NULL for a receive of an SRQ
					 * and for unsignaled writes */
};

struct udapl_frag {
	mca_btl_base_descriptor_t base;
	mca_btl_base_segment_t segment;
	struct udapl_work work;
	struct udapl_header *header;	/* registered buffer */
	size_t capacity;		/* bytes of payload */
	uint32_t lmr_context;
	opal_free_list_t *list;		/* free list that owns the fragment */
	struct mca_btl_base_endpoint_t *endpoint;
	bool callback;			/* its completion is reported to Open MPI */
};
typedef struct udapl_frag udapl_frag_t;
OBJ_CLASS_DECLARATION(udapl_frag_t);

enum udapl_op { UDAPL_PUT, UDAPL_GET, UDAPL_ADD, UDAPL_CSWAP };

struct udapl_rdma {
	opal_free_list_item_t super;
	struct udapl_work work;
	enum udapl_op op;
	struct mca_btl_base_endpoint_t *endpoint;
	DAT_LMR_TRIPLET local;
	DAT_RMR_TRIPLET remote;
	uint64_t operand, compare;
	void *local_address;
	struct mca_btl_base_registration_handle_t *local_handle;
	mca_btl_base_rdma_completion_fn_t cbfunc;
	void *cbcontext, *cbdata;
};
typedef struct udapl_rdma udapl_rdma_t;
OBJ_CLASS_DECLARATION(udapl_rdma_t);

/* --- connections ----------------------------------------------------------------------------- */

/* Registered memory of the component, in pages that hold nothing else. */
struct udapl_memory {
	char *base;			/* NULL: none */
	size_t size;
	bool shared;			/* peers on this host may map it */
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
};

/* An incoming ring: the peer writes, this process polls. */
struct udapl_ring_in {
	struct udapl_memory memory;
	struct udapl_ring_shape shape;
	struct udapl_ring_cursor cursor;	/* next message to read */
	struct udapl_ring_ctl *ctl;
	uint32_t posted;		/* last value seen of ctl->posted; inexact with threads,
					 * which is harmless */
	volatile int32_t slots_to_return;		/* slots released but not reported, to a
							 * peer that has not mapped the ring */
	udapl_lock_t busy;	/* one thread reads at a time */
	bool offered;
	mca_btl_base_segment_t segment;	/* payload that is being delivered */
	udapl_message_t message;	/* describes `segment` */
};

/* An outgoing ring, in the memory of the peer. It is mapped, or the staging buffer is its
 * image: once the peer has released a slot, both copies can be reused. */
struct udapl_ring_out {
	struct udapl_ring_offer offer;	/* size 0: none */
	struct udapl_ring_cursor cursor;	/* next message to write */
	uint32_t free_slots;		/* slots that the peer has released */
	uint32_t max_payload;			/* bytes of the largest message; 0: no ring */
	char *buffer;			/* where messages are assembled: the mapped ring or the
					 * staging buffer; or NULL */

	struct udapl_ring_ctl *ctl;	/* control block of the peer; NULL: not mapped */
	uint32_t consumed_seen;			/* last value seen of ctl->consumed */

	struct udapl_memory staging;
	struct udapl_work work;		/* cookie of signaled staged writes */
	int unsignaled;			/* staged writes since the last signaled one */
};

/* All fields are guarded by endpoint->lock, except ring_in, which has a lock of its own. Only
 * state.c changes `state` and endpoint->state. */
struct udapl_conn {
	opal_list_item_t super;		/* module->conns */
	struct mca_btl_udapl_module_t *module;
	struct mca_btl_base_endpoint_t *endpoint;
	DAT_EP_HANDLE ep;
	enum udapl_conn_state state;
	bool active;			/* this process requested it */
	bool srq;			/* receives come from the module's SRQ */
	bool received_any;			/* a message of the peer has arrived */
	bool close_received;			/* the peer's close notification has arrived */
	double break_deadline;			/* UDAPL_CONN_DISCONNECTED: time at which the
						 * connection counts as broken */
	int posted;			/* outstanding requests, including control messages */
	volatile int32_t receives;	/* outstanding receives of its own */
	int sq_free;			/* free send-queue slots for data */
	int control_free;		/* free send-queue slots for control messages */
	int credits;			/* receives that the peer has posted for this side */
	int credits_to_return;			/* receives re-posted and not reported */
	int received;			/* messages received, counted up to eager_threshold */
	struct udapl_ring_in ring_in;
	struct udapl_ring_out ring_out;
};
typedef struct udapl_conn udapl_conn_t;
OBJ_CLASS_DECLARATION(udapl_conn_t);

struct mca_btl_base_endpoint_t {
	opal_list_item_t super;		/* module->endpoints */
	struct mca_btl_udapl_module_t *module;
	opal_process_name_t name;
	opal_proc_t *proc;		/* NULL until add_procs */
	struct udapl_address address;	/* address of the peer; valid with proc */
	struct udapl_mutex lock;
	enum udapl_endpoint_state state;
	struct udapl_conn *conn;	/* connection for everything that is sent; NULL if none */
	double deadline;		/* end of UDAPL_RETRY_WAIT */
	int attempts;
	opal_list_t sends;		/* fragments waiting for a connection, a credit or a
					 * send-queue slot */
	opal_list_t rdmas;		/* RDMA operations waiting for a connection or a send-queue
					 * slot */
	opal_list_t flushed_sends, flushed_rdmas;	/* flushed requests: completed when the
							 * reason of the disconnect is known */
	const char *failure;		/* why the peer is unreachable; NULL: reachable, or reported */
	bool lost;			/* a connection broke; false: none could be made */
	volatile int32_t rdma_outstanding;
	bool removed;			/* del_procs was called */
};
typedef struct mca_btl_base_endpoint_t mca_btl_base_endpoint_t;
OBJ_CLASS_DECLARATION(mca_btl_base_endpoint_t);

/* --- module and component ---------------------------------------------------------------------- */

struct mca_btl_udapl_module_t {
	mca_btl_base_module_t super;
	char name[DAT_NAME_MAX_LENGTH];
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_EVD_HANDLE conn_evd;	/* connection requests and connection events */
	DAT_EVD_HANDLE dto_evd;		/* completions of all connections */
	DAT_PZ_HANDLE pz;
	DAT_PSP_HANDLE psp;
	DAT_SRQ_HANDLE srq;		/* NULL if the device has none */
	DAT_IA_ATTR attr;
	DAT_PROVIDER_ATTR provider;
	bool atomics;
	struct udapl_address address;
	size_t message_size;		/* bytes of a receive: header and payload */
	mca_rcache_base_module_t *rcache;
	struct udapl_reg *recent[UDAPL_RECENT_REGS];	/* registrations requested recently; unused
							 * with threads */
	opal_free_list_t eager_frags, max_frags, control_frags, recv_frags, rdmas;

	struct udapl_mutex lock;
	opal_hash_table_t by_name;	/* endpoints by process name */
	opal_list_t endpoints;
	opal_list_t conns;
	int dto_length, dto_needed;	/* length of dto_evd; length that its connections need */
	bool dto_short;			/* the device does not allow dto_needed; it was reported */
	struct udapl_work unsignaled_work;	/* cookie of unsignaled staged writes */
	struct udapl_conn **rings;	/* connections whose ring_in is polled; entries are only
					 * appended */
	volatile int32_t num_rings;
	/* The fields up to polls_since_conn are inexact with threads, which is harmless. */
	bool in_completions;		/* completions are being dequeued */
	bool poll_requested;		/* poll the CQ soon; raised since the last poll of the CQ
					 * began */
	int empty_polls_limit;		/* empty polls of the rings until the CQ is polled; 1: each
					 * poll of the rings is followed by one of the CQ */
	int empty_polls_left;		/* how many of them remain */
	int max_budget;		/* ring messages between two polls of the CQ, at most */
	int budget, budget_left;	/* ring messages allowed before the next poll of the CQ,
					 * and how many of them remain */
	int polls_since_conn;	/* approximate polls of the rings since connections were last
				 * polled */
	volatile int32_t rdma_outstanding;	/* RDMA operations of all endpoints */
	volatile int32_t exposed;	/* registrations that only expose a message to a peer */

	struct udapl_mutex recv_lock;
	int srq_wanted, srq_posted;	/* receives that the connections need; receives posted */

	mca_btl_base_module_error_cb_fn_t error_cb;
	bool closing;	/* set by finalize: callbacks may already be unloaded */
};
typedef struct mca_btl_udapl_module_t mca_btl_udapl_module_t;

struct mca_btl_udapl_component_t {
	mca_btl_base_component_3_0_0_t super;
	mca_btl_udapl_module_t **modules;
	int num_modules;

	/* MCA parameters */
	char *include, *exclude;
	bool any_network, use_srq, eager_rdma;
	int credits, requests, srq_depth, connect_timeout, connect_retries;
	int eager_messages, eager_threshold, eager_peers;
	int free_list_inc;
};
typedef struct mca_btl_udapl_component_t mca_btl_udapl_component_t;
extern mca_btl_udapl_component_t mca_btl_udapl_component;
extern mca_btl_udapl_module_t mca_btl_udapl_template;

#endif
