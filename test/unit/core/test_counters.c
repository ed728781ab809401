/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_counters.c - what queries of counters give, reset and print (counters.c). The IA has no device in sysfs, so its
 * counters of the device read as 0. */
#include "dapl/core/ia/counters.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/printed.h"
#include "test/unit/unit.h"

static struct dapl_pz *pz;

UNIT_FIXTURE(set_up)
{
	core_endpoint_open(16, DAT_EVD_DTO_FLAG, 16);
	pz = dapl_object_new(DAPL_PZ, sizeof *pz, ia, NULL);
	dapl_object_publish(&pz->obj);
}

static int tear_down(void **state)
{
	assert_true(dapl_object_kill(&pz->obj));
	dapl_object_bury(&pz->obj);
	return core_endpoint_close(state);
}

static uint64_t read_counter(struct dapl_object *obj, int which, int reset)
{
	DAT_UINT64 value = ~0ull;

	assert_int_equal(dapl_counters_query(obj, which, &value, reset), DAT_SUCCESS);
	return value;
}

struct names {
	const char *name[DCNT_IA_ALL_COUNTERS];
	uint64_t value[DCNT_IA_ALL_COUNTERS];
	int n;
};

static void note_name(void *arg, const char *name, uint64_t value)
{
	struct names *names = arg;

	names->name[names->n] = name;
	names->value[names->n++] = value;
}

UNIT_CASE(each_counter_has_a_name_of_its_own)
{
	struct dapl_object *const objects[] = { &ia->obj, &ep->obj, &evd->obj };
	static const int numbers[] = { DCNT_IA_ALL_COUNTERS, DCNT_EP_ALL_COUNTERS, DCNT_EVD_ALL_COUNTERS };
	struct names names;

	for (int o = 0; o < 3; o++) {
		names = (struct names){ .n = 0 };
		dapl_counters_each(objects[o], note_name, &names);
		assert_int_equal(names.n, numbers[o]);
		for (int i = 0; i < names.n; i++) {
			assert_non_null(names.name[i]);
			for (int j = 0; j < i; j++)
				assert_string_not_equal(names.name[i], names.name[j]);
		}
	}
	names.n = 0;
	dapl_counters_each(&pz->obj, note_name, &names);	/* it has none */
	assert_int_equal(names.n, 0);
	ep->counters[DCNT_EP_POST_READ] = 5;
	dapl_counters_each(&ep->obj, note_name, &names);
	assert_string_equal(names.name[DCNT_EP_POST_READ], "POST_READ");
	assert_int_equal(names.value[DCNT_EP_POST_READ], 5);
}

UNIT_CASE(totals_have_what_freed_endpoints_counted)
{
	struct names names = { .n = 0 };

	ep->counters[DCNT_EP_POST_READ] = 5;
	ia->freed_counters[DCNT_EP_POST_READ] = 2;
	ia->freed_counters[DCNT_EP_RECV_DATA] = 100;
	dapl_counters_each_total(ia, note_name, &names);
	assert_int_equal(names.n, DCNT_EP_ALL_COUNTERS);
	assert_string_equal(names.name[DCNT_EP_RECV_DATA], "RECV_DATA");
	assert_int_equal(names.value[DCNT_EP_POST_READ], 7);
	assert_int_equal(names.value[DCNT_EP_RECV_DATA], 100);
	ep->counters_kept = true;	/* a call that frees it has added them */
	names.n = 0;
	dapl_counters_each_total(ia, note_name, &names);
	assert_int_equal(names.value[DCNT_EP_POST_READ], 2);
}

UNIT_CASE(query_checks_its_arguments)
{
	DAT_UINT64 value;

	assert_int_equal(dapl_counters_query(&pz->obj, 0, &value, 0), BAD_PARAM(1));
	assert_int_equal(dapl_counters_query(&ep->obj, -1, &value, 0), BAD_PARAM(2));
	assert_int_equal(dapl_counters_query(&ep->obj, DCNT_EP_ALL_COUNTERS + 1, &value, 0), BAD_PARAM(2));
	assert_int_equal(dapl_counters_query(&ep->obj, 0, NULL, 0), BAD_PARAM(3));
	assert_int_equal(dapl_counters_print(&pz->obj, 0, 0), BAD_PARAM(1));
	assert_int_equal(dapl_counters_print(&evd->obj, -1, 0), BAD_PARAM(2));
	assert_int_equal(dapl_counters_print(&evd->obj, DCNT_EVD_ALL_COUNTERS + 1, 0), BAD_PARAM(2));
}

static void set_dequeues(uint64_t found, uint64_t missing, uint64_t poll_found, uint64_t poll_empty)
{
	evd->counters[DCNT_EVD_DEQUEUE_FOUND] = found;
	evd->counters[DCNT_EVD_DEQUEUE_NOT_FOUND] = missing;
	evd->counters[DCNT_EVD_DEQUEUE_POLL_FOUND] = poll_found;
	evd->polled_empty = poll_empty;
}

