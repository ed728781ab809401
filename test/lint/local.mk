# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Rules that a script can check.
lint_tests = \
	test/lint/after-install \
	test/lint/install-conf \
	test/lint/columns \
	test/lint/paths \
	test/lint/man \
	test/lint/symbols-libdat2 \
	test/lint/symbols-libdat1 \
	test/lint/symbols-libdatnet \
	test/lint/symbols-libdatsock \
	test/lint/symbols-providers \
	test/lint/catalogue \
	test/lint/layers \
	test/lint/locks \
	test/lint/own-header \
	test/lint/packaging \
	test/lint/prefix \
	test/lint/python \
	test/lint/replacements \
	test/lint/rpmlint \
	test/lint/spdx \
	test/lint/variables
dist_check_SCRIPTS += test/lint/symbols $(lint_tests)
TESTS += $(lint_tests)

dist_check_SCRIPTS += test/lint/runners
TESTS += test/lint/runners

EXTRA_DIST += test/lint/sources.py test/lint/layers-upward test/lint/statements-without-code dapl/libdaplofa.symbols dapl/libdaplsoft.symbols
document_tests = \
	test/lint/man-calls \
	test/lint/man-html \
	test/lint/man-examples \
	test/lint/man-references \
	test/lint/man-types \
	test/lint/statements \
	test/lint/conformance-page \
	test/lint/words
dist_check_SCRIPTS += $(document_tests)
TESTS += $(document_tests)
