# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The tools as a user calls them: natively, on the software device, on files that the tests make, and in
# network namespaces.
if DATINFO
tools_tests = test/tools/datinfo test/tools/control
TESTS += $(tools_tests)
if NET
TESTS += test/tools/datinfo-routes
endif
endif
dist_check_SCRIPTS += test/tools/datinfo-routes
dist_check_SCRIPTS += test/tools/datinfo test/tools/control

# The scripts for bpftrace.
dist_check_SCRIPTS += test/tools/bpftrace
TESTS += test/tools/bpftrace
EXTRA_DIST += contrib/bpftrace/run contrib/bpftrace/completion.bt contrib/bpftrace/connect.bt \
	contrib/bpftrace/sizes.bt contrib/bpftrace/wakeups.bt contrib/grafana/dapl.json
EXTRA_DIST += test/tools/tool.py

# The scripts for Slurm.
dist_check_SCRIPTS += test/tools/slurm
TESTS += test/tools/slurm
dist_check_SCRIPTS += test/tools/slurm-cluster
.PHONY: check-slurm
check-slurm: all
	$(srcdir)/test/tools/slurm-cluster
EXTRA_DIST += contrib/slurm/prolog contrib/slurm/epilog contrib/slurm/README.md

# What doc/containers.md says of namespaces.
dist_check_SCRIPTS += test/tools/containers
TESTS += test/tools/containers
EXTRA_DIST += contrib/containers/Containerfile contrib/containers/pod.yaml

# The git commit in the version.
dist_check_SCRIPTS += test/tools/version
if DATINFO
TESTS += test/tools/version
endif

# The report on an adapter, on the software device; on rxe: test/vm/suites.d/adapter.
dist_check_SCRIPTS += test/adapter test/tools/adapter
TESTS += test/tools/adapter

# What README.md tells a new user to type.
dist_check_SCRIPTS += test/tools/readme
TESTS += test/tools/readme

# A provider that fails in the way that ia_params name.
check_LTLIBRARIES += test/tools/failing.la
test_tools_failing_la_SOURCES = test/tools/failing.c
test_tools_failing_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
test_tools_failing_la_LIBADD = libdat2.la

# Over several endpoints and threads.
dist_check_SCRIPTS += test/tools/datperf
TESTS += test/tools/datperf
check_LTLIBRARIES += test/tools/lossy.la
test_tools_lossy_la_SOURCES = test/tools/lossy.c
test_tools_lossy_la_CFLAGS = $(WARN)
test_tools_lossy_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
test_tools_lossy_la_LIBADD = -ldl

# The testers, each against itself and against the distribution's.
EXTRA_DIST += test/tools/own-network
dist_check_SCRIPTS += test/tools/dtest test/tools/dapltest
TESTS += test/tools/dtest test/tools/dapltest

# The command in the head of each example.
dist_check_SCRIPTS += test/tools/examples
TESTS += test/tools/examples

# Help and manual pages.
dist_check_SCRIPTS += test/tools/manuals
TESTS += test/tools/manuals

# datping, with peers that break the rules of rping's messages.
dist_check_SCRIPTS += test/tools/datping
TESTS += test/tools/datping
check_PROGRAMS += test/tools/ping_peer
test_tools_ping_peer_SOURCES = test/tools/ping_peer.c $(net_common)
test_tools_ping_peer_LDADD = libdat2.la -lpthread

# Each call of a tool made to fail: a sample in check, all of it with --all. A sanitizer must be the first library
# that is loaded, so it does not go together with a preloaded one.
dist_check_SCRIPTS += test/tools/faults
if !SANITIZED
check_LTLIBRARIES += test/tools/preload.la
test_tools_preload_la_SOURCES = test/tools/preload.c
test_tools_preload_la_CFLAGS = $(WARN) -fno-builtin
test_tools_preload_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
test_tools_preload_la_LIBADD = -ldl
TESTS += test/tools/faults
endif
