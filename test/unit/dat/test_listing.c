/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_listing.c - names and lists of adapters: which entries and providers are in them, in which order, and when the
 * line about an unknown adapter is printed. The rules for arrays are test/registry/test_providers.c's. */
#include "common/log.h"
#include "dat/busy.h"
#include "dat/error.h"
#include "dat/listing.h"
#include "dat/providers.h"
#include "dat/unknown_ia.h"
#include "test/unit/dat/conf_text.h"
#include "test/unit/printed.h"
#include "test/unit/unit.h"

#define A LINE("ia_a", "default", "liba.so", "eth0 0")
#define SAFE_A "ia_a u2.0 threadsafe default libs.so dapl.2.0 \"\" \"\"\n"
#define B LINE("ia_b", "default", "libb.so", "eth0 0")
#define HIDDEN LINE("ia_h", "nondefault", "libh.so", "")

enum { MAX = 8 };
static const DAT_PROVIDER table;
static bool reported_before;

REPLACE(unknown_ia_is_new)
bool __wrap_unknown_ia_is_new(const char *name)
{
	assert_string_equal(name, "ia_x");
	return !reported_before;
}

/* --- fixture ----------------------------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up)
{
	reported_before = conf_unreadable = false;
	conf_shortage = 0;
	conf_text = "";
}

UNIT_FIXTURE(tear_down)
{
	provider_free_all();
	table_free(&registry.table);
	memset(&registry.table, 0, sizeof registry.table);
	registry.started = false;
}

static void files(const char *text)
{
	registry.table = table_of(text);
	registry.started = true;
}

static void add(const char *name, struct entry *owner)
{
	DAT_PROVIDER_INFO info = key_of(name);

	dat_mutex_lock(&registry.lock);
	if (owner)
		busy_begin(owner);
	else
		dat_mutex_unlock(&registry.lock);
	assert_int_equal(dat_registry_add_provider(&table, &info), DAT_SUCCESS);
	if (owner)
		busy_end(owner);
	else
		dat_mutex_lock(&registry.lock);
	dat_mutex_unlock(&registry.lock);
}

/* Names of the list, each with a blank behind it. */
static void lists(const char *expected)
{
	DAT_PROVIDER_INFO infos[MAX], *list[MAX];
	char names[256] = "";
	DAT_COUNT count = 0;

	for (int i = 0; i < MAX; i++)
		list[i] = &infos[i];
	assert_int_equal(dat_registry_list_providers(MAX, &count, list), DAT_SUCCESS);
	for (DAT_COUNT i = 0; i < count; i++)
		strcat(strcat(names, infos[i].ia_name), " ");
	assert_string_equal(names, expected);
}

static void report(void *name)
{
	log_init("t", NULL, NULL, NULL, 1);
	registry_report_unknown(name);
}

/* What is printed about ia_x: "" or the names of a line. */
static void tells(const char *expected)
{
	static char name[] = "ia_x";
	const char *text = printed_by(report, name), *names = strstr(text, "; there ");

	if (!*expected)
		assert_string_equal(text, "");
	else
		assert_string_equal(names ? names + strlen("; there ") : text, expected);
}

/* --- the list --------------------------------------------------------------------------------------------------- */

UNIT_CASE(unlisted_entry_can_be_opened_only)
{
	files(A B);
	registry.table.reading->sources.conf.entries[0].unlisted = true;
	lists("ia_b ");
	tells("are: ia_a ia_b\n");
	add("ia_a", registry.table.entries[0]);
	lists("ia_b ");
}

UNIT_CASE(list_has_each_key_once)
{
	files(B A A SAFE_A HIDDEN);
	lists("ia_b ia_a ia_a ");		/* threadsafe is another key */
}

UNIT_CASE(registered_providers_follow_the_entries)
{
	files(B A);
	add("ia_z", NULL);
	add("ia_m", NULL);
	lists("ia_b ia_a ia_z ia_m ");
}

