# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Manual pages for users, design documents for developers, example programs that
# are built with everything else so that they stay true.
dist_man_MANS += doc/man/dapl.7

# dat.conf(5) names the directory that the registry reads.
man_MANS += doc/man/dat.conf.5
EXTRA_DIST += doc/man/dat.conf.5.in
CLEANFILES += doc/man/dat.conf.5
doc/man/dat.conf.5: $(srcdir)/doc/man/dat.conf.5.in Makefile
	$(AM_V_at)$(MKDIR_P) doc/man
	$(AM_V_GEN)dir=`echo '$(sysconfdir)' | sed 's/-/\\\\\\\\-/g'` && \
		sed "s|@sysconfdir@|$$dir|g" $(srcdir)/doc/man/dat.conf.5.in > $@.new && mv $@.new $@

EXTRA_DIST += doc/performance.md \
	doc/design/README.md \
	doc/design/diagnosis.md \
	doc/performance/charts \
	doc/performance/endpoints.svg doc/performance/endpoints.tsv \
	doc/performance/mpi-bandwidth.svg doc/performance/mpi-bandwidth.tsv \
	doc/performance/mpi-latency.svg doc/performance/mpi-latency.tsv \
	doc/design/ep-states.md \
	doc/design/event-path.md \
	doc/design/locking.md \
	doc/design/object-life.md \
	doc/design/soft-shared-memory.md \
	doc/design/soft-progress.md \
	doc/design/soft-wire.md \
	doc/spec/README.md \
	doc/spec/calls.md \
	doc/spec/dat-1.2.md \
	doc/spec/extensions.md \
	doc/spec/registry.md \
	doc/spec/states.md \
	doc/spec/statements.md

noinst_PROGRAMS += doc/examples/trace-levels
doc_examples_trace_levels_SOURCES = doc/examples/trace-levels.c
doc_examples_trace_levels_LDADD = libdat2.la
