/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.h - the only interface from dapl/core down to a device, and back up.
 *
 * Core speaks verbs. The data path (ibv_post_send, ibv_post_recv, ibv_post_srq_recv,
 * ibv_poll_cq, ibv_req_notify_cq, ibv_bind_mw) goes through the inline functions of
 * <infiniband/verbs.h>, that is through the ops of the struct ibv_context behind each
 * object; a device without libibverbs fabricates that struct. Everything else goes
 * through the one table here. DAT types do not appear: a device knows no DAT object.
 *
 * Every operation returns 0 or a positive errno. Only what is said to be an upcall
 * target calls back into core, always on the service thread (service.h), with no
 * device lock held. */
#ifndef DAPL_DEVICE_H
#define DAPL_DEVICE_H
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include "dapl/core/base/parameter.h"

struct dapl_device;	/* an open device: one port, one address. The device's own */
struct dapl_listener;	/* something that hands up connection requests */
struct dapl_eth_ops;	/* eth_device.h */
struct dapl_membership;	/* of one datagram QP in one multicast group, until it's left */
struct dapl_conn;	/* one connection, from its first step until it's released */

/* What a device is and can do. 0 or false means it cannot. */
struct dapl_device_attr {
	char device[64];		/* "rxe0" */
	char netdev[64];		/* "eth0"; "" when there is none */
	char vendor[64];
	struct sockaddr_storage address;	/* of this IA, port 0 */
	struct ibv_device_attr limits;	/* as ibv_query_device gives them, clamped to what the
					 * device can do */
	union ibv_gid gid;
	unsigned port;			/* 1.. */
	unsigned mtu;			/* active path MTU, bytes */
	bool port_active;
	bool iwarp;			/* else InfiniBand or RoCE */
	bool atomics;			/* fetch-add and compare-swap on 64 bits */
	bool write_immediate;		/* and sends with immediate data */
	bool send_invalidate;		/* and tells the receiver what was invalidated */
	bool ud;			/* datagram QPs */
	bool multicast;			/* join and leave */
	bool raw_ethernet;		/* QPs of type IBV_QPT_RAW_PACKET (eth_device.h) */
	bool windows_1, windows_2;	/* memory windows */
	bool bind_access;		/* MRs must carry IBV_ACCESS_MW_BIND for windows */
	bool delayed_ack;		/* completes writes only when they are in memory */
	unsigned tunes;			/* DAPL_TUNES_* */
	bool zero_based;		/* reg_mr knows IBV_ACCESS_ZERO_BASED */
	uint64_t dm_size;		/* bytes of device memory; 0: none */
	unsigned dm_unit;		/* copies and regions of it are multiples, bytes */
	bool dm_windows;		/* memory windows onto device memory */
	bool inline_by_lkey;		/* post_send finds inline data in the region that a segment
					 * names, too; else it reads the address as a pointer */
	bool read_sink_remote;		/* the sink of an RDMA read needs remote write */
	unsigned max_read_sge;		/* segments of an RDMA read */
	unsigned max_inline;		/* bytes; what create_qp can grant */
	uint32_t max_message;		/* bytes, send or RDMA */
	/* Deviations of the device from verbs, for which core compensates. */
	bool no_late_flush;		/* what is posted to a QP in ERR never completes; what
					 * post_send refuses with -1 is posted all the same */
	bool no_solicited;		/* arming for solicited completions is never answered */
	bool no_empty_receive;		/* a receive must have a segment, if an empty one */
	/* Private data that reaches the peer whole and with its exact length, bytes. UD may
	 * have less room for some; connect, accept and reject give EMSGSIZE for too much. */
	unsigned pdata_connect, pdata_accept, pdata_reject;
};

/* Quality of service asked for, mapped by the device to what it has (TOS, SL). */
enum dapl_qos { DAPL_QOS_DEFAULT, DAPL_QOS_THROUGHPUT, DAPL_QOS_LATENCY, DAPL_QOS_ECONOMY,
	DAPL_QOS_PREMIUM };

/* What the consumer wants of one connection: the value + 1. 0: as the environment says. */
struct dapl_conn_tuning {
	uint16_t ack_timeout;		/* 4.096 us * 2^n; 0: for ever */
	uint16_t ack_retry;
	uint16_t rnr_timer;		/* InfiniBand's code */
	uint16_t rnr_retry;		/* 7: for ever */
	uint16_t traffic_class;		/* IP ToS or GRH class */
};
static inline int dapl_tuned(uint16_t wanted, int otherwise)
{
	return wanted ? wanted - 1 : otherwise;
}
/* Which of them a device knows. */
enum { DAPL_TUNES_ACK = 1, DAPL_TUNES_RNR = 2, DAPL_TUNES_CLASS = 4 };

