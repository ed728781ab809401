# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
bin_PROGRAMS += datping
datping_SOURCES = \
	tools/ping/main.c tools/ping/options.h \
	tools/ping/client.c tools/ping/server.c \
	tools/ping/adapter.c tools/ping/adapter.h \
	tools/ping/peer.c tools/ping/peer.h \
	tools/ping/message.c tools/ping/message.h \
	tools/call.c tools/call.h \
	tools/ia_choice.c tools/ia_choice.h \
	tools/messages.c tools/messages.h common/log_handler.h \
	tools/cli.c tools/cli.h \
	tools/names.c tools/names.h
datping_LDADD = libversion.la libdat2.la -ldl
dist_man_MANS += doc/man/datping.1
