# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The conformance suite: a file for each DAT object, statements by number.
check_PROGRAMS += test/conform/conform
test_conform_conform_SOURCES = test/conform/main.c $(conform_statements)
conform_statements = \
	test/conform/run.h \
	test/conform/choose.c \
	test/conform/expect.c test/conform/conform.h \
	test/conform/names.c \
	test/conform/pair.c test/conform/pair.h \
	test/conform/actors.c test/conform/actors.h \
	test/conform/place.c test/conform/place.h \
	test/conform/hnd.c \
	test/conform/ia.c \
	test/conform/pz.c \
	test/conform/lmr.c \
	test/conform/dm.c \
	test/conform/evd.c \
	test/conform/evd_wait.c \
	test/conform/cno.c \
	test/conform/ep.c \
	test/conform/conn.c \
	test/conform/dto.c \
	test/conform/flags.c \
	test/conform/sp.c \
	test/conform/cr.c \
	test/conform/rmr.c \
	test/conform/srq.c \
	test/conform/ext.c \
	test/conform/send_immed.c \
	test/conform/mcast.c \
	test/conform/tuning.c \
	test/conform/err.c \
	test/conform/reg.c \
	test/conform/states.c \
	test/conform/race.c test/conform/race.h \
	test/conform/race_evd.c \
	test/conform/race_dto.c \
	test/conform/race_cno.c \
	test/conform/race_conn.c \
	test/conform/race_calls.c \
	test/conform/peer.c \
	test/conform/rob.c
test_conform_conform_LDADD = libdat2.la -lpthread -ldl
EXTRA_DIST += test/conform/run test/conform/known-rxe test/conform/known-siw
EXTRA_DIST += test/conform/table test/conform/DOUBTS.md doc/conformance.md \
	test/conform/results/soft.txt test/conform/results/rxe.txt \
	test/conform/results/rxe-6.12.txt test/conform/results/siw-6.12.txt \
	test/conform/results/siw.txt test/conform/results/stock-rxe.txt
# Natively, on the software device.
dist_check_SCRIPTS += test/conform/on-soft
TESTS += test/conform/on-soft
CLEANFILES += test/conform/on-soft.conf

# A hundred times.
EXTRA_DIST += test/conform/repeat
.PHONY: check-repeated
check-repeated: all test/conform/conform
	$(srcdir)/test/conform/repeat

# Under valgrind, slowly. VALGRIND_OPTIONS: those of run, --only for instance.
EXTRA_DIST += test/conform/on-valgrind test/conform/valgrind.supp
.PHONY: check-valgrind
check-valgrind: all test/conform/conform
	$(srcdir)/test/conform/on-valgrind $(VALGRIND_OPTIONS)
