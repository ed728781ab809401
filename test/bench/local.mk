# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# `make bench` measures in the virtual machine what we cost, beside the stock library.
EXTRA_PROGRAMS += test/bench/dat_pp test/bench/verbs_pp test/bench/dat_conn test/bench/dat_self
EXTRA_PROGRAMS += test/bench/soft/soft
test_bench_soft_soft_SOURCES = test/bench/soft/main.c \
	test/bench/soft/two.c test/bench/soft/two.h \
	test/bench/soft/plain.c test/bench/soft/plain.h \
	test/bench/soft/side.c test/bench/soft/side.h \
	test/bench/soft/rounds.c test/bench/soft/rounds.h \
	test/bench/soft/rows.c test/bench/soft/rows.h \
	test/bench/soft/dm.c test/bench/soft/dm.h \
	test/bench/soft/many.c test/bench/soft/many.h
test_bench_soft_soft_LDADD = libdat2.la
test_bench_dat_pp_SOURCES = test/bench/dat_pp.c test/bench/common.h
test_bench_dat_pp_LDADD = libdat2.la
test_bench_dat_conn_SOURCES = test/bench/dat_conn.c
test_bench_dat_conn_LDADD = libdat2.la
test_bench_dat_self_SOURCES = test/bench/dat_self.c
test_bench_dat_self_LDADD = libdat2.la
test_bench_verbs_pp_SOURCES = test/bench/verbs_pp.c test/bench/common.h
test_bench_verbs_pp_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
test_bench_verbs_pp_LDADD = $(VERBS_LIBS) -lpthread
EXTRA_DIST += test/usage.sh test/bench/measure test/bench/run test/bench/instructions
CLEANFILES += $(EXTRA_PROGRAMS)

# BENCH_OPTIONS: those of test/bench/run
.PHONY: bench
bench: all test/bench/dat_pp test/bench/verbs_pp test/bench/dat_conn
	$(srcdir)/test/bench/run $(BENCH_OPTIONS) $(abs_builddir)

# Natively: instructions above the software device.
.PHONY: bench-instructions
bench-instructions: all test/bench/dat_self
	$(srcdir)/test/bench/instructions $(BENCH_OPTIONS)

# Natively: latency, bandwidth and connections of the software device, beside others.
EXTRA_DIST += test/bench/soft-run
.PHONY: bench-soft
bench-soft: all test/bench/soft/soft
	$(srcdir)/test/bench/soft-run $(abs_builddir)

# Natively, as root: datcap beside tcpdump, dumpcap, netsniff-ng, xdpdump, tcpreplay, trafgen and DPDK, and the time from
# a frame's departure to its reader, on a veth pair.
EXTRA_PROGRAMS += test/bench/eth_latency
test_bench_eth_latency_SOURCES = test/bench/eth_latency.c
test_bench_eth_latency_LDADD = libdat2.la -lpthread
EXTRA_DIST += test/bench/eth-run
.PHONY: bench-eth
bench-eth: all test/bench/eth_latency
	$(srcdir)/test/bench/eth-run $(BENCH_OPTIONS) $(abs_builddir)

# Natively: programs whose connections libdatsock moves, beside TCP and AF_UNIX.
EXTRA_PROGRAMS += test/bench/sock/load test/bench/sock/pingpong
test_bench_sock_load_SOURCES = test/bench/sock/load.c
test_bench_sock_load_LDADD =
test_bench_sock_pingpong_SOURCES = test/bench/sock/pingpong.c
test_bench_sock_pingpong_LDADD = -ldl
EXTRA_DIST += test/bench/sock-run test/bench/sock-pairs
.PHONY: bench-sock
bench-sock: all test/bench/sock/load
	$(srcdir)/test/bench/sock-run $(BENCH_OPTIONS) $(abs_builddir)

# One connection of two processes: BENCH_OPTIONS=--rdma in the virtual machine, over rxe and siw beside rsockets.
.PHONY: bench-sock-pairs
bench-sock-pairs: all test/bench/sock/pingpong
	$(srcdir)/test/bench/sock-pairs $(BENCH_OPTIONS) $(abs_builddir)
