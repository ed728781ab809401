/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udapl.h - the objects of the uDAPL BTL of Open MPI and who changes them. Everything between
 * Open MPI and libdat2 is here; nothing here knows a provider.
 *
 *	component	one; parameters, and the modules
 *	module		an interface adapter (IA), opened
 *	endpoint	a process that the module can reach; belongs to one module
 *	conn		a DAT endpoint and its connection; belongs to one endpoint
 *
 * Locks, outermost first: endpoint->lock, module->lock, module->recv_lock. None is held while
 * Open MPI is called back. They cost nothing unless MPI runs with threads. Events of connections
 * are handled by one thread at a time (progress.c). */
#ifndef BTL_UDAPL_H
#define BTL_UDAPL_H

#include "opal_config.h"
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "opal/class/opal_free_list.h"
#include "opal/class/opal_hash_table.h"
#include "opal/class/opal_list.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/mca/rcache/base/base.h"
#include "opal/util/proc.h"
#include <dat/udat.h>
#include <dat/dat_ib_extensions.h>
#include <dat/dat_map_extensions.h>

#define CONTAINER_OF(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

/* A failed DAT call of ours. */
#define UDAPL_ERROR(type, subtype) ((DAT_RETURN)(DAT_CLASS_ERROR | (type) | (subtype)))

/* --- what goes over the wire ------------------------------------------------------------
 * All processes of a job have the same byte order and the same component. */

/* Before the payload of every message. */
struct udapl_header {
	uint8_t kind;			/* enum udapl_message */
	mca_btl_base_tag_t tag;
	uint16_t credits;		/* receives posted again since the last message */
	uint16_t eager_credits;		/* slots of the eager ring, read since then */
	uint16_t reserved;
};

enum udapl_message {
	UDAPL_DATA = 1,		/* for the callback of `tag` */
	UDAPL_CREDITS,		/* nothing but credits */
	UDAPL_RING,		/* struct udapl_ring_offer follows: use my eager ring */
	UDAPL_GOODBYE		/* the disconnect that follows is meant */
};

/* The last 8 bytes of a message in an eager ring, and all that goes with the payload of a
 * UDAPL_DATA there. */
struct udapl_tail {
	union {
		struct {
			uint16_t credits, eager_credits;
		};
		uint32_t news;	/* both */
	};
	uint16_t length;	/* of the payload; ring.h says where that is */
	mca_btl_base_tag_t tag;
	uint8_t lap;		/* of the writer through the ring, from 1 to 255 and again */
};

enum { UDAPL_LEAST_IN_RING = 4 };	/* of the largest messages */

/* In bytes, whole lines of the cache. */
struct udapl_ring_shape {
	uint32_t size;
	uint32_t largest;	/* what the largest message takes */
};

/* Behind the ring, for a writer who has it mapped. */
struct udapl_ring_notes {
	/* He writes: that he has, and looks at `read`; and what he posted in spite of that, messages
	 * and RDMA operations. */
	volatile uint32_t mapped, posted;
	uint32_t pad1[14];
	uint32_t read;			/* who reads writes: slots, all in all */
	uint32_t pad2[15];
};

/* Where the next message ends. */
struct udapl_ring_place {
	uint32_t end;
	uint8_t lap;
};

struct udapl_ring_offer {
	uint64_t address;
	uint32_t rmr_context;
	struct udapl_ring_shape shape;
	uint32_t reserved;
};

/* Private data of a connection, both ways. InfiniBand has room for 52 bytes. */
struct udapl_hello {
	uint32_t magic;
	uint32_t jobid, vpid;		/* who speaks */
	uint32_t qualifier;		/* where he listens */
	uint32_t message_size;		/* of his receives */
	uint32_t credits;		/* of those, posted for this connection */
};
enum { UDAPL_MAGIC = 0x75444102 };

/* An address of a process, in the modex. */
struct udapl_address {
	struct sockaddr_in6 at;		/* or a sockaddr_in */
	uint32_t qualifier;
	uint32_t prefix;		/* bits that hosts of the same network share */
	char ia[32];			/* so that alike adapters find each other; may be cut */
};

/* What a peer needs to reach registered memory. */
struct mca_btl_base_registration_handle_t {
	uint32_t rmr_context;
	uint32_t lmr_context;
};

/* --- work: what the cookie of a request points to ----------------------------------------- */

