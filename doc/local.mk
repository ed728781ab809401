# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Manual pages for users, design documents for developers, example programs that
# are built with everything else so that they stay true.
dist_man_MANS += doc/man/dapl.7 doc/man/dapl-diagnostics.7 doc/man/dapl-environment.7 doc/man/dat-1.2.7 doc/man/dat_dm.7
dist_man_MANS += doc/man/dat_eth.7 doc/man/dat_event.7 doc/man/dat_net.7 doc/man/dat_return.7 doc/man/udapl-soft.7
# Pages that lead to another (.so): what a library or an entry of dat.conf is called.
dist_man_MANS += doc/man/libdaplofa.7 doc/man/libdaplsoft.7 doc/man/libdat2.7 doc/man/libdatnet.7 doc/man/ofa-v2-soft.7

# A page for each call; those that share one lead to it (.so).
dist_man_MANS += \
	doc/man/man3/dat_cno_create.3 \
	doc/man/man3/dat_cno_fd_create.3 \
	doc/man/man3/dat_cno_free.3 \
	doc/man/man3/dat_cno_modify_agent.3 \
	doc/man/man3/dat_cno_query.3 \
	doc/man/man3/dat_cno_trigger.3 \
	doc/man/man3/dat_cno_wait.3 \
	doc/man/man3/dat_cr_accept.3 \
	doc/man/man3/dat_cr_handoff.3 \
	doc/man/man3/dat_cr_query.3 \
	doc/man/man3/dat_cr_reject.3 \
	doc/man/man3/dat_csp_create.3 \
	doc/man/man3/dat_csp_free.3 \
	doc/man/man3/dat_csp_query.3 \
	doc/man/man3/dat_dm_alloc.3 \
	doc/man/man3/dat_dm_copy_from.3 \
	doc/man/man3/dat_dm_copy_to.3 \
	doc/man/man3/dat_dm_free.3 \
	doc/man/man3/dat_dm_lmr_create.3 \
	doc/man/man3/dat_dm_map.3 \
	doc/man/man3/dat_ep_common_connect.3 \
	doc/man/man3/dat_ep_connect.3 \
	doc/man/man3/dat_ep_create.3 \
	doc/man/man3/dat_ep_create_with_srq.3 \
	doc/man/man3/dat_ep_disconnect.3 \
	doc/man/man3/dat_ep_dup_connect.3 \
	doc/man/man3/dat_ep_free.3 \
	doc/man/man3/dat_ep_get_status.3 \
	doc/man/man3/dat_ep_modify.3 \
	doc/man/man3/dat_ep_post_rdma_read.3 \
	doc/man/man3/dat_ep_post_rdma_read_to_rmr.3 \
	doc/man/man3/dat_ep_post_rdma_write.3 \
	doc/man/man3/dat_ep_post_recv.3 \
	doc/man/man3/dat_ep_post_send.3 \
	doc/man/man3/dat_ep_post_send_immed.3 \
	doc/man/man3/dat_ep_post_send_with_invalidate.3 \
	doc/man/man3/dat_ep_query.3 \
	doc/man/man3/dat_ep_recv_query.3 \
	doc/man/man3/dat_ep_reset.3 \
	doc/man/man3/dat_ep_set_watermark.3 \
	doc/man/man3/dat_eth_arm.3 \
	doc/man/man3/dat_eth_clock.3 \
	doc/man/man3/dat_eth_group_create.3 \
	doc/man/man3/dat_eth_group_free.3 \
	doc/man/man3/dat_eth_group_set.3 \
	doc/man/man3/dat_eth_moderate.3 \
	doc/man/man3/dat_eth_pace.3 \
	doc/man/man3/dat_eth_poll.3 \
	doc/man/man3/dat_eth_post_send.3 \
	doc/man/man3/dat_eth_query.3 \
	doc/man/man3/dat_eth_release.3 \
	doc/man/man3/dat_eth_rule_add.3 \
	doc/man/man3/dat_eth_rule_free.3 \
	doc/man/man3/dat_eth_rule_move.3 \
	doc/man/man3/dat_eth_rule_query.3 \
	doc/man/man3/dat_eth_stats.3 \
	doc/man/man3/dat_evd_clear_unwaitable.3 \
	doc/man/man3/dat_evd_create.3 \
	doc/man/man3/dat_evd_dequeue.3 \
	doc/man/man3/dat_evd_disable.3 \
	doc/man/man3/dat_evd_enable.3 \
	doc/man/man3/dat_evd_free.3 \
	doc/man/man3/dat_evd_modify_cno.3 \
	doc/man/man3/dat_evd_post_se.3 \
	doc/man/man3/dat_evd_query.3 \
	doc/man/man3/dat_evd_resize.3 \
	doc/man/man3/dat_evd_set_unwaitable.3 \
	doc/man/man3/dat_evd_wait.3 \
	doc/man/man3/dat_ext_last_error.3 \
	doc/man/man3/dat_extension_op.3 \
	doc/man/man3/dat_get_consumer_context.3 \
	doc/man/man3/dat_get_handle_type.3 \
	doc/man/man3/dat_ia_close.3 \
	doc/man/man3/dat_ia_open.3 \
	doc/man/man3/dat_ia_openv.3 \
	doc/man/man3/dat_ia_query.3 \
	doc/man/man3/dat_ib_close_query.3 \
	doc/man/man3/dat_ib_open_query.3 \
	doc/man/man3/dat_ib_post_cmp_and_swap.3 \
	doc/man/man3/dat_ib_post_fetch_and_add.3 \
	doc/man/man3/dat_ib_post_rdma_write_immed.3 \
	doc/man/man3/dat_ib_post_recv_ud.3 \
	doc/man/man3/dat_ib_post_send_ud.3 \
	doc/man/man3/dat_ib_print_counters.3 \
	doc/man/man3/dat_ib_query_counters.3 \
	doc/man/man3/dat_ib_start_counter.3 \
	doc/man/man3/dat_ib_stop_counter.3 \
	doc/man/man3/dat_ib_ud_ah_free.3 \
	doc/man/man3/dat_ib_ud_cm_free.3 \
	doc/man/man3/dat_lmr_create.3 \
	doc/man/man3/dat_lmr_free.3 \
	doc/man/man3/dat_lmr_query.3 \
	doc/man/man3/dat_lmr_sync_rdma_read.3 \
	doc/man/man3/dat_lmr_sync_rdma_write.3 \
	doc/man/man3/dat_map_rmr.3 \
	doc/man/man3/dat_map_unmap.3 \
	doc/man/man3/dat_psp_create.3 \
	doc/man/man3/dat_psp_create_any.3 \
	doc/man/man3/dat_psp_free.3 \
	doc/man/man3/dat_psp_query.3 \
	doc/man/man3/dat_mcast_join.3 \
	doc/man/man3/dat_mcast_leave.3 \
	doc/man/man3/dat_net_free.3 \
	doc/man/man3/dat_net_monitor_close.3 \
	doc/man/man3/dat_net_monitor_fd.3 \
	doc/man/man3/dat_net_monitor_next.3 \
	doc/man/man3/dat_net_monitor_open.3 \
	doc/man/man3/dat_net_neighbour.3 \
	doc/man/man3/dat_net_nics.3 \
	doc/man/man3/dat_net_port.3 \
	doc/man/man3/dat_net_reachable.3 \
	doc/man/man3/dat_net_routes.3 \
	doc/man/man3/dat_net_watch.3 \
	doc/man/man3/dat_pz_create.3 \
	doc/man/man3/dat_pz_free.3 \
	doc/man/man3/dat_pz_query.3 \
	doc/man/man3/dat_registry_add_provider.3 \
	doc/man/man3/dat_registry_list_providers.3 \
	doc/man/man3/dat_registry_providers_related.3 \
	doc/man/man3/dat_registry_remove_provider.3 \
	doc/man/man3/dat_rmr_bind.3 \
	doc/man/man3/dat_rmr_create.3 \
	doc/man/man3/dat_rmr_create_for_ep.3 \
	doc/man/man3/dat_rmr_free.3 \
	doc/man/man3/dat_rmr_query.3 \
	doc/man/man3/dat_rsp_create.3 \
	doc/man/man3/dat_rsp_free.3 \
	doc/man/man3/dat_rsp_query.3 \
	doc/man/man3/dat_set_consumer_context.3 \
	doc/man/man3/dat_srq_create.3 \
	doc/man/man3/dat_srq_free.3 \
	doc/man/man3/dat_srq_post_recv.3 \
	doc/man/man3/dat_srq_query.3 \
	doc/man/man3/dat_srq_resize.3 \
	doc/man/man3/dat_srq_set_lw.3 \
	doc/man/man3/dat_strerror.3 \
	doc/man/man3/dat_trclvl_modify.3 \
	doc/man/man3/dat_trclvl_query.3 \
	doc/man/man3/dats_check_conf.3 \
	doc/man/man3/dats_get_ia_handle.3 \
	doc/man/man3/dats_list_entries.3 \
	doc/man/man3/dats_reread.3 \
	doc/man/man3/dats_set_message_handler.3 \
	doc/man/man3/dats_list_generated.3