/* Polls that found nothing are counted apart. */
UNIT_CASE(reset_clears_the_polls_too)
{
	DAT_UINT64 all[DCNT_EVD_ALL_COUNTERS];

	set_dequeues(5, 3, 2, 9);
	assert_int_equal(dapl_counters_query(&evd->obj, DCNT_EVD_ALL_COUNTERS, all, 1), DAT_SUCCESS);
	assert_int_equal(all[DCNT_EVD_DEQUEUE_POLL], 11);
	assert_int_equal(read_counter(&evd->obj, DCNT_EVD_DEQUEUE, 0), 0);
	assert_int_equal(read_counter(&evd->obj, DCNT_EVD_DEQUEUE_POLL, 0), 0);
	evd->polled_empty += 2;
	evd->counters[DCNT_EVD_DEQUEUE_POLL_FOUND]++;
	assert_int_equal(read_counter(&evd->obj, DCNT_EVD_DEQUEUE_POLL, 1), 3);
	assert_int_equal(read_counter(&evd->obj, DCNT_EVD_DEQUEUE_POLL, 0), 0);
	assert_int_equal(read_counter(&evd->obj, DCNT_EVD_DEQUEUE_POLL_FOUND, 0), 1);
}

UNIT_CASE(only_groups_of_an_ia_start_and_stop)
{
	assert_int_equal(dapl_counters_start(&ep->obj, DCNT_IA_LNK), BAD_PARAM(2));
	assert_int_equal(dapl_counters_stop(&ep->obj, DCNT_IA_LNK), BAD_PARAM(2));
	assert_int_equal(dapl_counters_start(&ia->obj, DCNT_IA_CM - 1), BAD_PARAM(2));
	assert_int_equal(dapl_counters_stop(&ia->obj, DCNT_IA_DIAG + 1), BAD_PARAM(2));
	assert_int_equal(ia->counting, 0);
	assert_int_equal(dapl_counters_start(&ia->obj, DCNT_IA_LNK), DAT_SUCCESS);
	assert_int_equal(dapl_counters_start(&ia->obj, DCNT_IA_DIAG), DAT_SUCCESS);
	assert_int_equal(ia->counting, 1u << DCNT_IA_LNK | 1u << DCNT_IA_DIAG);
	assert_int_equal(dapl_counters_stop(&ia->obj, DCNT_IA_LNK), DAT_SUCCESS);
	assert_int_equal(ia->counting, 1u << DCNT_IA_DIAG);
}

/* The device's files count since the host came up: here they read as 0, after port_base was noted. */
UNIT_CASE(device_counts_while_its_group_runs)
{
	ia->port_base[DCNT_IA_LNK_ERR_RCV] = (uint64_t)-4;	/* 4 errors since */
	assert_int_equal(read_counter(&ia->obj, DCNT_IA_LNK_ERR_RCV, 0), 0);
	ia->counting = 1u << DCNT_IA_LNK;
	assert_int_equal(read_counter(&ia->obj, DCNT_IA_LNK_ERR_RCV, 0), 4);
	assert_int_equal(read_counter(&ia->obj, DCNT_IA_LNK_ERR_RCV, 0), 4);
	ia->port_base[DCNT_IA_LNK_ERR_RCV] = (uint64_t)-2;
	assert_int_equal(dapl_counters_start(&ia->obj, DCNT_IA_LNK), DAT_SUCCESS);	/* it runs: no new start */
	assert_int_equal(dapl_counters_stop(&ia->obj, DCNT_IA_LNK), DAT_SUCCESS);
	assert_int_equal(ia->counters[DCNT_IA_LNK_ERR_RCV], 6);
	ia->port_base[DCNT_IA_LNK_ERR_RCV] = (uint64_t)-8;
	assert_int_equal(dapl_counters_stop(&ia->obj, DCNT_IA_LNK), DAT_SUCCESS);	/* it does not run */
	assert_int_equal(dapl_counters_start(&ia->obj, DCNT_IA_LNK), DAT_SUCCESS);
	assert_int_equal(read_counter(&ia->obj, DCNT_IA_LNK_ERR_RCV, 0), 6);
}

/* Of the device's directories, that with this name has the file rq_num_rae. */
static const char *directory;

EXTEND(fopen64)
/* the sanitizers' libraries call it */
FILE *__wrap_fopen64(const char *path, const char *mode)
{
	char expected[128];
	FILE *file;

	if (!directory)
		return __real_fopen64(path, mode);
	snprintf(expected, sizeof expected, "/sys/class/infiniband/%s/%s/rq_num_rae", ia->attr.device, directory);
	if (strcmp(path, expected))
		return NULL;
	file = tmpfile();
	fputs("7\n", file);
	rewind(file);
	return file;
}

UNIT_CASE(diagnostic_counters_are_found_in_either_directory)
{
	for (int d = 0; d < 2; d++) {
		assert_int_equal(dapl_counters_start(&ia->obj, DCNT_IA_DIAG), DAT_SUCCESS);	/* from 0 */
		directory = d ? "diag_counters" : "hw_counters";
		assert_int_equal(dapl_counters_stop(&ia->obj, DCNT_IA_DIAG), DAT_SUCCESS);
		directory = NULL;
		assert_int_equal(read_counter(&ia->obj, DCNT_IA_DIAG_ERR_RQ_RAE, 1), 7);
		assert_int_equal(read_counter(&ia->obj, DCNT_IA_DIAG_ERR_RQ_OOS, 0), 0);
	}
}

UNIT_MAIN(NULL, NULL)
