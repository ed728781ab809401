/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counters.c - reads and resets the counters of IAs, endpoints and EVDs. They always count, by plain
 * additions under a lock that the data path holds anyway, or by atomic ones. A query takes these locks, so
 * that a reset loses no addition. The groups LNK and DIAG are read from the device's files in sysfs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/core/ep/ep.h"
#include "dapl/core/ia/counters.h"

static const char *const ia_names[DCNT_IA_ALL_COUNTERS] = {
#define N(name) [DCNT_IA_##name] = #name
	N(PZ_CREATE), N(PZ_FREE), N(LMR_CREATE), N(LMR_FREE), N(RMR_CREATE), N(RMR_FREE),
	N(PSP_CREATE), N(PSP_CREATE_ANY), N(PSP_FREE), N(RSP_CREATE), N(RSP_FREE),
	N(EVD_CREATE), N(EVD_FREE), N(EP_CREATE), N(EP_FREE), N(SRQ_CREATE), N(SRQ_FREE),
	N(SP_CR), N(SP_CR_ACCEPTED), N(SP_CR_REJECTED), N(MEM_ALLOC), N(MEM_ALLOC_DATA),
	N(MEM_FREE), N(ASYNC_ERROR), N(ASYNC_QP_ERROR), N(ASYNC_CQ_ERROR), N(CM_LISTEN),
	N(CM_REQ_TX), N(CM_REQ_RX), N(CM_REP_TX), N(CM_REP_RX), N(CM_RTU_TX), N(CM_RTU_RX),
	N(CM_USER_REJ_TX), N(CM_USER_REJ_RX), N(CM_ACTIVE_EST), N(CM_PASSIVE_EST),
	N(CM_AH_REQ_TX), N(CM_AH_REQ_RX), N(CM_AH_RESOLVED), N(CM_DREQ_TX), N(CM_DREQ_RX),
	N(CM_DREP_TX), N(CM_DREP_RX), N(CM_MRA_TX), N(CM_MRA_RX), N(CM_REQ_FULLQ_POLL),
	N(CM_ERR), N(CM_ERR_REQ_FULLQ), N(CM_ERR_REQ_DUP), N(CM_ERR_REQ_RETRY),
	N(CM_ERR_REP_DUP), N(CM_ERR_REP_RETRY), N(CM_ERR_RTU_DUP), N(CM_ERR_RTU_RETRY),
	N(CM_ERR_REFUSED), N(CM_ERR_RESET), N(CM_ERR_TIMEOUT), N(CM_ERR_REJ_TX),
	N(CM_ERR_REJ_RX), N(CM_ERR_DREQ_DUP), N(CM_ERR_DREQ_RETRY), N(CM_ERR_DREP_DUP),
	N(CM_ERR_DREP_RETRY), N(CM_ERR_MRA_DUP), N(CM_ERR_MRA_RETRY), N(CM_ERR_UNEXPECTED),
	N(LNK_ERR_RCV), N(LNK_ERR_RCV_REM_PHYS), N(LNK_ERR_RCV_CONSTRAINT),
	N(LNK_ERR_XMT_DISCARDS), N(LNK_ERR_XMT_CONTRAINT), N(LNK_ERR_INTEGRITY),
	N(LNK_ERR_EXC_BUF_OVERRUN), N(LNK_WARN_RCV_SW_RELAY), N(LNK_WARN_XMT_WAIT),
	N(DIAG_ERR_RQ_RAE), N(DIAG_ERR_RQ_OOS), N(DIAG_ERR_RQ_RIRE), N(DIAG_ERR_RQ_UDSDPRD),
	N(DIAG_ERR_SQ_RAE), N(DIAG_ERR_SQ_OOS), N(DIAG_ERR_SQ_RIRE), N(DIAG_ERR_SQ_RREE),
	N(DIAG_ERR_SQ_TREE),
#undef N
};

