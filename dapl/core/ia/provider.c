/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* provider.c - the library as the registry sees it: dat_provider_init and _fini, the
 * provider table, the calls that take any handle, and the library's own life. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/core/base/diag_limit.h"
#include "dapl/core/base/fork.h"
#include "dapl/core/base/registry.h"
#include "dapl/core/base/settings.h"
#include "dapl/core/base/tap.h"
#include "dapl/core/base/tap_posts.h"
#include "dapl/core/conn/conn.h"
#include "dapl/core/conn/connect.h"
#include "dapl/core/conn/cr.h"
#include "dapl/core/conn/disconnect.h"
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/conn/service_point.h"
#include "dapl/core/ep/ep.h"
#include "dapl/core/ep/calls.h"
#include "dapl/core/ep/post.h"
#include "dapl/core/ep/srq.h"
#include "dapl/core/eth/ep.h"
#include "dapl/core/eth/rule.h"
#include "dapl/core/event/async.h"
#include "dapl/core/event/cno.h"
#include "dapl/core/event/calls.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_notify.h"
#include "dapl/core/event/evd_resize.h"
#include "dapl/core/ia/control_verbs.h"
#include "dapl/core/ia/ext.h"
#include "dapl/core/ia/ia.h"
#include "dapl/core/ia/net_watch.h"
#include "dapl/core/ia/provider.h"
#include "dapl/core/ia/tap.h"
#include "dapl/core/mem/lmr.h"
#include "dapl/core/mem/pz.h"
#include "dapl/core/mem/rmr.h"

/* Entries are not freed before the library is unloaded, because handles that outlive their IA point to the
 * table. */
static struct dapl_mutex entries_lock = DAPL_MUTEX_INIT(RANK_ENTRIES);
static struct dapl_entry *entries;	/* guarded by entries_lock, except constant fields */

/* --- calls that take any handle ------------------------------------------------------- */

/* HND-5, 6, 8 */
static DAT_RETURN set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context)
{
	DAPL_ENTERED struct dapl_object *obj = dapl_object_enter_any(handle);

	if (!obj)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	__atomic_store_n(&obj->context.as_64, context.as_64, __ATOMIC_RELAXED);
	return DAT_SUCCESS;
}

/* HND-7 */
static DAT_RETURN get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT *context)
{
	DAPL_ENTERED struct dapl_object *obj = dapl_object_enter_any(handle);

	if (!obj)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!context)
		return BAD_PARAM(2);
	context->as_64 = __atomic_load_n(&obj->context.as_64, __ATOMIC_RELAXED);
	return DAT_SUCCESS;
}

/* HND-1, 3, 4 */
static DAT_RETURN get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type)
{
	DAPL_ENTERED struct dapl_object *obj = dapl_object_enter_any(handle);

	if (!obj)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!type)
		return BAD_PARAM(2);
	*type = (DAT_HANDLE_TYPE)obj->kind;
	return DAT_SUCCESS;
}

/* No provider of this library can take over from another. */
static DAT_RETURN ia_ha_related(DAT_IA_HANDLE ia, const DAT_NAME_PTR provider,
				DAT_BOOLEAN *answer)
{
	DAPL_ENTERED struct dapl_ia *own = dapl_ia_enter(ia);

	if (!own)
		return BAD_HANDLE(IA);
	if (!provider)
		return BAD_PARAM(2);
	if (!answer)
		return BAD_PARAM(3);
	*answer = DAT_FALSE;
	return DAT_SUCCESS;
}

/* --- the table -------------------------------------------------------------------------- */

