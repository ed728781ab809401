# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# libdatsock: TCP connections of one host in shared memory, for programs that preload it.
if SOCK
lib_LTLIBRARIES += libdatsock.la
# What tests use without the interposed calls.
noinst_LTLIBRARIES += libsockparts.la
libsockparts_la_SOURCES = \
	sock/closer.c sock/closer.h \
	sock/conf.c sock/conf.h \
	sock/conn.c sock/conn.h \
	sock/foreign.c sock/foreign.h \
	sock/hosts.c sock/hosts.h common/sock_service.c common/sock_service.h \
	sock/link_message.c sock/link_message.h \
	sock/polls.c sock/polls.h \
	sock/rate.h \
	sock/real.c sock/real.h \
	sock/ring.c sock/ring.h \
	sock/settings.c sock/settings.h \
	sock/share.c sock/share.h \
	sock/timers.c sock/timers.h
# Streams over DAT.
sock_remote = sock/remote.c sock/remote.h sock/remote_back.c sock/remote_back.h sock/remote_chores.c sock/remote_chores.h \
	sock/remote_frame.c sock/remote_frame.h sock/remote_in.c sock/remote_in.h sock/remote_open.c sock/remote_open.h \
	sock/remote_out.c sock/remote_out.h sock/remote_stream.c sock/remote_stream.h sock/remote_types.h
libdatsock_la_SOURCES = \
	sock/answers.c sock/answers.h \
	sock/api.c \
	sock/aware.c sock/aware.h common/sock_mark.h \
	sock/calls.h sock/calls_data.c sock/calls_fd.c sock/calls_process.c sock/calls_wait.c \
	sock/conn_types.h \
	sock/epoll.c sock/epoll.h \
	sock/full.c sock/full.h \
	sock/link.c sock/link.h \
	sock/move.c sock/move.h \
	sock/peer.c sock/peer.h \
	sock/poll.c sock/poll.h \
	$(sock_remote) \
	sock/service.c sock/service.h \
	sock/stream.c sock/stream.h \
	sock/wait.c sock/wait.h
libdatsock_la_LIBADD = libsockparts.la libcommon.la -lpthread -ldl
libdatsock_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined \
	-Wl,--version-script=$(srcdir)/sock/libdatsock.map $(ZDEFS) -Wl,-z,now -Wl,-z,relro
EXTRA_libdatsock_la_DEPENDENCIES = sock/libdatsock.map
# datsock.conf(5) names the directory that the library reads.
man_MANS += doc/man/datsock.conf.5
doc/man/datsock.conf.5: $(srcdir)/doc/man/datsock.conf.5.in Makefile
	$(AM_V_at)$(MKDIR_P) doc/man
	$(AM_V_GEN)$(name_sysconfdir)
dist_man_MANS += doc/man/libdatsock.7 doc/man/man3/dat_socket.3
if DATINFO
bin_PROGRAMS += datsock
datsock_SOURCES = tools/sock/datsock.c tools/sock/network.c tools/sock/network.h \
	tools/sock/attach.c tools/sock/attach.h tools/sock/option.c tools/sock/option.h \
	common/bpf_code.c common/bpf_code.h common/sock_mark.h tools/parse_json.c tools/parse_json.h tools/cli.c tools/cli.h
datsock_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) -DLIBDIR='"$(libdir)"'
datsock_LDADD = libversion.la $(JANSSON_LIBS)
dist_man_MANS += doc/man/datsock.1
sbin_PROGRAMS = datsockd
datsockd_SOURCES = tools/sock/datsockd.c tools/sock/clients.c tools/sock/clients.h \
	tools/sock/dispose.c tools/sock/dispose.h tools/sock/loop.c tools/sock/loop.h tools/sock/paths.c tools/sock/paths.h \
	tools/sock/point.c tools/sock/point.h tools/sock/interfaces.c tools/sock/interfaces.h tools/sock/locate.c tools/sock/locate.h \
	common/local_addresses.c common/local_addresses.h common/rtnl.c common/rtnl.h \
	tools/sock/attach.c tools/sock/attach.h tools/sock/option.c tools/sock/option.h \
	common/bpf_code.c common/bpf_code.h common/sock_mark.h common/sock_service.c common/sock_service.h \
	common/address.c common/address.h common/env.h tools/cli.c tools/cli.h
datsockd_CPPFLAGS = $(AM_CPPFLAGS)
datsockd_LDADD = libversion.la libdat2.la -lpthread
dist_man_MANS += doc/man/datsockd.8
TESTS += test/sock/adapters test/sock/datsock test/sock/datsockd test/sock/hosts test/sock/rendezvous test/sock/silent
endif
if CMOCKA
check_PROGRAMS += test/unit/tools/test_option test/unit/tools/test_paths
TESTS += test/unit/tools/test_option test/unit/tools/test_paths
test_unit_tools_test_option_SOURCES = test/unit/tools/test_option.c $(softeth_ebpf) tools/sock/option.c common/bpf_code.c
test_unit_tools_test_option_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_tools_test_option_LDADD = $(CMOCKA_LIBS)
test_unit_tools_test_paths_SOURCES = test/unit/tools/test_paths.c tools/sock/paths.c
test_unit_tools_test_paths_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_tools_test_paths_LDADD = $(CMOCKA_LIBS)
endif
check_PROGRAMS += test/sock/moves
test_sock_moves_SOURCES = test/sock/moves.c
test_sock_moves_LDADD =
TESTS += test/sock/differential test/sock/forks test/sock/hostile test/sock/kernel_calls test/sock/limits \
	test/sock/over-dat test/sock/registrations test/sock/streams test/sock/users
endif
dist_check_SCRIPTS += test/sock/differential test/sock/forks test/sock/hostile test/sock/kernel_calls test/sock/limits \
	test/sock/over-dat test/sock/registrations test/sock/streams test/sock/users test/sock/datsock test/sock/datsockd \
	test/sock/adapters test/sock/hostile-dat test/sock/hosts test/sock/rendezvous test/sock/silent
EXTRA_DIST += doc/man/datsock.conf.5.in sock/libdatsock.map sock/libdatsock.symbols test/sock/moved.py test/sock/namespaces.py \
	test/sock/services.py \
	test/sock/preload.py test/sock/programs
CLEANFILES += doc/man/datsock.conf.5
