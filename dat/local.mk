# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# libdat2, the registry. Needs libc and nothing else at load time.
noinst_LTLIBRARIES += libregistry.la
libregistry_la_SOURCES = \
	dat/api.h dat/error.h \
	dat/api_conn.c dat/api_dto.c dat/api_event.c dat/api_handle.c dat/api_ia.c dat/api_mem.c \
	dat/ia.c dat/ia.h \
	dat/library.c dat/library.h \
	dat/registry.c dat/registry.h dat/registry_state.h \
	dat/busy.c dat/busy.h \
	dat/entry_text.c dat/entry_text.h \
	dat/listing.c dat/listing.h \
	dat/lookup.c dat/lookup.h \
	dat/providers.c dat/providers.h \
	dat/entry_table.c dat/entry_table.h \
	dat/soft_entries.c dat/soft_entries.h \
	dat/sources.c dat/sources.h dat/shortage.h \
	dat/conf.c dat/conf.h \
	dat/entries.c \
	dat/environment.c dat/environment.h \
	dat/devices.c dat/devices.h \
	dat/loader.c dat/loader.h \
	dat/unknown_ia.c dat/unknown_ia.h \
	dat/ia_handle.c dat/ia_handle.h \
	dat/closed.c dat/closed.h \
	dat/forks.c dat/forks.h dat/lock.h \
	dat/lmr_table.c dat/lmr_table.h \
	dat/messages.c \
	dat/strerror.c \
	dat/trclvl.c \
	dat/debug.h
libregistry_la_CPPFLAGS = $(AM_CPPFLAGS)
lib_LTLIBRARIES += libdat2.la
libdat2_la_SOURCES =
libdat2_la_LIBADD = libregistry.la libcommon.la
# The SONAME: ABI-10.
libdat2_la_LDFLAGS = $(AM_LDFLAGS) -version-info 2:0:0 -no-undefined \
	-Wl,--version-script=$(srcdir)/dat/libdat2.map $(ZDEFS) -Wl,-z,now -Wl,-z,relro
EXTRA_libdat2_la_DEPENDENCIES = dat/libdat2.map
EXTRA_DIST += dat/libdat2.map dat/libdat2.symbols
pkgconfig_DATA += dat/dat2.pc dat/dat.pc dat/dat-1.2.pc

# A dat.conf that is there already stays, edited or not: the new one is installed beside it as dat.conf.new. Uninstalling
# removes what is as it was installed.
EXTRA_DIST += etc/dat.conf dat/install-conf
install_data_hooks += install-dat-conf
install-dat-conf:
	$(MKDIR_P) '$(DESTDIR)$(sysconfdir)'
	$(srcdir)/dat/install-conf install $(srcdir)/etc/dat.conf '$(DESTDIR)$(sysconfdir)/dat.conf'
uninstall_hooks += uninstall-dat-conf
uninstall-dat-conf:
	$(srcdir)/dat/install-conf uninstall $(srcdir)/etc/dat.conf '$(DESTDIR)$(sysconfdir)/dat.conf'

# What journalctl -x shows of messages.
catalogdir = $(prefix)/lib/systemd/catalog
dist_catalog_DATA = etc/dapl.catalog

# Says when the dynamic linker does not find the libraries yet.
EXTRA_DIST += dat/after-install
install_data_hooks += after-install
after-install: install-dat-conf
	@test -n '$(DESTDIR)' || $(srcdir)/dat/after-install '$(libdir)'

# Programs for older stacks and for DAT 1.2 say -ldat: a linker script, not a link to the library. A DAT 1.2
# program that loads libdat.so by dlopen() would get structures of other sizes; this way the
# dynamic linker refuses, since the file is no library.
install_exec_hooks += install-libdat-script
install-libdat-script:
	rm -f $(DESTDIR)$(libdir)/libdat.so $(DESTDIR)$(libdir)/libdat.a
	for kind in so a; do \
		test ! -f $(DESTDIR)$(libdir)/libdat2.$$kind || \
		printf '%s\n' '/* GNU ld script: the library is libdat2, for DAT 2.0 programs only. */' \
			"INPUT(libdat2.$$kind)" > $(DESTDIR)$(libdir)/libdat.$$kind || exit 1; done
	$(MKDIR_P) $(DESTDIR)$(libdir)/dat-1.2
	rm -f $(DESTDIR)$(libdir)/dat-1.2/libdat.so
	printf '%s\n' '/* GNU ld script: the library of programs compiled with the headers of dat-1.2 is libdat2. */' \
		"INPUT(libdat2.so)" > $(DESTDIR)$(libdir)/dat-1.2/libdat.so
uninstall_hooks += uninstall-libdat-script
uninstall-libdat-script:
	rm -f $(DESTDIR)$(libdir)/libdat.so $(DESTDIR)$(libdir)/libdat.a
	rm -f $(DESTDIR)$(libdir)/dat-1.2/libdat.so
	-rmdir $(DESTDIR)$(libdir)/dat-1.2 2>/dev/null
