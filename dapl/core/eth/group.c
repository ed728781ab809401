/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* group.c - groups of raw Ethernet endpoints that share the frames of rules. The device distributes the
 * frames among the endpoints. ETH-31 to 34. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/core/eth/eth.h"
#include "dapl/core/eth/group.h"
#include "dapl/core/eth/rule.h"

#define FIELDS (DAT_ETH_RSS_IP | DAT_ETH_RSS_PORTS | DAT_ETH_RSS_INNER)
#define HASH_IP (IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6)
#define HASH_PORTS (IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP | IBV_RX_HASH_SRC_PORT_UDP | \
		    IBV_RX_HASH_DST_PORT_UDP)

/* --- arguments ------------------------------------------------------------------------------ */

/* Returns what is wrong, or NULL. */
static const char *find_wrong_table(const uint16_t *table, uint32_t size, uint32_t members)
{
	if (!table)
		return "the table is NULL";
	for (uint32_t i = 0; i < size; i++)
		if (table[i] >= members)
			return "an entry of the table is not below the number of endpoints";
	return NULL;
}

static const char *find_wrong(const DAT_ETH_RSS *rss, uint32_t members, uint32_t max_table)
{
	if (!(rss->fields & DAT_ETH_RSS_IP) || (rss->fields & ~FIELDS))
		return "fields lack DAT_ETH_RSS_IP, or have an unknown one";
	if (rss->reserved)
		return "a reserved member is not 0";
	if (!rss->table_size || (rss->table_size & (rss->table_size - 1)) || rss->table_size > max_table)
		return "table_size is no power of 2 up to max_table";
	return find_wrong_table(rss->table, rss->table_size, members);
}

static bool say_wrong(const void *object, const char *call, const char *wrong)
{
	if (wrong)
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ia", object, NULL, "%s refused: %s", call, wrong);
	return wrong != NULL;
}

static struct dapl_eth_rss to_device(const DAT_ETH_RSS *rss)
{
	struct dapl_eth_rss to = { .size = rss->table_size, .table = rss->table };

	to.hash = (struct ibv_rx_hash_conf){ .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
		.rx_hash_key_len = sizeof rss->key, .rx_hash_key = (uint8_t *)rss->key,
		.rx_hash_fields_mask = HASH_IP };
	if (rss->fields & DAT_ETH_RSS_PORTS)
		to.hash.rx_hash_fields_mask |= HASH_PORTS;
	if (rss->fields & DAT_ETH_RSS_INNER)
		to.hash.rx_hash_fields_mask |= IBV_RX_HASH_INNER;
	return to;
}

/* --- members -------------------------------------------------------------------------------- */

/* Enters an endpoint and gets its QP, which stays until the endpoint is left: a free waits for the calls
 * inside. */
static DAT_RETURN enter_member(struct dapl_ia *ia, DAT_EP_HANDLE handle, struct dapl_ep **ep, struct ibv_qp **qp)
{
	DAT_RETURN ret = DAT_SUCCESS;

	*ep = dapl_ep_enter(handle);
	if (!*ep || !(*ep)->eth || (*ep)->obj.ia != ia)
		return BAD_HANDLE(EP);
	if ((*ep)->eth->xdp)	/* ETH-40 */
		return NOT_SUPPORTED;
	dapl_mutex_lock(&(*ep)->lock);
	*qp = (*ep)->qp;
	if ((*ep)->state != DAT_EP_STATE_CONNECTED)
		ret = dapl_status_bad_ep_state((*ep)->state);
	dapl_mutex_unlock(&(*ep)->lock);
	return ret;
}

static bool is_twice(struct ibv_qp *const *qps, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (qps[i] == qps[n])
			return true;
	return false;
}

static void leave_members(struct dapl_ep **eps, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (eps[i])
			dapl_object_leave(&eps[i]->obj);
}

static DAT_RETURN enter_members(struct dapl_ia *ia, const DAT_EP_HANDLE *handles, uint32_t n, struct dapl_ep **eps,
				struct ibv_qp **qps)
{
	DAT_RETURN ret = DAT_SUCCESS;

	for (uint32_t i = 0; ret == DAT_SUCCESS && i < n; i++) {
		ret = enter_member(ia, handles[i], &eps[i], &qps[i]);
		if (ret == DAT_SUCCESS && is_twice(qps, i))
			ret = BAD_PARAM(3);
	}
	return ret;
}

/* --- calls ---------------------------------------------------------------------------------- */