/* ABI-17 */
static const DAT_PROVIDER table = {
	.ia_open_func = dapl_ia_open,
	.ia_query_func = dapl_ia_query,
	.ia_close_func = dapl_ia_close,
	.set_consumer_context_func = set_consumer_context,
	.get_consumer_context_func = get_consumer_context,
	.get_handle_type_func = get_handle_type,
	.cno_create_func = dapl_cno_create,
	.cno_modify_agent_func = dapl_cno_modify_agent,
	.cno_query_func = dapl_cno_query,
	.cno_free_func = dapl_cno_free,
	.cno_wait_func = dapl_cno_wait,
	.cr_query_func = dapl_cr_query,
	.cr_accept_func = dapl_cr_accept,
	.cr_reject_func = dapl_cr_reject,
	.cr_handoff_func = dapl_cr_handoff,
	.evd_create_func = dapl_evd_create,
	.evd_query_func = dapl_evd_query,
	.evd_modify_cno_func = dapl_evd_modify_cno,
	.evd_enable_func = dapl_evd_enable,
	.evd_disable_func = dapl_evd_disable,
	.evd_wait_func = dapl_evd_wait,
	.evd_resize_func = dapl_evd_resize,
	.evd_post_se_func = dapl_evd_post_se,
	.evd_dequeue_func = dapl_evd_dequeue,
	.evd_free_func = dapl_evd_free,
	.ep_create_func = dapl_eth_ep_create,
	.ep_query_func = dapl_ep_query,
	.ep_modify_func = dapl_ep_modify,
	.ep_connect_func = dapl_ep_connect,
	.ep_dup_connect_func = dapl_ep_dup_connect,
	.ep_disconnect_func = dapl_eth_ep_disconnect,
	.ep_post_send_func = dapl_ep_post_send,
	.ep_post_recv_func = dapl_ep_post_recv,
	.ep_post_rdma_read_func = dapl_ep_post_rdma_read,
	.ep_post_rdma_write_func = dapl_ep_post_rdma_write,
	.ep_get_status_func = dapl_ep_get_status,
	.ep_free_func = dapl_eth_ep_free,
	.lmr_create_func = dapl_lmr_create,
	.lmr_query_func = dapl_lmr_query,
	.lmr_free_func = dapl_lmr_free,
	.rmr_create_func = dapl_rmr_create,
	.rmr_query_func = dapl_rmr_query,
	.rmr_bind_func = dapl_rmr_bind,
	.rmr_free_func = dapl_rmr_free,
	.psp_create_func = dapl_psp_create,
	.psp_query_func = dapl_psp_query,
	.psp_free_func = dapl_psp_free,
	.rsp_create_func = dapl_rsp_create,
	.rsp_query_func = dapl_rsp_query,
	.rsp_free_func = dapl_rsp_free,
	.pz_create_func = dapl_pz_create,
	.pz_query_func = dapl_pz_query,
	.pz_free_func = dapl_pz_free,
	.psp_create_any_func = dapl_psp_create_any,
	.ep_reset_func = dapl_ep_reset,
	.evd_set_unwaitable_func = dapl_evd_set_unwaitable,
	.evd_clear_unwaitable_func = dapl_evd_clear_unwaitable,
	.lmr_sync_rdma_read_func = dapl_lmr_sync_rdma_read,
	.lmr_sync_rdma_write_func = dapl_lmr_sync_rdma_write,
	.ep_create_with_srq_func = dapl_eth_ep_create_with_srq,
	.ep_recv_query_func = dapl_ep_recv_query,
	.ep_set_watermark_func = dapl_ep_set_watermark,
	.srq_create_func = dapl_srq_create,
	.srq_free_func = dapl_srq_free,
	.srq_post_recv_func = dapl_srq_post_recv,
	.srq_query_func = dapl_srq_query,
	.srq_resize_func = dapl_srq_resize,
	.srq_set_lw_func = dapl_srq_set_lw,
	.csp_create_func = dapl_csp_create,
	.csp_query_func = dapl_csp_query,
	.csp_free_func = dapl_csp_free,
	.ep_common_connect_func = dapl_ep_common_connect,
	.rmr_create_for_ep_func = dapl_rmr_create_for_ep,
	.ep_post_send_with_invalidate_func = dapl_ep_post_send_with_invalidate,
	.ep_post_rdma_read_to_rmr_func = dapl_ep_post_rdma_read_to_rmr,
	.cno_fd_create_func = dapl_cno_fd_create,
	.cno_trigger_func = dapl_cno_fetch,
	.ia_ha_related_func = ia_ha_related,
	.handle_extendedop_func = dapl_extension_op,
};

