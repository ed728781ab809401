/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_component.c - the component: its parameters and their limits, which adapters of dat.conf become modules, what
 * is printed of those that do not, and which addresses are published. */
#include "test/unit/openmpi/btl.h"
#include "test/unit/openmpi/modex.h"
#include <dat/dat_messages.h>
#include <syslog.h>
#include "contrib/openmpi/help.h"
#include "contrib/openmpi/module.h"
#include "contrib/openmpi/ring_poll.h"
#include "opal/mca/base/mca_base_var.h"
#include "test/unit/unit.h"

static mca_btl_udapl_component_t *const c = &mca_btl_udapl_component;

static mca_btl_base_module_t **made;	/* by component_init() */
static int num_made;

/* --- what is below ----------------------------------------------------------------------------- */

static const char *entries[200];		/* of dat.conf */
static int num_entries;
static DAT_RETURN list_result;
static int num_opened, num_closed;
static const char *broken;		/* this adapter cannot be opened */
static bool all_broken;
static const char *alias_of_a;		/* this adapter has the address of "a" */
static char reports[256];		/* topics and adapters */
static int help_dirs;
static DAT_MESSAGE_HANDLER handler;
static int library_lines;		/* that the libraries print */
static int own_lines;			/* that the component prints */
static char own_line[300];		/* the last one */

REPLACE(udapl_module_open, udapl_finalize, udapl_show_help, udapl_add_help_dir, opal_output)
REPLACE(mca_btl_base_param_register)

/* The component looks it up at run time. */
__attribute__((visibility("default"))) void dats_set_message_handler(DAT_MESSAGE_HANDLER next) { handler = next; }

/* As a provider does for an entry that no adapter backs. */
static void report_absent(const char *name)
{
	char text[40];
	const DAT_MESSAGE message = { .library = "dapl", .text = text, .priority = LOG_ERR };

	snprintf(text, sizeof text, "%s is absent", name);
	if (!handler || !handler(&message))
		library_lines++;
}

void __wrap_opal_output(int id, const char *format, ...)
{
	va_list args;

	assert_int_equal(id, 0);
	va_start(args, format);
	vsnprintf(own_line, sizeof own_line, format, args);
	va_end(args);
	own_lines++;
}

DAT_RETURN dat_registry_list_providers(DAT_COUNT most, DAT_COUNT *n, DAT_PROVIDER_INFO *list[])
{
	*n = num_entries < most ? num_entries : most;
	for (int i = 0; i < num_entries && i < most; i++)
		snprintf(list[i]->ia_name, sizeof list[i]->ia_name, "%s", entries[i]);
	return list_result;
}

static bool same(const char *a, const char *b) { return a && b && !strcmp(a, b); }

mca_btl_udapl_module_t *__wrap_udapl_module_open(const char *name)
{
	mca_btl_udapl_module_t *m;

	if (all_broken || same(name, broken)) {
		report_absent(name);
		return NULL;
	}
	m = calloc(1, sizeof *m);
	assert_non_null(m);
	snprintf(m->name, sizeof m->name, "%s", name);
	m->address.at.sin6_port = (in_port_t)(same(name, alias_of_a) ? 'a' : name[0] + 256 * name[1]);
	m->address.qualifier = (uint32_t)(100 + num_opened);
	num_opened++;
	return m;
}

/* As the real one does, it removes the module. */
int __wrap_udapl_finalize(mca_btl_base_module_t *btl)
{
	int kept = 0;

	for (int i = 0; i < c->num_modules; i++)
		if (&c->modules[i]->super != btl)
			c->modules[kept++] = c->modules[i];
	c->num_modules = kept;
	num_closed++;
	free(btl);
	return OPAL_SUCCESS;
}

static void report(const char *text)
{
	size_t n = strlen(reports);

	snprintf(reports + n, sizeof reports - n, "%s;", text);
}

void __wrap_udapl_show_help(const char *topic, ...)
{
	va_list args;

	report(topic);
	if (strcmp(topic, "no such adapter"))
		return;
	va_start(args, topic);
	(void)va_arg(args, const char *);	/* host */
	report(va_arg(args, const char *));
	va_end(args);
}

void __wrap_udapl_add_help_dir(void) { help_dirs++; }

static struct { const char *name; mca_base_var_type_t type; void *value; } registered[32];
static int num_registered;
static const mca_btl_base_module_t *registered_module;

