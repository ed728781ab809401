/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mock.c - a provider without a device. ia_params say how it misbehaves, by the words
 * that is() looks for below; without any it behaves. It notes what is called. */
#include <dat/udat.h>
#include <dat/dat_registry.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* The test program's; other programs have none. */
extern EXPORT void mock_note(const char *fmt, ...) __attribute__((weak));
#define note(...) do { if (mock_note) mock_note(__VA_ARGS__); } while (0)

/* What one dat_provider_init made. */
struct mock {
	struct mock *next;
	DAT_PROVIDER table;
	DAT_PROVIDER_INFO info;
	DAT_PROVIDER other_table;	/* for registers-two and registers-other-name */
	DAT_PROVIDER_INFO other_info;
	char params[128];
	bool failed_once;
	bool ready;		/* between the end of init and the begin of fini */
};

/* IAs, PZs and queries alike. */
struct object {
	const DAT_PROVIDER *table;
	struct mock *mock;
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT context;
	struct object *ia;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mock *mocks;

#define ERROR(type) ((DAT_RETURN)(DAT_CLASS_ERROR | (type)))

static bool is(const struct mock *mock, const char *word)
{
	return strstr(mock->params, word) != NULL;
}

static struct mock *mock_of_name(const char *name)
{
	struct mock *m;

	pthread_mutex_lock(&lock);
	for (m = mocks; m && strcmp(m->info.ia_name, name) &&
	     strcmp(m->other_info.ia_name, name); m = m->next)
		;
	pthread_mutex_unlock(&lock);
	return m;
}

static struct object *object_new(struct mock *mock, const DAT_PROVIDER *table,
				 DAT_HANDLE_TYPE type)
{
	struct object *o = calloc(1, sizeof(*o));

	o->table = table;
	o->mock = mock;
	o->type = type;
	return o;
}

static DAT_RETURN ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd,
			  DAT_IA_HANDLE *ia)
{
	struct mock *m = mock_of_name(name);

	(void)evd;
	note("open %s %d", name, qlen);
	if (!__atomic_load_n(&m->ready, __ATOMIC_ACQUIRE))
		note("open outside init and fini");
	if (is(m, "open-fails"))
		return ERROR(DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_TEP);
	if (is(m, "open-gives-nothing"))
		return DAT_SUCCESS;
	*ia = object_new(m, strcmp(m->other_info.ia_name, name) ? &m->table : &m->other_table,
			 DAT_HANDLE_TYPE_IA);
	return DAT_SUCCESS;
}

/* True the first time. */
static bool fails_once(struct mock *m, const char *word)
{
	return is(m, word) && !__atomic_exchange_n(&m->failed_once, true, __ATOMIC_RELAXED);
}

static DAT_RETURN query_provider(struct object *o, DAT_PROVIDER_ATTR *attr)
{
	const DAT_PROVIDER_INFO *info = &o->mock->info;

	if (fails_once(o->mock, "query-fails-in-close"))
		return ERROR(DAT_INTERNAL_ERROR);
	if (!attr)
		return DAT_SUCCESS;
	attr->dapl_version_major = info->dapl_version_major;
	attr->dapl_version_minor = info->dapl_version_minor +
				   (is(o->mock, "reports-other-version") ? 1 : 0);
	attr->is_thread_safe = info->is_thread_safe;
	return DAT_SUCCESS;
}

static DAT_RETURN ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *evd, DAT_IA_ATTR_MASK ia_mask,
			   DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK provider_mask,
			   DAT_PROVIDER_ATTR *provider_attr)
{
	struct object *o = ia;

	note("query %s evd %s ia %s %s provider %s %s", o->table->device_name,
	     evd ? "yes" : "no", ia_mask == DAT_IA_FIELD_ALL ? "all" : ia_mask ? "some" : "none",
	     ia_attr ? "yes" : "no",
	     provider_mask == DAT_PROVIDER_FIELD_ALL ? "all" : provider_mask ? "some" : "none",
	     provider_attr ? "yes" : "no");
	if (ia_mask && is(o->mock, "query-fails-in-open"))
		return ERROR(DAT_INTERNAL_ERROR);
	if (ia_attr)
		ia_attr->extension_supported = is(o->mock, "extensions") ?
			DAT_EXTENSION_IB : DAT_EXTENSION_NONE;
	return provider_mask ? query_provider(o, provider_attr) : DAT_SUCCESS;
}

static DAT_RETURN ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags)
{
	struct object *o = ia;
	DAT_IA_HANDLE number;

	note("close %s %d", o->table->device_name, flags);
	if (fails_once(o->mock, "close-fails"))
		return ERROR(DAT_INVALID_STATE | DAT_INVALID_STATE_IA_IN_USE);
	if (is(o->mock, "looks-itself-up") && dats_get_ia_handle(ia, &number))
		note("close: not known any more");
	free(o);
	return DAT_SUCCESS;
}

static DAT_RETURN get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type)
{
	*type = ((struct object *)handle)->type;
	return DAT_SUCCESS;
}

static DAT_RETURN set_context(DAT_HANDLE handle, DAT_CONTEXT context)
{
	((struct object *)handle)->context = context;
	return DAT_SUCCESS;
}

static DAT_RETURN get_context(DAT_HANDLE handle, DAT_CONTEXT *context)
{
	*context = ((struct object *)handle)->context;
	return DAT_SUCCESS;
}

