/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.h - the only interface from dapl/core down to a device, and back up.
 *
 * Core speaks verbs. The data path (ibv_post_send, ibv_post_recv, ibv_post_srq_recv, ibv_poll_cq,
 * ibv_req_notify_cq, ibv_bind_mw) goes through the inline functions of <infiniband/verbs.h>, that is
 * through the ops of the struct ibv_context behind each object; a device without libibverbs fabricates that
 * struct. Everything else goes through the one table here. DAT types do not appear: a device knows no DAT
 * object.
 *
 * Every operation returns 0 or a positive errno. A device calls back into core by the upcalls at the end
 * of this file only, always on the service thread (service.h), with no device lock held. */
#ifndef DAPL_DEVICE_H
#define DAPL_DEVICE_H
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include "dapl/core/base/parameter.h"

struct dapl_device;	/* an open device: one port, one address. Its members are private to the device */
struct dapl_listener;	/* a source of connection requests */
struct dapl_eth_ops;	/* eth_device.h */
struct dapl_membership;	/* of one datagram QP in one multicast group, until the QP leaves it */
struct dapl_conn;	/* one connection, from its first step until core releases it */

/* IBV_ACCESS_FLUSH_GLOBAL, whose name the headers of rdma-core 44 lack. Only where attr.flush_global is set. */
enum { DAPL_ACCESS_FLUSH = 1 << 8 };

/* Properties and capabilities of a device. 0 or false: the device lacks the capability. */
struct dapl_device_attr {
	char device[64];		/* "rxe0" */
	char netdev[64];		/* "eth0" when the device was opened; "" when there is none */
	int netdev_index;		/* stays when netdev is renamed; 0 when there is none */
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
	bool write_immediate;		/* RDMA writes and sends with immediate data */
	bool send_invalidate;		/* sends that invalidate a memory window; the receiver learns which
					 * one */
	bool ud;			/* datagram QPs */
	bool multicast;			/* join and leave */
	bool raw_ethernet;		/* QPs of type IBV_QPT_RAW_PACKET (eth_device.h) */
	bool windows_1, windows_2;	/* memory windows */
	bool bind_access;		/* MRs must carry IBV_ACCESS_MW_BIND for windows */
	bool flush_global, flush_persistent;	/* QPs can flush what they wrote. Global: peers may flush what they
						 * wrote to MRs and MWs with DAPL_ACCESS_FLUSH */
	bool atomic_write;		/* QPs can write 8 bytes at once; no call uses it */
	bool delayed_ack;		/* can complete a write only when it is in the peer's memory */
	unsigned tunes;			/* DAPL_TUNES_* */
	bool zero_based;		/* reg_mr supports IBV_ACCESS_ZERO_BASED */
	uint64_t dm_size;		/* bytes of device memory; 0: none */
	unsigned dm_unit;		/* bytes; offsets and lengths of copies and regions are multiples of
					 * it */
	bool dm_windows;		/* memory windows onto device memory */
	bool inline_by_lkey;		/* post_send can read inline data from the region that a segment
					 * names; else it reads the address as a pointer */
	bool read_sink_remote;		/* the sink of an RDMA read needs remote write */
	unsigned max_read_sge;		/* segments of an RDMA read */
	unsigned max_inline;		/* bytes; what create_qp can grant */
	uint32_t max_message;		/* bytes, send or RDMA */
	/* Deviations of the device from verbs, for which core compensates. */
	bool no_late_flush;		/* requests that are posted to a QP in ERR never complete; a request
					 * that post_send refuses with -1 was posted nevertheless */
	bool no_solicited;		/* a CQ that is armed for solicited completions never notifies */
	bool no_empty_receive;		/* a receive must have a segment, which may be empty */
	/* Private data that reaches the peer whole and with its exact length, bytes. UD may
	 * have less room for some; connect, accept and reject give EMSGSIZE for too much. */
	unsigned pdata_connect, pdata_accept, pdata_reject;
};

/* Requested quality of service. The device maps it to what it has (TOS, SL). */
enum dapl_qos { DAPL_QOS_DEFAULT, DAPL_QOS_THROUGHPUT, DAPL_QOS_LATENCY, DAPL_QOS_ECONOMY,
	DAPL_QOS_PREMIUM };

/* Values that the consumer has set for one connection, each + 1. 0: the environment variable holds. */
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
/* Which of these values a device can set. */
enum { DAPL_TUNES_ACK = 1, DAPL_TUNES_RNR = 2, DAPL_TUNES_CLASS = 4 };

