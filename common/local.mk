# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# What both libraries need and neither owns; each links its own hidden copy.
noinst_LTLIBRARIES += libcommon.la
libcommon_la_SOURCES = \
	common/address.c common/address.h common/bits.h common/bytes.h \
	common/clock.h common/compiler.h common/container_of.h common/device_lost.h common/once.h \
	common/control.h common/tap.h \
	common/json_read.c common/json_read.h \
	common/json_write.c common/json_write.h \
	common/parameters.c common/parameters.h \
	common/parameter_range.c common/parameter_range.h \
	common/ia_params.c common/ia_params.h \
	common/growth.h \
	common/rdmap.h \
	common/interface.c common/interface.h \
	common/descriptors.c common/descriptors.h \
	common/env.h \
	common/file_size.c common/file_size.h \
	common/journal.c common/journal.h \
	common/local_addresses.c common/local_addresses.h \
	common/log.c common/log.h common/log_handler.h \
	common/lock.c common/lock.h \
	common/lock_check.c common/lock_check.h common/lock_rank.h \
	common/post_lock.c common/post_lock.h \
	common/mapping.c common/mapping.h \
	common/message_ids.h \
	common/nearest.c common/nearest.h \
	common/rate.c common/rate.h \
	common/rtnl.c common/rtnl.h \
	common/ticks.c common/ticks.h \
	common/trace.c common/trace.h \
	common/variables.h
if COVERAGE
libcommon_la_SOURCES += test/packages/count_at_exit.c
endif