enum udapl_kind {
	UDAPL_SEND,	/* a fragment, sent or written into a ring */
	UDAPL_CONTROL,	/* the same, of our own */
	UDAPL_STAGED,	/* a write into a ring, from the stage */
	UDAPL_RECEIVE,
	UDAPL_RDMA	/* put, get, atomic */
};

struct udapl_work {
	enum udapl_kind kind;
	struct udapl_conn *conn;	/* that it was posted on; NULL for a receive of an SRQ, and
					 * what tells no success */
};

struct udapl_frag {
	mca_btl_base_descriptor_t base;
	mca_btl_base_segment_t segment;
	struct udapl_work work;
	struct udapl_header *header;	/* the buffer; registered */
	size_t capacity;		/* of payload */
	uint32_t lmr_context;
	opal_free_list_t *list;		/* where it came from */
	struct mca_btl_base_endpoint_t *endpoint;
	bool callback;			/* told of its completion */
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

/* Registered memory of our own, in pages that nothing else is in. */
struct udapl_memory {
	char *base;			/* NULL: none */
	size_t size;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
};

/* A ring that we poll: the peer writes, we read. */
struct udapl_ring_in {
	struct udapl_memory memory;
	struct udapl_ring_shape shape;
	struct udapl_ring_place at;	/* what is read next */
	struct udapl_ring_notes *notes;
	uint32_t posted;		/* of the notes, as far as known; not exact with threads, nor need it be */
	volatile int32_t owed;		/* slots read and not told, to who has not mapped it */
	opal_atomic_lock_t busy;	/* one thread reads at a time */
	bool offered;
	mca_btl_base_segment_t segment;	/* the payload that is delivered, ... */
	mca_btl_base_descriptor_t des;	/* ... and what tells of it */
};

/* The ring of the peer that we write: mapped, or by way of the stage, its image: when the peer has read
 * a place, both can be used again. */
struct udapl_ring_out {
	struct udapl_ring_offer offer;	/* size 0: none */
	struct udapl_ring_place at;	/* what is written next */
	uint32_t free;			/* slots */
	uint32_t most;			/* payload of a message; 0: there is no ring */
	char *image;			/* where messages are put together: mapped, or the stage; or NULL */

	struct udapl_ring_notes *notes;	/* of the peer; NULL: it's not mapped */
	uint32_t seen;			/* of notes->read */

