# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The uDAPL BTL of Open MPI: a consumer, it knows the public headers and Open MPI's. Of common/ it has
# the limit of file sizes and the checks of locks.
if OPENMPI
openmpidir = $(libdir)/dapl/openmpi
openmpi_LTLIBRARIES = mca_btl_udapl.la
noinst_LTLIBRARIES += libbtludapl.la
dist_man_MANS += doc/man/mca_btl_udapl.7
openmpi_DATA = contrib/openmpi/help-mpi-btl-udapl.txt
endif
# All of it, for unit tests too.
libbtludapl_la_SOURCES = \
	contrib/openmpi/udapl.h \
	contrib/openmpi/tunables.h \
	contrib/openmpi/atomic.h \
	contrib/openmpi/lock.h \
	contrib/openmpi/compat.h \
	contrib/openmpi/ring.h \
	contrib/openmpi/clock.h \
	contrib/openmpi/component.c \
	contrib/openmpi/help.h \
	contrib/openmpi/help.c \
	contrib/openmpi/module.h \
	contrib/openmpi/module.c \
	contrib/openmpi/address.h \
	contrib/openmpi/address.c \
	contrib/openmpi/endpoint.h \
	contrib/openmpi/endpoint.c \
	contrib/openmpi/state_table.h \
	contrib/openmpi/state_table.c \
	contrib/openmpi/state.h \
	contrib/openmpi/state.c \
	contrib/openmpi/completed.h \
	contrib/openmpi/completed.c \
	contrib/openmpi/conn.h \
	contrib/openmpi/conn.c \
	contrib/openmpi/control.h \
	contrib/openmpi/control.c \
	contrib/openmpi/hello.h \
	contrib/openmpi/hello.c \
	contrib/openmpi/posting.h \
	contrib/openmpi/push.h \
	contrib/openmpi/push.c \
	contrib/openmpi/rdma_post.h \
	contrib/openmpi/rdma_post.c \
	contrib/openmpi/recv_post.h \
	contrib/openmpi/recv_post.c \
	contrib/openmpi/connect.h \
	contrib/openmpi/connect.c \
	contrib/openmpi/frag.h \
	contrib/openmpi/frag.c \
	contrib/openmpi/send.h \
	contrib/openmpi/send.c \
	contrib/openmpi/staging.h \
	contrib/openmpi/staging.c \
	contrib/openmpi/receive.h \
	contrib/openmpi/receive.c \
	contrib/openmpi/ring_setup.h \
	contrib/openmpi/ring_setup.c \
	contrib/openmpi/ring_poll.h \
	contrib/openmpi/ring_poll.c \
	contrib/openmpi/memory.h \
	contrib/openmpi/memory.c \
	contrib/openmpi/reg_cache.h \
	contrib/openmpi/reg_cache.c \
	contrib/openmpi/rdma.h \
	contrib/openmpi/rdma.c \
	contrib/openmpi/progress.h \
	contrib/openmpi/progress.c \
	common/file_size.c common/file_size.h common/lock_check.c
# Open MPI's headers have a config.h of their own, and warnings.
libbtludapl_la_CPPFLAGS = -D_GNU_SOURCE -I$(top_srcdir)/include $(OPENMPI_CPPFLAGS)
libbtludapl_la_CFLAGS = $(AM_CFLAGS) -std=gnu99 $(OPENMPI_CFLAGS)
mca_btl_udapl_la_SOURCES =
mca_btl_udapl_la_LIBADD = libbtludapl.la libdat2.la $(OPENMPI_LIBS)
mca_btl_udapl_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -no-undefined \
	$(ZDEFS) -Wl,-z,now
openmpi_headers = contrib/openmpi/openmpi5/opal/mca/threads/pthreads
EXTRA_DIST += $(openmpi_headers)/threads_pthreads_mutex.h \
	$(openmpi_headers)/threads_pthreads_threads.h \
	$(openmpi_headers)/threads_pthreads_tsd.h
EXTRA_DIST += contrib/openmpi/help-mpi-btl-udapl.txt doc/man/mca_btl_udapl.7 $(openmpi_tests)
openmpi_tests = \
	contrib/openmpi/test/check \
	contrib/openmpi/test/bench \
	contrib/openmpi/test/faults \
	contrib/openmpi/test/fault_preload.c \
	contrib/openmpi/test/mpich \
	contrib/openmpi/test/lib.sh \
	contrib/openmpi/test/slurm.sh \
	contrib/openmpi/test/on-host \
	contrib/openmpi/test/in-namespace \
	contrib/openmpi/test/check.h \
	contrib/openmpi/test/exchange.c \
	contrib/openmpi/test/onesided.c \
	contrib/openmpi/test/threads.c \
	contrib/openmpi/test/killed.c \
	contrib/openmpi/test/laps.c \
	contrib/openmpi/test/registered.c \
	contrib/openmpi/test/sizes.c \
	contrib/openmpi/test/speed.c

# MPI programs over the component, on the software device; -long with programs of others too.
# CHECK_OPTIONS, BENCH_OPTIONS: those of the scripts.
.PHONY: check-openmpi check-openmpi-long bench-openmpi
check-openmpi: all
	MPICC='$(MPICC)' $(srcdir)/contrib/openmpi/test/check $(CHECK_OPTIONS) $(abs_builddir)
check-openmpi-long: all
	MPICC='$(MPICC)' $(srcdir)/contrib/openmpi/test/check --long $(CHECK_OPTIONS) $(abs_builddir)
bench-openmpi: all
	MPICC='$(MPICC)' $(srcdir)/contrib/openmpi/test/bench $(BENCH_OPTIONS) $(abs_builddir)

clean-local: clean-openmpi
.PHONY: clean-openmpi
clean-openmpi:
	rm -rf contrib/openmpi/try
