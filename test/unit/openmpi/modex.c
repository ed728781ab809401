/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* modex.c - see modex.h. Open MPI 4.1 has a table of functions, 5.0 calls PMIx. */
#include "test/unit/openmpi/modex.h"

const void *modex_theirs;
size_t modex_theirs_size;
uint32_t modex_without;
int modex_put_result, modex_puts;
struct udapl_address modex_ours[160];
size_t modex_ours_size;

static int put(const char *key, const void *data, size_t size)
{
	assert_non_null(strstr(key, "udapl"));
	assert_true(size <= sizeof modex_ours);
	modex_puts++;
	memcpy(modex_ours, data, size);
	modex_ours_size = size;
	return modex_put_result;
}

/* Returns a copy of what the process has published, or NULL if that is nothing. */
static char *get(uint32_t vpid, const char *key)
{
	char *copy;

	assert_non_null(strstr(key, "udapl"));
	if (!modex_theirs || vpid == modex_without)
		return NULL;
	copy = malloc(modex_theirs_size + 1);
	assert_non_null(copy);
	memcpy(copy, modex_theirs, modex_theirs_size);
	return copy;
}

#if BTL_VERSION >= 330
int opal_pmix_convert_jobid(pmix_nspace_t nspace, opal_jobid_t jobid)
{
	(void)jobid;
	memset(nspace, 0, sizeof(pmix_nspace_t));
	return OPAL_SUCCESS;
}

pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *value)
{
	assert_int_equal(scope, UDAPL_MODEX_SCOPE);
	return put(key, value->data.bo.bytes, value->data.bo.size);
}

pmix_status_t PMIx_Get(const pmix_proc_t *of, const char key[], const pmix_info_t info[], size_t n,
		       pmix_value_t **value)
{
	char *data = get(of->rank, key);

	(void)info, (void)n;
	*value = NULL;
	if (!data)
		return PMIX_ERR_NOT_FOUND;
	PMIX_VALUE_CREATE(*value, 1);
	(*value)->type = PMIX_BYTE_OBJECT;
	(*value)->data.bo.bytes = data;
	(*value)->data.bo.size = modex_theirs_size;
	return PMIX_SUCCESS;
}

static void replace(void)
{
}
#else
static int put_value(opal_pmix_scope_t scope, opal_value_t *value)
{
	assert_int_equal(scope, UDAPL_MODEX_SCOPE);
	assert_int_equal(value->type, OPAL_BYTE_OBJECT);
	return put(value->key, value->data.bo.bytes, (size_t)value->data.bo.size);
}

static int get_value(const opal_process_name_t *of, const char *key, opal_list_t *info, opal_value_t **value)
{
	char *data = get(of->vpid, key);

	(void)info;
	*value = NULL;
	if (!data)
		return OPAL_ERR_NOT_FOUND;
	*value = OBJ_NEW(opal_value_t);
	(*value)->type = OPAL_BYTE_OBJECT;
	(*value)->data.bo.bytes = (uint8_t *)data;
	(*value)->data.bo.size = (int32_t)modex_theirs_size;
	return OPAL_SUCCESS;
}

static void replace(void)
{
	opal_pmix.put = put_value;
	opal_pmix.get = get_value;
}
#endif

void modex_begin(void)
{
	replace();
	modex_theirs = NULL;
	modex_theirs_size = modex_ours_size = 0;
	modex_without = UINT32_MAX;
	modex_put_result = OPAL_SUCCESS;
	modex_puts = 0;
}
