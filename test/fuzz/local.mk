# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The fuzz targets: a function each that takes any bytes, and a corpus: inputs worth keeping. `make check` replays
# those; `make fuzz FUZZ_SECONDS=60` looks for more with all targets side by side (needs clang), `make fuzz-keep`
# adds what was found to the corpora.
# A target is its name here, NAME_fuzz.c, the sources and libraries of NAME_replay, and corpus/NAME.tar.xz.
FUZZ_SECONDS = 60
FUZZ_CC = clang
fuzz_stems = test/fuzz/conf test/fuzz/env test/fuzz/iaparams test/fuzz/stream test/fuzz/ring test/fuzz/race \
	test/fuzz/attach test/fuzz/mpa test/fuzz/ud test/fuzz/pdata test/fuzz/request test/fuzz/control test/fuzz/eth \
	test/fuzz/ethrule test/fuzz/ethring test/fuzz/frame
if NET
fuzz_stems += test/fuzz/netlink
endif
if SOCK
fuzz_stems += test/fuzz/sockring test/fuzz/sockservice test/fuzz/socksettings test/fuzz/sockstream
endif
fuzz_targets = $(notdir $(fuzz_stems))

check_PROGRAMS += $(fuzz_stems:=_replay)
test_fuzz_conf_replay_LDADD =
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
test_fuzz_pdata_replay_LDADD =
test_fuzz_pdata_replay_SOURCES = test/fuzz/pdata_fuzz.c test/fuzz/replay.c dapl/verbs/pdata.c
test_fuzz_request_replay_SOURCES = test/fuzz/request_fuzz.c test/fuzz/replay.c
test_fuzz_request_replay_LDADD = libcommon.la
test_fuzz_eth_replay_SOURCES = test/fuzz/eth_fuzz.c test/fuzz/replay.c
test_fuzz_eth_replay_LDADD = libsofteth.la libcommon.la
test_fuzz_ethrule_replay_LDADD =
test_fuzz_ethrule_replay_SOURCES = test/fuzz/ethrule_fuzz.c test/fuzz/replay.c tools/datcap/rule.c tools/datcap/rule.h
test_fuzz_ethring_replay_SOURCES = test/fuzz/ethring_fuzz.c test/fuzz/replay.c
test_fuzz_ethring_replay_LDADD = libsofteth.la libcommon.la
if NET
test_fuzz_netlink_replay_SOURCES = test/fuzz/netlink_fuzz.c test/fuzz/replay.c
test_fuzz_netlink_replay_CPPFLAGS = $(AM_CPPFLAGS) $(LIBNL_CFLAGS)
test_fuzz_netlink_replay_LDADD = libnetparts.la $(LIBNL_LIBS) libcommon.la libdat2.la
endif
test_fuzz_frame_replay_LDADD =
test_fuzz_frame_replay_SOURCES = test/fuzz/frame_fuzz.c test/fuzz/replay.c tools/datcap/frame.h \
	tools/datcap/frame_parse.c tools/datcap/frame_build.c tools/datcap/rule.c tools/datcap/rule.h
if SOCK
test_fuzz_sockring_replay_SOURCES = test/fuzz/sockring_fuzz.c test/fuzz/replay.c
test_fuzz_sockring_replay_LDADD = libsockparts.la
test_fuzz_sockservice_replay_SOURCES = test/fuzz/sockservice_fuzz.c test/fuzz/replay.c
test_fuzz_sockservice_replay_LDADD = libsockparts.la
test_fuzz_socksettings_replay_SOURCES = test/fuzz/socksettings_fuzz.c test/fuzz/replay.c
test_fuzz_socksettings_replay_LDADD = libsockparts.la
test_fuzz_sockstream_replay_SOURCES = test/fuzz/sockstream_fuzz.c test/fuzz/replay.c sock/move.c $(sock_remote) \
	sock/stream.c sock/wait.c
test_fuzz_sockstream_replay_CPPFLAGS = $(AM_CPPFLAGS)
test_fuzz_sockstream_replay_LDADD = libsockparts.la libcommon.la -lpthread -ldl
endif
dist_check_SCRIPTS += test/fuzz/replay-corpora
TESTS += test/fuzz/replay-corpora
EXTRA_DIST += test/fuzz/corpus test/fuzz/run test/fuzz/coverage test/fuzz/pack

# Corpora are unpacked in the build tree. An input that its archive has no more is removed there, too.
fuzz_corpora = $(fuzz_targets:%=test/fuzz/inputs/%.unpacked)
$(fuzz_corpora): test/fuzz/inputs/%.unpacked: $(srcdir)/test/fuzz/corpus/%.tar.xz
	rm -rf $@ test/fuzz/inputs/$*
	$(MKDIR_P) test/fuzz/inputs/$*
	tar -xJf $< -C test/fuzz/inputs/$*
	touch $@
