/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth.h - what eth*.c share: raw Ethernet QPs for RDMA devices that have none. eth.c
 * says how they work. */
#ifndef FAKE_H
#define FAKE_H
#include "device.h"
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Ends the process with a line. Called for a structure or a call that a driver would refuse or misread. */
_Noreturn void fake_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define CHECK(condition) do { if (!(condition)) \
		fake_wrong("%s:%d: %s does not hold", __FILE__, __LINE__, #condition); } while (0)

bool fake_lacks(const char *what);	/* whether the list FAKE_ETH has this word */

extern pthread_mutex_t fake_lock;	/* guards all objects of this library */
/* Operations of the real device. */
extern int (*fake_real_poll)(struct ibv_cq *, int, struct ibv_wc *);
extern int (*fake_real_notify)(struct ibv_cq *, int);
extern int (*fake_real_post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);

/* --- cq.c --------------------------------------------------------------------------------- */

enum { CLOCK_KHZ = 300000, CLOCK_BITS = 44 };

struct done {
	struct ibv_wc wc;
	uint64_t stamp;
	uint32_t tag;
};

/* Completions of raw QPs for a CQ of the real device. If the caller made an extended CQ, it has `ex`. */
struct queue {
	struct ibv_cq_ex ex;
	struct ibv_cq *cq;
	bool extended;
	uint64_t wc_flags;
	struct ibv_pd *pd;		/* of `bell` alone: programs may free theirs before the CQ */
	struct ibv_qp *bell;		/* a QP of the real device; its completions notify the CQ */
	bool notify;
	struct done *ring, now;
	uint32_t head, tail;
	unsigned users;			/* raw QPs */
	struct queue *next;
};

/* Returns the queue of a CQ, and makes it if there is none. Called with fake_lock held. */
struct queue *fake_queue(struct ibv_cq *cq);
void fake_complete(struct queue *q, const struct done *done);	/* called with fake_lock held */
uint64_t fake_cycles(void);
/* Operations of a device. */
int fake_query_rt(struct ibv_context *context, struct ibv_values_ex *values);
int fake_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int fake_notify(struct ibv_cq *cq, int solicited);
struct ibv_cq_ex *fake_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);

/* --- receive.c --------------------------------------------------------------------------- */

enum { MAX_SGE = 8 };

struct receive {
	uint64_t wr_id;
	struct ibv_sge sge[MAX_SGE];
	int n;
};

/* A receive queue: that of a QP, or a work queue. */
struct receives {
	struct ibv_wq wq;		/* of a QP only number and state are used */
	uint32_t max_wr, max_sge;
	bool fcs;			/* frames come with their FCS */
	struct receive *ring;
	uint32_t posted, taken;
	struct queue *queue;
	unsigned tables;		/* tables that name it */
};

struct table {
	struct ibv_rwq_ind_table table;
	unsigned users;			/* QPs */
	uint32_t size;
	struct receives *queues[];
};

/* These are called with fake_lock held. */
void fake_receives_open(struct receives *r, uint32_t max_wr, uint32_t max_sge, struct ibv_cq *cq);
void fake_receives_close(struct receives *r);
void fake_receives_to_state(struct receives *r, enum ibv_wq_state state);
int fake_receives_post(struct receives *r, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Gives a frame to the next receive; the FCS follows its `length` bytes. Without a receive it is lost. */
void fake_receives_fill(struct receives *r, const uint8_t *frame, size_t length, uint32_t tag);
/* Operations of a device. */
struct ibv_wq *fake_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr);
int fake_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int fake_destroy_wq(struct ibv_wq *wq);
struct ibv_rwq_ind_table *fake_create_table(struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *attr);
int fake_destroy_table(struct ibv_rwq_ind_table *table);

/* --- eth_hash.c ----------------------------------------------------------------------------- */

enum { HASH_KEY = 40, MAX_TABLE = 512 };
#define HASH_FIELDS 0xffu		/* addresses of IPv4 and IPv6, ports of TCP and UDP */

/* Ends the process for a configuration that no driver has. Returns false for one that this device lacks. */
bool fake_check_hash(const struct ibv_rx_hash_conf *conf, uint32_t table_size);
uint32_t fake_hash(const uint8_t *frame, size_t length, uint64_t fields, const uint8_t key[HASH_KEY]);

/* --- frames.c -------------------------------------------------------------------------- */

/* Headers of a frame, as flows match them. l3 and l4 are NULL if the frame has none. */
struct headers {
	const uint8_t *ethernet, *l3, *l4, *tunnel, *end;
	uint16_t type, tci;
	bool tagged;
	uint8_t protocol;
};

enum { FCS = 4 };
void fake_append_fcs(uint8_t *frame, size_t length);
bool fake_find_headers(const uint8_t *frame, const uint8_t *end, struct headers *h);
/* Ends the process unless each specification has the type, size, order and bits that drivers require. */
void fake_check_flow(const struct ibv_flow_attr *attr);
bool fake_flow_is_partial(const struct ibv_flow_attr *attr);	/* a mask is neither full nor 0 */
bool fake_flow_matches(const struct ibv_flow_attr *attr, const uint8_t *frame, size_t length);
bool fake_flow_names_station(const struct ibv_flow_attr *attr);	/* whether it has a destination address */
uint32_t fake_flow_tag(const struct ibv_flow_attr *attr);	/* 0: none */
bool fake_flow_drops(const struct ibv_flow_attr *attr);
/* Puts back the VLAN tag of a frame that recvmsg() received with PACKET_AUXDATA. Returns the length. */
size_t fake_insert_tag(uint8_t *frame, size_t length, struct msghdr *message);
void fake_fill_checksums(uint8_t *frame, size_t length);
bool fake_checksums_are_right(const uint8_t *frame, size_t length);
/* Makes the n-th frame of a message that is segmented. Returns its length, or 0 if there are fewer frames.
 * */
size_t fake_segment(uint8_t *frame, const uint8_t *header, size_t header_length, const uint8_t *payload,
		    size_t payload_length, size_t mss, unsigned n);

#endif
