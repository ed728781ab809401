# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

if CMOCKA
# libdat2, what both libraries share, and what is computed from numbers alone.
dat_unit_tests = \
	test/unit/test_common_journal \
	test/unit/test_common_lock \
	test/unit/test_common_log \
	test/unit/test_common_rate \
	test/unit/test_common_trace \
	test/unit/test_common_ia_params \
	test/unit/test_dat_conf \
	test/unit/test_dat_ia_handle \
	test/unit/test_dat_strerror \
	test/unit/test_dapl_qual
check_PROGRAMS += $(dat_unit_tests)
TESTS += $(dat_unit_tests)
# The check of the lock order is in every build of this test.
test_unit_test_common_lock_SOURCES = test/unit/test_common_lock.c common/lock.c common/lock_check.c
test_unit_test_common_lock_CPPFLAGS = $(AM_CPPFLAGS) -DDAPL_LOCK_CHECK=1 $(CMOCKA_CFLAGS)
test_unit_test_common_lock_LDADD = $(CMOCKA_LIBS) -lpthread
test_unit_test_common_log_SOURCES = test/unit/test_common_log.c
test_unit_test_common_log_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_common_log_LDADD = libcommon.la $(CMOCKA_LIBS)
test_unit_test_common_journal_SOURCES = test/unit/test_common_journal.c
test_unit_test_common_journal_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_common_journal_LDADD = libcommon.la $(CMOCKA_LIBS)
test_unit_test_common_rate_SOURCES = test/unit/test_common_rate.c
test_unit_test_common_rate_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_common_rate_LDADD = libcommon.la $(CMOCKA_LIBS)
test_unit_test_common_ia_params_SOURCES = test/unit/test_common_ia_params.c
test_unit_test_common_ia_params_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_common_ia_params_LDADD = libcommon.la $(CMOCKA_LIBS)
test_unit_test_common_trace_SOURCES = test/unit/test_common_trace.c
test_unit_test_common_trace_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_common_trace_LDADD = libcommon.la $(CMOCKA_LIBS)
test_unit_test_dat_conf_SOURCES = test/unit/test_dat_conf.c dat/conf.c
test_unit_test_dat_conf_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_dat_conf_LDADD = $(CMOCKA_LIBS)
test_unit_test_dat_ia_handle_SOURCES = test/unit/test_dat_ia_handle.c dat/ia_handle.c
test_unit_test_dat_ia_handle_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_dat_ia_handle_LDADD = $(CMOCKA_LIBS)
test_unit_test_dat_strerror_SOURCES = test/unit/test_dat_strerror.c
test_unit_test_dat_strerror_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_dat_strerror_LDADD = libdat2.la $(CMOCKA_LIBS)
test_unit_test_dapl_qual_SOURCES = test/unit/test_dapl_qual.c
test_unit_test_dapl_qual_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_dapl_qual_LDADD = $(CMOCKA_LIBS)
endif

if CMOCKA
# Of core, what needs no device.
check_PROGRAMS += test/unit/test_diag
TESTS += test/unit/test_diag
test_unit_test_diag_SOURCES = test/unit/test_diag.c
test_unit_test_diag_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_diag_LDADD = libdaplcore.la libcommon.la $(CMOCKA_LIBS)
endif

device_harness = test/unit/device_harness.c test/unit/device_harness.h
if CMOCKA
# The software RNIC, without DAT objects: the tests have the upcalls.
soft_unit_tests = \
	test/unit/test_soft_device \
	test/unit/test_soft_stream \
	test/unit/test_soft_ring \
	test/unit/test_soft_cq \
	test/unit/test_soft_proto \
	test/unit/test_soft_desched \
	test/unit/test_soft_shm \
	test/unit/test_soft_attach_socket \
	test/unit/test_soft_shm_fallback \
	test/unit/test_soft_wakeup \
	test/unit/test_soft_owner \
	test/unit/test_soft_fastpath \
	test/unit/test_soft_rmem_map \
	test/unit/test_soft_populate \
	test/unit/test_soft_pending \
	test/unit/test_soft_wire
check_PROGRAMS += $(soft_unit_tests)
TESTS += $(soft_unit_tests) test/unit/soft-over-tcp test/unit/soft-copy-only
dist_check_SCRIPTS += test/unit/soft-over-tcp test/unit/soft-copy-only
test_unit_test_soft_device_SOURCES = test/unit/test_soft_device.c $(device_harness)
test_unit_test_soft_device_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_device_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_device_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc -Wl,--wrap=sched_yield
test_unit_test_soft_stream_SOURCES = test/unit/test_soft_stream.c $(device_harness) \
	test/unit/soft_stream.c test/unit/soft_stream.h
