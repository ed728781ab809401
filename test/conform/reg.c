/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reg.c - what a consumer of a real provider sees of the registry: opening by name,
 * handles, the list of providers. What needs a made-up provider or a made-up dat.conf is
 * not here. */
#include "actors.h"
#include "pair.h"
#include <string.h>

static DAT_RETURN try_open(const char *name, DAT_UINT32 major, DAT_UINT32 minor, DAT_IA_HANDLE *instance)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	return dat_ia_openv((DAT_NAME_PTR)name, 8, &async, instance, major, minor, DAT_FALSE);
}

/* Returns the names of the registry, in memory of their own. */
#define MAX_PROVIDERS 200
static DAT_PROVIDER_INFO info[MAX_PROVIDERS];
static DAT_PROVIDER_INFO *list[MAX_PROVIDERS];

static DAT_COUNT list_providers(void)
{
	DAT_COUNT n = -77;

	for (int i = 0; i < MAX_PROVIDERS; i++)
		list[i] = &info[i];
	memset(info, 0xee, sizeof(info));
	OK(dat_registry_list_providers(MAX_PROVIDERS, &n, list));
	return n;
}

TEST("REG-1", an_ia_has_a_name)
{
	DAT_IA_HANDLE instance;

	FAILS(try_open(NULL, 2, 0, &instance), DAT_INVALID_PARAMETER | DAT_INVALID_ARG1);
}

TEST("REG-2", the_name_of_an_ia_is_shorter_than_256)
{
	char name[300];
	DAT_IA_HANDLE instance;

	memset(name, 'n', sizeof(name));
	name[256] = 0;
	FAILS(try_open(name, 2, 0, &instance), DAT_INVALID_PARAMETER | DAT_INVALID_ARG1);
	name[255] = 0;
	FAILS(try_open(name, 2, 0, &instance), DAT_PROVIDER_NOT_FOUND);
}

TEST("REG-3", no_ia_has_an_empty_name)
{
	DAT_IA_HANDLE instance;

	FAILS(try_open("", 2, 0, &instance), DAT_PROVIDER_NOT_FOUND | DAT_NAME_NOT_REGISTERED);
}

TEST("REG-4", opening_wants_room_for_the_handle)
{
	FAILS(try_open(ia_name(), 2, 0, NULL), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA);
}

TEST("REG-5", opening_wants_room_for_the_async_evd)
{
	DAT_IA_HANDLE instance;

	FAILS(dat_ia_openv(ia_name(), 8, NULL, &instance, 2, 0, DAT_FALSE),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
}

TEST("REG-6", an_unknown_ia_is_not_opened)
{
	DAT_IA_HANDLE instance = (DAT_IA_HANDLE)77;

	FAILS(try_open("no such adapter", 2, 0, &instance), DAT_PROVIDER_NOT_FOUND | DAT_NAME_NOT_REGISTERED);
	EQUAL(instance, (DAT_IA_HANDLE)77);
}

TEST("REG-7", an_ia_is_opened_with_its_version)
{
	DAT_IA_HANDLE instance;

	FAILS(try_open(ia_name(), 1, 0, &instance), DAT_PROVIDER_NOT_FOUND);
	FAILS(try_open(ia_name(), 3, 0, &instance), DAT_PROVIDER_NOT_FOUND);
	FAILS(try_open(ia_name(), 2, 7, &instance), DAT_PROVIDER_NOT_FOUND);
}

TEST("REG-8", a_thread_safe_ia_comes_from_a_threadsafe_entry)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE instance;
	bool safe = false;
	DAT_COUNT n = list_providers();

	for (int i = 0; i < n; i++)
		safe |= !strcmp(info[i].ia_name, ia_name()) && info[i].dapl_version_major == 2 &&
			info[i].is_thread_safe;
	if (safe)
		OK(dat_ia_openv(ia_name(), 8, &async, &instance, 2, 0, DAT_TRUE));
	else
		FAILS(dat_ia_openv(ia_name(), 8, &async, &instance, 2, 0, DAT_TRUE), DAT_PROVIDER_NOT_FOUND);
	OK(try_open(ia_name(), 2, 0, &instance));
}

TEST("REG-10", an_ia_handle_is_a_small_number)
{
	HOLDS((uintptr_t)ia() > 0);
	HOLDS((uintptr_t)ia() < 65536);
}

TEST("REG-11", two_opens_give_two_handles)
{
	DAT_IA_HANDLE first, second;

	OK(try_open(ia_name(), 2, 0, &first));
	OK(try_open(ia_name(), 2, 0, &second));
	HOLDS(first != second);
	OK(dat_ia_close(first, DAT_CLOSE_ABRUPT_FLAG));
	OK(dat_ia_close(second, DAT_CLOSE_ABRUPT_FLAG));
}

TEST("REG-12", numbers_of_closed_ias_are_used_again)
{
	DAT_IA_HANDLE instance;

	for (int i = 0; i < 10; i++) {
		OK(try_open(ia_name(), 2, 0, &instance));
		HOLDS((uintptr_t)instance < 65536);
		OK(dat_ia_close(instance, DAT_CLOSE_ABRUPT_FLAG));
	}
}

