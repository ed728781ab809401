# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The uDAPL BTL of Open MPI: a consumer, it knows the public headers and Open MPI's.
if OPENMPI
openmpidir = $(libdir)/dapl/openmpi
openmpi_LTLIBRARIES = mca_btl_udapl.la
dist_openmpi_DATA = contrib/openmpi/help-mpi-btl-udapl.txt
endif
mca_btl_udapl_la_SOURCES = \
	contrib/openmpi/udapl.h \
	contrib/openmpi/component.c \
	contrib/openmpi/module.c \
	contrib/openmpi/address.c \
	contrib/openmpi/connect.c \
	contrib/openmpi/frag.c \
	contrib/openmpi/send.c \
	contrib/openmpi/receive.c \
	contrib/openmpi/eager.c \
	contrib/openmpi/rdma.c \
	contrib/openmpi/progress.c
# Open MPI's headers have a config.h of their own, and warnings.
mca_btl_udapl_la_CPPFLAGS = -D_GNU_SOURCE -I$(top_srcdir)/include $(OPENMPI_CPPFLAGS)
mca_btl_udapl_la_CFLAGS = $(AM_CFLAGS) -std=gnu99 $(OPENMPI_CFLAGS)
mca_btl_udapl_la_LIBADD = libdat2.la $(OPENMPI_LIBS)
mca_btl_udapl_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -no-undefined \
	$(ZDEFS) -Wl,-z,now