static DAT_RETURN pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *pz)
{
	struct object *o = ia, *made = object_new(o->mock, o->table, DAT_HANDLE_TYPE_PZ);

	made->ia = o;
	*pz = made;
	return DAT_SUCCESS;
}

static DAT_RETURN pz_query(DAT_PZ_HANDLE pz, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *param)
{
	(void)mask;
	param->ia_handle = ((struct object *)pz)->ia;
	return DAT_SUCCESS;
}

static DAT_RETURN pz_free(DAT_PZ_HANDLE pz)
{
	free(pz);
	return DAT_SUCCESS;
}

static DAT_RETURN query_open(const char *name, va_list args)
{
	struct mock *m = mock_of_name(name);
	DAT_HANDLE *out = va_arg(args, DAT_HANDLE *);
	DAT_IA_ATTR_MASK ia_mask = va_arg(args, DAT_IA_ATTR_MASK);
	DAT_IA_ATTR *ia_attr = va_arg(args, DAT_IA_ATTR *);
	DAT_PROVIDER_ATTR_MASK provider_mask = va_arg(args, DAT_PROVIDER_ATTR_MASK);

	note("open-query %s ia %s provider %s", name,
	     ia_mask == DAT_IA_FIELD_ALL ? "all" : "some",
	     provider_mask == DAT_PROVIDER_FIELD_ALL ? "all" : "some");
	if (is(m, "open-query-fails"))
		return ERROR(DAT_INTERNAL_ERROR);
	ia_attr->max_eps = 77;
	*out = object_new(m, &m->table, DAT_HANDLE_TYPE_IA);
	return DAT_SUCCESS;
}

static DAT_RETURN extendedop(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args)
{
	struct object *o = handle;

	if (op == DAT_OPEN_EXTENSION_BASE)
		return query_open((const char *)handle, args);
	if (op == DAT_CLOSE_EXTENSION_BASE) {
		note("close-query %s", o->table->device_name);
		if (fails_once(o->mock, "close-query-fails"))
			return ERROR(DAT_INTERNAL_ERROR);
		free(o);
		return DAT_SUCCESS;
	}
	note("extended %s op %d %d", o->table->device_name, op, va_arg(args, int));
	return op == 1 ? DAT_SUCCESS : ERROR(DAT_NOT_IMPLEMENTED);
}

/* The rest is NULL, as in a provider for an older header. */
static const DAT_PROVIDER the_table = {
	.ia_open_func = ia_open,
	.ia_query_func = ia_query,
	.ia_close_func = ia_close,
	.get_handle_type_func = get_handle_type,
	.set_consumer_context_func = set_context,
	.get_consumer_context_func = get_context,
	.pz_create_func = pz_create,
	.pz_query_func = pz_query,
	.pz_free_func = pz_free,
	.handle_extendedop_func = extendedop,
};

static void *register_it(void *arg)
{
	struct mock *m = arg;

	if (dat_registry_add_provider(&m->table, &m->info))
		note("add refused");
	return NULL;
}

static void register_in_thread(struct mock *m)
{
	pthread_t thread;

	pthread_create(&thread, NULL, register_it, m);
	pthread_join(thread, NULL);
}

static void register_other(struct mock *m)
{
	m->other_info = m->info;
	strcat(m->other_info.ia_name, "-other");
	m->other_table.device_name = m->other_info.ia_name;
	dat_registry_add_provider(&m->other_table, &m->other_info);
}

static void open_itself(struct mock *m)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	note("open in init: 0x%x", dat_ia_open(m->info.ia_name, 8, &evd, &ia));
}

EXPORT void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params);
EXPORT void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params)
{
	struct mock *m = calloc(1, sizeof(*m));

	note("init %s %u.%u %s [%s]", info->ia_name, info->dapl_version_major,
	     info->dapl_version_minor, info->is_thread_safe ? "threadsafe" : "nonthreadsafe",
	     params);
	m->info = *info;
	m->table = m->other_table = the_table;
	m->table.device_name = m->info.ia_name;
	snprintf(m->params, sizeof(m->params), "%s", params);
	pthread_mutex_lock(&lock);
	m->next = mocks;
	mocks = m;
	pthread_mutex_unlock(&lock);
	if (is(m, "slow"))
		usleep(20000);
	if (is(m, "registers-two") || is(m, "registers-other-name"))
		register_other(m);
	if (is(m, "registers-in-thread"))
		register_in_thread(m);
	else if (!is(m, "registers-nothing") && !is(m, "registers-other-name"))
		register_it(m);
	if (is(m, "opens-itself"))
		open_itself(m);
	if (is(m, "slow"))
		usleep(20000);
	__atomic_store_n(&m->ready, true, __ATOMIC_RELEASE);
}

EXPORT void dat_provider_fini(const DAT_PROVIDER_INFO *info);
EXPORT void dat_provider_fini(const DAT_PROVIDER_INFO *info)
{
	struct mock **at, *m = mock_of_name(info->ia_name);

	note("fini %s", info->ia_name);
	__atomic_store_n(&m->ready, false, __ATOMIC_RELEASE);
	if (is(m, "slow"))
		usleep(20000);
	if (!is(m, "forgets-to-remove"))
		dat_registry_remove_provider(&m->table, &m->info);
	pthread_mutex_lock(&lock);
	for (at = &mocks; *at != m; at = &(*at)->next)
		;
	*at = m->next;
	pthread_mutex_unlock(&lock);
	free(m);
}

static void __attribute__((destructor)) unloaded(void)
{
	note("unloaded");
}
