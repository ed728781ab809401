# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Every allocation and every operation of the device made to fail, one after the other. The
# libraries are linked once more for it: the linker puts our wrappers in place of the calls.
fault_calls = malloc calloc realloc aligned_alloc strdup free \
	pthread_create epoll_create1 epoll_ctl eventfd socket accept4 bind listen connect \
	sendmsg send recvmsg recv getifaddrs getaddrinfo fopen opendir open scandir \
	memfd_create ftruncate mmap pthread_key_create
fault_wraps = $(fault_calls:%=-Wl,--wrap=%)
fault_module_flags = $(AM_LDFLAGS) -shared -avoid-version -rpath /nowhere

check_LTLIBRARIES += test/fault/libfault.la test/fault/libdat2fault.la \
	test/fault/libdaplfault.la test/fault/session.la
test_fault_libfault_la_SOURCES = test/fault/fault.c test/fault/fault.h
test_fault_libfault_la_CFLAGS = $(WARN) $(SANITIZE) -fno-builtin
test_fault_libfault_la_LDFLAGS = $(fault_module_flags)

test_fault_libdat2fault_la_SOURCES =
test_fault_libdat2fault_la_LIBADD = libregistry.la libcommon.la test/fault/libfault.la
test_fault_libdat2fault_la_LDFLAGS = $(fault_module_flags) $(fault_wraps) \
	-Wl,--version-script=$(srcdir)/dat/libdat2.map

test_fault_libdaplfault_la_SOURCES = test/fault/device.c
test_fault_libdaplfault_la_LIBADD = libdaplcore.la libdaplsoftdev.la libcommon.la \
	test/fault/libdat2fault.la test/fault/libfault.la
test_fault_libdaplfault_la_LDFLAGS = $(fault_module_flags) $(fault_wraps) \
	-Wl,--wrap=dapl_device_ops -Wl,--version-script=$(srcdir)/dapl/libdaplsoft.map

test_fault_session_la_SOURCES = test/fault/session.c test/fault/session.h
test_fault_session_la_LIBADD = test/fault/libdat2fault.la
test_fault_session_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere

check_PROGRAMS += test/fault/faults
TESTS += test/fault/faults
test_fault_faults_SOURCES = test/fault/faults.c test/fault/runs.c test/fault/runs.h
test_fault_faults_CPPFLAGS = $(AM_CPPFLAGS) -DBUILD='"$(abs_top_builddir)"'
test_fault_faults_LDADD = test/fault/libfault.la
EXTRA_test_fault_faults_DEPENDENCIES = test/fault/session.la test/fault/libdaplfault.la

check_PROGRAMS += test/fault/lost_channel
TESTS += test/fault/lost_channel
test_fault_lost_channel_SOURCES = test/fault/lost_channel.c test/fault/runs.c test/fault/runs.h \
	$(life_common)
test_fault_lost_channel_LDADD = test/fault/libdat2fault.la test/fault/libfault.la -lpthread -ldl
EXTRA_test_fault_lost_channel_DEPENDENCIES = test/fault/libdaplfault.la

# libdatnet: its calls of libnl fail, too.
if NET
net_fault_calls = malloc calloc realloc strdup free epoll_create1 epoll_ctl socket opendir \
	nl_socket_alloc nl_socket_free nl_connect nl_send_auto nl_recvmsgs nl_recv nl_msg_parse nl_cb_alloc \
	nl_cb_put nl_socket_add_membership nl_socket_set_nonblocking nlmsg_alloc_simple nlmsg_append \
	nlmsg_convert nlmsg_free nla_put
check_PROGRAMS += test/fault/net_faults
TESTS += test/fault/net_faults
test_fault_net_faults_SOURCES = test/fault/net_faults.c test/fault/runs.c test/fault/runs.h
test_fault_net_faults_CPPFLAGS = $(AM_CPPFLAGS) $(LIBNL_CFLAGS) -DBUILD='"$(abs_top_builddir)"'
test_fault_net_faults_LDFLAGS = $(AM_LDFLAGS) $(net_fault_calls:%=-Wl,--wrap=%)
test_fault_net_faults_LDADD = libnetparts.la libcommon.la libdat2.la test/fault/libfault.la $(LIBNL_LIBS)
endif

# The same with the conformance suite: some of it in check; all of it here, bounded. What was
# done is not done again the next time, unless the libraries are new.
check_PROGRAMS += test/fault/statements
test_fault_statements_SOURCES = test/fault/statements.c test/fault/statements.h test/fault/statements_events.c \
	test/fault/statements_verdict.c test/fault/runs.c test/fault/runs.h \
	$(conform_statements)
test_fault_statements_LDADD = test/fault/libdat2fault.la test/fault/libfault.la -lpthread -ldl
test_fault_statements_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dat_evd_create -Wl,--wrap=dat_evd_free \
	-Wl,--wrap=dat_evd_dequeue -Wl,--wrap=dat_evd_wait \
	-Wl,--wrap=dat_ia_openv -Wl,--wrap=dat_ia_close -Wl,--wrap=pthread_create -Wl,--wrap=pthread_join \
	-Wl,--wrap=fork
EXTRA_test_fault_statements_DEPENDENCIES = test/fault/libdaplfault.la
dist_check_SCRIPTS += test/fault/some-statements
TESTS += test/fault/some-statements
.PHONY: check-faults
check-faults: all test/fault/statements test/fault/libdaplfault.la
	test/fault/statements --seconds 7200 --resume faults.done
	rm -f faults.done
CLEANFILES += faults.done