struct dapl_conn_params {
	struct ibv_qp *qp;		/* in INIT; RC, or UD when ud */
	void *owner;			/* given back in upcalls */
	const struct sockaddr *remote;	/* connect only: address and port */
	const void *pdata;		/* copied */
	size_t pdata_len;
	uint8_t reads_out, reads_in;	/* wanted; the device lowers them to the peer's */
	bool srq;			/* the QP receives from an SRQ */
	bool ud;
	bool delayed_ack;
	enum dapl_qos qos;
	struct dapl_conn_tuning tuning;
};

/* The other end of a UD "connection": where to send to. */
struct dapl_ud_peer {
	struct ibv_ah *ah;		/* belongs to core, freed with destroy_ah */
	uint32_t qpn, qkey;
};

struct dapl_request {
	struct sockaddr_storage local, remote;	/* with ports */
	const void *pdata;		/* valid during the upcall */
	size_t pdata_len;
	bool ud;
};

struct dapl_established {
	const void *pdata;		/* the acceptor's; valid during the upcall */
	size_t pdata_len;
	struct sockaddr_storage local, remote;	/* with ports, as far as known */
	const struct dapl_ud_peer *ud;	/* UD only, else NULL */
};

/* Why a connection did not come about. */
enum dapl_conn_failure {
	DAPL_CONN_REJECTED,		/* the peer's consumer said no; has private data */
	DAPL_CONN_REFUSED,		/* no listener, backlog full, transport refusal */
	DAPL_CONN_UNREACHABLE,		/* no route, no address */
	DAPL_CONN_TIMED_OUT,		/* the transport gave up waiting */
};

/* The step of a connection that failed, or that it is in. */
enum dapl_conn_step {
	DAPL_STEP_RESOLVE_ADDRESS,	/* active: the peer's address */
	DAPL_STEP_RESOLVE_ROUTE,	/* active: the path to it */
	DAPL_STEP_CONNECT,		/* active: TCP, or the CM request */
	DAPL_STEP_REPLY,		/* active: the peer's MPA or CM reply */
	DAPL_STEP_REQUEST,		/* passive: the peer's request, not answered yet */
	DAPL_STEP_ACCEPT,		/* passive: our reply */
	DAPL_STEP_READY,		/* passive: the peer's RTU, or its first frame */
	DAPL_STEP_TRANSFER,		/* both: it was established */
	DAPL_STEPS
};

/* What the code of a cause is. The numbers are public: dat_diag_extensions.h. */
enum dapl_code_kind {
	DAPL_CODE_NONE,
	DAPL_CODE_IB_REJECT,		/* reason of an InfiniBand REJ */
	DAPL_CODE_SIDR,			/* status of a SIDR reply */
	DAPL_CODE_CM_STATUS,		/* status of an rdma_cm event, as an errno */
	DAPL_CODE_MPA,			/* flags of an MPA reply */
	DAPL_CODE_TERMINATE_SENT,	/* RDMAP Terminate: layer << 12 | type << 8 | code */
	DAPL_CODE_TERMINATE_RECEIVED,	/* the same, from the peer */
	DAPL_CODE_COMPLETION,		/* enum ibv_wc_status */
	DAPL_CODE_ASYNC,		/* enum ibv_event_type */
	DAPL_CODES
};

/* Why a connection failed or broke. */
struct dapl_conn_cause {
	enum dapl_conn_step step;
	int err;			/* errno; 0: code and text say it */
	enum dapl_code_kind code_kind;
	unsigned code;
	const char *text;		/* what the device adds; constant. NULL: nothing */
	struct sockaddr_storage local, remote;	/* with ports; family 0: unknown */
};

/* Memory of a peer's, mapped: `at` lies in these pages. */
struct dapl_mapping {
	char *at;
	void *pages;
	size_t size;
};

struct dapl_device_ops {
	const char *name;		/* "verbs", "soft" */
	/* NULL, or the parameters that `open` reads with log_env_number(), up to one without a
	 * name. */
	const struct dapl_parameter *parameters;
	bool rdma_parameters;		/* it also uses the members of dapl_settings that settings.c marks RDMA */

	/* Opens what an entry's ia_params name (dat.conf field 7). What is wrong is said
	 * in one log line by the device; ENODEV when it is absent, at once. `ia` is
	 * handed to dapl_up_async. */
	int (*open)(const char *params, void *ia, struct dapl_device **dev);
	/* All objects are gone and all connections released. Waits for what is still
	 * under way on the service thread, so not to be called on it; no upcall comes
	 * afterwards. */
	void (*close)(struct dapl_device *dev);
	int (*query)(struct dapl_device *dev, struct dapl_device_attr *attr);