	struct udapl_memory stage;
	struct udapl_work work;		/* of the staged write that tells, of a batch */
	int untold;			/* staged writes since that one */
};

enum udapl_conn_state {
	UDAPL_CONN_PENDING,	/* asked for, or accepted */
	UDAPL_CONN_SILENT,	/* accepted and there; who asked for it has said nothing yet */
	UDAPL_CONN_UP,
	UDAPL_CONN_LEAVING,	/* we said goodbye, and wait for the end */
	UDAPL_CONN_ENDED,	/* the end was told; was it meant? */
	UDAPL_CONN_DOWN		/* that is settled; freed when nothing is posted any more */
};

/* All fields are guarded by endpoint->lock, but for ring_in, which has its own. state and
 * endpoint->state are changed by connect.c alone. */
struct udapl_conn {
	opal_list_item_t super;		/* module->conns */
	struct mca_btl_udapl_module_t *module;
	struct mca_btl_base_endpoint_t *endpoint;
	DAT_EP_HANDLE ep;
	enum udapl_conn_state state;
	bool active;			/* we asked for it */
	bool srq;			/* receives come from the module's queue */
	bool heard;			/* the peer said something */
	bool goodbye;			/* the peer said so */
	double verdict;			/* when it is given, in UDAPL_CONN_ENDED */
	int posted;			/* requests not completed, control messages too */
	volatile int32_t receives;	/* own receives not completed */
	int room;			/* requests that data may post yet */
	int control_room;		/* and control messages */
	int credits;			/* receives that the peer has for us */
	int owed;			/* receives posted again and not told */
	int received;			/* messages, up to the threshold for a ring */
	struct udapl_ring_in ring_in;
	struct udapl_ring_out ring_out;
};
typedef struct udapl_conn udapl_conn_t;
OBJ_CLASS_DECLARATION(udapl_conn_t);

enum udapl_endpoint_state {
	UDAPL_IDLE,		/* no connection; the first send makes one */
	UDAPL_CONNECTING,	/* ours, or the peer's that we accepted, is under way */
	UDAPL_AWAITING,		/* both asked at once, and his is the one that counts */
	UDAPL_CONNECTED,
	UDAPL_FAILED
};

struct mca_btl_base_endpoint_t {
	opal_list_item_t super;		/* module->endpoints */
	struct mca_btl_udapl_module_t *module;
	opal_process_name_t name;
	opal_proc_t *proc;		/* NULL until add_procs */
	struct udapl_address address;	/* of the peer; valid with proc */
	opal_mutex_t lock;
	enum udapl_endpoint_state state;
	struct udapl_conn *conn;	/* for all that we send; NULL if none */
	double deadline;		/* of UDAPL_AWAITING */
	int attempts;
	opal_list_t sends;		/* fragments that wait for a connection, credits, room */
	opal_list_t rdmas;		/* the same, no credits needed */
	opal_list_t lost_sends, lost_rdmas;	/* flushed; told when we know why */
	const char *trouble;		/* why the peer can't be reached; not told to Open MPI yet */
	volatile int32_t rdma_outstanding;
	bool left;			/* del_procs was called */
};
typedef struct mca_btl_base_endpoint_t mca_btl_base_endpoint_t;
OBJ_CLASS_DECLARATION(mca_btl_base_endpoint_t);

/* --- module and component ---------------------------------------------------------------------- */

enum { UDAPL_RECENT = 256 };	/* a power of two */

struct mca_btl_udapl_module_t {
	mca_btl_base_module_t super;
	char name[DAT_NAME_MAX_LENGTH];
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_EVD_HANDLE conn_evd;	/* requests and connections */
	DAT_EVD_HANDLE dto_evd;		/* all completions */
	DAT_PZ_HANDLE pz;
	DAT_PSP_HANDLE psp;
	DAT_SRQ_HANDLE srq;		/* NULL where the device has none */
	DAT_IA_ATTR attr;
	DAT_PROVIDER_ATTR provider;
	bool atomics;
	struct udapl_address address;
	size_t message_size;		/* of a receive: header and payload */
	mca_rcache_base_module_t *rcache;
	struct udapl_region *recent[UDAPL_RECENT];	/* registered and asked for lately; without threads */
	opal_free_list_t eager_frags, max_frags, control_frags, recv_frags, rdmas;

	opal_mutex_t lock;
	opal_hash_table_t by_name;	/* endpoints */
	opal_list_t endpoints;
	opal_list_t conns;
	int dto_length, dto_needed;	/* of dto_evd: has, should have */
	struct udapl_work untold;	/* of staged writes that tell no success */
	struct udapl_conn **rings;	/* conns whose ring_in is polled; appended, never removed */
	volatile int32_t num_rings;
	/* These are not exact with threads, nor need they be. */
	bool taking;		/* completions are being taken */
	bool asked;		/* to look at them soon, since the last look began */
	int vain_polls;		/* polls of rings in a row that find nothing, until completions are looked
				 * at; 1: that does every poll, whatever it finds */
	int polls_left;		/* ... and so many yet */
	int patience;		/* messages from rings until then, at most; */
	int granted, may_come;	/* ... so many they were this time, and so many may come yet */
	int polls_before;	/* about the polls of rings since the last look at connections */
	volatile int32_t rdma_outstanding;	/* of all endpoints */
	volatile int32_t exposed;	/* regions for which the program has no other use than peers' access */

	opal_mutex_t recv_lock;
	int srq_wanted, srq_posted;	/* receives */

	mca_btl_base_module_error_cb_fn_t error_cb;
	bool closing;	/* in finalize: what callbacks lead to may be unloaded already */
};
typedef struct mca_btl_udapl_module_t mca_btl_udapl_module_t;

struct mca_btl_udapl_component_t {
	mca_btl_base_component_3_0_0_t super;
	mca_btl_udapl_module_t **modules;
	int num_modules;

