# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# With configure --disable-compat-names dapltest is installed as dat-dapltest.
bin_PROGRAMS += dapltest
dapltest_SOURCES = \
	tools/dapltest/main.c \
	tools/dapltest/options.c tools/dapltest/options.h \
	tools/dapltest/server.c tools/dapltest/server.h \
	tools/dapltest/client.c tools/dapltest/client.h \
	tools/dapltest/control.c tools/dapltest/control.h \
	tools/dapltest/transaction.c tools/dapltest/transaction.h \
	tools/dapltest/performance.c tools/dapltest/performance.h \
	tools/dapltest/limit.c tools/dapltest/limit.h \
	tools/dapltest/functional.c tools/dapltest/functional.h \
	tools/dapltest/functional_object.c \
	tools/dapltest/functional_connect.c \
	tools/dapltest/functional_query.c \
	tools/dapltest/channel.c tools/dapltest/channel.h \
	tools/dapltest/op.h \
	tools/dapltest/wire.c tools/dapltest/wire.h \
	tools/call.c tools/call.h \
	tools/ia_choice.c tools/ia_choice.h \
	tools/messages.c tools/messages.h common/log_handler.h \
	tools/cli.c tools/cli.h \
	tools/names.c tools/names.h
dapltest_LDADD = libversion.la libdat2.la -ldl -lpthread
dist_man_MANS += doc/man/dapltest.1
