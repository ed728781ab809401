/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_objects.h - a device with raw packet QPs, in place of libibverbs. It counts the objects of each kind,
 * which all have one address, and records the calls as steps (steps.h): "pd", "cq", "qp", "wq", "table", "hash" (a QP
 * over a table) and "flow" make one, "-pd" destroys it, "qp:INIT" and "wq:RDY" move it to a state, "query" is
 * ibv_query_device_ex. */
#ifndef TEST_UNIT_VERBS_ETH_OBJECTS_H
#define TEST_UNIT_VERBS_ETH_OBJECTS_H
#include "dapl/verbs/eth_types.h"
#include "dapl/verbs/hw.h"
#include "test/unit/softeth/steps.h"
#include "test/unit/unit.h"

enum { PORT = 2, QP_NUMBER = 33 };

extern struct dapl_device dev;
extern struct hw_eth_device eth;
extern struct verbs_context verbs;

extern struct eth_objects {
	struct ibv_pd pd;
	struct ibv_cq cq;
	struct ibv_qp qp, hash;
	struct ibv_wq wq;
	struct ibv_rwq_ind_table table;
	struct ibv_flow flow;
} objects;

/* What the device has. */
extern int refusal;			/* errno of the step that fails; 0: it sets none */
extern struct ibv_device_attr_ex device_attr;
extern bool (*has_table)(uint32_t size);	/* NULL: all */
extern bool (*has_hash)(uint64_t fields);
extern bool (*has_flow)(struct ibv_qp *qp, const struct ibv_flow_attr *flow);

/* What it was asked for last. */
extern struct ibv_qp_init_attr_ex asked_qp, asked_hash;
extern uint8_t asked_key[HW_ETH_HASH_KEY];
extern struct ibv_wq_init_attr asked_wq;
extern uint32_t asked_table_log;
extern struct ibv_wq *asked_queues[4];

/* For cmocka, before and after a case. The end fails if an object is left. */
int objects_begin(void **state);
int objects_end(void **state);
void nothing_is_alive(void);
void is_alive(const char *kinds);	/* these words, in the order above, and no other */
void alive_are(const char *kinds);	/* the same, with their states: "wq:RDY table" */

#endif
