/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* btl.h - a module of the BTL component with one endpoint and its established connection, above a DAT library that
 * only records. Open MPI's libopen-pal is the real one, but its registration cache (grdma), which needs opal_init(),
 * is replaced by one without memory of its own. Callbacks of messages record what they get. */
#ifndef TEST_UNIT_OPENMPI_BTL_H
#define TEST_UNIT_OPENMPI_BTL_H
#include "contrib/openmpi/lock.h"
#include "opal_config.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype.h"
#include "contrib/openmpi/udapl.h"
#include "test/unit/unit.h"

extern mca_btl_udapl_module_t module;
extern mca_btl_base_endpoint_t *peer;
extern udapl_conn_t *conn;	/* the connection of `peer` */

/* For cmocka: before and after a case. Parameters of the component have small values: see btl.c. */
int btl_begin(void **state);
int btl_end(void **state);

static inline struct udapl_mutex *btl_lock(void)
{
	udapl_mutex_lock(&peer->lock);
	return &peer->lock;
}

static inline void btl_unlock(struct udapl_mutex **lock) { udapl_mutex_unlock(*lock); }

/* A call of a function that needs the lock of `peer`, and its value. */
#define LOCKED(call) ({ struct udapl_mutex *lock __attribute__((cleanup(btl_unlock))) = btl_lock(); call; })

/* --- what was posted --------------------------------------------------------------------------- */

enum post_kind { POSTED_SEND, POSTED_WRITE, POSTED_READ, POSTED_ADD, POSTED_SWAP, POSTED_RECV, POSTED_SRQ_RECV };

struct post {
	enum post_kind kind;
	DAT_EP_HANDLE ep;		/* NULL for POSTED_SRQ_RECV */
	DAT_LMR_TRIPLET local;
	DAT_RMR_TRIPLET remote;
	struct udapl_work *work;	/* the cookie */
	DAT_COMPLETION_FLAGS flags;
	uint64_t operand, compare;	/* of atomic operations */
};

extern struct post posts[512];
extern int num_posts;
/* What a post of this kind returns from now on; DAT_SUCCESS at first. A refused post is not recorded. */
extern DAT_RETURN post_results[POSTED_SRQ_RECV + 1];
/* Whether RDMA and atomic operations complete while they are posted. */
extern bool posts_complete;
/* Whether RDMA writes are executed, as by a peer in this process. */
extern bool writes_arrive;
/* The mapping that dat_map_rmr() returns; NULL: it fails. */
extern void *mapping;
extern DAT_RMR_TRIPLET mapped_range;	/* of the last dat_map_rmr() */

/* The header in front of the message of a POSTED_SEND. */
const struct udapl_header *sent_header(const struct post *p);

/* --- events ------------------------------------------------------------------------------------ */

void completion_comes(struct udapl_work *work, DAT_DTO_COMPLETION_STATUS status, size_t length);
void event_comes(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number);
/* The same; the caller fills in the rest of it. */
DAT_EVENT *new_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number);
extern int cq_dequeues, conn_dequeues;	/* calls of dat_evd_dequeue() on module.dto_evd, module.conn_evd */
extern int disconnects;		/* calls of dat_ep_disconnect() */

/* --- memory ------------------------------------------------------------------------------------ */

extern int lmrs;			/* created and not freed */
extern DAT_RETURN lmr_create_result, lmr_free_result;
extern DAT_MEM_TYPE lmr_refused_type;	/* dat_lmr_create() of this type fails; 0: none */
extern DAT_MEM_PRIV_FLAGS lmr_privileges;	/* of the last dat_lmr_create() */
extern DAT_MEM_TYPE lmr_type;
extern DAT_REGION_DESCRIPTION lmr_region;
extern DAT_VLEN lmr_length;
extern char lmr_name[DAT_LMR_COOKIE_SIZE];	/* of shared memory */
extern void (*during_lmr_create)(void);	/* called in dat_lmr_create(); or NULL */
extern void (*during_lmr_free)(void);	/* called in dat_lmr_free(); or NULL */

extern int cache_refusals;		/* calls of the registration cache that fail */
extern int cache_registers, cache_deregisters;
/* The registration cache drops what it registered last, if that has no reference. */
int cache_drops_last(void);
extern mca_rcache_base_registration_t *cache_last;
extern int caches;			/* made and not destroyed */

/* --- data of programs --------------------------------------------------------------------------- */

/* A convertor of contiguous data; if `packed`, it gives them to opal_convertor_pack() alone. */
opal_convertor_t convertor_of(const void *data, bool packed);
extern int packs;		/* calls of opal_convertor_pack() */
extern int pack_result;		/* what it returns */

/* --- messages that were delivered -------------------------------------------------------------- */

enum { TAG = 0x21 };		/* has a callback; its neighbours have none */

struct delivery {
	size_t length;
	const char *payload;
	char bytes[64];		/* the first ones of the payload */
};

extern struct delivery deliveries[512];
extern int num_deliveries;
extern void (*during_delivery)(void);	/* called in the callback; or NULL */

#endif
