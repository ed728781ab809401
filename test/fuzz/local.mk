# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The fuzz targets: a function each that takes any bytes, and inputs worth keeping. `make
# check` replays those; `make fuzz FUZZ_SECONDS=60` looks for more with all targets side by
# side (needs clang), `make fuzz-keep` adds what was found to the corpora.
# A target is its name here, NAME_fuzz.c, and the sources it is about.
FUZZ_SECONDS = 60
FUZZ_CC = clang
fuzz_targets = conf env iaparams stream ring race attach mpa ud pdata request control eth ethrule ethring frame
if NET
fuzz_targets += netlink
endif
fuzz_soft = $(filter %.c,$(libdaplsoftdev_la_SOURCES)) $(filter %.c,$(libcommon_la_SOURCES)) $(fuzz_base)
# all but what calls libdat2
fuzz_base = $(filter-out %/ia_handle.c,$(filter dapl/core/base/%.c,$(libdaplcore_la_SOURCES)))
fuzz_core = $(filter %.c,$(libdaplcore_la_SOURCES)) $(filter %.c,$(libregistry_la_SOURCES)) \
	$(filter %.c,$(libcommon_la_SOURCES)) test/unit/core/core_device.c test/unit/core/core_queues.c
fuzz_conf = dat/conf.c
fuzz_env = $(fuzz_soft) test/unit/device_harness.c
fuzz_iaparams = $(fuzz_soft) test/unit/device_harness.c
fuzz_side = test/fuzz/soft_side.c test/unit/soft/stream.c test/unit/device_harness.c
fuzz_stream = $(fuzz_side) $(fuzz_soft)
fuzz_ring = test/fuzz/ring_side.c $(fuzz_side) $(fuzz_soft)
fuzz_race = $(fuzz_ring)
fuzz_ud = test/unit/soft/stream.c test/unit/device_harness.c $(fuzz_soft)
fuzz_control = $(fuzz_core)
fuzz_attach = $(fuzz_side) $(fuzz_soft)
fuzz_mpa = $(fuzz_soft) test/unit/device_harness.c
fuzz_pdata = dapl/verbs/pdata.c
fuzz_request = common/json_read.c common/json_write.c
fuzz_eth = dapl/softeth/match.c dapl/softeth/filter.c dapl/softeth/filter_hash.c common/frame_layout.c \
	common/tunnel.c dapl/softeth/spread.c dapl/softeth/toeplitz.c
fuzz_ethrule = tools/datcap/rule.c
fuzz_ethring = $(sort $(filter %.c,$(libsofteth_la_SOURCES) $(libcommon_la_SOURCES)))
fuzz_netlink = net/changes.c net/table.c net/netlink.c
fuzz_netlink_flags = $(LIBNL_CFLAGS)
fuzz_netlink_libs = $(LIBNL_LIBS)
fuzz_frame = tools/datcap/frame_parse.c tools/datcap/frame_build.c tools/datcap/rule.c

check_PROGRAMS += test/fuzz/conf_replay test/fuzz/stream_replay test/fuzz/ring_replay \
	test/fuzz/attach_replay test/fuzz/mpa_replay test/fuzz/pdata_replay test/fuzz/request_replay \
	test/fuzz/eth_replay test/fuzz/ethrule_replay test/fuzz/frame_replay \
	test/fuzz/env_replay test/fuzz/iaparams_replay test/fuzz/race_replay test/fuzz/ud_replay \
	test/fuzz/control_replay test/fuzz/ethring_replay
test_fuzz_conf_replay_SOURCES = test/fuzz/conf_fuzz.c test/fuzz/replay.c dat/conf.c
test_fuzz_stream_replay_SOURCES = test/fuzz/stream_fuzz.c test/fuzz/replay.c \
	test/fuzz/soft_side.c test/fuzz/soft_side.h test/unit/soft/stream.c \
	test/unit/soft/stream.h $(device_harness)
test_fuzz_stream_replay_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la
fuzz_ring_side = test/fuzz/replay.c test/fuzz/ring_side.c test/fuzz/ring_side.h \
	test/fuzz/soft_side.c test/fuzz/soft_side.h test/unit/soft/stream.c \
	test/unit/soft/stream.h $(device_harness)
test_fuzz_ring_replay_SOURCES = test/fuzz/ring_fuzz.c $(fuzz_ring_side)
test_fuzz_ring_replay_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la
test_fuzz_race_replay_SOURCES = test/fuzz/race_fuzz.c $(fuzz_ring_side)
test_fuzz_race_replay_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la -lpthread
test_fuzz_ud_replay_SOURCES = test/fuzz/ud_fuzz.c test/fuzz/replay.c test/unit/soft/stream.c \
	test/unit/soft/stream.h $(device_harness)