struct dapl_conn_params {
	struct ibv_qp *qp;		/* in INIT; RC, or UD when ud */
	void *owner;			/* given back in upcalls */
	const struct sockaddr *remote;	/* connect only: address and port */
	const void *pdata;		/* copied */
	size_t pdata_len;
	uint8_t reads_out, reads_in;	/* requested limits; the device lowers them to the peer's */
	bool srq;			/* the QP receives from an SRQ */
	bool ud;
	bool delayed_ack;
	enum dapl_qos qos;
	struct dapl_conn_tuning tuning;
};

/* The other end of a UD "connection": the address to send to. */
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

/* Why a connection was not established. */
enum dapl_conn_failure {
	DAPL_CONN_REJECTED,		/* the peer's consumer rejected the request; there may be private
					 * data */
	DAPL_CONN_REFUSED,		/* no listener, backlog full, transport refusal */
	DAPL_CONN_UNREACHABLE,		/* no route, no address */
	DAPL_CONN_TIMED_OUT,		/* the transport gave up waiting */
};

/* The step that a connection is in, or in which it failed. */
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

/* The meaning of the code of a cause. The numbers are public: dat_diag_extensions.h. */
enum dapl_code_kind {
	DAPL_CODE_NONE,
	DAPL_CODE_IB_REJECT,		/* reason of an InfiniBand REJ */
	DAPL_CODE_SIDR,			/* status of a SIDR reply */
	DAPL_CODE_CM_STATUS,		/* status of an rdma_cm event, as an errno */
	DAPL_CODE_MPA,			/* flags of an MPA reply */
	DAPL_CODE_TERMINATE_SENT,	/* RDMAP Terminate: layer << 12 | type << 8 | code */
	DAPL_CODE_TERMINATE_RECEIVED,	/* RDMAP Terminate from the peer, with the same code */
	DAPL_CODE_COMPLETION,		/* enum ibv_wc_status */
	DAPL_CODE_ASYNC,		/* enum ibv_event_type */
	DAPL_CODES
};

/* Why a connection failed or broke. */
struct dapl_conn_cause {
	enum dapl_conn_step step;
	int err;			/* errno; 0: see code and text */
	enum dapl_code_kind code_kind;
	unsigned code;
	const char *text;		/* the device's words; a constant. NULL: there are none */
	struct sockaddr_storage local, remote;	/* with ports; family 0: unknown */
};

/* Memory of a peer that is mapped: `at` lies in these pages. */
struct dapl_mapping {
	char *at;
	void *pages;
	size_t size;
};

/* Of a connection that TCP carries; see TCP_INFO in tcp(7). */
struct dapl_tcp_state {
	uint32_t rtt_us, rtt_var_us;	/* smoothed round-trip time, its mean deviation */
	uint32_t cwnd;			/* congestion window, in segments */
	uint32_t retransmits;		/* segments that were sent again, of all time */
};

struct dapl_device_ops {
	const char *name;		/* "verbs", "soft" */
	/* NULL, or the parameters that `open` reads with log_env_number(). The array ends with an entry
	 * without a name. */
	const struct dapl_parameter *parameters;
	bool posts_may_sleep;		/* a post takes sleeping locks or makes system calls. Core holds its
					 * queue's lock over it: waiters of that lock then sleep */
	bool callbacks_are_short;	/* what it does on the service thread takes microseconds: a thread that is
					 * blocked in a wait may do it */
	bool rdma_parameters;		/* it also uses the members of dapl_settings that settings.c marks
					 * as RDMA */

	/* Opens the device that an entry's ia_params name (dat.conf field 7). After an error the device has
	 * written one log line. Returns ENODEV at once if the device is absent. `ia` is handed to
	 * dapl_up_async. */
	int (*open)(const char *params, void *ia, struct dapl_device **dev);
	/* Called when all objects are destroyed and all connections released. Waits for upcalls that run on
	 * the service thread, so it must not be called on that thread. No upcall comes afterwards. */
	void (*close)(struct dapl_device *dev);
	int (*query)(struct dapl_device *dev, struct dapl_device_attr *attr);

	int (*alloc_pd)(struct dapl_device *dev, struct ibv_pd **pd);
	int (*dealloc_pd)(struct ibv_pd *pd);

	/* `access`: bits IBV_ACCESS_*. With IBV_ACCESS_ZERO_BASED, if attr.zero_based is set, the first
	 * byte of the memory has the address 0 for local and remote requests. `name` (40 bytes, or NULL):
	 * processes share the memory under this name; a device may register it physically only once. */
	int (*reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access,
		      const void *name, struct ibv_mr **mr);
	int (*dereg_mr)(struct ibv_mr *mr);
	int (*alloc_mw)(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw);
	int (*dealloc_mw)(struct ibv_mw *mw);