static const char *const ep_names[DCNT_EP_ALL_COUNTERS] = {
#define N(name) [DCNT_EP_##name] = #name
	N(CONNECT), N(DISCONNECT), N(POST_SEND), N(POST_SEND_DATA), N(POST_SEND_UD),
	N(POST_SEND_UD_DATA), N(POST_RECV), N(POST_RECV_DATA), N(POST_WRITE),
	N(POST_WRITE_DATA), N(POST_WRITE_IMM), N(POST_WRITE_IMM_DATA), N(POST_READ),
	N(POST_READ_DATA), N(POST_CMP_SWAP), N(POST_FETCH_ADD), N(RECV), N(RECV_DATA),
	N(RECV_UD), N(RECV_UD_DATA), N(RECV_IMM), N(RECV_IMM_DATA), N(RECV_RDMA_IMM),
	N(RECV_RDMA_IMM_DATA),
#undef N
};

static const char *const evd_names[DCNT_EVD_ALL_COUNTERS] = {
#define N(name) [DCNT_EVD_##name] = #name
	N(WAIT), N(WAIT_BLOCKED), N(WAIT_NOTIFY), N(DEQUEUE), N(DEQUEUE_FOUND),
	N(DEQUEUE_NOT_FOUND), N(DEQUEUE_POLL), N(DEQUEUE_POLL_FOUND), N(CONN_CALLBACK),
	N(DTO_CALLBACK),
#undef N
};

/* Files of the device in sysfs, under /sys/class/infiniband/DEVICE/. */
static const struct {
	int counter, group;
	const char *file;
} device_counters[] = {
	{ DCNT_IA_LNK_ERR_RCV, DCNT_IA_LNK, "port_rcv_errors" },
	{ DCNT_IA_LNK_ERR_RCV_REM_PHYS, DCNT_IA_LNK, "port_rcv_remote_physical_errors" },
	{ DCNT_IA_LNK_ERR_RCV_CONSTRAINT, DCNT_IA_LNK, "port_rcv_constraint_errors" },
	{ DCNT_IA_LNK_ERR_XMT_DISCARDS, DCNT_IA_LNK, "port_xmit_discards" },
	{ DCNT_IA_LNK_ERR_XMT_CONTRAINT, DCNT_IA_LNK, "port_xmit_constraint_errors" },
	{ DCNT_IA_LNK_ERR_INTEGRITY, DCNT_IA_LNK, "local_link_integrity_errors" },
	{ DCNT_IA_LNK_ERR_EXC_BUF_OVERRUN, DCNT_IA_LNK, "excessive_buffer_overrun_errors" },
	{ DCNT_IA_LNK_WARN_RCV_SW_RELAY, DCNT_IA_LNK, "port_rcv_switch_relay_errors" },
	{ DCNT_IA_LNK_WARN_XMT_WAIT, DCNT_IA_LNK, "port_xmit_wait" },
	{ DCNT_IA_DIAG_ERR_RQ_RAE, DCNT_IA_DIAG, "rq_num_rae" },
	{ DCNT_IA_DIAG_ERR_RQ_OOS, DCNT_IA_DIAG, "rq_num_oos" },
	{ DCNT_IA_DIAG_ERR_RQ_RIRE, DCNT_IA_DIAG, "rq_num_rire" },
	{ DCNT_IA_DIAG_ERR_RQ_UDSDPRD, DCNT_IA_DIAG, "rq_num_udsdprd" },
	{ DCNT_IA_DIAG_ERR_SQ_RAE, DCNT_IA_DIAG, "sq_num_rae" },
	{ DCNT_IA_DIAG_ERR_SQ_OOS, DCNT_IA_DIAG, "sq_num_oos" },
	{ DCNT_IA_DIAG_ERR_SQ_RIRE, DCNT_IA_DIAG, "sq_num_rire" },
	{ DCNT_IA_DIAG_ERR_SQ_RREE, DCNT_IA_DIAG, "sq_num_rree" },
	{ DCNT_IA_DIAG_ERR_SQ_TREE, DCNT_IA_DIAG, "sq_num_tree" },
};
enum { DEVICE_COUNTERS = sizeof device_counters / sizeof *device_counters };

