# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
EXTRA_DIST += test/packages/check test/packages/rpm test/packages/root test/packages/mirror.sh \
	test/packages/rdma-core-versions test/packages/variants test/packages/tsan test/packages/compat-names test/packages/coverage-folders \
	test/packages/consumer/CMakeLists.txt \
	test/packages/consumer/Makefile.am \
	test/packages/consumer/configure.ac \
	test/packages/consumer/consumer.c \
	test/packages/consumer/loads.c \
	test/packages/consumer/older.c \
	test/packages/consumer/routes.c
EXTRA_DIST += contrib/rpm/dapl.rpmlintrc contrib/rpm/dapl.spec debian/changelog debian/control debian/copyright debian/rules debian/source/format \
	debian/dat-utils.docs debian/dat-utils.examples debian/dat-utils.install debian/dat-utils.postrm \
	debian/libdapl2-providers.install debian/libdapl2-providers.lintian-overrides \
	debian/libdat-dev.examples debian/libdat-dev.install \
	debian/libdat1.install \
	debian/libdatsock0.install debian/libdatnet0.install debian/libdatnet0.symbols \
	debian/libdat2-2.install debian/libdat2-2.lintian-overrides debian/libdat2-2.symbols \
	debian/openmpi-btl-udapl.install

# The Debian packages, in roots of their own; as root. PACKAGES_SUITES="trixie": one of them.
# The RPM packages, on this host.
.PHONY: check-packages check-rpm
check-packages: dist
	$(srcdir)/test/packages/check $(CHECK_OPTIONS) $(distdir).tar.xz packages $(PACKAGES_SUITES)
check-rpm: dist
	$(srcdir)/test/packages/rpm $(distdir).tar.xz rpm

# The tree with other compilers and for other processors: make check-variants, VARIANTS="clang s390x". Not part of
# make check: it takes half an hour.
.PHONY: check-variants check-units check-only
check-variants:
	$(srcdir)/test/packages/variants variants $(VARIANTS)
# Random calls of many threads under ThreadSanitizer, in a build of its own; TSAN_OPTIONS is that library's.
.PHONY: check-tsan
TSAN_SECONDS = 20
TSAN_ARGUMENTS =
check-tsan:
	$(srcdir)/test/packages/tsan --seconds $(TSAN_SECONDS) $(TSAN_ARGUMENTS) tsan || test $$? = 77
# What needs nothing but the libraries of this build.
# UNITS_LEFT_OUT: tests that this run leaves out. check-TESTS would build all programs of make check.
units_done = $(addsuffix .log,$(filter-out $(UNITS_LEFT_OUT),$(unit_tests) $(unit_verbs)))
check-units: all
	$(MAKE) $(unit_tests) $(unit_verbs)
	rm -f $(units_done) $(TEST_SUITE_LOG)
	$(MAKE) $(TEST_SUITE_LOG) TEST_LOGS="$(units_done)"
# The tests that TESTS names. make check would build the programs of all tests before them.
check-only: all
	$(MAKE) check TESTS='$(TESTS)' check_PROGRAMS='$(filter $(check_PROGRAMS),$(TESTS))'
# The names that configure --disable-compat-names gives.
TESTS += test/packages/compat-names
