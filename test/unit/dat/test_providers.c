/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_providers.c - the dynamic registry: whose a registration is, which one serves a key after dat.conf has
 * changed, what a library may remove, and what its unloading leaves. What programs see of it is
 * test/registry/test_providers.c's. */
#include "dat/providers.h"
#include "dat/busy.h"
#include "dat/error.h"
#include "test/unit/dat/conf_text.h"
#include "test/unit/unit.h"

#define A LINE("ia_a", "default", "liba.so", "eth0 0")
#define CHANGED LINE("ia_a", "default", "liba.so", "eth1 0")
#define B LINE("ia_b", "default", "libb.so", "eth0 0")

static const DAT_PROVIDER table;
static DAT_PROVIDER_INFO a, b;
static bool no_memory;

UNIT_FAIL_CALLOC(no_memory)

/* --- fixture ----------------------------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up)
{
	a = key_of("ia_a");
	b = key_of("ia_b");
	no_memory = false;
	registry.started = true;
	registry.table = table_of(A B);
}

static int tear_down(void **state)
{
	provider_free_all();
	table_free(&registry.table);
	memset(&registry.table, 0, sizeof registry.table);
	return registry.providers != NULL;
}

static DAT_RETURN add(const DAT_PROVIDER_INFO *info) { return dat_registry_add_provider(&table, info); }
static DAT_RETURN remove_provider(const DAT_PROVIDER_INFO *info) { return dat_registry_remove_provider(&table, info); }

/* A call that the entry's library makes while it is loaded or unloaded. */
static DAT_RETURN by(struct entry *e, DAT_RETURN (*call)(const DAT_PROVIDER_INFO *), const DAT_PROVIDER_INFO *info)
{
	DAT_RETURN ret;

	dat_mutex_lock(&registry.lock);
	busy_begin(e);
	ret = call(info);
	busy_end(e);
	dat_mutex_unlock(&registry.lock);
	return ret;
}

static struct provider *found(const DAT_PROVIDER_INFO *key)
{
	struct provider *p;

	dat_mutex_lock(&registry.lock);
	p = provider_find(key);
	dat_mutex_unlock(&registry.lock);
	return p;
}

/* The files are read again. An entry that is loaded and changed leaves the table. */
static struct entry *change_files(const char *text)
{
	struct entry *first = registry.table.entries[0];
	struct entry_table fresh = table_of(text);

	first->loaded = true;
	first->users = 1;
	dat_mutex_lock(&registry.lock);
	table_replace(&registry.table, &fresh);
	dat_mutex_unlock(&registry.lock);
	return first;
}

static void free_replaced(struct entry *e)
{
	provider_unlink_of(e);
	e->loaded = false;
	e->users = 0;
	entry_free_replaced(e);
}