test_fuzz_ud_replay_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la
test_fuzz_env_replay_SOURCES = test/fuzz/env_fuzz.c test/fuzz/replay.c $(device_harness)
test_fuzz_env_replay_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la
test_fuzz_iaparams_replay_SOURCES = test/fuzz/iaparams_fuzz.c test/fuzz/replay.c $(device_harness)
test_fuzz_iaparams_replay_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la
test_fuzz_control_replay_SOURCES = test/fuzz/control_fuzz.c test/fuzz/replay.c \
	test/unit/core/core_device.c test/unit/core/core_device.h \
	test/unit/core/core_queues.c test/unit/core/core_queues.h
test_fuzz_control_replay_LDADD = libdaplcore.la libcommon.la libdat2.la
test_fuzz_attach_replay_SOURCES = test/fuzz/attach_fuzz.c test/fuzz/replay.c \
	test/fuzz/soft_side.c test/fuzz/soft_side.h test/unit/soft/stream.c \
	test/unit/soft/stream.h $(device_harness)
test_fuzz_attach_replay_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la
test_fuzz_mpa_replay_SOURCES = test/fuzz/mpa_fuzz.c test/fuzz/replay.c $(device_harness)
test_fuzz_mpa_replay_LDADD = libdaplsoftdev.la libdaplcore.la libcommon.la
test_fuzz_pdata_replay_SOURCES = test/fuzz/pdata_fuzz.c test/fuzz/replay.c dapl/verbs/pdata.c
test_fuzz_request_replay_SOURCES = test/fuzz/request_fuzz.c test/fuzz/replay.c
test_fuzz_request_replay_LDADD = libcommon.la
test_fuzz_eth_replay_SOURCES = test/fuzz/eth_fuzz.c test/fuzz/replay.c
test_fuzz_eth_replay_LDADD = libsofteth.la libcommon.la
test_fuzz_ethrule_replay_SOURCES = test/fuzz/ethrule_fuzz.c test/fuzz/replay.c tools/datcap/rule.c tools/datcap/rule.h
test_fuzz_ethring_replay_SOURCES = test/fuzz/ethring_fuzz.c test/fuzz/replay.c
test_fuzz_ethring_replay_LDADD = libsofteth.la libcommon.la
if NET
check_PROGRAMS += test/fuzz/netlink_replay
test_fuzz_netlink_replay_SOURCES = test/fuzz/netlink_fuzz.c test/fuzz/replay.c
test_fuzz_netlink_replay_CPPFLAGS = $(AM_CPPFLAGS) $(LIBNL_CFLAGS)
test_fuzz_netlink_replay_LDADD = libnetparts.la $(LIBNL_LIBS) libcommon.la libdat2.la
endif
test_fuzz_frame_replay_SOURCES = test/fuzz/frame_fuzz.c test/fuzz/replay.c tools/datcap/frame.h \
	tools/datcap/frame_parse.c tools/datcap/frame_build.c tools/datcap/rule.c tools/datcap/rule.h
dist_check_SCRIPTS += test/fuzz/replay-corpora
TESTS += test/fuzz/replay-corpora
EXTRA_DIST += test/fuzz/corpus test/fuzz/run test/fuzz/coverage

# The one build of ./bootstrap check with clang: its warnings are errors.
fuzz_flags = -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
	-Wall -Wextra -Werror $(DEFS) $(AM_CPPFLAGS)
define fuzz_rule
test/fuzz/$(1)_fuzz: $$(addprefix $$(srcdir)/,test/fuzz/$(1)_fuzz.c $$(fuzz_$(1)))
	$$(MKDIR_P) test/fuzz
	$$(FUZZ_CC) $$(fuzz_flags) $$(fuzz_$(1)_flags) $$(filter %.c,$$^) -o $$@ $$(fuzz_$(1)_libs)
endef
$(foreach target,$(fuzz_targets),$(eval $(call fuzz_rule,$(target))))

.PHONY: fuzz fuzz-keep fuzz-coverage fuzz-clean
fuzz: $(fuzz_targets:%=test/fuzz/%_fuzz)
	$(srcdir)/test/fuzz/run $(FUZZ_SECONDS) $(fuzz_targets)
fuzz-keep:
	for target in $(fuzz_targets); do \
		test/fuzz/$${target}_fuzz -detect_leaks=0 -merge=1 \
			$(srcdir)/test/fuzz/corpus/$$target test/fuzz/found/$$target || exit 1; \
	done
# What the corpora reach, with GCC. A target's lines are those of its decoders, see the script.
FUZZ_COVERAGE = 95
fuzz-coverage:
	$(foreach t,$(fuzz_targets),SOURCES_$(t)='$(addprefix $(abs_top_srcdir)/,test/fuzz/replay.c \
		test/fuzz/$(t)_fuzz.c $(fuzz_$(t)))' LIBS_$(t)='$(fuzz_$(t)_libs)') \
	$(srcdir)/test/fuzz/coverage --least $(FUZZ_COVERAGE) $(FUZZ_COVERAGE_OPTIONS) $(fuzz_targets) \
		-- $(DEFS) $(AM_CPPFLAGS) $(LIBNL_CFLAGS)
fuzz-clean:
	rm -rf test/fuzz/found test/fuzz/reached $(fuzz_targets:%=test/fuzz/%_fuzz)
clean-local: fuzz-clean
