# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Consumers: the public headers and libdat2, nothing else of this tree.
bin_PROGRAMS += datperf
datperf_SOURCES = \
	tools/datperf.c \
	tools/measure.c tools/measure.h \
	tools/link.c tools/link.h \
	tools/cli.c tools/cli.h \
	tools/names.c tools/names.h
datperf_LDADD = libdat2.la
dist_man_MANS += doc/man/datperf.1
