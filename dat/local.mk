# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# libdat2, the registry. Needs libc and nothing else at load time.
noinst_LTLIBRARIES += libregistry.la
libregistry_la_SOURCES = \
	dat/api.c dat/error.h \
	dat/ia.c dat/ia.h \
	dat/registry.c dat/registry.h \
	dat/sources.c dat/sources.h dat/shortage.h \
	dat/conf.c dat/conf.h \
	dat/devices.c dat/devices.h \
	dat/loader.c dat/loader.h \
	dat/ia_handle.c dat/ia_handle.h \
	dat/strerror.c \
	dat/trclvl.c \
	dat/debug.h
libregistry_la_CPPFLAGS = $(AM_CPPFLAGS) -DSYSCONFDIR='"$(sysconfdir)"'
lib_LTLIBRARIES += libdat2.la
libdat2_la_SOURCES =
libdat2_la_LIBADD = libregistry.la libcommon.la
libdat2_la_LDFLAGS = $(AM_LDFLAGS) -version-info 2:0:0 -no-undefined \
	-Wl,--version-script=$(srcdir)/dat/libdat2.map $(ZDEFS) -Wl,-z,now -Wl,-z,relro
EXTRA_libdat2_la_DEPENDENCIES = dat/libdat2.map
EXTRA_DIST += dat/libdat2.map dat/libdat2.symbols
pkgconfig_DATA += dat/dat2.pc dat/dat.pc

dist_sysconf_DATA += etc/dat.conf

# Programs for older stacks say -ldat.
install-exec-local: install-libdat-link
install-libdat-link:
	$(MKDIR_P) $(DESTDIR)$(libdir)
	cd $(DESTDIR)$(libdir) && rm -f libdat.so && $(LN_S) libdat2.so.2 libdat.so
uninstall-local: uninstall-libdat-link
uninstall-libdat-link:
	rm -f $(DESTDIR)$(libdir)/libdat.so
