# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The network under the software device: what is on it, and what it does to us.
dist_check_SCRIPTS += test/net/tshark
TESTS += test/net/tshark

# Both network namespaces are this program's own. The machine runs it too, for netem.
check_PROGRAMS += test/net/namespaces
TESTS += test/net/namespaces
net_common = test/net/ends.c test/net/ends.h $(life_common)
test_net_namespaces_SOURCES = test/net/namespaces.c $(net_common)
test_net_namespaces_LDADD = libdat2.la -lpthread

# Multicast between processes and over a link.
check_PROGRAMS += test/net/mcast
TESTS += test/net/mcast
test_net_mcast_SOURCES = test/net/mcast.c $(net_common)
test_net_mcast_LDADD = libdat2.la -lpthread

# datping and rping on rxe, siw and the software device: in the machine, run by test/vm/suites.d/soft-siw.
EXTRA_DIST += test/net/ping-rping

# Against kernel siw: in the machine, run by test/vm/suites.d/soft-siw.
check_PROGRAMS += test/net/siw test/net/rping
net_link = test/net/link.c test/net/link.h $(net_common)
test_net_siw_SOURCES = test/net/siw.c $(net_link)
test_net_siw_LDADD = libdat2.la -lpthread
test_net_rping_SOURCES = test/net/rping.c $(net_link)
test_net_rping_LDADD = libdat2.la -lpthread