int __wrap_mca_base_component_var_register(const mca_base_component_t *component, const char *name, const char *help,
					   mca_base_var_type_t type, void *enumerator, int bind,
					   mca_base_var_flag_t flags, mca_base_var_info_lvl_t level,
					   mca_base_var_scope_t scope, void *value);
int __wrap_mca_base_component_var_register(const mca_base_component_t *component, const char *name, const char *help,
					   mca_base_var_type_t type, void *enumerator, int bind,
					   mca_base_var_flag_t flags, mca_base_var_info_lvl_t level,
					   mca_base_var_scope_t scope, void *value)
{
	assert_ptr_equal(component, &c->super.btl_version);
	assert_int_equal(scope, MCA_BASE_VAR_SCOPE_READONLY);
	assert_true(strlen(help) > 0);
	registered[num_registered].name = name;
	registered[num_registered].type = type;
	registered[num_registered++].value = value;
	return num_registered;
}

int __wrap_mca_btl_base_param_register(mca_base_component_t *component, mca_btl_base_module_t *of)
{
	assert_ptr_equal(component, &c->super.btl_version);
	registered_module = of;
	return OPAL_SUCCESS;
}

/* --- steps ------------------------------------------------------------------------------------- */

static void set_entries(const char *const *names, int n)
{
	memcpy(entries, names, (size_t)n * sizeof *names);
	num_entries = n;
}

static void set_many(int n)
{
	static char names[200][4];

	for (int i = 0; i < n; i++) {
		snprintf(names[i], sizeof names[i], "%c%c", 'a' + i / 10, '0' + i % 10);
		entries[i] = names[i];
	}
	num_entries = n;
}

UNIT_FIXTURE(set_up)
{
	static const char *const abc[] = { "a", "b", "c" };

	modex_begin();
	set_entries(abc, 3);
	list_result = DAT_SUCCESS;
	num_opened = num_closed = help_dirs = 0;
	broken = alias_of_a = NULL;
	all_broken = false;
	handler = NULL;
	library_lines = own_lines = 0;
	reports[0] = 0;
	opal_process_info.my_local_rank = 0;
	c->include = c->exclude = NULL;
	made = NULL;
	c->super.btl_version.mca_open_component();
}

static void close_all(void)
{
	while (c->num_modules > 0)
		__wrap_udapl_finalize(&c->modules[0]->super);
	free(made);	/* Open MPI does it */
	made = NULL;
	c->super.btl_version.mca_close_component();
	assert_null(c->modules);
}

UNIT_FIXTURE(tear_down)
{
	close_all();
	assert_int_equal(num_closed, num_opened);
}

/* The names of the modules, in a row. */
static const char *init(void)
{
	static char names[1024];
	size_t length = 0;

	names[0] = 0;
	num_made = -1;
	made = c->super.btl_init(&num_made, false, false);
	for (int i = 0; made && i < num_made; i++)
		length += (size_t)snprintf(names + length, sizeof names - length, "%s ",
					   ((mca_btl_udapl_module_t *)made[i])->name);
	return names;
}

static const char *init_with(const char *include, const char *exclude)
{
	c->include = (char *)(uintptr_t)include;
	c->exclude = (char *)(uintptr_t)exclude;
	return init();
}

/* --- parameters -------------------------------------------------------------------------------- */

#define FIELD(member) &mca_btl_udapl_component.member