/* mlx4 has the diagnostic counters in hw_counters; drivers before Linux 4.9 had diag_counters. */
static FILE *open_counter(const struct dapl_ia *ia, int i)
{
	static const char *const of_device[] = { "hw_counters", "diag_counters" };
	FILE *file = NULL;
	char path[256];

	if (device_counters[i].group == DCNT_IA_LNK) {
		snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%u/counters/%s",
			 ia->attr.device, ia->attr.port, device_counters[i].file);
		return fopen(path, "re");
	}
	for (int d = 0; d < 2 && !file; d++) {
		snprintf(path, sizeof path, "/sys/class/infiniband/%s/%s/%s", ia->attr.device, of_device[d],
			 device_counters[i].file);
		file = fopen(path, "re");
	}
	return file;
}

/* A counter that the device does not keep reads as 0. */
static uint64_t device_value(const struct dapl_ia *ia, int i)
{
	FILE *file = open_counter(ia, i);
	unsigned long long value = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%llu", &value) != 1)
		value = 0;
	fclose(file);
	return value;
}

/* Adds to the counters of these groups what the device has counted since the last look. With `begin` it
 * only stores the device's present values. */
static void update_device(struct dapl_ia *ia, unsigned groups, bool begin)
{
	for (int i = 0; i < DEVICE_COUNTERS; i++) {
		int counter = device_counters[i].counter;
		uint64_t now;

		if (!(groups & 1u << device_counters[i].group))
			continue;
		now = device_value(ia, i);
		dapl_mutex_lock(&ia->lock);	/* port_base; the differences add up in any order */
		if (!begin)
			__atomic_add_fetch(&ia->counters[counter], now - ia->port_base[counter],
					   __ATOMIC_RELAXED);
		ia->port_base[counter] = now;
		dapl_mutex_unlock(&ia->lock);
	}
}

/* Starts or stops groups. Returns the groups that ran before. */
static unsigned set_counting(struct dapl_ia *ia, unsigned groups, bool run)
{
	unsigned ran;

	dapl_mutex_lock(&ia->lock);
	ran = ia->counting;
	ia->counting = run ? ran | groups : ran & ~groups;
	dapl_mutex_unlock(&ia->lock);
	return ran;
}

/* The counters of an object. */
struct set {
	uint64_t *value;
	const char *const *name;
	int n;
	const char *kind;
};

enum { MOST_COUNTERS = DCNT_IA_ALL_COUNTERS };
_Static_assert((int)DCNT_EP_ALL_COUNTERS <= MOST_COUNTERS && (int)DCNT_EVD_ALL_COUNTERS <= MOST_COUNTERS,
	       "an IA has the most counters");

static bool set_of(struct dapl_object *obj, struct set *set)
{
	switch (obj->kind) {
	case DAPL_IA:
		*set = (struct set){ ((struct dapl_ia *)obj)->counters, ia_names,
			DCNT_IA_ALL_COUNTERS, "ia" };
		return true;
	case DAPL_EP:
		*set = (struct set){ ((struct dapl_ep *)obj)->counters, ep_names,
			DCNT_EP_ALL_COUNTERS, "ep" };
		return true;
	case DAPL_EVD:
		*set = (struct set){ ((struct dapl_evd *)obj)->counters, evd_names,
			DCNT_EVD_ALL_COUNTERS, "evd" };
		return true;
	default:
		return false;
	}
}

/* Copies the counters [from, to) to `out`, and resets them if `reset` is set. Atomic, because some are
 * counted without a lock. */