	/* parameters */
	char *include, *exclude;
	bool any_network, use_srq, eager_rdma;
	int credits, requests, srq_depth, connect_timeout, connect_retries;
	int eager_messages, eager_threshold, eager_peers;
	int free_list_inc;
};
typedef struct mca_btl_udapl_component_t mca_btl_udapl_component_t;
extern mca_btl_udapl_component_t mca_btl_udapl_component;
extern mca_btl_udapl_module_t mca_btl_udapl_template;

/* Receives beyond the credits, for control messages, which need none. Between two looks of a
 * peer at his receives he gets at most: two UDAPL_CREDITS for each kind of credits (one tells
 * half of them, and then we need news from him), a ring, a goodbye. The UDAPL_CREDITS that opens a
 * connection comes before there is anything to tell. */
enum { UDAPL_RESERVE = 6, UDAPL_CONTROL_ROOM = 6 };

static inline bool udapl_has_waiting(mca_btl_base_endpoint_t *e)
{
	return !opal_list_is_empty(&e->sends) || !opal_list_is_empty(&e->rdmas);
}

/* Of what needs nothing of the peer, or has it. */
static inline bool udapl_may_post(const struct udapl_conn *c)
{
	return c->state == UDAPL_CONN_UP && c->room > 0;
}

/* With e->lock held. So that the peer looks at his completions, by which he serves what is posted, too. */
static inline void udapl_note_post(struct udapl_conn *c)
{
	if (c->ring_out.notes)
		c->ring_out.notes->posted++;
}

static inline int32_t udapl_take_all(volatile int32_t *n)
{
	int32_t had = *n;

	if (had > 0)
		OPAL_THREAD_ADD_FETCH32(n, -had);
	return had;
}

/* The next poll looks at completions, too, whatever it finds in rings. */
static inline void udapl_look_soon(struct mca_btl_udapl_module_t *m)
{
	m->asked = true;
	m->polls_left = m->vain_polls = 1;
	m->granted -= m->may_come;
	m->may_come = 0;
}

/* What concerns the node is told by one process of it. */
static inline bool udapl_speaks_for_node(void)
{
	return opal_process_info.my_local_rank == 0;
}

/* Prints a topic of the help file to standard error, from here: opal_show_help() has mpirun
 * print, and what mpirun of Open MPI 4.1 gets is now and then garbled and lost. */
void udapl_tell(const char *topic, ...);

/* module.c */
mca_btl_udapl_module_t *udapl_module_open(const char *name);
int udapl_add_procs(mca_btl_base_module_t *btl, size_t n, opal_proc_t **procs,
		    mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable);
int udapl_del_procs(mca_btl_base_module_t *btl, size_t n, opal_proc_t **procs,
		    mca_btl_base_endpoint_t **endpoints);
int udapl_finalize(mca_btl_base_module_t *btl);
mca_btl_base_endpoint_t *udapl_endpoint_of(mca_btl_udapl_module_t *m, opal_process_name_t name);
const char *udapl_error(DAT_RETURN rc);

/* address.c */
bool udapl_address_own(mca_btl_udapl_module_t *m);
const struct udapl_address *udapl_address_match(mca_btl_udapl_module_t *m,
						const opal_proc_t *proc,
						const struct udapl_address *of, size_t n);

/* Of a message that came: who receives it looks at the segment only. */
static inline void udapl_describe(mca_btl_base_descriptor_t *des, mca_btl_base_segment_t *segment)
{
	des->des_segments = segment;
	des->des_segment_count = 1;
	des->des_cbfunc = NULL;
	des->des_flags = 0;
}

/* Hands a message to who receives what has this tag. */
static inline void udapl_deliver(mca_btl_udapl_module_t *m, mca_btl_base_tag_t tag,
				 mca_btl_base_descriptor_t *des)
{
	mca_btl_active_message_callback_t *to = &mca_btl_base_active_message_trigger[tag];

	if (OPAL_UNLIKELY(tag >= MCA_BTL_TAG_MAX || m->closing || !to->cbfunc))
		return;
	to->cbfunc(&m->super, tag, des, to->cbdata);
}

/* connect.c */
void udapl_connect(mca_btl_base_endpoint_t *e);
void udapl_conn_event(mca_btl_udapl_module_t *m, const DAT_EVENT *event);
void udapl_conn_look_after(mca_btl_udapl_module_t *m);
void udapl_conn_leave(struct udapl_conn *c);
bool udapl_conn_heard_first(struct udapl_conn *c);
void udapl_conn_broken(struct udapl_conn *c, const char *why);
void udapl_conn_refused(struct udapl_conn *c, DAT_RETURN rc);
void udapl_conn_release(struct udapl_conn *c);
struct udapl_conn *udapl_conn_from(DAT_EP_HANDLE ep);

/* frag.c */
int udapl_frags_init(mca_btl_udapl_module_t *m);
void udapl_frags_fini(mca_btl_udapl_module_t *m);
mca_btl_base_descriptor_t *udapl_alloc(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e,
				       uint8_t order, size_t size, uint32_t flags);
int udapl_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *des);
mca_btl_base_descriptor_t *udapl_prepare_src(mca_btl_base_module_t *btl,
					     mca_btl_base_endpoint_t *e, opal_convertor_t *conv,
					     uint8_t order, size_t reserve, size_t *size,
					     uint32_t flags);

