# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Raw Ethernet QPs for RDMA devices that have none, to be preloaded in the machine
# (test/vm/suites.d/eth-verbs).
if VERBS
check_LTLIBRARIES += test/verbs-eth/fake.la
test_verbs_eth_fake_la_SOURCES = test/verbs-eth/fake.c test/verbs-eth/cq.c test/verbs-eth/frames.c test/verbs-eth/hash.c \
	test/verbs-eth/receive.c test/verbs-eth/fake.h test/verbs-fake/device.c test/verbs-fake/device.h
test_verbs_eth_fake_la_LIBADD = $(VERBS_LIBS) -lpthread
test_verbs_eth_fake_la_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS) -fvisibility=default
test_verbs_eth_fake_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
endif
