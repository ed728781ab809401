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

# Example programs. Each but trace-levels is one side of a connection (side.h).
noinst_PROGRAMS += doc/examples/trace-levels
doc_examples_trace_levels_SOURCES = doc/examples/trace-levels.c
doc_examples_trace_levels_LDADD = libdat2.la
example_side = doc/examples/side.c doc/examples/side.h
noinst_PROGRAMS += $(examples)
examples = \
	doc/examples/atomics \
	doc/examples/datagram \
	doc/examples/epoll \
	doc/examples/ping-pong \
	doc/examples/srq-server \
	doc/examples/sum \
	doc/examples/write-read
doc_examples_atomics_SOURCES = doc/examples/atomics.c $(example_side)
doc_examples_atomics_LDADD = libdat2.la
doc_examples_datagram_SOURCES = doc/examples/datagram.c $(example_side)
doc_examples_datagram_LDADD = libdat2.la
doc_examples_epoll_SOURCES = doc/examples/epoll.c $(example_side)
doc_examples_epoll_LDADD = libdat2.la
doc_examples_ping_pong_SOURCES = doc/examples/ping-pong.c $(example_side)
doc_examples_ping_pong_LDADD = libdat2.la
doc_examples_srq_server_SOURCES = doc/examples/srq-server.c $(example_side)
doc_examples_srq_server_LDADD = libdat2.la
doc_examples_sum_SOURCES = doc/examples/sum.c $(example_side)
doc_examples_sum_LDADD = libdat2.la
doc_examples_write_read_SOURCES = doc/examples/write-read.c $(example_side)
doc_examples_write_read_LDADD = libdat2.la

dist_check_SCRIPTS += test/examples
TESTS += test/examples
