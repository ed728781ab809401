/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_lookup.c - opens and closes in the registry: which entry serves a key, when its library is loaded and
 * unloaded, and why none serves it. Calls during a load are test_lookup_busy.c's; what programs see of it is in
 * test/registry. */
#include "dat/lookup.h"
#include "common/log.h"
#include "dat/error.h"
#include "test/unit/dat/libraries.h"
#include "test/unit/unit.h"

#define CHANGED_A LINE("ia_a", "default", "liba.so", "eth1 0")
#define SECOND_A LINE("ia_a", "default", "libc.so", "eth0 0")
#define SAFE_A "ia_a u2.0 threadsafe default libs.so dapl.2.0 \"\" \"\"\n"
#define NEWER_A "ia_a u2.1 nonthreadsafe default libn.so dapl.2.0 \"\" \"\"\n"

#define NOT_FOUND(part) DAT_ERROR(DAT_PROVIDER_NOT_FOUND, part)

static char reports[1024];		/* lines for the administrator */
static bool no_memory;
static enum log_id reported;

UNIT_FAIL_CALLOC(no_memory)

REPLACE(log_report)
void __wrap_log_report(enum log_id id, const struct log_fields *fields, const char *fmt, ...)
{
	size_t used = strlen(reports);
	va_list args;

	if (id == REPORT_CONF_FILE)
		return;
	assert_string_equal(fields->result, "DAT_PROVIDER_NOT_FOUND");
	assert_true(id == REPORT_LIBRARY_NOT_LOADED || id == REPORT_NO_PROVIDER || id == REPORT_NOT_REGISTERED);
	reported = id;
	va_start(args, fmt);
	used += (size_t)vsnprintf(reports + used, sizeof reports - used, fmt, args);
	va_end(args);
	snprintf(reports + used, sizeof reports - used, "\n");
}

static int begin(void **state)
{
	*reports = '\0';
	no_memory = false;
	return libraries_begin(state);
}

/* A failing open leaves the caller's pointer. */
static void fails_with(DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN safe, DAT_RETURN expected)
{
	struct provider mine, *p = &mine;

	assert_int_equal(registry_get("ia_a", major, minor, safe, &p), expected);
	assert_ptr_equal(p, &mine);
}

static void fails(DAT_RETURN expected) { fails_with(2, 0, DAT_FALSE, expected); }

static void replace_files(const char *text)
{
	struct entry_table fresh = table_of(text);

	dat_mutex_lock(&registry.lock);
	table_replace(&registry.table, &fresh);
	dat_mutex_unlock(&registry.lock);
}

#define TEST(name) UNIT_TEST_WITH(name, begin, libraries_end)

/* --- loading and unloading -------------------------------------------------------------------------------------- */

TEST(each_entry_has_its_own_users)
{
	struct provider *a, *b;

	a = opened("ia_a");
	b = opened("ia_b");
	took("open:liba.so init:ia_a[eth0 0] open:libb.so init:ia_b[eth0 0] ");
	registry_put(a);
	took("fini:ia_a close ");
	registry_put(b);
	took("fini:ia_b close ");
}

static void register_more(void) { register_ia("more", 2, 0, DAT_FALSE); }

TEST(first_open_reads_the_files)
{
	conf_reads = 0;
	opened("ia_a");
	opened("ia_b");
	assert_int_equal(conf_reads, 1);
}

TEST(other_entry_serves_no_caller_that_needs_thread_safety)
{
	fails_with(2, 0, DAT_TRUE, NOT_FOUND(DAT_THREAD_SAFETY_NOT_FOUND));
	fails_with(2, 0, (DAT_BOOLEAN)2, NOT_FOUND(DAT_THREAD_SAFETY_NOT_FOUND));	/* any value but 0 is true */
	took("");
}

/* --- why there is none ------------------------------------------------------------------------------------------ */

TEST(unknown_part_of_the_key_is_told)
{
	static const struct { const char *text; DAT_UINT32 major, minor; DAT_BOOLEAN safe; unsigned part; } cases[] = {
		{ "", 2, 0, DAT_FALSE, DAT_NAME_NOT_REGISTERED },
		{ B, 2, 0, DAT_FALSE, DAT_NAME_NOT_REGISTERED },
		{ LINE("ia_a", "nondefault", "liba.so", ""), 2, 0, DAT_FALSE, DAT_NAME_NOT_REGISTERED },
		{ LINE("ia_a", "nondefault", "liba.so", ""), 3, 0, DAT_FALSE, DAT_NAME_NOT_REGISTERED },
		{ A NEWER_A, 1, 0, DAT_FALSE, DAT_MAJOR_NOT_FOUND },
		{ A NEWER_A, 3, 0, DAT_TRUE, DAT_MAJOR_NOT_FOUND },
		{ A NEWER_A, 2, 7, DAT_FALSE, DAT_MINOR_NOT_FOUND },
		{ A NEWER_A, 2, 7, DAT_TRUE, DAT_MINOR_NOT_FOUND },
		{ A NEWER_A, 2, 1, DAT_TRUE, DAT_THREAD_SAFETY_NOT_FOUND },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		conf_text = cases[i].text;
		fails_with(cases[i].major, cases[i].minor, cases[i].safe, NOT_FOUND(cases[i].part));
		took("");
		libraries_end(state);
	}
	assert_string_equal(reports, "");
}

