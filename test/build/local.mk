# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The tree with other compilers and for other processors: make check-variants, VARIANTS="clang s390x". Not part of
# make check: it takes half an hour.
EXTRA_DIST += test/build/variants
.PHONY: check-variants check-units
check-variants:
	$(srcdir)/test/build/variants variants $(VARIANTS)
# Random calls of many threads under ThreadSanitizer, in a build of its own; TSAN_OPTIONS is that library's.
EXTRA_DIST += test/build/tsan
.PHONY: check-tsan
TSAN_SECONDS = 20
TSAN_ARGUMENTS =
check-tsan:
	$(srcdir)/test/build/tsan --seconds $(TSAN_SECONDS) $(TSAN_ARGUMENTS) tsan || test $$? = 77
# What needs nothing but the libraries of this build.
# UNITS_LEFT_OUT: tests that this run leaves out. check-TESTS would build all programs of make check.
units_done = $(addsuffix .log,$(filter-out $(UNITS_LEFT_OUT),$(unit_tests) $(unit_verbs)))
check-units: all $(unit_tests) $(unit_verbs)
	rm -f $(units_done) $(TEST_SUITE_LOG)
	$(MAKE) $(TEST_SUITE_LOG) TEST_LOGS="$(units_done)"
# The names that configure --disable-compat-names gives.
EXTRA_DIST += test/build/compat-names
TESTS += test/build/compat-names
# For make coverage.
EXTRA_DIST += test/build/coverage-folders
