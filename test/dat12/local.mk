# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Programs in DAT 1.2 style, as C89 compilers take them. X-view is compiled with the header of
# include/dat-1.2 and linked to libdat2; X-binary with the transcription of the 1.2 interface, and
# linked to libdat.so.1.
dat12_view_cppflags = -D_GNU_SOURCE -DVIEW -I$(srcdir)/include/dat-1.2
dat12_cflags = $(AM_CFLAGS) -std=c89 -pedantic
dat12_pair = test/dat12/pair.c test/dat12/pair.h
dat12_view_tests = test/dat12/layouts-view test/dat12/rows-view test/dat12/pingpong-view \
	test/dat12/shortage
check_PROGRAMS += $(dat12_view_tests) test/dat12/layouts test/dat12/lmr_table
TESTS += $(dat12_view_tests) test/dat12/layouts test/dat12/lmr_table
EXTRA_DIST += test/dat12/transcription/dat/udat.h

dat12_transcription_cppflags = -D_GNU_SOURCE -I$(srcdir)/test/dat12/transcription
test_dat12_layouts_SOURCES = test/dat12/layouts.c
test_dat12_layouts_CPPFLAGS = $(dat12_transcription_cppflags)
test_dat12_layouts_LDADD =
test_dat12_layouts_view_SOURCES = test/dat12/layouts.c
test_dat12_layouts_view_CPPFLAGS = $(dat12_view_cppflags)
test_dat12_layouts_view_LDADD =
dat12_rows = test/dat12/rows.c test/dat12/rows.h test/dat12/rows_source.c test/dat12/rows_binary.c $(dat12_pair)
test_dat12_rows_view_SOURCES = $(dat12_rows)
test_dat12_rows_view_CPPFLAGS = $(dat12_view_cppflags)
test_dat12_rows_view_CFLAGS = $(dat12_cflags)
test_dat12_rows_view_LDADD = libdat2.la
test_dat12_shortage_SOURCES = test/dat12/shortage.c $(dat12_pair)
test_dat12_shortage_CPPFLAGS = $(dat12_view_cppflags)
test_dat12_shortage_LDADD = libdat2.la -ldl
test_dat12_shortage_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
test_dat12_pingpong_view_SOURCES = test/dat12/pingpong.c $(dat12_pair)
test_dat12_pingpong_view_CPPFLAGS = $(dat12_view_cppflags)
test_dat12_pingpong_view_CFLAGS = $(dat12_cflags)
test_dat12_pingpong_view_LDADD = libdat2.la

if DAT1
dat12_binary_tests = test/dat12/rows-binary test/dat12/pingpong-binary test/dat12/numbers
check_PROGRAMS += $(dat12_binary_tests)
TESTS += $(dat12_binary_tests) test/dat12/unversioned test/dat12/installed
test_dat12_rows_binary_SOURCES = $(dat12_rows)
test_dat12_rows_binary_CPPFLAGS = $(dat12_transcription_cppflags)
test_dat12_rows_binary_CFLAGS = $(dat12_cflags)
test_dat12_rows_binary_LDADD = libdat.la
test_dat12_pingpong_binary_SOURCES = test/dat12/pingpong.c $(dat12_pair)
test_dat12_pingpong_binary_CPPFLAGS = $(dat12_transcription_cppflags)
test_dat12_pingpong_binary_CFLAGS = $(dat12_cflags)
test_dat12_pingpong_binary_LDADD = libdat.la
test_dat12_numbers_SOURCES = test/dat12/numbers.c dat1/numbers.c dat1/numbers.h
test_dat12_numbers_CPPFLAGS = $(AM_CPPFLAGS)	# an object of its own beside the library's
test_dat12_numbers_LDADD =
endif
dist_check_SCRIPTS += test/dat12/unversioned test/dat12/installed

# The table of libdat2 that dat_rmr_bind() of 1.2 looks into.
test_dat12_lmr_table_SOURCES = test/dat12/lmr_table.c
test_dat12_lmr_table_LDADD = libregistry.la libcommon.la -lpthread

dist_check_SCRIPTS += test/dat12/compilers test/dat12/link
TESTS += test/dat12/compilers test/dat12/link
