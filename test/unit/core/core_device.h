/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_device.h - a device below core that moves no data, with an IA above it. The test chooses completions
 * and errors (core_device.c). */
#ifndef TEST_CORE_DEVICE_H
#define TEST_CORE_DEVICE_H
#include "dapl/core/dapl.h"

/* What operations of the device do, if a test sets it. Otherwise they succeed. */
struct core_device {
	int open_error, query_error, listen_error;
	const char *opened;			/* the parameters of the last open */
	unsigned opens;				/* opened and not closed */
	int (*resize_cq)(struct ibv_cq *cq, int cqe);
	void (*polling)(struct ibv_cq *cq);	/* inside each poll */
	int channel_error;			/* of get_cq_event; 0: EAGAIN, there is no event */
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr);
	int (*post_recv)(struct ibv_recv_wr *wr);
	void (*error_qp)(struct ibv_qp *qp);
	int (*reset_qp)(struct ibv_qp *qp);
	int (*create_qp)(const struct ibv_qp_init_attr *attr);
	unsigned delayed_qps;			/* made by create_delayed_qp */
	void (*destroy_qp)(struct ibv_qp *qp);
	int (*create_srq)(const struct ibv_srq_init_attr *attr);
	int (*modify_srq)(const struct ibv_srq_attr *attr, int mask);
	int (*post_srq_recv)(const struct ibv_recv_wr *wr);
	int (*connect)(const struct dapl_conn_params *params, struct dapl_conn **conn);
	int (*accept)(struct dapl_conn *conn, const struct dapl_conn_params *params);
	int (*reject)(struct dapl_conn *conn, bool by_consumer, const void *pdata, size_t len);
	void (*destroy_ah)(struct ibv_ah *ah);
	void (*disconnect)(struct dapl_conn *conn);
	void (*release)(struct dapl_conn *conn);
	void (*explain)(struct dapl_conn *conn, struct dapl_conn_cause *cause);
	int (*map_remote)(uint32_t rkey, uint64_t remote, uint64_t length, struct dapl_mapping *mapping);
	int (*reg_mr)(const void *addr, size_t length, int access, const void *name);
	int alloc_pd_error, alloc_mw_error;
	struct dapl_object *killed_by_alloc_mw;	/* by another thread, as it were; NULL: none */
	bool (*pd_busy)(void);			/* asked in dealloc_pd: something uses it */
	unsigned windows;			/* memory windows that exist */
	unsigned cqs, pds, mrs, qps, srqs;	/* completion queues and so on that exist */
	struct dapl_device_attr attr;		/* what it tells of itself */
	void (*listening)(void *sp, uint16_t port);	/* before core is told of it */
	unsigned listeners;				/* there are */
	int (*sleep)(void);			/* a thread is about to; without it nothing is watched */
	bool (*work)(void);			/* of a thread that sleeps; false: nothing is watched any more */
	void (*awake)(void);
};
extern struct core_device core_device;

enum { CORE_PORT = 4791 };	/* that the device chooses */

/* An IA, published, with room for EVDs and endpoints. */
struct dapl_ia *core_ia_new(void);
/* All objects of it are gone. */
void core_ia_free(struct dapl_ia *ia);
/* An EVD of the streams `flags`, published. */
struct dapl_evd *core_evd_new(struct dapl_ia *ia, int qlen, DAT_EVD_FLAGS flags);
void core_evd_free(struct dapl_evd *evd);
/* A connected endpoint without a device queue pair, with room for `posts` of each kind. */
struct dapl_ep *core_ep_new(struct dapl_ia *ia, struct dapl_evd *evd, uint32_t posts);
void core_ep_free(struct dapl_ep *ep);
/* A queue pair of this device; core_ep_new gives none to an endpoint. */
struct ibv_qp *core_qp(void);
/* A record as a post leaves it; its completion is `wr_id`. */
struct dapl_dto *core_post(struct dapl_ep *ep, int op, unsigned flags, uint64_t cookie);
/* The device has completed something: the next poll of the CQ finds it. */
void core_complete(struct dapl_evd *evd, const struct ibv_wc *wc);

/* The asynchronous EVD of an IA: without one, asynchronous errors go nowhere. */
struct dapl_evd *core_async_evd_new(struct dapl_ia *ia);
/* Takes an asynchronous error from the EVD. Returns false if there is none. */
bool core_async_error(struct dapl_evd *evd, DAT_ASYNCH_ERROR_EVENT_DATA *error, DAT_EVENT_NUMBER *number);

/* Of libdat2, which has no header for it: a program may have one of its own. */
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE of, DAT_IA_HANDLE *handle);

#endif
