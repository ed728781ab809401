# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# libdatnet: routes, neighbours, interfaces and their changes, over libnl-route-3 and libdat2.
if NET
noinst_LTLIBRARIES += libnetparts.la
libnetparts_la_SOURCES = \
	net/routes.c \
	net/neighbour.c \
	net/nics.c \
	net/port.c \
	net/monitor.c \
	net/changes.c net/changes.h \
	net/order.c net/order.h \
	net/lookup.c net/lookup.h \
	net/entries.c net/entries.h \
	net/rdma.c net/rdma.h \
	net/table.c net/table.h \
	net/netlink.c net/netlink.h
libnetparts_la_CPPFLAGS = $(AM_CPPFLAGS) $(LIBNL_CFLAGS)
lib_LTLIBRARIES += libdatnet.la
libdatnet_la_SOURCES =
libdatnet_la_LIBADD = libnetparts.la libcommon.la libdat2.la $(LIBNL_LIBS)
libdatnet_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined \
	-Wl,--version-script=$(srcdir)/net/libdatnet.map $(ZDEFS) -Wl,-z,now -Wl,-z,relro
EXTRA_libdatnet_la_DEPENDENCIES = net/libdatnet.map
pkgconfig_DATA += net/dat-net.pc

check_PROGRAMS += test/life/net_port
TESTS += test/life/net_port
test_life_net_port_SOURCES = test/life/net_port.c test/own_network.h $(life_common)
test_life_net_port_LDADD = libdatnet.la libdat2.la -lpthread

if CMOCKA
unit_net = \
	test/unit/net/test_changes \
	test/unit/net/test_entries \
	test/unit/net/test_lookup \
	test/unit/net/test_monitor \
	test/unit/net/test_neighbour \
	test/unit/net/test_netlink \
	test/unit/net/test_nics \
	test/unit/net/test_order \
	test/unit/net/test_port \
	test/unit/net/test_rdma \
	test/unit/net/test_routes \
	test/unit/net/test_table
check_PROGRAMS += $(unit_net)
TESTS += $(unit_net)
unit_net_cppflags = $(AM_CPPFLAGS) $(LIBNL_CFLAGS) $(CMOCKA_CFLAGS)
unit_net_libs = libnetparts.la $(LIBNL_LIBS) libcommon.la libdat2.la $(CMOCKA_LIBS)
net_ips = test/unit/net/ips.c test/unit/net/ips.h
net_messages = test/unit/net/messages.c test/unit/net/messages.h
# A namespace of the test's own.
net_namespace = test/unit/net/namespace.c test/unit/net/namespace.h
net_namespace_ldflags = $(AM_LDFLAGS) -Wl,--wrap=net_open,--wrap=net_close,--wrap=net_table_read \
	-Wl,--wrap=net_table_free,--wrap=net_rdma_read,--wrap=net_rdma_free
net_answers = test/unit/net/answers.c test/unit/net/answers.h $(net_messages) $(net_ips)
test_unit_net_test_changes_SOURCES = test/unit/net/test_changes.c $(net_messages) $(net_ips)
test_unit_net_test_changes_CPPFLAGS = $(unit_net_cppflags)
test_unit_net_test_changes_LDADD = $(unit_net_libs)
test_unit_net_test_changes_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=net_parse,--wrap=realloc
test_unit_net_test_entries_SOURCES = test/unit/net/test_entries.c $(net_ips)
test_unit_net_test_entries_CPPFLAGS = $(unit_net_cppflags)
test_unit_net_test_entries_LDADD = $(unit_net_libs)
test_unit_net_test_entries_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dats_list_entries
test_unit_net_test_lookup_SOURCES = test/unit/net/test_lookup.c $(net_answers)
test_unit_net_test_lookup_CPPFLAGS = $(unit_net_cppflags)
test_unit_net_test_lookup_LDADD = $(unit_net_libs)
test_unit_net_test_lookup_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=net_ask
test_unit_net_test_monitor_SOURCES = test/unit/net/test_monitor.c $(net_namespace) $(net_messages) $(net_ips)
test_unit_net_test_monitor_CPPFLAGS = $(unit_net_cppflags)
test_unit_net_test_monitor_LDADD = $(unit_net_libs)
test_unit_net_test_monitor_LDFLAGS = $(net_namespace_ldflags) -Wl,--wrap=net_parse \
	-Wl,--wrap=nl_socket_add_membership,--wrap=nl_socket_set_nonblocking,--wrap=nl_socket_get_fd,--wrap=nl_recv \
	-Wl,--wrap=socket,--wrap=bind,--wrap=recvfrom,--wrap=epoll_create1,--wrap=epoll_ctl,--wrap=close
test_unit_net_test_neighbour_SOURCES = test/unit/net/test_neighbour.c $(net_namespace) $(net_answers)
test_unit_net_test_neighbour_CPPFLAGS = $(unit_net_cppflags)
test_unit_net_test_neighbour_LDADD = $(unit_net_libs)
test_unit_net_test_neighbour_LDFLAGS = $(net_namespace_ldflags) -Wl,--wrap=net_ask,--wrap=net_lookup \
	-Wl,--wrap=socket,--wrap=ioctl,--wrap=setsockopt,--wrap=sendto,--wrap=close,--wrap=poll,--wrap=clock_gettime
test_unit_net_test_netlink_CPPFLAGS = $(unit_net_cppflags)
test_unit_net_test_netlink_LDADD = $(unit_net_libs)
test_unit_net_test_nics_SOURCES = test/unit/net/test_nics.c $(net_namespace) $(net_ips)
test_unit_net_test_nics_CPPFLAGS = $(unit_net_cppflags)
test_unit_net_test_nics_LDADD = $(unit_net_libs)
test_unit_net_test_nics_LDFLAGS = $(net_namespace_ldflags) -Wl,--wrap=net_rdma_speed
test_unit_net_test_order_SOURCES = test/unit/net/test_order.c $(net_ips)
test_unit_net_test_order_CPPFLAGS = $(unit_net_cppflags)
test_unit_net_test_order_LDADD = $(unit_net_libs)
test_unit_net_test_port_SOURCES = test/unit/net/test_port.c net/port.c
test_unit_net_test_port_CPPFLAGS = $(unit_net_cppflags)
test_unit_net_test_port_LDADD = $(CMOCKA_LIBS)
test_unit_net_test_rdma_CPPFLAGS = $(unit_net_cppflags)
test_unit_net_test_rdma_LDADD = $(unit_net_libs)
test_unit_net_test_rdma_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=realloc,--wrap=opendir,--wrap=fopen64
test_unit_net_test_routes_SOURCES = test/unit/net/test_routes.c $(net_namespace) $(net_ips)
test_unit_net_test_routes_CPPFLAGS = $(unit_net_cppflags)
test_unit_net_test_routes_LDADD = $(unit_net_libs)
test_unit_net_test_routes_LDFLAGS = $(net_namespace_ldflags) \
	-Wl,--wrap=net_entries_read,--wrap=net_entries_free,--wrap=net_lookup
test_unit_net_test_table_CPPFLAGS = $(unit_net_cppflags)
test_unit_net_test_table_LDADD = $(unit_net_libs)
test_unit_net_test_table_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=net_dump,--wrap=realloc
endif
endif
EXTRA_DIST += net/libdatnet.map net/libdatnet.symbols
