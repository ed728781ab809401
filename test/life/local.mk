# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# What befalls a process that uses DAT: fork, exec, exit, unload, limits, mistakes in its
# environment, many threads. Natively, on the software device, through the public API.
life_tests = \
	test/life/process \
	test/life/reload \
	test/life/limits \
	test/life/shortages \
	test/life/messages \
	test/life/trace \
	test/life/diagnosis \
	test/life/threads \
	test/life/waiters \
	test/life/counters \
	test/life/present \
	test/life/net_events \
	test/life/mapped \
	test/life/memory \
	test/life/calls \
	test/life/observed \
	test/life/mixed \
	test/life/many \
	test/life/control
check_PROGRAMS += $(life_tests)
TESTS += $(life_tests) test/life/datperf test/life/completion test/life/copy-only
dist_check_SCRIPTS += test/life/datperf test/life/completion test/life/copy-only
life_common = test/life/life.c test/life/life.h test/ends.c test/ends.h
test_life_waiters_SOURCES = test/life/waiters.c $(life_common)
test_life_waiters_LDADD = libdat2.la
test_life_process_SOURCES = test/life/process.c $(life_common)
test_life_process_LDADD = libdat2.la -lpthread
test_life_reload_SOURCES = test/life/reload.c $(life_common)
test_life_reload_LDADD = -ldl -lpthread
test_life_limits_SOURCES = test/life/limits.c $(life_common)
test_life_limits_LDADD = libdat2.la -lpthread
test_life_messages_SOURCES = test/life/messages.c $(life_common)
test_life_messages_LDADD = libdat2.la -lpthread
test_life_trace_SOURCES = test/life/trace.c $(life_common)
test_life_trace_LDADD = libdat2.la -lpthread
failures_common = test/life/failures.c test/life/failures.h $(life_common)
test_life_diagnosis_SOURCES = test/life/diagnosis.c $(failures_common)
test_life_diagnosis_LDADD = libdat2.la -lpthread
test_life_shortages_SOURCES = test/life/shortages.c $(failures_common)
test_life_shortages_LDADD = libdat2.la

# On kernel RDMA, in the machine: test/vm/suites.d/diagnosis.
check_PROGRAMS += test/life/diagnosis_rdma
test_life_diagnosis_rdma_SOURCES = test/life/diagnosis_rdma.c $(failures_common)
test_life_diagnosis_rdma_LDADD = libdat2.la
# On kernel RDMA, in the machine: test/vm/suites.d/administrator.
check_PROGRAMS += test/life/net_events_rdma
test_life_net_events_rdma_SOURCES = test/life/net_events_rdma.c $(life_common)
test_life_net_events_rdma_LDADD = libdat2.la
test_life_threads_SOURCES = test/life/threads.c $(life_common)
test_life_threads_LDADD = libdat2.la -lpthread
test_life_many_SOURCES = test/life/many.c $(life_common)
test_life_many_LDADD = libdat2.la
test_life_control_SOURCES = test/life/control.c test/life/control_client.c test/life/control_client.h \
	$(life_common)
test_life_control_LDADD = libdat2.la -lpthread
test_life_mapped_SOURCES = test/life/mapped.c $(life_common)
test_life_mapped_LDADD = libdat2.la
test_life_memory_SOURCES = test/life/memory.c $(life_common)
test_life_memory_LDADD = libdat2.la
test_life_mixed_SOURCES = test/life/mixed.c $(life_common)
test_life_mixed_LDADD = libdat2.la
test_life_counters_SOURCES = test/life/counters.c $(life_common)
test_life_counters_LDADD = libdat2.la -lpthread
test_life_observed_SOURCES = test/life/observed.c test/own_network.h $(life_common)
test_life_observed_LDADD = libdat2.la -lpthread
test_life_calls_SOURCES = test/life/calls.c test/life/calls_worker.c test/life/calls_worker.h \
	test/life/calls_objects.c test/life/calls_endpoints.c $(life_common)
test_life_calls_LDADD = libdat2.la -lpthread
test_life_net_events_SOURCES = test/life/net_events.c test/own_network.h $(life_common)
test_life_net_events_LDADD = libdat2.la -lpthread
test_life_present_SOURCES = test/life/present.c test/own_network.h $(life_common)
test_life_present_LDADD = libdat2.la -lpthread
