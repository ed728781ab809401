# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Device memory for RDMA devices that have none, to be preloaded in the machine
# (test/vm/suites.d/conform-rxe-dm).
if VERBS
check_LTLIBRARIES += test/verbs-dm/fake.la
test_verbs_dm_fake_la_SOURCES = test/verbs-dm/fake.c test/verbs-fake/device.c test/verbs-fake/device.h
test_verbs_dm_fake_la_LIBADD = $(VERBS_LIBS)
test_verbs_dm_fake_la_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS) -fvisibility=default
test_verbs_dm_fake_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
endif
