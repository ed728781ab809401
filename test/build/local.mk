# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The tree with other compilers and for other processors: make check-variants, VARIANTS="clang s390x". Not part of
# make check: it takes half an hour.
EXTRA_DIST += test/build/variants
.PHONY: check-variants check-units
check-variants:
	$(srcdir)/test/build/variants variants $(VARIANTS)
# What needs nothing but the libraries of this build.
check-units: all $(unit_tests) $(unit_verbs)
	$(MAKE) check-TESTS TESTS="$(unit_tests) $(unit_verbs)"