static DAT_RETURN publish(struct dapl_ia *ia, struct ibv_qp *const *qps, uint32_t n, const DAT_ETH_RSS *rss,
			  uint64_t caps, DAT_ETH_GROUP_HANDLE *handle)
{
	struct dapl_group *group = dapl_object_new(DAPL_GROUP, sizeof *group, ia, NULL);
	const struct dapl_eth_rss to = to_device(rss);
	int err;

	if (!group)
		return NO_RESOURCE(MEMORY);
	group->members = (uint16_t)n;
	group->table_size = rss->table_size;
	group->caps = caps;
	dapl_eth_groups_lock();
	err = dapl_device_ops.eth->create_group(ia->dev, qps, n, &to, &group->qp);
	dapl_eth_groups_unlock();
	if (err) {
		dapl_object_put(&group->obj);
		return dapl_status(err, DAT_RESOURCE_MEMORY);
	}
	dapl_object_publish(&group->obj);
	*handle = (DAT_ETH_GROUP_HANDLE)group;
	return DAT_SUCCESS;
}

static DAT_RETURN create(struct dapl_ia *ia, uint32_t n, const DAT_EP_HANDLE *handles, const DAT_ETH_RSS *rss,
			 uint64_t caps, DAT_ETH_GROUP_HANDLE *handle)
{
	struct dapl_ep **eps = calloc(n, sizeof *eps);
	struct ibv_qp **qps = calloc(n, sizeof *qps);
	DAT_RETURN ret = eps && qps ? enter_members(ia, handles, n, eps, qps) : NO_RESOURCE(MEMORY);

	if (ret == DAT_SUCCESS)
		ret = publish(ia, qps, n, rss, caps, handle);
	if (eps)
		leave_members(eps, n);
	free(eps);
	free(qps);
	return ret;
}

/* ETH-31, 32 */
DAT_RETURN dapl_eth_group_create(DAT_HANDLE ia_handle, DAT_COUNT n, const DAT_EP_HANDLE *eps, const DAT_ETH_RSS *rss,
				 DAT_ETH_GROUP_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);
	struct dapl_eth_attr attr;
	int err;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!eps)
		return BAD_PARAM(3);
	if (!rss)
		return BAD_PARAM(4);
	if (!handle)
		return BAD_PARAM(5);
	err = dapl_device_ops.eth->query(ia->dev, &attr);
	if (err)
		return err == ENOENT ? NOT_SUPPORTED : dapl_status(err, DAT_RESOURCE_DEVICE);
	if (!(attr.caps & DAT_ETH_CAP_RSS))
		return NOT_SUPPORTED;
	if (n < 1 || (uint32_t)n > attr.max_group) {
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ia", ia, NULL, "dat_eth_group_create refused: %d endpoints are "
		      "not between 1 and %u", n, attr.max_group);
		return BAD_PARAM(2);
	}
	if (say_wrong(ia, "dat_eth_group_create", find_wrong(rss, (uint32_t)n, attr.max_table)))
		return BAD_PARAM(4);
	if ((rss->fields & DAT_ETH_RSS_INNER) && !(attr.caps & DAT_ETH_CAP_RSS_INNER))
		return NOT_SUPPORTED;
	return create(ia, (uint32_t)n, eps, rss, attr.caps, handle);
}

/* ETH-34 */
DAT_RETURN dapl_eth_group_set(DAT_HANDLE handle, const uint16_t *table)
{
	DAPL_ENTERED struct dapl_group *group = dapl_object_enter(handle, DAPL_GROUP);
	int err;

	if (!group)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (say_wrong(group, "dat_eth_group_set", find_wrong_table(table, group->table_size, group->members)))
		return BAD_PARAM(2);
	dapl_eth_groups_lock();
	err = dapl_device_ops.eth->set_group(group->qp, table);
	dapl_eth_groups_unlock();
	if (err != EINVAL)
		return dapl_status(err, DAT_RESOURCE_MEMORY);
	say_wrong(group, "dat_eth_group_set", "an entry of the table names an endpoint that has left the group");
	return BAD_PARAM(2);
}

void dapl_eth_group_end(struct dapl_group *group)
{
	dapl_eth_groups_lock();
	dapl_device_ops.eth->free_group(group->qp);
	dapl_eth_groups_unlock();
	dapl_object_bury(&group->obj);
}

/* ETH-33 */
DAT_RETURN dapl_eth_group_free(DAT_HANDLE handle)
{
	DAPL_ENTERED struct dapl_group *group = dapl_object_enter(handle, DAPL_GROUP);

	if (!group || !dapl_object_kill(&group->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	dapl_object_wait_calls(&group->obj, 1);
	dapl_eth_group_rules_end(group);
	dapl_eth_group_end(group);
	return DAT_SUCCESS;
}
