/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_eth.h - raw Ethernet operations for the device of core_device.h: it keeps rules and groups as records, and
 * fails where the test wants it (core_eth.c). Programs are linked with --wrap=dapl_device_ops. */
#ifndef TEST_CORE_ETH_H
#define TEST_CORE_ETH_H
#include "dapl/core/dapl.h"
#include "test/unit/unit.h"

struct dapl_group;

enum { CORE_ETH_RULES = 16, CORE_ETH_MEMBERS = 8, CORE_ETH_TABLE = 8, CORE_ETH_FRAME = 1514, CORE_ETH_TSO = 60000 };

struct core_eth_rule {
	struct ibv_qp *qp;		/* of an endpoint or a group; NULL: there is no rule */
	struct dapl_eth_rule rule;
	uint64_t frames, bytes;		/* that it has counted */
};

/* The arguments of the calls for a group. */
struct core_eth_group {
	struct ibv_qp *members[CORE_ETH_MEMBERS];
	uint32_t n, size;		/* of members, of the table */
	struct ibv_rx_hash_conf hash;	/* without the key */
	uint8_t key[40];
	uint16_t table[CORE_ETH_TABLE];
};

struct core_eth {
	struct dapl_eth_attr attr;	/* what the device tells of itself */
	int query_error, begin_error, add_error, move_error;	/* of the next calls; 0: they succeed */
	struct dapl_eth_config config;	/* of the last begin */
	struct ibv_qp *begun;		/* by it */
	struct core_eth_rule rules[CORE_ETH_RULES];
	struct ibv_qp *groups[2];	/* that exist */
	struct core_eth_group group;	/* of the last create_group, with the table of the last set_group */
	int group_error;		/* of the next of both */
	unsigned adds, moves, group_calls;	/* calls; the last: create_group and set_group */
	void (*in_add)(void);		/* called in each add */
	void (*in_group)(void);		/* called in each call for a group */
};
extern struct core_eth core_eth;
extern struct dapl_eth_ops core_eth_ops;	/* a test may replace operations until the next set-up */

/* Gives the device these operations, which succeed, and all capabilities. Called before an object is made. */
void core_eth_start(void);
void core_eth_remove(void);		/* the device has no raw Ethernet endpoints any more */
/* The same with core_objects_open, and the end of it: the device has no rule and no group left. */
int core_eth_open(void **state);
int core_eth_close(void **state);
/* An endpoint with posted receives, and one with a ring. */
struct dapl_ep *core_eth_ep(void);
struct dapl_ep *core_eth_ring_ep(void);
struct dapl_group *core_eth_group(struct dapl_ep *member);
/* The rules that the device has at a QP. */
unsigned core_eth_count(const struct ibv_qp *qp);
/* Whether the trace has a record with this text. */
bool core_eth_traced(const char *text);
/* That all calls have left an object, with so many references to it. */
void core_assert_refs(const struct dapl_object *obj, int refs);

#endif