	int (*alloc_pd)(struct dapl_device *dev, struct ibv_pd **pd);
	int (*dealloc_pd)(struct ibv_pd *pd);

	/* access: IBV_ACCESS_*; with IBV_ACCESS_ZERO_BASED, where there is, the first byte of the
	 * memory has the address 0 for local and remote requests. `name` (40 bytes, or NULL): memory shared between
	 * processes under this name; a device may register it once physically. */
	int (*reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access,
		      const void *name, struct ibv_mr **mr);
	int (*dereg_mr)(struct ibv_mr *mr);
	int (*alloc_mw)(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw);
	int (*dealloc_mw)(struct ibv_mw *mw);

	/* Device memory: all of these NULL where the library knows none (attr.dm_size 0: this device
	 * has none). alloc_dm's memory is zeroed and aligned to 1 << log_align bytes. */
	int (*alloc_dm)(struct dapl_device *dev, uint64_t length, unsigned log_align,
			struct ibv_dm **dm);
	int (*free_dm)(struct ibv_dm *dm);	/* its regions are gone */
	/* Addresses in the region count from 0, without IBV_ACCESS_ZERO_BASED in `access`. */
	int (*reg_dm)(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, uint64_t length,
		      int access, struct ibv_mr **mr);
	int (*copy_dm)(struct ibv_dm *dm, uint64_t offset, void *host, uint64_t length,
		       bool to_device);
	int (*map_dm)(struct ibv_dm *dm, void **at);	/* NULL: cannot */

