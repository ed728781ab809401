# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# With configure --disable-compat-names dtest is installed as dat-dtest.
bin_PROGRAMS += dtest
dtest_SOURCES = \
	tools/dtest.c \
	tools/dtest/tester.c tools/dtest/tester.h \
	tools/dtest/phases.c tools/dtest/phases.h \
	tools/dtest/rendezvous.c tools/dtest/rendezvous.h \
	tools/call.c tools/call.h \
	tools/ia_choice.c tools/ia_choice.h \
	tools/messages.c tools/messages.h common/log_handler.h \
	tools/cli.c tools/cli.h \
	tools/names.c tools/names.h
dtest_LDADD = libversion.la libdat2.la -ldl
dist_man_MANS += doc/man/dtest.1