UNIT_CASE(parameters_have_names_and_defaults)
{
	static const struct { const char *name; mca_base_var_type_t type; const void *value; int number; } table[] = {
		{ "if_include", MCA_BASE_VAR_TYPE_STRING, FIELD(include), 0 },
		{ "if_exclude", MCA_BASE_VAR_TYPE_STRING, FIELD(exclude), 0 },
		{ "any_network", MCA_BASE_VAR_TYPE_BOOL, FIELD(any_network), false },
		{ "use_srq", MCA_BASE_VAR_TYPE_BOOL, FIELD(use_srq), true },
		{ "srq_depth", MCA_BASE_VAR_TYPE_INT, FIELD(srq_depth), 4096 },
		{ "credits", MCA_BASE_VAR_TYPE_INT, FIELD(credits), 24 },
		{ "requests", MCA_BASE_VAR_TYPE_INT, FIELD(requests), 64 },
		{ "eager_rdma", MCA_BASE_VAR_TYPE_BOOL, FIELD(eager_rdma), true },
		{ "eager_rdma_num", MCA_BASE_VAR_TYPE_INT, FIELD(eager_messages), 256 },
		{ "eager_rdma_threshold", MCA_BASE_VAR_TYPE_INT, FIELD(eager_threshold), 16 },
		{ "max_eager_rdma", MCA_BASE_VAR_TYPE_INT, FIELD(eager_peers), 16 },
		{ "connect_timeout", MCA_BASE_VAR_TYPE_INT, FIELD(connect_timeout), 30 },
		{ "connect_retries", MCA_BASE_VAR_TYPE_INT, FIELD(connect_retries), 3 },
		{ "free_list_inc", MCA_BASE_VAR_TYPE_INT, FIELD(free_list_inc), 32 },
	};
	enum { N = sizeof table / sizeof *table };

	num_registered = 0;
	assert_int_equal(c->super.btl_version.mca_register_component_params(), OPAL_SUCCESS);
	assert_int_equal(num_registered, N);
	assert_ptr_equal(registered_module, &mca_btl_udapl_template.super);
	for (int i = 0; i < N; i++) {
		assert_string_equal(registered[i].name, table[i].name);
		assert_int_equal(registered[i].type, table[i].type);
		assert_ptr_equal(registered[i].value, table[i].value);
		if (table[i].type == MCA_BASE_VAR_TYPE_INT)
			assert_int_equal(*(const int *)table[i].value, table[i].number);
		else if (table[i].type == MCA_BASE_VAR_TYPE_BOOL)
			assert_int_equal(*(const bool *)table[i].value, table[i].number);
		else
			assert_null(*(char *const *)table[i].value);
	}
}

/* Without limits a negative number could make the component useless. */
UNIT_CASE(numbers_are_limited)
{
	static const struct { int *number, least, most; } table[] = {
		{ &mca_btl_udapl_component.credits, 4, 0x7fff },
		{ &mca_btl_udapl_component.requests, 4, 0x7fff },
		{ &mca_btl_udapl_component.eager_messages, UDAPL_RING_MIN_MESSAGES, 0x7fff },
		{ &mca_btl_udapl_component.eager_peers, 0, 1 << 20 },
		{ &mca_btl_udapl_component.connect_timeout, 1, 2000 },
		{ &mca_btl_udapl_component.free_list_inc, 1, 4096 },
	};

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		const struct { int value, expected; } cases[] = {
			{ table[i].least - 1, table[i].least }, { table[i].least, table[i].least },
			{ table[i].most, table[i].most }, { table[i].most + 1, table[i].most }, { -5, table[i].least },
			{ table[i].least + 1, table[i].least + 1 },
		};

		for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++) {
			*table[i].number = cases[k].value;
			c->super.btl_version.mca_open_component();
			if (*table[i].number != cases[k].expected)
				fail_msg("row %u: %d becomes %d", i, cases[k].value, *table[i].number);
		}
	}
}

UNIT_CASE(opened_component_has_no_modules)
{
	mca_btl_udapl_module_t *stale[3];

	c->modules = stale;
	c->num_modules = 3;
	help_dirs = 0;
	assert_int_equal(c->super.btl_version.mca_open_component(), OPAL_SUCCESS);
	assert_null(c->modules);
	assert_int_equal(c->num_modules, 0);
	assert_int_equal(help_dirs, 1);
}

UNIT_CASE(component_polls_the_rings)
{
	assert_true(c->super.btl_progress == udapl_progress);
	assert_string_equal(c->super.btl_version.mca_component_name, "udapl");
}

/* --- which adapters ---------------------------------------------------------------------------- */

UNIT_CASE(adapters_are_chosen_by_the_lists)
{
	static const struct { const char *include, *exclude, *modules, *reports; } table[] = {
		{ NULL, NULL, "a b c ", "" },
		{ "", "", "a b c ", "" },
		{ "b", NULL, "b ", "" },
		{ "c,a", "", "a c ", "" },	/* in the order of dat.conf */
		{ NULL, "b", "a c ", "" },
		{ "", "a,c", "b ", "" },
		{ NULL, "a,b,c", "", "" },
		{ NULL, "x", "a b c ", "" },
		{ "b,x", NULL, "b ", "no such adapter;x;" },
		{ "x,y", NULL, "", "no such adapter;x;no such adapter;y;" },
		{ "a", "b", "", "include and exclude;" },
	};

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		const char *modules;

		reports[0] = 0;
		modules = init_with(table[i].include, table[i].exclude);
		if (strcmp(modules, table[i].modules) || strcmp(reports, table[i].reports))
			fail_msg("row %u: modules \"%s\", reports \"%s\"", i, modules, reports);
		close_all();
	}
}