# By a variable: automake replaces its rule for a log by one that it finds here.
fuzz_log = test/fuzz/replay-corpora.log
$(fuzz_log): $(fuzz_corpora) $(fuzz_stems:=_replay)

# The targets with flags of their own: for the fuzzer, and for coverage, which sets what is set here.
# Sources and libraries are those of NAME_replay: what links in make check links here.
fuzz_build = test/fuzz/fuzzed
fuzz_without = test/fuzz/replay.c
# The one build of ./bootstrap check --all with clang: its warnings are errors.
fuzz_flags = -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -Wall -Wextra -Werror
fuzz_objects = $(patsubst %.c,$(fuzz_build)/%.o,$(filter-out $(fuzz_without),$(filter %.c,$(1))))
fuzz_libraries = $(patsubst libdat2,libregistry,$(basename $(filter %.la,$(test_fuzz_$(1)_replay_LDADD))))
fuzz_programs = $(fuzz_targets:%=$(fuzz_build)/%_fuzz)
$(fuzz_build)/%.o: $(srcdir)/%.c
	@$(MKDIR_P) $(@D)
	$(FUZZ_CC) $(fuzz_flags) $(DEFS) $(AM_CPPFLAGS) $(LIBNL_CFLAGS) -MMD -MP -c $< -o $@
define fuzz_library
$(fuzz_build)/$(1).a: $(call fuzz_objects,$($(1)_la_SOURCES))
	rm -f $$@
	$$(AR) cr $$@ $$^
endef
$(foreach library,$(sort $(foreach target,$(fuzz_targets),$(call fuzz_libraries,$(target)))), \
	$(eval $(call fuzz_library,$(library))))
define fuzz_program
$(fuzz_build)/$(1)_fuzz: $(call fuzz_objects,$(test_fuzz_$(1)_replay_SOURCES)) \
		$(patsubst %,$(fuzz_build)/%.a,$(call fuzz_libraries,$(1)))
	$$(FUZZ_CC) $$(fuzz_flags) $$(filter %.o,$$^) -Wl,--start-group $$(filter %.a,$$^) -Wl,--end-group \
		$$(filter-out %.la,$$(test_fuzz_$(1)_replay_LDADD)) -lpthread -o $$@
endef
$(foreach target,$(fuzz_targets),$(eval $(call fuzz_program,$(target))))
-include $(wildcard $(fuzz_build)/*/*.d $(fuzz_build)/*/*/*.d $(fuzz_build)/*/*/*/*.d)

.PHONY: fuzz fuzz-keep fuzz-corpora fuzz-coverage fuzz-programs fuzz-clean
fuzz-programs: $(fuzz_programs)
fuzz-corpora: $(fuzz_corpora)
fuzz: $(fuzz_programs) $(fuzz_corpora)
	$(srcdir)/test/fuzz/run $(FUZZ_SECONDS) $(fuzz_targets)
# An input that was made by hand is kept if it lies in test/fuzz/inputs/TARGET of the build tree.
fuzz-keep: $(fuzz_programs) $(fuzz_corpora)
	for target in $(fuzz_targets); do \
		$(MKDIR_P) test/fuzz/found/$$target && \
		$(fuzz_build)/$${target}_fuzz -detect_leaks=0 -merge=1 test/fuzz/inputs/$$target test/fuzz/found/$$target && \
		$(srcdir)/test/fuzz/pack test/fuzz/inputs/$$target $(srcdir)/test/fuzz/corpus/$$target.tar.xz && \
		touch test/fuzz/inputs/$$target.unpacked || exit 1; \
	done
# What the corpora reach, with GCC. A target's lines are those of its decoders, see the script.
FUZZ_COVERAGE = 95
FUZZ_COVERAGE_CC = gcc
fuzz-coverage: $(fuzz_corpora)
	$(MAKE) fuzz-programs fuzz_build=test/fuzz/reached fuzz_without= FUZZ_CC='$(FUZZ_COVERAGE_CC)' \
		fuzz_flags='-O0 -g --coverage'
	$(srcdir)/test/fuzz/coverage --least $(FUZZ_COVERAGE) --cc '$(FUZZ_COVERAGE_CC)' $(FUZZ_COVERAGE_OPTIONS) \
		$(fuzz_targets)
fuzz-clean:
	rm -rf test/fuzz/found test/fuzz/reached test/fuzz/fuzzed test/fuzz/inputs
clean-local: fuzz-clean