/* --- entries ------------------------------------------------------------------------------ */

static struct dapl_entry *find(const char *name)
{
	struct dapl_entry *entry = entries;

	while (entry && strcmp(entry->info.ia_name, name))
		entry = entry->next;
	return entry;
}

struct dapl_entry *dapl_entry_find(const char *name)
{
	struct dapl_entry *entry;

	dapl_mutex_lock(&entries_lock);
	entry = find(name);
	if (entry && !entry->inits)
		entry = NULL;
	dapl_mutex_unlock(&entries_lock);
	return entry;
}

static struct dapl_entry *new_entry(const DAT_PROVIDER_INFO *info)
{
	struct dapl_entry *entry = calloc(1, sizeof *entry);

	if (!entry)
		return NULL;
	memcpy(&entry->table, &table, sizeof table);
	entry->info = *info;
	entry->table.device_name = entry->info.ia_name;
	entry->next = entries;
	entries = entry;
	return entry;
}

/* The ia_params of all entries, each text once. They stay until the library is unloaded, because a
 * thread may be opening a device with the params that an entry had before. */
static struct params {
	struct params *next;
	char text[];
} *all_params;				/* guarded by entries_lock */

/* Returns the kept copy of a text, or NULL if there is no memory. Called with entries_lock held. */
static const char *keep_params(const char *text)
{
	size_t size = strlen(text) + 1;
	struct params *params = all_params;

	assert_held(&entries_lock);
	while (params && strcmp(params->text, text))
		params = params->next;
	if (params || !(params = malloc(sizeof *params + size)))
		return params ? params->text : NULL;
	memcpy(params->text, text, size);
	params->next = all_params;
	all_params = params;
	return params->text;
}

static struct dapl_entry *use_entry(const DAT_PROVIDER_INFO *info, const char *params)
{
	struct dapl_entry *entry;
	const char *kept;

	dapl_mutex_lock(&entries_lock);
	kept = keep_params(params);
	entry = find(info->ia_name);
	if (!entry)
		entry = new_entry(info);
	if (entry && kept) {
		WRITE_ONCE(entry->params, kept);
		entry->info = *info;
		entry->inits++;
	} else {
		entry = NULL;
	}
	dapl_mutex_unlock(&entries_lock);
	return entry;
}

/* --- the registry's entry points ----------------------------------------------------------- */

#define EXPORT __attribute__((visibility("default")))

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A child that opens its own IA must not find a lock held by a thread of its parent. */
static void entries_before_fork(void)
{
	dapl_mutex_lock(&entries_lock);
}

static void entries_after_fork(void)
{
	dapl_mutex_unlock(&entries_lock);
}

static void ias_before_fork(void)
{
	dapl_async_fork(true);
}

static void ias_after_fork(void)
{
	dapl_async_fork(false);
}

static void leaves_before_fork(void)
{
	dapl_diag_fork_prepare();
	dapl_object_fork(true);
}

static void leaves_after_fork_parent(void)
{
	dapl_object_fork(false);
	dapl_diag_fork_parent();
}

static void leaves_after_fork_child(void)
{
	dapl_object_fork(false);
	dapl_diag_fork_child();
}

