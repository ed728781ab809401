# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# libdat.so.1, for binaries of DAT 1.2: converts, and calls libdat2. A library of its own, so that
# libdat2 knows one interface only.
if DAT1
lib_LTLIBRARIES += libdat.la
libdat_la_SOURCES = \
	dat1/forward.c \
	dat1/convert.c \
	dat1/registry.c \
	dat1/attributes.c dat1/attributes.h \
	dat1/numbers.c dat1/numbers.h \
	dat1/dat1.h
libdat_la_LIBADD = libdat2.la libcommon.la
libdat_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 -no-undefined \
	-Wl,--version-script=$(srcdir)/dat1/libdat1.map $(ZDEFS) -Wl,-z,now -Wl,-z,relro
EXTRA_libdat_la_DEPENDENCIES = dat1/libdat1.map

# For programs that are being built, libdat.so is the linker script of dat/local.mk, which writes it
# after the libraries are installed. A libdat.la would make libtool link them to libdat.so.1.
install_exec_hooks += remove-libdat-la
remove-libdat-la:
	rm -f $(DESTDIR)$(libdir)/libdat.la
uninstall_hooks += uninstall-libdat1
uninstall-libdat1:
	rm -f $(DESTDIR)$(libdir)/libdat.so.1 $(DESTDIR)$(libdir)/libdat.so.1.0.0
endif
EXTRA_DIST += dat1/libdat1.map dat1/libdat1.symbols
