# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Manual pages for users, design papers for who changes the code, example programs that
# are built with everything else so that they stay true.
dist_man_MANS += doc/man/dat.conf.5 doc/man/dapl.7

EXTRA_DIST += doc/performance.md \
	doc/design/ep-states.md \
	doc/design/event-path.md \
	doc/design/locking.md \
	doc/design/soft-direct.md \
	doc/design/soft-progress.md \
	doc/design/soft-wire.md

noinst_PROGRAMS += doc/examples/trace-levels
doc_examples_trace_levels_SOURCES = doc/examples/trace-levels.c
doc_examples_trace_levels_LDADD = libdat2.la
