/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fake.h - raw Ethernet QPs for RDMA devices that have none: what the files of this folder share. fake.c says how. */
#ifndef FAKE_H
#define FAKE_H
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Ends the process with a line: a structure or a call that a driver would refuse or misread. */
_Noreturn void fake_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define CHECK(condition) do { if (!(condition)) \
		fake_wrong("%s:%d: %s does not hold", __FILE__, __LINE__, #condition); } while (0)

/* The function of this name that the program would have without this library. */
#define REAL(name) ((__typeof__(name) *)fake_find_real(#name))
void *fake_find_real(const char *name);
bool fake_lacks(const char *what);	/* it is in the list FAKE_ETH */

extern pthread_mutex_t fake_lock;	/* guards all objects of this library */
/* The real device's. */
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

/* Completions of ours that belong to a CQ of the real device. `ex` is what the caller has, if it made an extended one. */
struct queue {
	struct ibv_cq_ex ex;
	struct ibv_cq *cq;
	bool extended;
	uint64_t wc_flags;
	struct ibv_pd *pd;		/* the bell's own: programs may end theirs before the CQ */
	struct ibv_qp *bell;
	bool notify;
	struct done *ring, now;
	uint32_t head, tail;
	unsigned users;			/* raw QPs */
	struct queue *next;
};

/* Of a CQ, made if there is none. fake_lock held. */
struct queue *fake_queue(struct ibv_cq *cq);
void fake_complete(struct queue *q, const struct done *done);	/* fake_lock held */
uint64_t fake_cycles(void);
/* Operations of a device. */
int fake_query_rt(struct ibv_context *context, struct ibv_values_ex *values);
int fake_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int fake_notify(struct ibv_cq *cq, int solicited);
struct ibv_cq_ex *fake_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);

/* --- frames.c -------------------------------------------------------------------------- */

/* Every specification has the type, size, order and bits that drivers want. */
void fake_check_flow(const struct ibv_flow_attr *attr);
bool fake_flow_is_partial(const struct ibv_flow_attr *attr);	/* a mask is neither full nor 0 */
bool fake_flow_matches(const struct ibv_flow_attr *attr, const uint8_t *frame, size_t length);
bool fake_flow_names_station(const struct ibv_flow_attr *attr);	/* by its destination address */
uint32_t fake_flow_tag(const struct ibv_flow_attr *attr);	/* 0: none */
bool fake_flow_drops(const struct ibv_flow_attr *attr);
/* As received by recvmsg() with PACKET_AUXDATA. Returns the length. */
size_t fake_insert_tag(uint8_t *frame, size_t length, struct msghdr *message);
void fake_fill_checksums(uint8_t *frame, size_t length);
bool fake_checksums_are_right(const uint8_t *frame, size_t length);
/* The n-th frame of a message to segment. Returns its length; 0: there are fewer. */
size_t fake_segment(uint8_t *frame, const uint8_t *header, size_t header_length, const uint8_t *payload,
		    size_t payload_length, size_t mss, unsigned n);

#endif
