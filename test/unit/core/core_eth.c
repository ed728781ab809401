/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_eth.c - see core_eth.h. */
#include "common/trace.h"
#include "dapl/core/eth/ep.h"
#include "dapl/core/eth/group.h"
#include "test/unit/core/core_eth.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/unit.h"

enum { GROUPS = sizeof core_eth.groups / sizeof *core_eth.groups };

struct core_eth core_eth;

extern const struct dapl_device_ops __real_dapl_device_ops;
extern struct dapl_device_ops __wrap_dapl_device_ops;
struct dapl_device_ops __wrap_dapl_device_ops;

static bool is_group(const struct ibv_qp *qp)
{
	for (int i = 0; i < GROUPS; i++)
		if (core_eth.groups[i] == qp)
			return true;
	return false;
}

/* A rule of an endpoint is guarded by the endpoint's lock. */
static void assert_guarded(const struct ibv_qp *qp)
{
	struct dapl_ep *ep = qp->qp_context;

	if (!is_group(qp))
		assert_int_not_equal(__atomic_load_n(&ep->lock.state, __ATOMIC_RELAXED), 0);
}

/* --- the device ------------------------------------------------------------------------------------ */

static int query(struct dapl_device *dev, struct dapl_eth_attr *attr)
{
	*attr = core_eth.attr;
	return core_eth.query_error;
}

static int begin(struct ibv_qp *qp, const struct dapl_eth_config *config)
{
	assert_guarded(qp);
	core_eth.begun = qp;
	core_eth.config = *config;
	return core_eth.begin_error;
}

static struct core_eth_rule *new_rule(struct ibv_qp *qp, const struct core_eth_rule *as)
{
	for (int i = 0; i < CORE_ETH_RULES; i++)
		if (!core_eth.rules[i].qp) {
			core_eth.rules[i] = *as;
			core_eth.rules[i].qp = qp;
			return &core_eth.rules[i];
		}
	fail_msg("the device has too many rules");
	return NULL;
}

static int add_rule(struct ibv_qp *qp, const struct dapl_eth_rule *rule, void **added)
{
	assert_guarded(qp);
	core_eth.adds++;
	if (core_eth.in_add)
		core_eth.in_add();
	if (core_eth.add_error)
		return core_eth.add_error;
	*added = new_rule(qp, &(struct core_eth_rule){ .rule = *rule });
	return 0;
}

static struct core_eth_rule *rule_at(struct ibv_qp *qp, void *rule)
{
	struct core_eth_rule *own = rule;

	assert_guarded(qp);
	assert_ptr_equal(own->qp, qp);
	return own;
}

static void free_rule(struct ibv_qp *qp, void *rule) { rule_at(qp, rule)->qp = NULL; }

static int move_rule(struct ibv_qp *from, void *rule, struct ibv_qp *to, void **moved)
{
	struct core_eth_rule *own = rule_at(from, rule);

	assert_guarded(to);
	assert_ptr_not_equal(from, to);
	core_eth.moves++;
	if (core_eth.move_error)
		return core_eth.move_error;
	*moved = new_rule(to, own);
	own->qp = NULL;
	return 0;
}

static void count_rule(struct ibv_qp *qp, void *rule, uint64_t *frames, uint64_t *bytes)
{
	const struct core_eth_rule *own = rule_at(qp, rule);

	*frames = own->frames;
	*bytes = own->bytes;
}

static void take_rules(struct ibv_qp *qp)
{
	for (int i = 0; i < CORE_ETH_RULES; i++)
		if (core_eth.rules[i].qp == qp)
			core_eth.rules[i].qp = NULL;
}

static int take_rules_and_reset(struct ibv_qp *qp)
{
	take_rules(qp);
	return 0;
}

static int note_group_call(void)
{
	core_eth.group_calls++;
	if (core_eth.in_group)
		core_eth.in_group();
	return core_eth.group_error;
}

static void copy_table(const uint16_t *table)
{
	memcpy(core_eth.group.table, table, core_eth.group.size * sizeof *table);
}

static void note_group(struct ibv_qp *const *qps, uint32_t n, const struct dapl_eth_rss *rss)
{
	struct core_eth_group *own = &core_eth.group;

	assert_in_range(n, 1, CORE_ETH_MEMBERS);
	assert_in_range(rss->size, 1, CORE_ETH_TABLE);
	assert_int_equal(rss->hash.rx_hash_key_len, sizeof own->key);
	*own = (struct core_eth_group){ .n = n, .size = rss->size, .hash = rss->hash };
	memcpy(own->members, qps, n * sizeof *qps);
	memcpy(own->key, rss->hash.rx_hash_key, sizeof own->key);
	own->hash.rx_hash_key = NULL;
	copy_table(rss->table);
}

static int create_group(struct dapl_device *dev, struct ibv_qp *const *qps, uint32_t n, const struct dapl_eth_rss *rss,
			struct ibv_qp **group)
{
	int err = note_group_call();