static void watch_forks(void)
{
	static struct dapl_fork_part entries = { .rank = RANK_ENTRIES, .before = entries_before_fork,
		.parent = entries_after_fork, .child = entries_after_fork };
	static struct dapl_fork_part ias = { .rank = RANK_IAS, .before = ias_before_fork,
		.parent = ias_after_fork, .child = ias_after_fork };
	static struct dapl_fork_part leaves = { .rank = RANK_DIAG, .before = leaves_before_fork,
		.parent = leaves_after_fork_parent, .child = leaves_after_fork_child };

	dapl_fork_register(&entries);
	dapl_eth_rule_forks();
	dapl_net_watch_forks();
	dapl_fork_register(&ias);
	dapl_fork_register(&leaves);
}

/* The kinds of trace records that bits of DAPL_DBG_TYPE show, besides errors and warnings. */
static const struct trace_logged kinds[] = {
	{ "ep", DBG_EP }, { "qp", DBG_EP }, { "evd", DBG_EVD }, { "cq", DBG_EVD },
	{ "conn", DBG_CM }, { "sp", DBG_CM }, { "port", DBG_CM }, { "srq", DBG_SRQ },
	{ "ia", DBG_UTIL }, { "provider", DBG_UTIL }, { NULL, 0 },
};

/* The registry's dats_keep_closed; NULL for registries of other projects. */
static void (*keep_closed)(void *object);

static void start_library(void)
{
	*(void **)&keep_closed = dapl_registry_function("dats_keep_closed");
	watch_forks();
	dapl_ep_conn_start();
	log_set_handler((log_handler)dapl_registry_function("dats_offer_message"));
	log_init("dapl", "DAPL_DBG_TYPE", "DAPL_DBG_LEVEL", "DAPL_DBG_DEST", DBG_ERR | DBG_WARN);
	trace_init("DAPL_TRACE_LEVEL");
	trace_log_kinds(kinds);
	dapl_settings_read();
	dapl_control_verbs_init();
	dapl_tap_init();
	dapl_tap_posts_init();
	dapl_tap_client_init();
	log_flush();
}

EXPORT void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params);
EXPORT void dat_provider_fini(const DAT_PROVIDER_INFO *info);
EXPORT DAT_RETURN dapl_extensions(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args);

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params)
{
	struct dapl_entry *entry;
	DAT_RETURN ret;

	pthread_once(&once, start_library);
	if (!info)
		return;
	entry = use_entry(info, params ? params : "");
	if (!entry) {
		log_report(REPORT_NO_MEMORY, LOG_FIELDS(.ia = info->ia_name), "%s: no memory",
			   info->ia_name);
		return;
	}
	ret = dat_registry_add_provider(&entry->table, &entry->info);
	if (ret != DAT_SUCCESS)
		trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "provider", entry, NULL,
		      "%s not registered: 0x%x", info->ia_name, ret);
}

void dat_provider_fini(const DAT_PROVIDER_INFO *info)
{
	struct dapl_entry *entry;

	dapl_mutex_lock(&entries_lock);
	entry = info ? find(info->ia_name) : NULL;
	if (entry && entry->inits)
		entry->inits--;
	dapl_mutex_unlock(&entries_lock);
	if (entry)
		dat_registry_remove_provider(&entry->table, &entry->info);
}

/* The name under which providers have always exported it. */
DAT_RETURN dapl_extensions(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	return dapl_extension_op(handle, op, args);
}

/* Runs at unload or at exit. If IAs are open, the process exits, and threads of the program may be in calls
 * of this library. Then only the service thread is stopped, and all else ends with the process. */
__attribute__((destructor)) static void stop_library(void)
{
	struct dapl_entry *entry;
	struct params *params;

	log_flush();
	if (dapl_async_any_ia()) {
		dapl_service_abandon();
		dapl_diag_flush();
		return;
	}
	dapl_object_fini(keep_closed);
	while ((entry = entries)) {
		entries = entry->next;
		free(entry);
	}
	while ((params = all_params)) {
		all_params = params->next;
		free(params);
	}
	log_fini();
	trace_fini();
	dapl_tap_fini();
	dapl_fork_end();
}
