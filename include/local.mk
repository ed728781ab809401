# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The public headers, under both names: <dat2/udat.h> is what programs for the old stack
# say, <dat/udat.h> what the uDAPL documents say. They include each other by bare name.
# In the tree include/dat2 is a link to include/dat.
dat_headers = \
	include/dat/udat_config.h \
	include/dat/dat_platform_specific.h \
	include/dat/dat_error.h \
	include/dat/dat.h \
	include/dat/dat_vendor_specific.h \
	include/dat/udat_vendor_specific.h \
	include/dat/udat.h \
	include/dat/dat_redirection.h \
	include/dat/udat_redirection.h \
	include/dat/dat_registry.h \
	include/dat/dat_ib_extensions.h \
	include/dat/dat_map_extensions.h \
	include/dat/dat_dm_extensions.h \
	include/dat/dat_send_extensions.h \
	include/dat/dat_net_extensions.h \
	include/dat/dat_mcast_extensions.h \
	include/dat/dat_diag_extensions.h \
	include/dat/dat_eth_extensions.h \
	include/dat/dat_entries.h \
	include/dat/dat_messages.h \
	include/dat/dat_net.h \
	include/dat/dat_net_port.h \
	include/dat/dat_socket.h \
	include/dat/dat_trace.h

# The DAT 1.2 interface, in a directory of its own: its udat.h has the same name.
dat12_headers = \
	include/dat-1.2/dat/udat.h \
	include/dat-1.2/dat/dat_1_2_types.h \
	include/dat-1.2/dat/dat_1_2_convert.h \
	include/dat-1.2/dat/dat_1_2_calls.h \
	include/dat-1.2/dat/dat.h \
	include/dat-1.2/dat/dat_error.h \
	include/dat-1.2/dat/dat_platform_specific.h \
	include/dat-1.2/dat/dat_vendor_specific.h \
	include/dat-1.2/dat/udat_config.h \
	include/dat-1.2/dat/udat_vendor_specific.h
dat12includedir = $(includedir)/dat-1.2/dat
dat12include_HEADERS = $(dat12_headers)

datincludedir = $(includedir)/dat
dat2includedir = $(includedir)/dat2
datinclude_HEADERS = $(dat_headers)
dat2include_HEADERS = $(dat_headers)

# Of the link, automake knows nothing.
dist-hook: dist-dat2-link
dist-dat2-link:
	cd $(distdir)/include && rm -rf dat2 && ln -s dat dat2
