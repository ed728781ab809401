# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# What both libraries need and neither owns; each links its own hidden copy.
noinst_LTLIBRARIES += libcommon.la
libcommon_la_SOURCES = \
	common/env.h \
	common/log.c common/log.h \
	common/mapping.c common/mapping.h \
	common/trace.c common/trace.h
