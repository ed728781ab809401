# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
include test/abi/local.mk
include test/lint/local.mk
include test/unit/local.mk
include test/net/local.mk
include test/eth/local.mk
include test/registry/local.mk
include test/conform/local.mk
include test/life/local.mk
include test/soak/local.mk
include test/mutate/local.mk
include test/tools/local.mk
include test/dat12/local.mk
include test/fault/local.mk
include test/stock/local.mk
include test/packages/local.mk
include test/verbs/local.mk
include test/vm/local.mk
include test/bench/local.mk
include test/fuzz/local.mk
include test/model/local.mk

# What tests of several directories share.
EXTRA_DIST += test/unit/README.md test/link test/dat_conf.h test/packet_tag.h test/random.h test/variables.h test/wireshark-profile

# For ./bootstrap check, which runs the quick ones: those that take 20 s and more are left to check --native.
slow_tests = test/tools/adapter test/packages/compat-names test/dat12/compilers test/eth/datcap test/eth/datcap-files test/eth/datcap-filter \
	test/eth/datcap-losses test/eth/datcap-rdma test/eth/datcap-wireshark test/fault/faults test/fault/some-statements test/life/copy-only test/life/datperf \
	test/model/check test/net/namespaces test/sock/hostile test/sock/limits test/sock/over-dat test/sock/silent test/tools/control test/tools/datperf test/tools/dtest test/tools/readme \
	test/unit/soft/copy-only test/unit/soft/test_foreign_peer
# Tests of the sources: a build with sanitizers would repeat them.
source_tests = $(filter test/lint/%,$(TESTS)) test/packages/compat-names test/dat12/compilers test/model/check
# Slow tests of what the quick ones run with sanitizers, too.
again_tests = test/eth/datcap-losses test/eth/datcap-wireshark test/life/datperf test/tools/datperf test/tools/dtest test/tools/readme
# Tests of single functions of ours, which are the same on every distribution. Not so those of what calls Open MPI and
# rdma-core.
function_tests = test/unit/common/% test/unit/core/% test/unit/dat/% test/unit/sock/% test/unit/soft/% test/unit/softeth/% test/unit/tools/%
# Programs of those whose traffic test/net/tshark captures.
captured_programs = test/unit/soft/test_foreign_peer test/unit/soft/test_device
# What a build with sanitizers runs, and the two halves of it.
binary_tests = $(filter-out $(source_tests) $(again_tests),$(TESTS))
.PHONY: quick-tests slow-tests system-tests binary-tests binary-functions-tests binary-system-tests
binary-tests:
	@echo $(binary_tests)
binary-functions-tests:
	@echo $(filter $(function_tests),$(binary_tests))
binary-system-tests:
	@echo $(filter-out $(function_tests),$(binary_tests))
system-tests:
	@echo $(filter-out $(slow_tests) $(function_tests) test/lint/%,$(TESTS))
# The programs to build for these; all others need all programs.
.PHONY: system-programs binary-system-programs binary-functions-programs
system-programs binary-system-programs:
	@echo $(filter-out $(function_tests),$(check_PROGRAMS)) $(filter $(captured_programs),$(check_PROGRAMS))
binary-functions-programs:
	@echo $(filter $(function_tests),$(check_PROGRAMS))
quick-tests:
	@echo $(filter-out $(slow_tests),$(TESTS))
slow-tests:
	@echo $(filter $(slow_tests),$(TESTS))
