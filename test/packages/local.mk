# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
EXTRA_DIST += test/packages/check test/packages/rpm \
	test/packages/consumer/CMakeLists.txt \
	test/packages/consumer/Makefile.am \
	test/packages/consumer/configure.ac \
	test/packages/consumer/consumer.c \
	test/packages/consumer/loads.c \
	test/packages/consumer/older.c \
	test/packages/consumer/routes.c
EXTRA_DIST += contrib/rpm/dapl.rpmlintrc contrib/rpm/dapl.spec debian/changelog debian/control debian/copyright debian/rules debian/source/format \
	debian/dat-utils.docs debian/dat-utils.examples debian/dat-utils.install \
	debian/libdapl2-providers.install debian/libdapl2-providers.lintian-overrides \
	debian/libdat-dev.examples debian/libdat-dev.install \
	debian/libdat1.install \
	debian/libdatnet0.install debian/libdatnet0.symbols \
	debian/libdat2-2.install debian/libdat2-2.lintian-overrides debian/libdat2-2.symbols \
	debian/openmpi-btl-udapl.install

# The Debian packages, in roots of their own; as root. PACKAGES_SUITES="trixie": one of them.
# The RPM packages, on this host.
.PHONY: check-packages check-rpm
check-packages: dist
	$(srcdir)/test/packages/check $(CHECK_OPTIONS) $(distdir).tar.xz packages $(PACKAGES_SUITES)
check-rpm: dist
	$(srcdir)/test/packages/rpm $(distdir).tar.xz rpm