test_unit_test_soft_stream_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_stream_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_ring_SOURCES = test/unit/test_soft_ring.c
test_unit_test_soft_ring_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_ring_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_proto_SOURCES = test/unit/test_soft_proto.c
test_unit_test_soft_proto_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_proto_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_desched_SOURCES = test/unit/test_soft_desched.c
test_unit_test_soft_desched_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_desched_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_cq_SOURCES = test/unit/test_soft_cq.c
test_unit_test_soft_cq_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_cq_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=soft_progress_poll,--wrap=soft_owner_sleep \
	-Wl,--wrap=soft_event_post,--wrap=soft_event_forget
test_unit_test_soft_cq_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
soft_ends = $(device_harness) test/unit/soft_ends.c test/unit/soft_ends.h
test_unit_test_soft_populate_SOURCES = test/unit/test_soft_populate.c
test_unit_test_soft_populate_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_populate_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=madvise
test_unit_test_soft_populate_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_rmem_map_SOURCES = test/unit/test_soft_rmem_map.c $(soft_ends)
test_unit_test_soft_rmem_map_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_rmem_map_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_pending_SOURCES = test/unit/test_soft_pending.c $(soft_ends)
test_unit_test_soft_pending_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_pending_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_attach_socket_SOURCES = test/unit/test_soft_attach_socket.c
test_unit_test_soft_attach_socket_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_attach_socket_LDADD = libdaplsoftdev.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_shm_fallback_SOURCES = test/unit/test_soft_shm_fallback.c $(soft_ends)
test_unit_test_soft_shm_fallback_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_shm_fallback_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=accept4 -Wl,--wrap=attach_socket_listen
test_unit_test_soft_shm_fallback_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_shm_SOURCES = test/unit/test_soft_shm.c $(soft_ends)
test_unit_test_soft_shm_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_shm_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=shm_conn_receive \
	-Wl,--wrap=process_vm_writev -Wl,--wrap=process_vm_readv -Wl,--wrap=access_copy
test_unit_test_soft_shm_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_owner_SOURCES = test/unit/test_soft_owner.c $(soft_ends)
test_unit_test_soft_owner_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_owner_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_wakeup_SOURCES = test/unit/test_soft_wakeup.c $(soft_ends)
test_unit_test_soft_wakeup_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_wakeup_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_fastpath_SOURCES = test/unit/test_soft_fastpath.c $(soft_ends)
test_unit_test_soft_fastpath_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_fastpath_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=send
test_unit_test_soft_fastpath_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_wire_SOURCES = test/unit/test_soft_wire.c $(device_harness) test/own_network.h
test_unit_test_soft_wire_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_wire_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
endif

if VERBS
# The device over libibverbs: what is pure runs here, the rest in the test machine.
if CMOCKA
verbs_unit_tests = \
	test/unit/test_verbs_address \
	test/unit/test_verbs_pdata \
	test/unit/test_verbs_siw
check_PROGRAMS += $(verbs_unit_tests)
TESTS += $(verbs_unit_tests)
test_unit_test_verbs_address_SOURCES = test/unit/test_verbs_address.c
test_unit_test_verbs_address_LDADD = libdaplverbs.la libcommon.la $(CMOCKA_LIBS) $(VERBS_LIBS)
test_unit_test_verbs_pdata_SOURCES = test/unit/test_verbs_pdata.c
test_unit_test_verbs_pdata_LDADD = libdaplverbs.la libcommon.la $(CMOCKA_LIBS) $(VERBS_LIBS)
test_unit_test_verbs_siw_SOURCES = test/unit/test_verbs_siw.c
test_unit_test_verbs_siw_LDADD = libdaplverbs.la libdaplcore.la libcommon.la $(CMOCKA_LIBS) $(VERBS_LIBS)
endif
# verbs_device_probe "NETDEV 0", in the test machine: no TESTS, it needs a device.
check_PROGRAMS += test/unit/verbs_device_probe
test_unit_verbs_device_probe_SOURCES = test/unit/verbs_device_probe.c $(device_harness)
test_unit_verbs_device_probe_LDADD = libdaplverbs.la libdaplcore.la libcommon.la $(VERBS_LIBS)
# verbs_fence_probe ADDRESS, in the test machine: what siw does with requests that wait.
check_PROGRAMS += test/unit/verbs_fence_probe
test_unit_verbs_fence_probe_SOURCES = test/unit/verbs_fence_probe.c
test_unit_verbs_fence_probe_LDADD = $(VERBS_LIBS) -lpthread
endif
