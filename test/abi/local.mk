# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The headers against values.json: the numbers and names every program and provider for
# the old stack was compiled with. Nothing here links a library of ours.
check_PROGRAMS += test/abi/layout test/abi/macros test/abi/compat test/abi/ib-operations
TESTS += test/abi/layout test/abi/macros test/abi/compat test/abi/ib-operations

test_abi_layout_CFLAGS = $(AM_CFLAGS) -std=c11 -pedantic-errors
nodist_test_abi_layout_SOURCES = test/abi/layout.c
test_abi_layout_LDADD =
test_abi_macros_CFLAGS = $(AM_CFLAGS) -std=c11 -pedantic-errors
nodist_test_abi_macros_SOURCES = test/abi/macros.c
test_abi_macros_LDADD =
test_abi_compat_SOURCES = test/abi/compat.c
test_abi_compat_LDADD =
test_abi_ib_operations_SOURCES = test/abi/ib-operations.c
test_abi_ib_operations_LDADD =

abi_generated = test/abi/layout.c test/abi/macros.c
$(abi_generated): test/abi/generate test/abi/values.json
	$(AM_V_GEN)$(MKDIR_P) test/abi; \
	if test '$(PYTHON3)' = no; then echo 'int main(void) { return 77; }'; \
	else what=`basename $@ .c`; \
		$(PYTHON3) $(srcdir)/test/abi/generate $$what $(srcdir)/test/abi/values.json; \
	fi >$@.tmp && mv $@.tmp $@
CLEANFILES += $(abi_generated)

dist_check_SCRIPTS += test/abi/headers test/abi/names test/abi/against-stock test/abi/libdat-script test/abi/late-load
TESTS += test/abi/headers test/abi/names test/abi/against-stock test/abi/libdat-script test/abi/late-load
EXTRA_DIST += test/abi/values.json test/abi/generate test/abi/compilers \
	test/abi/check-names test/abi/declarations
