# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# What RDMA devices lack, to be preloaded in the machine: device memory (test/vm/suites.d/conform-rxe-dm) and raw
# Ethernet QPs (test/vm/suites.d/eth-verbs).
if VERBS
check_LTLIBRARIES += test/verbs/dm.la test/verbs/eth.la
fake_device = test/verbs/device.c test/verbs/device.h
fake_cflags = $(AM_CFLAGS) $(VERBS_CFLAGS) -fvisibility=default
fake_ldflags = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
test_verbs_dm_la_SOURCES = test/verbs/dm.c $(fake_device)
test_verbs_dm_la_LIBADD = $(VERBS_LIBS)
test_verbs_dm_la_CFLAGS = $(fake_cflags)
test_verbs_dm_la_LDFLAGS = $(fake_ldflags)
test_verbs_eth_la_SOURCES = test/verbs/eth.c test/verbs/eth.h test/verbs/eth_cq.c test/verbs/eth_frames.c \
	test/verbs/eth_hash.c test/verbs/eth_receive.c $(fake_device)
test_verbs_eth_la_LIBADD = $(VERBS_LIBS) -lpthread
test_verbs_eth_la_CFLAGS = $(fake_cflags)
test_verbs_eth_la_LDFLAGS = $(fake_ldflags)
endif