UNIT_CASE(provider_with_the_key_of_an_entry_is_listed_once)
{
	files(B A HIDDEN);
	add("ia_a", NULL);
	add("ia_b", registry.table.entries[0]);
	add("ia_h", NULL);			/* nothing else lists it */
	lists("ia_b ia_a ia_h ");
}

/* It has IAs open, but serves no new ones. */
UNIT_CASE(provider_of_an_entry_that_is_gone_is_not_listed)
{
	struct entry_table fresh;
	struct entry *old;

	files(A B);
	old = registry.table.entries[0];
	add("ia_a", old);
	old->loaded = true;
	old->users = 1;
	fresh = table_of(B);
	table_replace(&registry.table, &fresh);
	lists("ia_b ");
	tells("are: ia_b\n");
	provider_unlink_of(old);
	old->loaded = false;
	old->users = 0;
	entry_free_replaced(old);
}

UNIT_CASE(list_of_files_that_cannot_be_read_is_an_error)
{
	DAT_COUNT count = 77;

	conf_shortage = EMFILE;
	assert_int_equal(dat_registry_list_providers(0, &count, NULL), DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, 0));
	assert_int_equal(count, 77);
}

UNIT_CASE(places_without_memory_are_passed_over)
{
	DAT_PROVIDER_INFO infos[2], *list[3] = { &infos[0], NULL, &infos[1] };
	DAT_COUNT count = 0;

	files(A B LINE("ia_c", "default", "libc.so", ""));
	assert_int_equal(dat_registry_list_providers(3, &count, list), DAT_SUCCESS);
	assert_int_equal(count, 3);
	assert_string_equal(infos[0].ia_name, "ia_a");
	assert_string_equal(infos[1].ia_name, "ia_c");
}

/* --- the line about an unknown adapter -------------------------------------------------------------------------- */

UNIT_CASE(line_has_each_name_once)
{
	files(HIDDEN B A A SAFE_A);
	tells("are: ia_b ia_a\n");
}

UNIT_CASE(line_has_the_providers_of_programs)
{
	files(B);
	add("ia_b", registry.table.entries[0]);
	add("other", registry.table.entries[0]);	/* only the entry is opened by its name */
	add("ia_z", NULL);
	tells("are: ia_b ia_z\n");
}

UNIT_CASE(known_name_is_not_reported)
{
	files(LINE("ia_x", "default", "libx.so", ""));
	tells("");
	tear_down(state);
	files("");
	add("ia_x", NULL);
	tells("");
}

UNIT_CASE(hidden_name_is_unknown)
{
	files(LINE("ia_x", "nondefault", "libx.so", "") A);
	tells("are: ia_a\n");
}

UNIT_CASE(name_is_reported_once)
{
	files(A);
	reported_before = true;
	tells("");
}

/* That line names the cause. */
UNIT_CASE(file_that_cannot_be_read_was_reported)
{
	conf_unreadable = true;
	files("");
	tells("");
	tear_down(state);
	conf_unreadable = false;
	files(A);
	registry.table.reading->sources.unreadable = true;	/* A is of a drop-in */
	tells("are: ia_a\n");
	tear_down(state);
	files("");
	tells("is none\n");
}

UNIT_CASE(files_that_were_not_read_tell_nothing)
{
	tells("");
}

UNIT_CASE(relation_needs_two_known_names)
{
	char known[] = "ia_a", other[] = "ia_z", unknown[] = "ia_x";
	DAT_HA_RELATIONSHIP answer = (DAT_HA_RELATIONSHIP)77;
	const DAT_RETURN not_found = DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);

	files(A);
	add("ia_z", NULL);
	assert_int_equal(dat_registry_providers_related(known, unknown, &answer), not_found);
	assert_int_equal(dat_registry_providers_related(unknown, known, &answer), not_found);
	assert_int_equal(answer, 77);
	assert_int_equal(dat_registry_providers_related(known, other, &answer), DAT_SUCCESS);
	assert_int_equal(answer, DAT_HA_UNKNOWN);
}

UNIT_MAIN(NULL, NULL)
