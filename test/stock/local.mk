# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
EXTRA_DIST += test/stock/suite test/stock/run test/stock/check test/stock/dat.conf

# Of our own, over either library: run by suite.
check_PROGRAMS += test/stock/qualifiers
test_stock_qualifiers_SOURCES = test/stock/qualifiers.c
test_stock_qualifiers_LDADD = libdat2.la
