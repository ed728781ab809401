# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

if CMOCKA
# libdat2 and what both libraries share.
dat_unit_tests = \
	test/unit/test_common_log \
	test/unit/test_common_trace \
	test/unit/test_dat_conf \
	test/unit/test_dat_ia_handle \
	test/unit/test_dat_strerror
check_PROGRAMS += $(dat_unit_tests)
TESTS += $(dat_unit_tests)
test_unit_test_common_log_SOURCES = test/unit/test_common_log.c
test_unit_test_common_log_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_common_log_LDADD = libcommon.la $(CMOCKA_LIBS)
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
endif

if CMOCKA
# The software RNIC, without DAT objects: the tests have the upcalls.
soft_unit_tests = \
	test/unit/test_soft_device \
	test/unit/test_soft_stream \
	test/unit/test_soft_ring \
	test/unit/test_soft_cq \
	test/unit/test_soft_choice \
	test/unit/test_soft_lag \
	test/unit/test_soft_shm \
	test/unit/test_soft_quiet \
	test/unit/test_soft_handover \
	test/unit/test_soft_plain \
	test/unit/test_soft_mapped \
	test/unit/test_soft_calls \
	test/unit/test_soft_wire
check_PROGRAMS += $(soft_unit_tests)
TESTS += $(soft_unit_tests) test/unit/soft-over-tcp
dist_check_SCRIPTS += test/unit/soft-over-tcp
test_unit_test_soft_device_SOURCES = test/unit/test_soft_device.c
test_unit_test_soft_device_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_device_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_device_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc -Wl,--wrap=sched_yield
test_unit_test_soft_stream_SOURCES = test/unit/test_soft_stream.c \
	test/unit/soft_stream.c test/unit/soft_stream.h
test_unit_test_soft_stream_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_stream_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_ring_SOURCES = test/unit/test_soft_ring.c
test_unit_test_soft_ring_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_ring_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_choice_SOURCES = test/unit/test_soft_choice.c
test_unit_test_soft_choice_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_choice_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_lag_SOURCES = test/unit/test_soft_lag.c
test_unit_test_soft_lag_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_lag_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_cq_SOURCES = test/unit/test_soft_cq.c
test_unit_test_soft_cq_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_cq_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=soft_engine_poll,--wrap=soft_handover_sleep \
	-Wl,--wrap=soft_event_post,--wrap=soft_event_forget
test_unit_test_soft_cq_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
soft_ends = test/unit/soft_ends.c test/unit/soft_ends.h
test_unit_test_soft_mapped_SOURCES = test/unit/test_soft_mapped.c $(soft_ends)
test_unit_test_soft_mapped_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_mapped_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_calls_SOURCES = test/unit/test_soft_calls.c $(soft_ends)
test_unit_test_soft_calls_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_calls_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_shm_SOURCES = test/unit/test_soft_shm.c $(soft_ends)
test_unit_test_soft_shm_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_shm_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=soft_pair_receive \
	-Wl,--wrap=process_vm_writev -Wl,--wrap=process_vm_readv -Wl,--wrap=soft_gate_copy
test_unit_test_soft_shm_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_handover_SOURCES = test/unit/test_soft_handover.c $(soft_ends)
test_unit_test_soft_handover_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_handover_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_quiet_SOURCES = test/unit/test_soft_quiet.c $(soft_ends)
test_unit_test_soft_quiet_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_quiet_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_plain_SOURCES = test/unit/test_soft_plain.c $(soft_ends)
test_unit_test_soft_plain_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_plain_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=send
test_unit_test_soft_plain_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
test_unit_test_soft_wire_SOURCES = test/unit/test_soft_wire.c test/unit/own_network.h
test_unit_test_soft_wire_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_test_soft_wire_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la $(CMOCKA_LIBS)
endif

if VERBS
# The device over libibverbs: what is pure runs here, the rest in the test machine.
if CMOCKA
verbs_unit_tests = \
	test/unit/test_verbs_address \
	test/unit/test_verbs_pdata
check_PROGRAMS += $(verbs_unit_tests)
TESTS += $(verbs_unit_tests)
test_unit_test_verbs_address_SOURCES = test/unit/test_verbs_address.c
test_unit_test_verbs_address_LDADD = libdaplverbs.la libcommon.la $(CMOCKA_LIBS) $(VERBS_LIBS)
test_unit_test_verbs_pdata_SOURCES = test/unit/test_verbs_pdata.c
test_unit_test_verbs_pdata_LDADD = libdaplverbs.la libcommon.la $(CMOCKA_LIBS) $(VERBS_LIBS)
endif
# verbs_device_probe "NETDEV 0", in the test machine: no TESTS, it needs a device.
check_PROGRAMS += test/unit/verbs_device_probe
test_unit_verbs_device_probe_SOURCES = test/unit/verbs_device_probe.c
test_unit_verbs_device_probe_LDADD = libdaplverbs.la libdaplcore.la libcommon.la $(VERBS_LIBS)
endif