# dat.conf(5) and dapl.conf(5) name the directory that the libraries read.
man_MANS += doc/man/dat.conf.5 doc/man/dapl.conf.5
EXTRA_DIST += doc/man/dat.conf.5.in doc/man/dapl.conf.5.in
CLEANFILES += doc/man/dat.conf.5 doc/man/dapl.conf.5
name_sysconfdir = dir=`echo '$(sysconfdir)' | sed 's/-/\\\\\\\\-/g'` && \
	sed "s|[@]sysconfdir[@]|$$dir|g" $(srcdir)/$@.in > $@.new && mv $@.new $@
doc/man/dat.conf.5: $(srcdir)/doc/man/dat.conf.5.in Makefile
	$(AM_V_at)$(MKDIR_P) doc/man
	$(AM_V_GEN)$(name_sysconfdir)
doc/man/dapl.conf.5: $(srcdir)/doc/man/dapl.conf.5.in Makefile
	$(AM_V_at)$(MKDIR_P) doc/man
	$(AM_V_GEN)$(name_sysconfdir)

EXTRA_DIST += doc/containers.md doc/migrating.md doc/performance.md doc/reliability.md \
	doc/design/README.md \
	doc/design/control.md \
	doc/design/device-memory.md \
	doc/design/diagnosis.md \
	doc/performance/charts \
	doc/performance/capture-time.svg doc/performance/capture-time.tsv \
	doc/performance/endpoints.svg doc/performance/endpoints.tsv \
	doc/performance/mpi-bandwidth.svg doc/performance/mpi-bandwidth.tsv \
	doc/performance/mpi-latency.svg doc/performance/mpi-latency.tsv \
	doc/performance/sockets.svg doc/performance/sockets.tsv \
	doc/design/ep-states.md \
	doc/design/event-path.md \
	doc/design/kernel-devices.md \
	doc/design/locking.md \
	doc/design/object-life.md \
	doc/design/routes.md \
	doc/design/sockets.md \
	doc/design/soft-mechanisms.md \
	doc/design/soft-shared-memory.md \
	doc/design/soft-progress.md \
	doc/design/soft-wire.md \
	doc/design/test-programs.md \
	doc/design/where.md \
	doc/design/raw-ethernet.md \
	doc/spec/README.md \
	doc/spec/calls.md \
	doc/spec/dat-1.2.md \
	doc/spec/ethernet.md \
	doc/spec/extensions.md \
	doc/spec/registry.md \
	doc/spec/states.md \
	doc/spec/statements.md

