# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Inputs that a fuzzer found worth keeping, and the functions they are for. `make check`
# replays them; `make fuzz-conf FUZZ_TIME=60` looks for more (needs clang).
FUZZ_TIME = 60
FUZZ_CC = clang
EXTRA_DIST += test/fuzz/corpus

check_PROGRAMS += test/fuzz/conf_replay
test_fuzz_conf_replay_SOURCES = test/fuzz/conf_fuzz.c test/fuzz/replay.c dat/conf.c
dist_check_SCRIPTS += test/fuzz/replay-conf
TESTS += test/fuzz/replay-conf

fuzz-conf:
	$(MKDIR_P) test/fuzz/found
	$(FUZZ_CC) -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
		$(DEFS) -D_GNU_SOURCE -I. -I$(srcdir) -I$(srcdir)/include \
		$(srcdir)/test/fuzz/conf_fuzz.c $(srcdir)/dat/conf.c -o test/fuzz/conf_fuzz
	test/fuzz/conf_fuzz -max_total_time=$(FUZZ_TIME) -print_final_stats=1 \
		test/fuzz/found $(srcdir)/test/fuzz/corpus/conf

fuzz-clean:
	rm -rf test/fuzz/found test/fuzz/conf_fuzz
clean-local: fuzz-clean