/* send.c */
int udapl_send(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e,
	       mca_btl_base_descriptor_t *des, mca_btl_base_tag_t tag);
int udapl_sendi_frag(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, opal_convertor_t *conv,
		     const void *header, size_t header_size, size_t payload_size, uint8_t order,
		     uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **des);
void udapl_push(mca_btl_base_endpoint_t *e);
bool udapl_control(struct udapl_conn *c, enum udapl_message kind, const void *data, size_t size);
void udapl_return_credits(struct udapl_conn *c);
void udapl_sent(struct udapl_frag *f, DAT_DTO_COMPLETION_STATUS status);
void udapl_send_done(struct udapl_frag *f, int status);
bool udapl_pack(void *to, opal_convertor_t *conv, const void *header, size_t header_size,
		size_t payload_size);

/* stage.c */
int udapl_sendi(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, opal_convertor_t *conv,
		void *header, size_t header_size, size_t payload_size, uint8_t order,
		uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **des);
/* Nothing that is longer than `most` goes by the stage. */
bool udapl_send_copy(mca_btl_base_endpoint_t *e, const void *payload, size_t length,
		     mca_btl_base_tag_t tag, size_t most);
void udapl_sent_staged(struct udapl_conn *c);

/* receive.c */
int udapl_receives_post(struct udapl_conn *c);
void udapl_received(mca_btl_udapl_module_t *m, struct udapl_frag *f,
		    const DAT_DTO_COMPLETION_EVENT_DATA *dto);
void udapl_take_news(struct udapl_conn *c, int credits, uint32_t eager_credits);
void udapl_receives_drop(struct udapl_conn *c);

/* eager.c */
void udapl_ring_offer(struct udapl_conn *c);
void udapl_ring_accept(struct udapl_conn *c, const struct udapl_ring_offer *offer);
void udapl_ring_free(struct udapl_conn *c);

/* region.c */
int udapl_rcache_init(mca_btl_udapl_module_t *m);
mca_btl_base_registration_handle_t *udapl_register_mem(mca_btl_base_module_t *btl,
						       mca_btl_base_endpoint_t *e, void *base,
						       size_t size, uint32_t flags);
int udapl_deregister_mem(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *h);
uint32_t udapl_frag_lmr(const opal_free_list_item_t *item);

/* rdma.c */
int udapl_put(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, void *local,
	      uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
	      mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
	      int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data);
int udapl_get(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, void *local,
	      uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
	      mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
	      int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data);
int udapl_atomic_op(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, uint64_t remote,
		    mca_btl_base_registration_handle_t *remote_handle,
		    mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
		    mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data);
int udapl_atomic_fop(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, void *local,
		     uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
		     mca_btl_base_registration_handle_t *remote_handle,
		     mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
		     mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data);
int udapl_atomic_cswap(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, void *local,
		       uint64_t remote, mca_btl_base_registration_handle_t *local_handle,
		       mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
		       uint64_t value, int flags, int order,
		       mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data);
int udapl_flush(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e);
bool udapl_rdma_post(struct udapl_conn *c, struct udapl_rdma *r);
void udapl_rdma_completed(struct udapl_rdma *r, DAT_DTO_COMPLETION_STATUS status);
void udapl_rdma_done(struct udapl_rdma *r, int status);

/* memory.c */
/* Fills *memory; `remote`: peers write there. False: there is none, and base is NULL. */
bool udapl_memory_get(mca_btl_udapl_module_t *m, struct udapl_memory *memory, size_t size,
		      bool remote);
/* No peer writes there any more when it returns. Nothing if there is none. */
void udapl_memory_put(struct udapl_memory *memory);

/* progress.c */
int udapl_look_now(mca_btl_udapl_module_t *m);
int udapl_progress_module(mca_btl_udapl_module_t *m, bool connections);
void udapl_take_rdma(mca_btl_udapl_module_t *m);
double udapl_now(void);

/* poll.c */
int udapl_progress(void);
int udapl_rings_poll(mca_btl_udapl_module_t *m);

#endif
