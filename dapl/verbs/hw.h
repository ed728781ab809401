/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hw.h - what the files of the verbs device share: the open device, and the operations
 * that device.c puts in the table. Locks and lifetimes are explained in cm.c. The prefix hw_ means a device of
 * libibverbs, also one that the kernel emulates (rxe, siw); soft_ means that of dapl/soft. */
#ifndef HW_H
#define HW_H
#include "common/container_of.h"
#include "common/lock.h"
#include "dapl/core/device.h"
#include "dapl/core/base/service.h"
#include <rdma/rdma_cma.h>

struct dapl_device {
	struct ibv_context *verbs;		/* our own, so no other code reads its async_fd */
	struct rdma_event_channel *channel;
	void *ia;
	struct dapl_watch cm_watch, async_watch;
	struct dapl_device_attr attr;		/* constant once open */
	uint16_t pkey_index;
	int qp_access;				/* what peers may do through a queue pair */
	struct ibv_cq *siw_filler;		/* hw_probe(); NULL on other devices */
	struct hw_eth_device *eth;		/* eth.h; NULL: no raw Ethernet QPs */
	unsigned next_vector;			/* atomic; spreads CQs over interrupts */
	struct dapl_task close_task;
	struct dapl_mutex lock;			/* guards conns */
	struct dapl_conn *conns;
	bool removed;				/* service thread only */
};

/* hw_errno.c. Verbs return 0, an errno, a negative errno (siw) or -1 and errno. */
int hw_errno(int rc);

/* objects.c */
int hw_alloc_pd(struct dapl_device *dev, struct ibv_pd **pd);
int hw_dealloc_pd(struct ibv_pd *pd);
int hw_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access, const void *name,
	      struct ibv_mr **mr);
int hw_dereg_mr(struct ibv_mr *mr);
int hw_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw);
int hw_dealloc_mw(struct ibv_mw *mw);
int hw_create_channel(struct dapl_device *dev, struct ibv_comp_channel **channel);
int hw_destroy_channel(struct ibv_comp_channel *channel);
int hw_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq);
int hw_create_cq(struct dapl_device *dev, int cqe, void *context,
		 struct ibv_comp_channel *channel, struct ibv_cq **cq);
int hw_resize_cq(struct ibv_cq *cq, int cqe);
int hw_destroy_cq(struct ibv_cq *cq);
int hw_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq);
int hw_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int hw_destroy_srq(struct ibv_srq *srq);
int hw_create_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
		 struct ibv_qp **qp);
int hw_reset_qp(struct dapl_device *dev, struct ibv_qp *qp);
int hw_error_qp(struct ibv_qp *qp);
int hw_destroy_qp(struct ibv_qp *qp);
int hw_destroy_ah(struct ibv_ah *ah);

/* probe.c: fills dev->attr, pkey_index and qp_access; bound is an id on dev's address. Reports a failure. */
int hw_probe(struct dapl_device *dev, struct rdma_cm_id *bound);
void hw_probe_port(struct dapl_device *dev, struct dapl_device_attr *attr);

/* resident.c: keeps librdmacm loaded until the process ends */
void hw_keep_librdmacm(void);

/* ud.c */
struct hw_ud_self;
void hw_ud_self(struct dapl_device *dev, struct ibv_qp *qp, struct hw_ud_self *self);
int hw_ud_peer_active(struct dapl_device *dev, struct ibv_pd *pd,
		      const struct rdma_ud_param *told, struct dapl_ud_peer *peer);
int hw_ud_peer_passive(struct dapl_device *dev, struct ibv_pd *pd,
		       const struct sockaddr *remote, const struct hw_ud_self *told,
		       struct dapl_ud_peer *peer);

/* cm.c */
int hw_cm_start(struct dapl_device *dev);
void hw_cm_stop(struct dapl_device *dev);
void hw_cm_notify(struct dapl_device *dev, struct ibv_qp *qp);
int hw_listen(struct dapl_device *dev, const struct sockaddr *addr, uint16_t *port, bool ud,
	      int backlog, void *sp, struct dapl_listener **listener);
void hw_unlisten(struct dapl_listener *listener);

/* initiator.c */
int hw_connect(struct dapl_device *dev, const struct dapl_conn_params *params,
	       struct dapl_conn **conn);

/* acceptor.c */
int hw_accept(struct dapl_conn *conn, const struct dapl_conn_params *params);
int hw_reject(struct dapl_conn *conn, bool by_consumer, const void *pdata, size_t len);

/* conn.c */
int hw_disconnect(struct dapl_conn *conn);
void hw_explain(struct dapl_conn *conn, struct dapl_conn_cause *cause);
void hw_release(struct dapl_conn *conn);

#endif