UNIT_CASE(one_process_of_a_node_reports)
{
	opal_process_info.my_local_rank = 1;
	init_with("x", NULL);
	close_all();
	init_with("a", "b");
	assert_string_equal(reports, "");
}

UNIT_CASE(adapter_that_cannot_be_opened_is_left_out)
{
	broken = "b";
	assert_string_equal(init(), "a c ");
	assert_int_equal(modex_ours_size, 2 * sizeof *modex_ours);
}

UNIT_CASE(second_name_of_an_adapter_is_left_out)
{
	alias_of_a = "c";
	assert_string_equal(init(), "a b ");
	assert_int_equal(num_opened, 3);
	assert_int_equal(num_closed, 1);
}

/* However many there are: around the length of an array that the component begins with, and of the next. */
UNIT_CASE(last_entry_is_found)
{
	static const int lengths[] = { 1, UDAPL_FIRST_IAS - 1, UDAPL_FIRST_IAS, UDAPL_FIRST_IAS + 1,
				       2 * UDAPL_FIRST_IAS, 2 * UDAPL_FIRST_IAS + 1 };

	for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		const char *last;
		char expected[8];

		set_many(lengths[i]);
		last = entries[lengths[i] - 1];
		snprintf(expected, sizeof expected, "%s ", last);
		assert_string_equal(init_with(last, NULL), expected);
		assert_string_equal(reports, "");
		close_all();
	}
}

UNIT_CASE(all_of_many_adapters_are_opened)
{
	set_many(150);
	init();
	assert_int_equal(num_made, 150);
	for (int i = 0; i < 150; i++)
		assert_string_equal(c->modules[i]->name, entries[i]);
}

/* --- lines of the libraries -------------------------------------------------------------------- */

UNIT_CASE(one_line_a_node_tells_that_no_entry_opens)
{
	all_broken = true;
	assert_string_equal(init(), "");
	assert_int_equal(own_lines, 1);
	assert_non_null(strstr(own_line, "no entry of dat.conf can be opened; the first: dapl: a is absent"));
	close_all();
	opal_process_info.my_local_rank = 1;
	assert_string_equal(init(), "");
	assert_int_equal(own_lines, 1);
	assert_int_equal(library_lines, 0);
}

UNIT_CASE(nothing_is_printed_if_another_entry_opens)
{
	broken = "a";
	assert_string_equal(init(), "b c ");
	assert_int_equal(library_lines, 0);
	assert_int_equal(own_lines, 0);
}

UNIT_CASE(one_process_of_a_node_tells_that_a_wanted_adapter_does_not_open)
{
	broken = "b";
	assert_string_equal(init_with("a,b", NULL), "a ");
	assert_int_equal(library_lines, 1);
	close_all();
	opal_process_info.my_local_rank = 1;
	assert_string_equal(init_with("a,b", NULL), "a ");
	assert_int_equal(library_lines, 1);
	assert_int_equal(own_lines, 0);
}

/* Lines of connections and transfers are not taken. */
UNIT_CASE(lines_after_the_probe_are_printed)
{
	init();
	report_absent("later");
	assert_int_equal(library_lines, 1);
}

/* --- outcome ----------------------------------------------------------------------------------- */

static void no_module(void)
{
	assert_string_equal(init(), "");
	assert_null(made);
	assert_int_equal(num_made, 0);
	assert_int_equal(c->num_modules, 0);
	assert_int_equal(num_closed, num_opened);
}

UNIT_CASE(nothing_is_published_without_an_adapter)
{
	num_entries = 0;
	no_module();
	num_entries = 3;
	list_result = UDAPL_ERROR(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	close_all();
	no_module();
	assert_int_equal(num_opened, 0);
	assert_int_equal(modex_puts, 0);
}

UNIT_CASE(addresses_of_all_modules_are_published)
{
	init();
	assert_int_equal(num_made, 3);
	assert_int_equal(modex_puts, 1);
	assert_int_equal(modex_ours_size, 3 * sizeof *modex_ours);
	for (unsigned i = 0; i < 3; i++) {
		assert_ptr_equal(made[i], &c->modules[i]->super);
		assert_int_equal(modex_ours[i].qualifier, 100 + i);
	}
}

UNIT_CASE(modules_without_a_published_address_are_closed)
{
	modex_put_result = OPAL_ERR_OUT_OF_RESOURCE;
	no_module();
	assert_int_equal(num_opened, 3);
}

UNIT_MAIN(NULL, NULL)
