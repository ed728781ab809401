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
include test/roots/local.mk
include test/verbs-dm/local.mk
include test/verbs-eth/local.mk
include test/build/local.mk
include test/vm/local.mk
include test/bench/local.mk
include test/fuzz/local.mk
include test/model/local.mk

# What tests of several directories share.
EXTRA_DIST += test/dat_conf.h test/packet_tag.h test/random.h test/variables.h test/wireshark-profile