	if (err)
		return err;
	note_group(qps, n, rss);
	for (int i = 0; i < GROUPS; i++)
		if (!core_eth.groups[i]) {
			*group = core_eth.groups[i] = calloc(1, sizeof **group);
			return 0;
		}
	fail_msg("the device has too many groups");
	return -1;
}

static int set_group(struct ibv_qp *group, const uint16_t *table)
{
	int err = note_group_call();

	assert_true(is_group(group));
	if (!err)
		copy_table(table);
	return err;
}

static void free_group(struct ibv_qp *group)
{
	if (core_eth.in_group)
		core_eth.in_group();
	take_rules(group);
	for (int i = 0; i < GROUPS; i++)
		if (core_eth.groups[i] == group)
			core_eth.groups[i] = NULL;
	free(group);
}

static void stats(struct ibv_qp *qp, struct dapl_eth_stats *now)
{
	*now = (struct dapl_eth_stats){ .flags = ETH_STATS_ZERO_COPY };
}

struct dapl_eth_ops core_eth_ops;

void core_eth_start(void)
{
	core_eth = (struct core_eth){ .attr = { .max_frame = CORE_ETH_FRAME, .max_tso = CORE_ETH_TSO, .caps = ~0ull,
		.max_rules = CORE_ETH_RULES, .max_group = CORE_ETH_MEMBERS, .max_table = CORE_ETH_TABLE } };
	core_eth_ops = (struct dapl_eth_ops){ .query = query, .begin = begin, .add_rule = add_rule,
		.free_rule = free_rule, .move_rule = move_rule, .count_rule = count_rule,
		.create_group = create_group, .set_group = set_group, .free_group = free_group, .stats = stats };
	__wrap_dapl_device_ops = __real_dapl_device_ops;
	__wrap_dapl_device_ops.eth = &core_eth_ops;
}

void core_eth_remove(void) { __wrap_dapl_device_ops.eth = NULL; }

int core_eth_open(void **state)
{
	core_eth_start();
	if (core_objects_open(state))
		return -1;
	core_device.error_qp = take_rules;
	core_device.destroy_qp = take_rules;
	core_device.reset_qp = take_rules_and_reset;
	return 0;
}

int core_eth_close(void **state)
{
	for (int i = 0; i < CORE_ETH_RULES; i++)
		assert_null(core_eth.rules[i].qp);
	for (int i = 0; i < GROUPS; i++)
		assert_null(core_eth.groups[i]);
	assert_int_equal(dapl_object_count(core_ia, DAPL_RULE), 0);
	assert_int_equal(core_ia->ending, 0);
	return core_objects_close(state);
}

static struct dapl_ep *ep_of(const char *receive)
{
	DAT_NAMED_ATTR named = { "eth_receive", receive };
	const DAT_EP_ATTR attr = { .service_type = DAT_ETH_SERVICE_TYPE_RAW, .max_recv_dtos = 8, .max_request_dtos = 8,
		.ep_provider_specific = &named, .ep_provider_specific_count = 1 };
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)core_dto_evd;
	DAT_EP_HANDLE handle;

	assert_int_equal(dapl_eth_ep_create((DAT_IA_HANDLE)core_ia, (DAT_PZ_HANDLE)core_pz, evd, evd, DAT_HANDLE_NULL,
					    &attr, &handle), DAT_SUCCESS);
	return (struct dapl_ep *)handle;
}

struct dapl_ep *core_eth_ep(void) { return ep_of("post"); }
struct dapl_ep *core_eth_ring_ep(void) { return ep_of("ring"); }

struct dapl_group *core_eth_group(struct dapl_ep *member)
{
	static const uint16_t table[1];
	const DAT_ETH_RSS rss = { .fields = DAT_ETH_RSS_IP, .table_size = 1, .table = table };
	DAT_EP_HANDLE handle = (DAT_EP_HANDLE)member;
	DAT_ETH_GROUP_HANDLE group;

	assert_int_equal(dapl_eth_group_create((DAT_HANDLE)core_ia, 1, &handle, &rss, &group), DAT_SUCCESS);
	return (struct dapl_group *)group;
}

unsigned core_eth_count(const struct ibv_qp *qp)
{
	unsigned n = 0;

	for (int i = 0; i < CORE_ETH_RULES; i++)
		n += core_eth.rules[i].qp == qp;
	return n;
}

static struct {
	const char *text;
	bool found;
} sought;

static void seek(void *arg, const char *text, size_t length)
{
	sought.found |= memmem(text, length, sought.text, strlen(sought.text)) != NULL;
}

bool core_eth_traced(const char *text)
{
	sought.text = text;
	sought.found = false;
	trace_each(seek, NULL);
	return sought.found;
}

void core_assert_refs(const struct dapl_object *obj, int refs)
{
	assert_int_equal(obj->calls, 0);
	assert_int_equal(obj->refs, refs);
}