TEST(registered_providers_make_parts_of_a_key_known)
{
	conf_text = "";
	register_ia("ia_a", 2, 3, DAT_FALSE);
	fails_with(1, 3, DAT_FALSE, NOT_FOUND(DAT_MAJOR_NOT_FOUND));
	fails(NOT_FOUND(DAT_MINOR_NOT_FOUND));
	fails_with(2, 3, DAT_TRUE, NOT_FOUND(DAT_THREAD_SAFETY_NOT_FOUND));
}

/* Its IAs are open. */
TEST(provider_of_an_entry_that_is_gone_makes_nothing_known)
{
	struct provider *p;

	p = opened("ia_a");
	replace_files(B);
	fails_with(1, 0, DAT_FALSE, NOT_FOUND(DAT_NAME_NOT_REGISTERED));
	dat_mutex_lock(&registry.lock);
	assert_false(name_is_known("ia_a"));
	assert_true(name_is_known("ia_b"));
	dat_mutex_unlock(&registry.lock);
	registry_put(p);
}

TEST(library_that_is_no_provider_has_an_id_of_its_own)
{
	conf_text = A;
	lacks_calls = true;
	fails(NOT_FOUND(DAT_NAME_NOT_REGISTERED));
	assert_int_equal(reported, REPORT_NO_PROVIDER);
}

TEST(each_missing_library_is_reported)
{
	conf_text = A SECOND_A SAFE_A;
	missing = "*";
	fails(NOT_FOUND(DAT_NAME_NOT_REGISTERED));	/* not the lack of thread safety: none was asked for */
	took("open:liba.so open:libc.so open:libs.so ");
	assert_string_equal(reports,
		"dat.conf:1: \"ia_a\": cannot load liba.so: no such file\n"
		"dat.conf:2: \"ia_a\": cannot load libc.so: no such file\n"
		"dat.conf:3: \"ia_a\": cannot load libs.so: no such file\n");
}

TEST(entry_whose_library_is_missing_is_no_lack_of_thread_safety)
{
	conf_text = SAFE_A B;
	missing = "libs.so";
	fails_with(2, 0, DAT_TRUE, NOT_FOUND(DAT_NAME_NOT_REGISTERED));
	took("open:libs.so ");
}

/* It may have started threads. */
TEST(library_that_registers_nothing_stays_loaded)
{
	registers = false;
	fails(NOT_FOUND(DAT_NAME_NOT_REGISTERED));
	fails(NOT_FOUND(DAT_NAME_NOT_REGISTERED));
	took("open:liba.so init:ia_a[eth0 0] ");
	assert_true(registry.table.entries[0]->loaded);
	assert_string_equal(reports,
		"dat.conf:1: dat_provider_init of liba.so registered no \"ia_a\" u2.0 nonthreadsafe\n");
	register_ia("ia_a", 2, 0, DAT_FALSE);			/* as one of its threads may do later */
	opened("ia_a");
	took("");
}

/* The library stays loaded, so later opens of its adapter fail, too. */
TEST(lack_of_memory_is_told_by_opens_of_its_adapter_alone)
{
	const DAT_RETURN lack = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);

	conf_text = A B SAFE_A;
	registry_start();
	missing = "libs.so";
	no_memory = true;
	fails(lack);
	no_memory = false;
	fails(lack);
	missing = "*";
	assert_int_equal(get_ia("ia_b", NULL), NOT_FOUND(DAT_NAME_NOT_REGISTERED));
	fails_with(2, 0, DAT_TRUE, NOT_FOUND(DAT_NAME_NOT_REGISTERED));
}

static void have_memory(void)
{
	no_memory = false;
	register_more();
}

TEST(lack_of_memory_is_forgotten_by_the_next_load)
{
	struct provider *p;

	registry_start();
	no_memory = true;
	during_init = have_memory;		/* its second provider */
	fails(DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY));
	p = opened("more");
	registry_put(p);			/* unloads the library */
	registers = false;
	fails(NOT_FOUND(DAT_NAME_NOT_REGISTERED));
}

TEST(files_that_were_not_read_may_have_the_name)
{
	conf_shortage = EMFILE;
	fails(DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, 0));
	register_ia("ia_a", 2, 0, DAT_FALSE);
	opened("ia_a");
	fails_with(3, 0, DAT_FALSE, NOT_FOUND(DAT_MAJOR_NOT_FOUND));
}

UNIT_MAIN(NULL, NULL)
