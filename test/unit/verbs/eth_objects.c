/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_objects.c - see eth_objects.h. */
#include "test/unit/unit.h"
#include "test/unit/verbs/eth_objects.h"

struct dapl_device dev;
struct hw_eth_device eth;
struct verbs_context verbs;
struct eth_objects objects;
int refusal;
struct ibv_device_attr_ex device_attr;
bool (*has_table)(uint32_t size);
bool (*has_hash)(uint64_t fields);
bool (*has_flow)(struct ibv_qp *qp, const struct ibv_flow_attr *flow);
struct ibv_qp_init_attr_ex asked_qp, asked_hash;
uint8_t asked_key[HW_ETH_HASH_KEY];
struct ibv_wq_init_attr asked_wq;
uint32_t asked_table_log;
struct ibv_wq *asked_queues[4];

static const char *const kinds[] = { "pd", "cq", "qp", "wq", "table", "hash", "flow" };
enum { WQ = 3, TABLE, HASH, KINDS = sizeof kinds / sizeof *kinds };
static int alive[KINDS];
static const char *state_of[KINDS];

/* --- objects ------------------------------------------------------------------------------------------ */

static int *count_of(const char *kind)
{
	int i = 0;

	while (strcmp(kinds[i], kind))
		i++;
	return &alive[i];
}

static void *make(const char *kind, bool has, void *object)
{
	if (step(kind) || !has) {
		errno = refusal;
		return NULL;
	}
	++*count_of(kind);
	state_of[count_of(kind) - alive] = NULL;
	errno = 0;
	return object;
}

static int destroy(const char *kind)
{
	char word[16];

	snprintf(word, sizeof word, "-%s", kind);
	if (step(word))
		return refusal;
	assert_true(*count_of(kind) > 0);
	--*count_of(kind);
	/* The hash uses the table, which uses work queues. */
	assert_true(alive[HASH] <= alive[TABLE] && (strcmp(kind, "wq") || !alive[TABLE]));
	return 0;
}

static int move(const char *kind, const char *state)
{
	char word[16];

	snprintf(word, sizeof word, "%s:%s", kind, state);
	assert_true(*count_of(kind) > 0);
	if (step(word))
		return refusal;
	state_of[count_of(kind) - alive] = state;
	return 0;
}

void alive_are(const char *expected)
{
	char is[128] = "";

	for (int i = 0; i < KINDS; i++)
		for (int n = 0; n < alive[i]; n++) {
			strcat(strcat(is, *is ? " " : ""), kinds[i]);
			if (state_of[i])
				strcat(strcat(is, ":"), state_of[i]);
		}
	assert_string_equal(is, expected);
}

/* --- in place of libibverbs ---------------------------------------------------------------------------- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *of)
{
	assert_ptr_equal(of, &verbs.context);
	return make("pd", true, &objects.pd);
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	assert_ptr_equal(pd, &objects.pd);
	return destroy("pd");
}

struct ibv_cq *ibv_create_cq(struct ibv_context *of, int cqe, void *cq_context, struct ibv_comp_channel *on, int vector)
{
	assert_ptr_equal(of, &verbs.context);
	assert_true(cqe > 0 && !cq_context && !on && !vector);
	return make("cq", true, &objects.cq);
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	assert_ptr_equal(cq, &objects.cq);
	return destroy("cq");
}

/* libibverbs calls this one if there are no attributes beyond the PD. */
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	memset(&asked_qp, 0, sizeof asked_qp);
	memcpy(&asked_qp, attr, sizeof *attr);
	asked_qp.pd = pd;
	asked_qp.comp_mask = IBV_QP_INIT_ATTR_PD;
	return make("qp", true, &objects.qp);
}

static struct ibv_qp *create_qp_ex(struct ibv_context *of, struct ibv_qp_init_attr_ex *attr)
{
	assert_ptr_equal(of, &verbs.context);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE)) {
		asked_qp = *attr;
		return make("qp", true, &objects.qp);
	}
	asked_hash = *attr;
	assert_int_equal(attr->rx_hash_conf.rx_hash_key_len, sizeof asked_key);
	memcpy(asked_key, attr->rx_hash_conf.rx_hash_key, sizeof asked_key);
	return make("hash", !has_hash || has_hash(attr->rx_hash_conf.rx_hash_fields_mask), &objects.hash);
}

static const char *kind_of(const struct ibv_qp *qp)
{
	assert_true(qp == &objects.qp || qp == &objects.hash);
	return qp == &objects.qp ? "qp" : "hash";
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	static const char *const states[] = { [IBV_QPS_RESET] = "RESET", [IBV_QPS_INIT] = "INIT",
		[IBV_QPS_RTR] = "RTR", [IBV_QPS_RTS] = "RTS", [IBV_QPS_ERR] = "ERR" };
	bool init = attr->qp_state == IBV_QPS_INIT;

	assert_int_equal(mask, init ? IBV_QP_STATE | IBV_QP_PORT : IBV_QP_STATE);
	assert_true(!init || attr->port_num == PORT);
	return move(kind_of(qp), states[attr->qp_state]);
}