	/* Device memory. All of these are NULL in a library without device memory. attr.dm_size is 0 if
	 * this device has none. alloc_dm's memory is zeroed and aligned to 1 << log_align bytes. */
	int (*alloc_dm)(struct dapl_device *dev, uint64_t length, unsigned log_align,
			struct ibv_dm **dm);
	int (*free_dm)(struct ibv_dm *dm);	/* its regions were deregistered before */
	/* Addresses in the region count from 0, without IBV_ACCESS_ZERO_BASED in `access`. */
	int (*reg_dm)(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, uint64_t length,
		      int access, struct ibv_mr **mr);
	int (*copy_dm)(struct ibv_dm *dm, uint64_t offset, void *host, uint64_t length,
		       bool to_device);
	int (*map_dm)(struct ibv_dm *dm, void **at);	/* NULL: not supported */

	/* channel->fd is non-blocking and close-on-exec; readable when a CQ of it has an event.
	 * get_cq_event takes an event and acknowledges it, or returns EAGAIN. */
	int (*create_channel)(struct dapl_device *dev, struct ibv_comp_channel **channel);
	int (*destroy_channel)(struct ibv_comp_channel *channel);
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq);
	/* context comes back in dapl_up_async as element.cq->cq_context. */
	int (*create_cq)(struct dapl_device *dev, int cqe, void *context,
			 struct ibv_comp_channel *channel, struct ibv_cq **cq);
	/* Other threads may poll meanwhile: the device serialises the calls and keeps the completions.
	 * EOPNOTSUPP: the device cannot resize a CQ. */
	int (*resize_cq)(struct ibv_cq *cq, int cqe);
	int (*destroy_cq)(struct ibv_cq *cq);
	/* NULL: not needed. Called after an empty poll, with no lock held, so any object may have been
	 * destroyed. The device may yield the processor here. It must not yield inside poll_cq: the EVD's
	 * lock is held there, and a thread that spins on it would use the processor without progress. */
	void (*idle)(void);
	/* NULL: not needed. Called by a thread before it sleeps, with no lock held: from now on the device
	 * must not leave work to this thread's polling. Returns a descriptor that the thread watches in
	 * addition if it sleeps for an event of a channel (for_data), else -1. */
	int (*sleep)(struct dapl_device *dev, bool for_data);
	/* Called when that descriptor is readable, with no lock held: does the device's work.
	 * The thread sleeps again if its channel has no event. Returns false if the thread must
	 * no longer watch the descriptor. */
	bool (*work)(struct dapl_device *dev);
	/* Called when the thread no longer watches the descriptor. */
	void (*awake)(struct dapl_device *dev);

	int (*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq);
	int (*modify_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
	int (*destroy_srq)(struct ibv_srq *srq);

	/* Leaves the QP in INIT, so that receives can be posted, with remote read,
	 * write and (where there are) atomics allowed. attr->cap comes back as granted.
	 * UD QPs are left in RTS. */
	int (*create_qp)(struct dapl_device *dev, struct ibv_pd *pd,
			 struct ibv_qp_init_attr *attr, struct ibv_qp **qp);
	/* NULL: create_qp is used. As create_qp, of an RC QP whose RDMA writes complete only when their data is in the
	 * peer's memory. A failed write may take two entries of the CQ. Only with attr.delayed_ack. */
	int (*create_delayed_qp)(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
				 struct ibv_qp **qp);
	/* Empties the QP and moves it to INIT. EOPNOTSUPP: the device cannot, and core makes a new QP. */
	int (*reset_qp)(struct dapl_device *dev, struct ibv_qp *qp);
	int (*error_qp)(struct ibv_qp *qp);	/* moves it to ERR: all posted requests complete as
						 * flushed */
	int (*destroy_qp)(struct ibv_qp *qp);
	/* NULL: not supported. Maps memory of the peer of a connected QP, which RDMA writes may write. Core
	 * unmaps it (munmap) at any time. EOPNOTSUPP: not with this peer, or not for this memory. EACCES:
	 * not permitted. */
	int (*map_remote)(struct ibv_qp *qp, uint32_t rkey, uint64_t remote, uint64_t length,
			  struct dapl_mapping *mapping);

	int (*destroy_ah)(struct ibv_ah *ah);

	/* Both are NULL without multicast. Makes a datagram QP a member of an IP multicast group, which has
	 * port 0; with send_only it receives nothing. Asynchronous: dapl_up_joined follows, unless the QP
	 * leaves the group before. */
	int (*join)(struct dapl_device *dev, struct ibv_qp *qp, const struct sockaddr *group,
		    bool send_only, void *owner, struct dapl_membership **membership);
	/* Never blocks, callable from any thread with core locks held. The QP receives nothing more from
	 * the group, and may be destroyed as soon as leave has returned; so may the PD. The device calls
	 * dapl_up_released(owner) once, on the service thread, as the last upcall of the membership. */
	void (*leave)(struct dapl_membership *membership);

	/* NULL: no raw Ethernet endpoints. */
	const struct dapl_eth_ops *eth;

	/* Reports connection requests to *port by dapl_up_request(sp). If *port is 0, the device chooses a
	 * free unprivileged port and returns it. `addr` NULL: this device's address. EADDRINUSE: the port
	 * is taken. */
	int (*listen)(struct dapl_device *dev, const struct sockaddr *addr, uint16_t *port,
		      bool ud, int backlog, void *sp, struct dapl_listener **listener);
	/* When it returns, no upcall for this listener runs or will come, and the port is free. Requests
	 * that were reported before are not affected. */
	void (*unlisten)(struct dapl_listener *listener);

	/* Asynchronous: one of dapl_up_established and dapl_up_failed follows, unless
	 * the connection is released before. */
	int (*connect)(struct dapl_device *dev, const struct dapl_conn_params *params,
		       struct dapl_conn **conn);
	/* Answers a request; the same upcalls follow. */
	int (*accept)(struct dapl_conn *conn, const struct dapl_conn_params *params);
	/* `by_consumer` false: the provider itself refuses, and the peer gets DAPL_CONN_REFUSED. The call
	 * releases conn, unless it fails (EMSGSIZE). */
	int (*reject)(struct dapl_conn *conn, bool by_consumer, const void *pdata, size_t len);
	/* Notifies the peer that the connection ends. Core has moved the QP to ERR before.
	 * dapl_up_disconnected may follow. */
	int (*disconnect)(struct dapl_conn *conn);
	/* Returns the cause of a connection that has failed or is broken: step, error, code, text,
	 * addresses. Otherwise returns the present step, err 0, no code and no text. The answer stays the
	 * same from the first failure on, which comes before its upcall. Callable from any thread with core
	 * locks held, before release. */
	void (*explain)(struct dapl_conn *conn, struct dapl_conn_cause *cause);
	/* NULL: not supported. Starts or stops recording messages by base/tap.h. */
	void (*tap)(struct dapl_device *dev, bool on);
	/* NULL: not supported. Returns what carries the data of a connection, as a constant word: "memory",
	 * "tcp". Callable as `explain`. */
	const char *(*carrier)(struct dapl_conn *conn);
	/* NULL: not supported. Stores how TCP sees the path of a connection that it carries. Returns false for others.
	 * Callable as `explain`. */
	bool (*tcp_state)(struct dapl_conn *conn, struct dapl_tcp_state *state);
	/* Core gives up conn in any state: the device abandons a pending set-up and refuses an unanswered
	 * request. Never blocks, callable from any thread with core locks held. The device calls
	 * dapl_up_released(owner) once, on the service thread, as the last upcall of conn, but not for a
	 * request that never had an owner. The QP may be destroyed as soon as release has returned. */
	void (*release)(struct dapl_conn *conn);
};