# Example programs. Most are one side of a connection (side.h); those of
# raw Ethernet endpoints share raw.h.
noinst_PROGRAMS += doc/examples/trace-levels
doc_examples_trace_levels_SOURCES = doc/examples/trace-levels.c
doc_examples_trace_levels_LDADD = libdat2.la
noinst_PROGRAMS += doc/examples/capture
doc_examples_capture_SOURCES = doc/examples/capture.c
doc_examples_capture_LDADD = libdat2.la
raw_examples = doc/examples/craft doc/examples/multicast doc/examples/pace doc/examples/rss doc/examples/steer doc/examples/tso
example_raw = doc/examples/raw.c doc/examples/raw.h
noinst_PROGRAMS += $(raw_examples)
doc_examples_craft_SOURCES = doc/examples/craft.c $(example_raw)
doc_examples_craft_LDADD = libdat2.la
doc_examples_multicast_SOURCES = doc/examples/multicast.c $(example_raw)
doc_examples_multicast_LDADD = libdat2.la
doc_examples_pace_SOURCES = doc/examples/pace.c $(example_raw)
doc_examples_pace_LDADD = libdat2.la
doc_examples_rss_SOURCES = doc/examples/rss.c $(example_raw)
doc_examples_rss_LDADD = libdat2.la -lpthread
doc_examples_steer_SOURCES = doc/examples/steer.c $(example_raw)
doc_examples_steer_LDADD = libdat2.la
doc_examples_tso_SOURCES = doc/examples/tso.c $(example_raw)
doc_examples_tso_LDADD = libdat2.la
example_side = doc/examples/side.c doc/examples/side.h
noinst_PROGRAMS += $(examples)
examples = \
	doc/examples/atomics \
	doc/examples/datagram \
	doc/examples/device-memory \
	doc/examples/epoll \
	doc/examples/ping-pong \
	doc/examples/srq-server \
	doc/examples/sum \
	doc/examples/write-read
doc_examples_atomics_SOURCES = doc/examples/atomics.c $(example_side)
doc_examples_atomics_LDADD = libdat2.la
doc_examples_datagram_SOURCES = doc/examples/datagram.c $(example_side)
doc_examples_datagram_LDADD = libdat2.la
doc_examples_device_memory_SOURCES = doc/examples/device-memory.c $(example_side)
doc_examples_device_memory_LDADD = libdat2.la
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

# make html: the manual pages, in doc/html of the build tree.
EXTRA_DIST += doc/man/to-html
html-local: doc/man/dat.conf.5 doc/man/dapl.conf.5
	$(srcdir)/doc/man/to-html doc/html $(srcdir)/doc/man/*.[1-8] $(srcdir)/doc/man/man3/*.3 doc/man/dat.conf.5 doc/man/dapl.conf.5
clean-local: clean-html
.PHONY: clean-html
clean-html:
	rm -rf doc/html