UNIT_CASE(both_calls_check_their_arguments)
{
	DAT_RETURN (*const calls[])(const DAT_PROVIDER *, const DAT_PROVIDER_INFO *) = {
		dat_registry_add_provider, dat_registry_remove_provider,
	};
	DAT_PROVIDER_INFO endless = a;

	memset(endless.ia_name, 'n', sizeof endless.ia_name);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(calls[i](NULL, &a), DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
		assert_int_equal(calls[i](&table, NULL), DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
		assert_int_equal(calls[i](&table, &endless), DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	}
	assert_null(registry.providers);
}

/* --- registering -------------------------------------------------------------------------------------------------- */

UNIT_CASE(registration_belongs_to_the_entry_that_is_loaded)
{
	assert_int_equal(by(registry.table.entries[1], add, &a), DAT_SUCCESS);
	assert_ptr_equal(found(&a)->owner, registry.table.entries[1]);
	assert_ptr_equal(found(&a)->table, &table);
	assert_int_equal(add(&b), DAT_SUCCESS);
	assert_null(found(&b)->owner);			/* the program's */
	assert_int_equal(found(&b)->users, 0);
}

UNIT_CASE(info_is_copied)
{
	DAT_PROVIDER_INFO info = a;

	assert_int_equal(add(&info), DAT_SUCCESS);
	memset(&info, 0, sizeof info);
	assert_non_null(found(&a));
}

/* An init returns nothing, so the open reports the lack of memory. */
UNIT_CASE(lack_of_memory_during_an_init_is_remembered)
{
	const DAT_RETURN lack = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);

	no_memory = true;
	assert_int_equal(add(&a), lack);
	assert_false(registry.table.entries[0]->no_memory);		/* the program's call has told */
	assert_int_equal(by(registry.table.entries[0], add, &a), lack);
	assert_true(registry.table.entries[0]->no_memory);
	assert_false(registry.table.entries[1]->no_memory);
	no_memory = false;
	assert_null(found(&a));
}

/* --- removing --------------------------------------------------------------------------------------------------- */

UNIT_CASE(used_provider_stays)
{
	add(&a);
	found(&a)->users = 1;
	assert_int_equal(remove_provider(&a), DAT_ERROR(DAT_PROVIDER_IN_USE, 0));
	assert_non_null(found(&a));
	found(&a)->users = 0;
	assert_int_equal(remove_provider(&a), DAT_SUCCESS);
	assert_int_equal(remove_provider(&a), DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
}

UNIT_CASE(removal_takes_one_of_many)
{
	DAT_PROVIDER_INFO c = key_of("ia_c");

	add(&a);
	add(&b);
	add(&c);
	assert_int_equal(remove_provider(&b), DAT_SUCCESS);
	assert_ptr_equal(registry.providers, found(&a));
	assert_ptr_equal(registry.providers->next, found(&c));
	assert_null(registry.providers->next->next);
}

/* A fini that did not remove what the init had added. */
UNIT_CASE(unloading_takes_what_the_library_left)
{
	DAT_PROVIDER_INFO more = key_of("more"), mine = key_of("mine");

	by(registry.table.entries[0], add, &a);
	add(&mine);
	by(registry.table.entries[0], add, &more);
	by(registry.table.entries[1], add, &b);
	provider_unlink_of(registry.table.entries[0]);
	assert_null(found(&a));
	assert_null(found(&more));
	assert_non_null(found(&mine));
	assert_non_null(found(&b));
}

/* --- after dat.conf has changed --------------------------------------------------------------------------------- */

UNIT_CASE(provider_of_a_changed_entry_serves_its_key)
{
	struct entry *old;

	by(registry.table.entries[0], add, &a);
	old = change_files(CHANGED B);
	assert_true(old->replaced);
	assert_ptr_equal(found(&a)->owner, old);
	assert_int_equal(add(&a), DAT_ERROR(DAT_PROVIDER_ALREADY_REGISTERED, 0));
	free_replaced(old);
	assert_null(found(&a));
}

UNIT_CASE(provider_of_an_entry_that_is_gone_serves_nothing)
{
	struct entry *old;

	by(registry.table.entries[0], add, &a);
	old = change_files(B);
	assert_null(found(&a));
	assert_false(provider_is_current(registry.providers));	/* its IAs are open, so it is still there */
	assert_int_equal(remove_provider(&a), DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
	assert_int_equal(add(&a), DAT_SUCCESS);
	assert_null(found(&a)->owner);
	free_replaced(old);
	assert_non_null(found(&a));
}

UNIT_CASE(library_of_a_replaced_entry_removes_its_own_provider)
{
	DAT_PROVIDER_INFO more = key_of("more");
	struct entry *old;

	by(registry.table.entries[0], add, &more);
	by(registry.table.entries[0], add, &a);
	old = change_files(B);
	add(&a);				/* another one, in its place */
	assert_int_equal(by(old, remove_provider, &a), DAT_SUCCESS);
	assert_non_null(found(&a));
	assert_null(found(&a)->owner);
	assert_string_equal(registry.providers->info.ia_name, "more");
	assert_ptr_equal(registry.providers->next, found(&a));
	assert_int_equal(by(old, remove_provider, &a), DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
	assert_int_equal(by(old, remove_provider, &b), DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
	free_replaced(old);
}

UNIT_MAIN(NULL, NULL)