/* The operations of this library's device. Core calls the device through this table only. */
extern const struct dapl_device_ops dapl_device_ops;

/* --- upcalls: core implements them, devices call them on the service thread --- */

/* A connection request arrived. From here on core owns conn, and calls accept, reject or release. */
void dapl_up_request(void *sp, struct dapl_conn *conn, const struct dapl_request *request);
void dapl_up_established(void *owner, struct dapl_conn *conn,
			 const struct dapl_established *info);
/* `explain` returns the cause of these two. */
void dapl_up_failed(void *owner, struct dapl_conn *conn, enum dapl_conn_failure why,
		    const void *pdata, size_t pdata_len);
/* Returns true if an established connection has requests that are unanswered or failed, or whose completions wait in
 * their EVD. */
bool dapl_up_has_requests(void *owner, const struct dapl_conn *conn);
/* The peer closed, or the transport broke (orderly false). */
void dapl_up_disconnected(void *owner, struct dapl_conn *conn, bool orderly);
void dapl_up_released(void *owner);
/* With err 0 the QP has joined: `to` is the address to send to, and the device destroys its address handle
 * in leave. Otherwise err is the errno of a failure. A failure may also come later, if the network ends the
 * membership. */
void dapl_up_joined(void *owner, struct dapl_membership *membership, int err,
		    const struct dapl_ud_peer *to);
/* Asynchronous verbs events; the device acknowledges them after the call. Objects are
 * named by the contexts given at creation: qp_context, cq_context, srq_context. */
void dapl_up_async(void *ia, const struct ibv_async_event *event);

#endif