static void copy(const struct set *set, int from, int to, uint64_t *out, int reset)
{
	for (int i = from; i < to; i++)
		*out++ = reset ? __atomic_exchange_n(&set->value[i], 0, __ATOMIC_RELAXED) :
			__atomic_load_n(&set->value[i], __ATOMIC_RELAXED);
}

/* The data path counts successful and unsuccessful calls; the sums are computed here. */
static void copy_of_evd(struct dapl_evd *evd, const struct set *set, int from, int to, uint64_t *out,
			int reset)
{
	uint64_t *c = evd->counters;

	dapl_spin_lock(&evd->lock);
	c[DCNT_EVD_DEQUEUE] = c[DCNT_EVD_DEQUEUE_FOUND] + c[DCNT_EVD_DEQUEUE_NOT_FOUND] + evd->dequeue_offset;
	c[DCNT_EVD_DEQUEUE_POLL] = c[DCNT_EVD_DEQUEUE_POLL_FOUND] + evd->polled_empty;
	copy(set, from, to, out, reset);
	/* a reset may have cleared a sum and not its parts, or the other way round */
	evd->dequeue_offset = c[DCNT_EVD_DEQUEUE] - c[DCNT_EVD_DEQUEUE_FOUND] - c[DCNT_EVD_DEQUEUE_NOT_FOUND];
	evd->polled_empty = c[DCNT_EVD_DEQUEUE_POLL] - c[DCNT_EVD_DEQUEUE_POLL_FOUND];
	dapl_spin_unlock(&evd->lock);
}

static void copy_of_ep(struct dapl_ep *ep, const struct set *set, int from, int to, uint64_t *out,
		       int reset)
{
	struct dapl_evd *evd;

	dapl_mutex_lock(&ep->lock);
	evd = dapl_ep_lock_counters(ep);
	copy(set, from, to, out, reset);
	dapl_ep_unlock_counters(ep, evd);
	dapl_mutex_unlock(&ep->lock);
}

static void copy_of(struct dapl_object *obj, const struct set *set, int from, int to, uint64_t *out,
		    int reset)
{
	if (obj->kind == DAPL_EVD)
		copy_of_evd((struct dapl_evd *)obj, set, from, to, out, reset);
	else if (obj->kind == DAPL_EP)
		copy_of_ep((struct dapl_ep *)obj, set, from, to, out, reset);
	else
		copy(set, from, to, out, reset);
}

/* The same as set_of, and updates the device's own counters before. */
static bool updated_set_of(struct dapl_object *obj, struct set *set)
{
	struct dapl_ia *ia = (struct dapl_ia *)obj;

	if (obj->kind == DAPL_IA)
		update_device(ia, set_counting(ia, 0, true), false);
	return set_of(obj, set);
}

/* EXT-13 */
DAT_RETURN dapl_counters_query(struct dapl_object *obj, int which, DAT_UINT64 *out, int reset)
{
	uint64_t value[MOST_COUNTERS];
	struct set set;

	if (!updated_set_of(obj, &set))
		return BAD_PARAM(1);
	if (which < 0 || which > set.n)
		return BAD_PARAM(2);
	if (!out)
		return BAD_PARAM(3);
	if (which < set.n) {
		copy_of(obj, &set, which, which + 1, value, reset);
		*out = *value;
	} else {
		copy_of(obj, &set, 0, set.n, value, reset);
		for (int i = 0; i < set.n; i++)
			out[i] = value[i];
	}
	return DAT_SUCCESS;
}

static void print_one(const struct set *set, const struct dapl_object *obj, int i, uint64_t value)
{
	log_line(~0u, "%s %p %s %llu", set->kind, (const void *)obj, set->name[i],
		 (unsigned long long)value);
}