TEST("REG-21", a_closed_ia_is_not_closed_again)
{
	DAT_IA_HANDLE instance;

	OK(try_open(ia_name(), 2, 0, &instance));
	OK(dat_ia_close(instance, DAT_CLOSE_ABRUPT_FLAG));
	FAILS(dat_ia_close(instance, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA);
	FAILS(dat_ia_query(instance, NULL, 0, NULL, 0, NULL), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA);
}

TEST("REG-22", an_ia_never_opened_is_not_closed)
{
	ia();
	FAILS(dat_ia_close((DAT_IA_HANDLE)12345, DAT_CLOSE_ABRUPT_FLAG),
	      DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA);
}

TEST("REG-34", the_list_of_providers_has_a_length)
{
	list_providers();
	FAILS(dat_registry_list_providers(MAX_PROVIDERS, NULL, list), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

TEST("REG-35", the_list_of_providers_is_somewhere)
{
	DAT_COUNT n = -77;

	FAILS(dat_registry_list_providers(8, &n, NULL), DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	EQUAL(n, -77);
}

TEST("REG-36", a_list_of_no_length_tells_how_many_there_are)
{
	DAT_COUNT total = list_providers(), n = -77;

	FAILS(dat_registry_list_providers(0, &n, list), DAT_INVALID_PARAMETER | DAT_INVALID_ARG1);
	EQUAL(n, total);
}

TEST("REG-37", a_list_long_enough_holds_all_providers)
{
	DAT_COUNT total = list_providers();
	bool found = false;

	HOLDS(total > 0);
	for (int i = 0; i < total; i++) {
		HOLDS(memchr(info[i].ia_name, 0, sizeof(info[i].ia_name)));
		found |= !strcmp(info[i].ia_name, ia_name());
	}
	HOLDS(found);
}

TEST("REG-38", a_list_too_short_is_filled)
{
	DAT_COUNT total = list_providers(), n = -77;

	if (total < 2)
		skip("the registry has one provider only");
	DAT_RETURN ret = dat_registry_list_providers(1, &n, list);
	if (ret != DAT_SUCCESS)
		FAILS(ret, DAT_INVALID_PARAMETER);
	EQUAL(n, ret == DAT_SUCCESS ? 1 : total);
}

TEST("REG-39", a_list_of_negative_length_is_empty)
{
	DAT_COUNT n = -77;

	list_providers();
	OK(dat_registry_list_providers(-1, &n, list));
	EQUAL(n, 0);
}

/* The registry's helper for providers: consumers can call it, if they know it. */
DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE *ia_handle);

TEST("REG-40 REG-42", handles_of_ias_are_translated_both_ways)
{
	DAT_IA_HANDLE object = DAT_HANDLE_NULL, number = DAT_HANDLE_NULL;

	OK(dats_get_ia_handle(ia(), &object));
	HOLDS((uintptr_t)object > 65536);
	/* The object begins with the provider's table, as all objects of the IA do. */
	EQUAL(*(void **)object, *(void **)a_pz());
	OK(dats_get_ia_handle(object, &number));
	EQUAL(number, ia());
}

TEST("ABI-16 ABI-17", every_object_begins_with_a_table_that_has_no_hole)
{
	struct zoo zoo = a_zoo();
	void **table = *(void ***)zoo.pz;

	for (int i = 1; i < ZOO_SIZE; i++)	/* the IA is a number */
		if (zoo_handle(&zoo, i))
			EQUAL(*(void ***)zoo_handle(&zoo, i), table);
	for (int slot = 2; slot < 81; slot++)	/* behind the device's name and the extension */
		if (!table[slot])
			fail("expected a function in slot %d of the provider's table, found NULL", slot);
}

TEST("REG-41 REG-43", handles_of_closed_ias_are_not_translated)
{
	DAT_IA_HANDLE instance, object, out;
	int something;

	OK(try_open(ia_name(), 2, 0, &instance));
	OK(dats_get_ia_handle(instance, &object));
	OK(dat_ia_close(instance, DAT_CLOSE_ABRUPT_FLAG));
	FAILS(dats_get_ia_handle(instance, &out), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA);
	FAILS(dats_get_ia_handle(object, &out), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA);
	FAILS(dats_get_ia_handle(DAT_HANDLE_NULL, &out), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA);
	FAILS(dats_get_ia_handle(&something, &out), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA);
}

TEST("REG-45", the_providers_own_pointer_is_no_ia_handle)
{
	DAT_IA_HANDLE object;
	DAT_PZ_HANDLE pz;

	OK(dats_get_ia_handle(ia(), &object));
	FAILS(dat_pz_create(object, &pz), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA);
	FAILS(dat_ia_query(object, NULL, 0, NULL, 0, NULL), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA);
}

static DAT_IA_HANDLE opened[8];

static void open_one(void *arg __attribute__((unused)), int me)
{
	OK(try_open(ia_name(), 2, 0, &opened[me]));
}

TEST("REG-49", threads_that_open_one_name_at_once_all_succeed)
{
	crew(8, open_one, NULL);
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < i; j++)
			HOLDS(opened[i] != opened[j]);
	for (int i = 0; i < 8; i++)
		OK(dat_ia_close(opened[i], DAT_CLOSE_GRACEFUL_FLAG));
}

static void open_and_close(void *arg __attribute__((unused)), int me)
{
	for (int i = 0; i < 5; i++) {
		DAT_IA_HANDLE instance;
		DAT_PZ_HANDLE pz;
		OK(try_open(ia_name(), 2, 0, &instance));
		OK(dat_pz_create(instance, &pz));
		if ((i + me) % 2)
			OK(dat_pz_free(pz));
		OK(dat_ia_close(instance, DAT_CLOSE_ABRUPT_FLAG));
	}
}

TEST("REG-51", threads_open_and_close_for_a_while)
{
	crew(8, open_and_close, NULL);
	OK(dat_pz_free(a_pz()));
}