int ibv_destroy_qp(struct ibv_qp *qp) { return destroy(kind_of(qp)); }

static struct ibv_wq *create_wq(struct ibv_context *of, struct ibv_wq_init_attr *attr)
{
	assert_ptr_equal(of, &verbs.context);
	asked_wq = *attr;
	return make("wq", true, &objects.wq);
}

static int modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	static const char *const states[] = { [IBV_WQS_RESET] = "RESET", [IBV_WQS_RDY] = "RDY", [IBV_WQS_ERR] = "ERR" };

	assert_ptr_equal(wq, &objects.wq);
	assert_int_equal(attr->attr_mask, IBV_WQ_ATTR_STATE);
	return move("wq", states[attr->wq_state]);
}

static int destroy_wq(struct ibv_wq *wq)
{
	assert_ptr_equal(wq, &objects.wq);
	return destroy("wq");
}

static struct ibv_rwq_ind_table *create_table(struct ibv_context *of, struct ibv_rwq_ind_table_init_attr *attr)
{
	assert_ptr_equal(of, &verbs.context);
	assert_int_equal(attr->comp_mask, 0);
	asked_table_log = attr->log_ind_tbl_size;
	for (uint32_t i = 0; i < 1u << asked_table_log && i < 4; i++)
		asked_queues[i] = attr->ind_tbl[i];
	return make("table", !has_table || has_table(1u << attr->log_ind_tbl_size), &objects.table);
}

static int destroy_table(struct ibv_rwq_ind_table *table)
{
	assert_ptr_equal(table, &objects.table);
	return destroy("table");
}

static struct ibv_flow *create_flow(struct ibv_qp *qp, struct ibv_flow_attr *flow)
{
	assert_true(*count_of(kind_of(qp)) > 0);
	assert_int_equal(flow->port, PORT);
	return make("flow", !has_flow || has_flow(qp, flow), &objects.flow);
}

static int destroy_flow(struct ibv_flow *flow)
{
	assert_ptr_equal(flow, &objects.flow);
	return destroy("flow");
}

static int query_device(struct ibv_context *of, const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t size)
{
	assert_ptr_equal(of, &verbs.context);
	assert_null(input);
	assert_int_equal(size, sizeof *attr);
	*attr = device_attr;
	return step("query") ? refusal : 0;
}

/* --- fixture ------------------------------------------------------------------------------------------------ */

int objects_begin(void **state)
{
	struct ibv_context *context = &verbs.context;

	verbs = (struct verbs_context){ .sz = sizeof verbs, .create_qp_ex = create_qp_ex, .create_wq = create_wq,
		.modify_wq = modify_wq, .destroy_wq = destroy_wq, .create_rwq_ind_table = create_table,
		.destroy_rwq_ind_table = destroy_table, .ibv_create_flow = create_flow,
		.ibv_destroy_flow = destroy_flow,
		.query_device_ex = query_device, .context = { .abi_compat = __VERBS_ABI_IS_EXTENDED } };
	objects = (struct eth_objects){ .pd = { .context = context }, .cq = { .context = context },
		.qp = { .context = context, .qp_num = QP_NUMBER }, .hash = { .context = context },
		.wq = { .context = context }, .table = { .context = context }, .flow = { .context = context } };
	dev = (struct dapl_device){ .verbs = context, .attr = { .port = PORT, .device = "dev0", .netdev = "net0" } };
	eth = (struct hw_eth_device){ .dev = &dev };
	dapl_mutex_init(&eth.lock, RANK_VERBS_ETH_DEVICE);
	dapl_mutex_init(&eth.groups_lock, RANK_VERBS_ETH_GROUPS);
	memset(&device_attr, 0, sizeof device_attr);
	memset(alive, 0, sizeof alive);
	has_table = NULL;
	has_hash = NULL;
	has_flow = NULL;
	refusal = ENOBUFS;
	forget_steps();
	return 0;
}

int objects_end(void **state)
{
	for (int i = 0; i < KINDS; i++)
		if (alive[i])
			return -1;
	return 0;
}

void nothing_is_alive(void) { is_alive(""); }

void is_alive(const char *expected)
{
	char words[64] = "";

	for (int i = 0; i < KINDS; i++)
		for (int n = 0; n < alive[i]; n++) {
			strcat(words, *words ? " " : "");
			strcat(words, kinds[i]);
		}
	assert_string_equal(words, expected);
}