	/* channel->fd is non-blocking and close-on-exec; readable when a CQ of it has an
	 * event. get_cq_event takes one and acknowledges it, or EAGAIN. */
	int (*create_channel)(struct dapl_device *dev, struct ibv_comp_channel **channel);
	int (*destroy_channel)(struct ibv_comp_channel *channel);
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq);
	/* context comes back in dapl_up_async as element.cq->cq_context. */
	int (*create_cq)(struct dapl_device *dev, int cqe, void *context,
			 struct ibv_comp_channel *channel, struct ibv_cq **cq);
	/* Called while other threads poll; the device keeps the completions, and keeps the threads
	 * apart. EOPNOTSUPP: cannot. */
	int (*resize_cq)(struct ibv_cq *cq, int cqe);
	int (*destroy_cq)(struct ibv_cq *cq);
	/* NULL: not needed. Called after an empty poll, with no lock held, so any object may be
	 * gone. The device may yield the processor. Inside poll_cq it must not yield, since the
	 * EVD's lock is held and a thread that waits for it would run without progress. */
	void (*idle)(void);
	/* NULL: not needed. Called by a thread before it sleeps, with no lock held: work that
	 * the device leaves to polling threads must be done without this one. Returns a
	 * descriptor that the thread watches in addition if it sleeps for an event of a channel
	 * (for_data), else -1. */
	int (*sleep)(struct dapl_device *dev, bool for_data);
	/* Called when that descriptor is readable, with no lock held: does the device's work.
	 * The thread sleeps again if its channel has no event. Returns false if the thread must
	 * no longer watch the descriptor. */
	bool (*work)(struct dapl_device *dev);
	/* The thread no longer watches the descriptor. */
	void (*awake)(struct dapl_device *dev);

	int (*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq);
	int (*modify_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
	int (*destroy_srq)(struct ibv_srq *srq);

	/* Leaves the QP in INIT, so that receives can be posted, with remote read,
	 * write and (where there are) atomics allowed. attr->cap comes back as granted.
	 * UD QPs are left in RTS. */
	int (*create_qp)(struct dapl_device *dev, struct ibv_pd *pd,
			 struct ibv_qp_init_attr *attr, struct ibv_qp **qp);
	/* Empty and in INIT again. EOPNOTSUPP: cannot, make a new one. */
	int (*reset_qp)(struct dapl_device *dev, struct ibv_qp *qp);
	int (*error_qp)(struct ibv_qp *qp);	/* to ERR: everything posted flushes */
	int (*destroy_qp)(struct ibv_qp *qp);
	/* NULL: cannot. The QP is connected: so much memory of the peer's, which could be written by
	 * RDMA, is mapped, for core to unmap (munmap) whenever it likes. EOPNOTSUPP: there, or for
	 * this memory, it can't be done; EACCES: not permitted. */
	int (*map_remote)(struct ibv_qp *qp, uint32_t rkey, uint64_t remote, uint64_t length,
			  struct dapl_mapping *mapping);

	int (*destroy_ah)(struct ibv_ah *ah);

	/* NULL, both: no multicast. Makes a datagram QP a member of an IP multicast group, which has port 0;
	 * with send_only it receives nothing. Asynchronous: dapl_up_joined follows, unless the membership
	 * is left before. */
	int (*join)(struct dapl_device *dev, struct ibv_qp *qp, const struct sockaddr *group,
		    bool send_only, void *owner, struct dapl_membership **membership);
	/* Never blocks, callable from any thread with core locks held. The QP receives nothing more from
	 * the group, and may be destroyed as soon as leave returned; so may the PD. The device calls
	 * dapl_up_released(owner) once, on the service thread, when no other upcall can come any more. */
	void (*leave)(struct dapl_membership *membership);

	/* NULL: no raw Ethernet endpoints. */
	const struct dapl_eth_ops *eth;

	/* Connection requests to *port (0: a free unprivileged one, returned) come up by
	 * dapl_up_request(sp). addr NULL: this device's address. EADDRINUSE: taken. */
	int (*listen)(struct dapl_device *dev, const struct sockaddr *addr, uint16_t *port,
		      bool ud, int backlog, void *sp, struct dapl_listener **listener);
	/* When it returns, no upcall for this listener runs or will come, and the port
	 * is free. Requests already handed up live on. */
	void (*unlisten)(struct dapl_listener *listener);

	/* Asynchronous: one of dapl_up_established and dapl_up_failed follows, unless
	 * the connection is released before. */
	int (*connect)(struct dapl_device *dev, const struct dapl_conn_params *params,
		       struct dapl_conn **conn);
	/* Answers a request; the same upcalls follow. */
	int (*accept)(struct dapl_conn *conn, const struct dapl_conn_params *params);
	/* by_consumer false: refused by the provider itself (DAPL_CONN_REFUSED at the
	 * peer). conn is released by this call, unless it fails (EMSGSIZE). */
	int (*reject)(struct dapl_conn *conn, bool by_consumer, const void *pdata, size_t len);
	/* Tells the peer that the connection ends. The QP is core's to move to ERR,
	 * before. dapl_up_disconnected may or may not follow. */
	int (*disconnect)(struct dapl_conn *conn);
	/* What is known of a connection that has failed, or is broken: step, error, code, text,
	 * addresses. Of one that has not: the step it is in, err 0, no code, no text. Constant
	 * from the first failure on, which the upcall follows. Callable from any thread with
	 * core locks held, before release. */
	void (*explain)(struct dapl_conn *conn, struct dapl_conn_cause *cause);
	/* NULL: cannot. Messages are recorded by base/tap.h from now on, or no more. */
	void (*tap)(struct dapl_device *dev, bool on);
	/* NULL: not known. What carries the data of a connection, as a constant word: "memory",
	 * "tcp". Callable as `explain`. */
	const char *(*carrier)(struct dapl_conn *conn);
	/* Core gives up conn in any state: a pending set-up is abandoned, an unanswered request
	 * is refused. Never blocks, callable from any thread with core locks held. The device
	 * calls dapl_up_released(owner) once, on the service thread, when no other upcall for it
	 * can come any more; not for a request that never had an owner. The QP may be destroyed
	 * as soon as release returned. */
	void (*release)(struct dapl_conn *conn);
};

/* The device that this library is made of. Its users call it through here only. */
extern const struct dapl_device_ops dapl_device_ops;

/* --- upcalls: core implements them, devices call them on the service thread --- */

/* A request; conn is core's from here on (accept, reject or release). */
void dapl_up_request(void *sp, struct dapl_conn *conn, const struct dapl_request *request);
void dapl_up_established(void *owner, struct dapl_conn *conn,
			 const struct dapl_established *info);
/* `explain` knows the cause of these two. */
void dapl_up_failed(void *owner, struct dapl_conn *conn, enum dapl_conn_failure why,
		    const void *pdata, size_t pdata_len);
/* The peer closed, or the transport broke (orderly false). */
void dapl_up_disconnected(void *owner, struct dapl_conn *conn, bool orderly);
void dapl_up_released(void *owner);
/* Joined: `to` is where to send to, whose address handle the device destroys in leave. Or the errno of
 * a failure, which may also come later: the network has ended the membership. */
void dapl_up_joined(void *owner, struct dapl_membership *membership, int err,
		    const struct dapl_ud_peer *to);
/* Asynchronous verbs events; the device acknowledges them after the call. Objects are
 * named by the contexts given at creation: qp_context, cq_context, srq_context. */
void dapl_up_async(void *ia, const struct ibv_async_event *event);

#endif
