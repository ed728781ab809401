# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The providers: one core, a device below each.
noinst_LTLIBRARIES += libdaplcore.la
libdaplcore_la_SOURCES = \
	dapl/core/provider.c dapl/core/provider.h \
	dapl/core/device.h \
	dapl/core/dapl.h \
	dapl/core/object.c dapl/core/object.h \
	dapl/core/ia.c dapl/core/ia.h \
	dapl/core/attr.c dapl/core/attr.h \
	dapl/core/pz.c \
	dapl/core/lmr.c dapl/core/lmr.h \
	dapl/core/rmr.c dapl/core/rmr.h \
	dapl/core/srq.c dapl/core/srq.h \
	dapl/core/cno.c dapl/core/cno.h \
	dapl/core/evd.c dapl/core/evd.h \
	dapl/core/ep.c \
	dapl/core/ep_state.c dapl/core/ep_state.h \
	dapl/core/early.c dapl/core/early.h \
	dapl/core/conn.c dapl/core/conn.h \
	dapl/core/sp.c \
	dapl/core/cr.c dapl/core/cr.h \
	dapl/core/ud.c dapl/core/ud.h \
	dapl/core/map.c dapl/core/map.h \
	dapl/core/ext.c \
	dapl/core/counters.c dapl/core/counters.h \
	dapl/core/status.c dapl/core/status.h \
	dapl/core/service.c dapl/core/service.h \
	dapl/core/fork.c dapl/core/fork.h \
	dapl/core/settings.c dapl/core/settings.h \
	dapl/core/post.c dapl/core/post.h \
	dapl/core/event.c dapl/core/event.h \
	dapl/core/request.h dapl/core/ring.h dapl/core/lock.h

# gcc 12 packs two stores of a record into vector code that is longer.
libdaplcore_la_CFLAGS = $(AM_CFLAGS) -fno-tree-slp-vectorize

provider_ldflags = $(AM_LDFLAGS) -version-info 2:0:0 -no-undefined $(ZDEFS) -Wl,-z,now
EXTRA_DIST += dapl/libdaplofa.map dapl/libdaplsoft.map

# The device over libibverbs and librdmacm.
if VERBS
noinst_LTLIBRARIES += libdaplverbs.la
libdaplverbs_la_SOURCES = \
	dapl/verbs/hw.h \
	dapl/verbs/device.c \
	dapl/verbs/address.c dapl/verbs/address.h \
	dapl/verbs/probe.c \
	dapl/verbs/objects.c \
	dapl/verbs/cm.c dapl/verbs/cm.h \
	dapl/verbs/conn.c \
	dapl/verbs/pdata.c dapl/verbs/pdata.h \
	dapl/verbs/ud.c
libdaplverbs_la_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)

lib_LTLIBRARIES += libdaplofa.la
libdaplofa_la_SOURCES =
libdaplofa_la_LIBADD = libdaplcore.la libdaplverbs.la libcommon.la libdat2.la $(VERBS_LIBS)
libdaplofa_la_LDFLAGS = $(provider_ldflags) -Wl,--version-script=$(srcdir)/dapl/libdaplofa.map

# Shipped dat.conf files name these.
install_exec_hooks += libdaplofa-links
libdaplofa-links:
	cd $(DESTDIR)$(libdir) && for l in scm ucm; do \
		rm -f libdaplo$$l.so.2 && $(LN_S) libdaplofa.so.2 libdaplo$$l.so.2 || exit 1; done
uninstall_hooks += libdaplofa-unlink
libdaplofa-unlink:
	cd $(DESTDIR)$(libdir) && rm -f libdaploscm.so.2 libdaploucm.so.2
endif

# The software RNIC. Needs nothing at run time but libc.
noinst_LTLIBRARIES += libdaplsoftdev.la
libdaplsoftdev_la_SOURCES = \
	dapl/soft/soft.h \
	dapl/soft/device.c \
	dapl/soft/mem.c \
	dapl/soft/cq.c \
	dapl/soft/qp.c \
	dapl/soft/cm.c \
	dapl/soft/ud.c \
	dapl/soft/wire.c dapl/soft/wire.h \
	dapl/soft/tcp.c \
	dapl/soft/ring.c dapl/soft/ring.h \
	dapl/soft/relaxed.h \
	dapl/soft/pair.c \
	dapl/soft/plain.h \
	dapl/soft/quiet.c \
	dapl/soft/shm.c \
	dapl/soft/direct.c dapl/soft/direct.h \
	dapl/soft/gate.c dapl/soft/gate.h \
	dapl/soft/mapped.c dapl/soft/mapped.h \
	dapl/soft/choice.c dapl/soft/choice.h \
	dapl/soft/lag.c dapl/soft/lag.h \
	dapl/soft/calls.c dapl/soft/calls.h \
	dapl/soft/execute.c \
	dapl/soft/engine.c \
	dapl/soft/handover.c

lib_LTLIBRARIES += libdaplsoft.la
libdaplsoft_la_SOURCES =
libdaplsoft_la_LIBADD = libdaplcore.la libdaplsoftdev.la libcommon.la libdat2.la
libdaplsoft_la_LDFLAGS = $(provider_ldflags) -Wl,--version-script=$(srcdir)/dapl/libdaplsoft.map