/* Prints one counter, or all that are not 0. If all are 0, one line says so. EXT-24. */
DAT_RETURN dapl_counters_print(struct dapl_object *obj, int which, int reset)
{
	uint64_t value[MOST_COUNTERS];
	bool none = true;
	struct set set;

	if (!updated_set_of(obj, &set))
		return BAD_PARAM(1);
	if (which < 0 || which > set.n)
		return BAD_PARAM(2);
	if (which < set.n) {
		copy_of(obj, &set, which, which + 1, value, reset);
		print_one(&set, obj, which, *value);
		return DAT_SUCCESS;
	}
	copy_of(obj, &set, 0, set.n, value, reset);
	for (int i = 0; i < set.n; i++) {
		if (value[i])
			print_one(&set, obj, i, value[i]);
		none &= !value[i];
	}
	if (none)
		log_line(~0u, "%s %p: all %d counters are 0", set.kind, (void *)obj, set.n);
	return DAT_SUCCESS;
}

void dapl_counters_each(struct dapl_object *obj,
			void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	uint64_t value[MOST_COUNTERS];
	struct set set;

	if (!set_of(obj, &set))
		return;
	copy_of(obj, &set, 0, set.n, value, false);
	for (int i = 0; i < set.n; i++)
		each(arg, set.name[i], value[i]);
}

void dapl_counters_of_ep(struct dapl_ep *ep, uint64_t value[DCNT_EP_ALL_COUNTERS])
{
	struct set set;

	if (set_of(&ep->obj, &set))
		copy_of(&ep->obj, &set, 0, set.n, value, false);
}

static void add_and_leave(struct dapl_ep *ep, bool kept, uint64_t sum[DCNT_EP_ALL_COUNTERS])
{
	uint64_t value[DCNT_EP_ALL_COUNTERS] = { 0 };

	if (!kept)
		dapl_counters_of_ep(ep, value);
	for (int i = 0; i < DCNT_EP_ALL_COUNTERS; i++)
		sum[i] += value[i];
	dapl_object_leave(&ep->obj);
}

/* The endpoints are entered first, as their locks are taken before the IA's. One that is freed until the sums are read
 * is in the sums, and has said so. */
bool dapl_counters_each_total(struct dapl_ia *ia,
			      void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	uint64_t sum[DCNT_EP_ALL_COUNTERS];
	struct dapl_object **eps;
	size_t count;
	bool *kept;

	if (!dapl_object_enter_all(ia, DAPL_EP, &eps, &count))
		return false;
	kept = calloc(count + 1, sizeof *kept);
	dapl_mutex_lock(&ia->lock);
	memcpy(sum, ia->freed_counters, sizeof sum);
	for (size_t i = 0; kept && i < count; i++)
		kept[i] = ((const struct dapl_ep *)eps[i])->counters_kept;
	dapl_mutex_unlock(&ia->lock);
	for (size_t i = 0; i < count; i++)
		add_and_leave((struct dapl_ep *)eps[i], !kept || kept[i], sum);
	for (int i = 0; kept && i < DCNT_EP_ALL_COUNTERS; i++)
		each(arg, ep_names[i], sum[i]);
	free(eps);
	if (!kept)
		return false;
	free(kept);
	return true;
}

static bool group_argument(struct dapl_object *obj, int group)
{
	return obj->kind == DAPL_IA && group >= DCNT_IA_CM && group <= DCNT_IA_DIAG;
}

/* EXT-24 */
DAT_RETURN dapl_counters_start(struct dapl_object *obj, int group)
{
	struct dapl_ia *ia = (struct dapl_ia *)obj;

	if (!group_argument(obj, group))
		return BAD_PARAM(2);
	update_device(ia, 1u << group & ~set_counting(ia, 0, true), true);
	set_counting(ia, 1u << group, true);
	return DAT_SUCCESS;
}

/* EXT-24 */
DAT_RETURN dapl_counters_stop(struct dapl_object *obj, int group)
{
	struct dapl_ia *ia = (struct dapl_ia *)obj;

	if (!group_argument(obj, group))
		return BAD_PARAM(2);
	update_device(ia, 1u << group & set_counting(ia, 1u << group, false), false);
	return DAT_SUCCESS;
}
