/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* endpoint.c - the endpoints of a module, one for each process. connect.c connects them. */
#include "endpoint.h"
#include <string.h>

static void endpoint_construct(mca_btl_base_endpoint_t *e)
{
	memset((char *)e + sizeof e->super, 0, sizeof *e - sizeof e->super);
	udapl_mutex_init(&e->lock, RANK_BTL_ENDPOINT);
	OBJ_CONSTRUCT(&e->sends, opal_list_t);
	OBJ_CONSTRUCT(&e->rdmas, opal_list_t);
	OBJ_CONSTRUCT(&e->flushed_sends, opal_list_t);
	OBJ_CONSTRUCT(&e->flushed_rdmas, opal_list_t);
}

static void endpoint_destruct(mca_btl_base_endpoint_t *e)
{
	/* The free lists own the items and free them. */
	while (opal_list_remove_first(&e->sends) || opal_list_remove_first(&e->rdmas) ||
	       opal_list_remove_first(&e->flushed_sends) || opal_list_remove_first(&e->flushed_rdmas))
		;
	OBJ_DESTRUCT(&e->sends);
	OBJ_DESTRUCT(&e->rdmas);
	OBJ_DESTRUCT(&e->flushed_sends);
	OBJ_DESTRUCT(&e->flushed_rdmas);
	udapl_mutex_fini(&e->lock);
}
OBJ_CLASS_INSTANCE(mca_btl_base_endpoint_t, opal_list_item_t, endpoint_construct,
		   endpoint_destruct);

static uint64_t key_of(opal_process_name_t name)
{
	return (uint64_t)name.jobid << 32 | name.vpid;
}

/* Called with m->lock held. Returns NULL if the endpoint cannot be added to the hash table. Without
 * an entry there, the next look-up would create a second endpoint for the same process. */
static mca_btl_base_endpoint_t *new_endpoint(mca_btl_udapl_module_t *m, opal_process_name_t name)
{
	mca_btl_base_endpoint_t *e = OBJ_NEW(mca_btl_base_endpoint_t);

	assert_held(&m->lock);
	if (!e)
		return NULL;
	e->module = m;
	e->name = name;
	if (opal_hash_table_set_value_uint64(&m->by_name, key_of(name), e) == OPAL_SUCCESS)
		return e;
	OBJ_RELEASE(e);
	return NULL;
}

mca_btl_base_endpoint_t *udapl_endpoint_of(mca_btl_udapl_module_t *m, opal_process_name_t name)
{
	mca_btl_base_endpoint_t *e = NULL;
	void *found;

	udapl_mutex_lock(&m->lock);
	if (opal_hash_table_get_value_uint64(&m->by_name, key_of(name), &found) == OPAL_SUCCESS) {
		e = found;
	} else if ((e = new_endpoint(m, name)) != NULL) {
		opal_list_append(&m->endpoints, &e->super);
	}
	udapl_mutex_unlock(&m->lock);
	return e;
}
