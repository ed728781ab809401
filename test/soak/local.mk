# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Reliability: random faults and load, with a short form in `make check` and options for as many rounds
# or seconds as there is time for (soak.h). doc/reliability.md has the figures.
soak_tests = \
	test/soak/killed \
	test/soak/conserved \
	test/soak/chaos \
	test/soak/disturbed \
	test/soak/scale \
	test/soak/forged \
	test/soak/elevated \
	test/soak/starved \
	test/soak/posters \
	test/soak/steady
check_PROGRAMS += $(soak_tests)
TESTS += $(soak_tests)
soak_common = test/soak/soak.c test/soak/soak.h $(life_common)
soak_traffic = test/soak/traffic.c test/soak/traffic.h $(soak_common)
test_soak_killed_SOURCES = test/soak/killed.c test/own_network.h $(soak_traffic)
test_soak_killed_LDADD = libdat2.la -lpthread
test_soak_conserved_SOURCES = test/soak/conserved.c test/own_network.h $(soak_common)
test_soak_conserved_LDADD = libdat2.la -lpthread
test_soak_chaos_SOURCES = test/soak/chaos.c test/soak/bad_link.c test/soak/bad_link.h \
	test/own_network.h $(soak_common)
test_soak_chaos_LDADD = libdat2.la -lpthread
test_soak_disturbed_SOURCES = test/soak/disturbed.c test/own_network.h $(soak_traffic)
test_soak_disturbed_LDADD = libdat2.la -lpthread
test_soak_scale_SOURCES = test/soak/scale.c test/own_network.h $(soak_common)
test_soak_scale_LDADD = libdat2.la -lpthread
test_soak_forged_SOURCES = test/soak/forged.c test/own_network.h $(soak_common)
test_soak_forged_LDADD = libdat2.la -lpthread
# Not linked with libdat2: a program with more rights finds it by its path alone.
test_soak_elevated_SOURCES = test/soak/elevated.c
test_soak_elevated_LDADD = -ldl
test_soak_starved_SOURCES = test/soak/starved.c test/own_network.h $(soak_common)
test_soak_starved_LDADD = libdat2.la -lpthread
test_soak_posters_SOURCES = test/soak/posters.c test/own_network.h test/life/control_client.c test/life/control_client.h \
	$(soak_common)
test_soak_posters_LDADD = libdat2.la -lpthread
test_soak_steady_SOURCES = test/soak/steady.c test/own_network.h $(soak_traffic)
test_soak_steady_LDADD = libdat2.la -lpthread
# Builds an older commit, so it is not in make check.
EXTRA_DIST += test/soak/versions test/soak/golden test/soak/sides.sh
# For make check-variants VARIANTS=s390x.
EXTRA_DIST += test/soak/architectures
# A release, or any commit, talks to this build: make check-golden GOLDEN=v3.0.0.
GOLDEN =
GOLDEN_ROUNDS = 20000
.PHONY: check-golden
check-golden: all test/soak/conserved
	$(srcdir)/test/soak/versions $(GOLDEN:%=--commit %) --rounds $(GOLDEN_ROUNDS) || test $$? = 77

# The long forms, one after the other.
.PHONY: check-soak
check-soak: all $(soak_tests) test/life/present
	test/soak/killed --rounds 1000
	test/soak/conserved --rounds 100000000
	test/soak/chaos --rounds 100000
	test/soak/disturbed --rounds 1000 --seconds 60
	SOAK_PROCESSES=64 SOAK_ENDPOINTS=1000 test/soak/scale
	SOAK_PROCESSES=256 test/soak/scale processes_connect_all_to_all
	test/soak/forged --rounds 10000
	test/soak/posters --rounds 10000000
	DAPL_TEST_KEYS=1000000000 test/unit/soft/test_mem
	LIFE_LIMIT=3600 LIFE_QUERIES=1000000 test/life/present no_answer_is_older_than_a_change_that_is_done
	test/soak/steady --seconds 3600
	$(srcdir)/test/soak/versions || test $$? = 77
