# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Raw Ethernet endpoints, in network namespaces of the tests' own (needs root); match and toeplitz need none.
eth_tests = test/eth/endpoint test/eth/receive test/eth/offload test/eth/pace test/eth/take test/eth/move test/eth/shared test/eth/match test/eth/toeplitz test/eth/rss test/eth/group test/eth/moderate test/eth/stamp test/eth/more test/eth/qdisc test/eth/gone test/eth/tcpdump test/eth/launch test/eth/xdp
check_PROGRAMS += $(eth_tests)
TESTS += $(eth_tests) test/eth/datcap test/eth/datcap-files test/eth/datcap-filter test/eth/datcap-device test/eth/datcap-losses test/eth/datcap-rdma test/eth/datcap-roce test/eth/datcap-wireshark test/eth/datcap-make test/eth/datcap-lines test/eth/examples
dist_check_SCRIPTS += test/eth/datcap test/eth/datcap-files test/eth/datcap-filter test/eth/datcap-device test/eth/datcap-losses test/eth/datcap-rdma test/eth/datcap-roce test/eth/datcap-wireshark test/eth/datcap-make test/eth/datcap-lines test/eth/examples
eth_wire = test/eth/wire.c test/eth/wire.h $(life_common)
eth_host = test/eth/host.c test/eth/host.h $(eth_wire)
test_eth_endpoint_SOURCES = test/eth/endpoint.c $(eth_wire)
test_eth_endpoint_LDADD = libdat2.la -lpthread
test_eth_receive_SOURCES = test/eth/receive.c $(eth_wire)
test_eth_receive_LDADD = libdat2.la -lpthread
test_eth_offload_SOURCES = test/eth/offload.c $(eth_wire)
test_eth_offload_LDADD = libdat2.la -lpthread
test_eth_pace_SOURCES = test/eth/pace.c $(eth_wire)
test_eth_pace_LDADD = libdat2.la -lpthread
test_eth_take_SOURCES = test/eth/take.c $(eth_host)
test_eth_take_LDADD = libdat2.la -lpthread
test_eth_move_SOURCES = test/eth/move.c $(eth_wire)
test_eth_move_LDADD = libdat2.la -lpthread
test_eth_shared_SOURCES = test/eth/shared.c $(eth_wire)
test_eth_shared_LDADD = libdat2.la -lpthread
test_eth_match_SOURCES = test/eth/match.c $(softeth_frames)
test_eth_match_LDADD = libsofteth.la libcommon.la
test_eth_toeplitz_LDADD = libsofteth.la libcommon.la
eth_members = test/eth/members.c test/eth/members.h $(eth_wire)
test_eth_rss_SOURCES = test/eth/rss.c $(eth_members)
test_eth_rss_LDADD = libdat2.la -lpthread
test_eth_group_SOURCES = test/eth/group.c $(eth_members)
test_eth_group_LDADD = libdat2.la -lpthread
test_eth_moderate_SOURCES = test/eth/moderate.c $(eth_wire)
test_eth_moderate_LDADD = libdat2.la -lpthread
# verbs, in the test machine: not in TESTS, it needs an RDMA device (test/vm/suites.d/eth-verbs).
check_PROGRAMS += test/eth/verbs test/eth/verbs_group
test_eth_verbs_SOURCES = test/eth/verbs.c $(eth_host)
test_eth_verbs_LDADD = libdat2.la -lpthread
test_eth_verbs_group_SOURCES = test/eth/verbs_group.c $(eth_members)
test_eth_verbs_group_LDADD = libdat2.la -lpthread
test_eth_stamp_SOURCES = test/eth/stamp.c $(eth_wire)
test_eth_stamp_LDADD = libdat2.la -lpthread
test_eth_more_SOURCES = test/eth/more.c $(eth_wire)
test_eth_more_LDADD = libdat2.la -lpthread
test_eth_qdisc_SOURCES = test/eth/qdisc.c $(eth_wire)
test_eth_qdisc_LDADD = libdat2.la -lpthread
test_eth_gone_SOURCES = test/eth/gone.c $(eth_wire)
test_eth_gone_LDADD = libdat2.la -lpthread
test_eth_tcpdump_SOURCES = test/eth/tcpdump.c $(eth_wire)
test_eth_tcpdump_LDADD = libdat2.la -lpthread
test_eth_launch_SOURCES = test/eth/launch.c $(eth_wire)
test_eth_launch_LDADD = libdat2.la -lpthread
test_eth_xdp_SOURCES = test/eth/xdp.c $(eth_host)
test_eth_xdp_LDADD = libdat2.la -lpthread
# A device that loses frames, for test/eth/datcap-losses. A sanitizer must be the first library that is loaded, so it does
# not go together with a preloaded one.
if !SANITIZED
check_LTLIBRARIES += test/eth/missed.la
test_eth_missed_la_SOURCES = test/eth/missed.c
test_eth_missed_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
test_eth_missed_la_LIBADD = -ldl
endif
# Shows messages to datcap: for test/eth/datcap-roce.
check_PROGRAMS += test/eth/tap_program
test_eth_tap_program_LDADD =
