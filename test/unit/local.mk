# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Unit tests: test/unit/FOLDER/test_NAME.c is about NAME.c of common/, dat/, dapl/core, dapl/soft,
# dapl/softeth, dapl/verbs or contrib/openmpi; topics of the software device that need several files have names of their own.
EXTRA_DIST += test/unit/unit.h test/unit/child.h test/unit/device_harness.h test/unit/soft/ends.h test/unit/soft/stream.h
printed = test/unit/printed.c test/unit/printed.h
reported = test/unit/reported.c test/unit/reported.h
interfaces = test/unit/interfaces.c test/unit/interfaces.h
interfaces_wrap = -Wl,--wrap=socket,--wrap=send,--wrap=recv,--wrap=close,--wrap=gethostname
dat_conf_text = test/unit/dat/conf_text.c test/unit/dat/conf_text.h
dat_libraries = test/unit/dat/libraries.c test/unit/dat/libraries.h $(dat_conf_text)
dat_libraries_wraps = -Wl,--wrap=open64,--wrap=dlopen,--wrap=dlsym,--wrap=dlclose,--wrap=dlerror
file_tree = test/unit/file_tree.c test/unit/file_tree.h
device_harness = test/unit/device_harness.c test/unit/device_harness.h
verbs_eth_receives = test/unit/verbs/eth_receives.c test/unit/verbs/eth_receives.h
verbs_eth_objects = test/unit/verbs/eth_objects.c test/unit/verbs/eth_objects.h $(softeth_steps)
verbs_siw_below = test/unit/verbs/siw_below.c test/unit/verbs/siw_below.h
verbs_conn_sides = test/unit/verbs/conn_sides.c test/unit/verbs/conn_sides.h $(softeth_steps)
tap_records = test/unit/tap_records.c test/unit/tap_records.h
verbs_tapped = test/unit/verbs/tapped.c test/unit/verbs/tapped.h $(tap_records)
verbs_cm_channel = test/unit/verbs/cm_channel.c test/unit/verbs/cm_channel.h $(verbs_conn_sides)
openmpi_modex = test/unit/openmpi/modex.c test/unit/openmpi/modex.h
openmpi_adapters = test/unit/openmpi/adapters.c test/unit/openmpi/adapters.h $(openmpi_modex)
openmpi_btl = test/unit/openmpi/btl.c test/unit/openmpi/btl.h test/unit/openmpi/eps.c test/unit/openmpi/eps.h
soft_ring_reader = test/unit/soft/ring_reader.c test/unit/soft/ring_reader.h
softeth_ebpf = test/unit/softeth/ebpf.c test/unit/softeth/ebpf.h
softeth_cbpf = test/unit/softeth/cbpf.c test/unit/softeth/cbpf.h
softeth_control = test/unit/softeth/control.c test/unit/softeth/control.h
softeth_frames = test/unit/softeth/frames.c test/unit/softeth/frames.h
softeth_steps = test/unit/softeth/steps.c test/unit/softeth/steps.h
softeth_port_calls = test/unit/softeth/port_calls.c test/unit/softeth/port_calls.h
softeth_parsed = test/unit/softeth/parsed.c test/unit/softeth/parsed.h $(softeth_frames)

if CMOCKA
AM_CPPFLAGS += $(CMOCKA_CFLAGS)
# What a program links that has no LDADD of its own: most tests of common/, dapl/core, dapl/soft and dapl/softeth.
LDADD = libsofteth.la libdaplsoftdev.la libdaplcore.la libcommon.la libdat2.la $(CMOCKA_LIBS) -lpthread

# Shared by all libraries.
unit_common = \
	test/unit/common/test_address \
	test/unit/common/test_clock \
	test/unit/common/test_descriptors \
	test/unit/common/test_file_size \
	test/unit/common/test_ia_params \
	test/unit/common/test_journal \
	test/unit/common/test_json \
	test/unit/common/test_lock \
	test/unit/common/test_lock_check \
	test/unit/common/test_log \
	test/unit/common/test_mapping \
	test/unit/common/test_nearest \
	test/unit/common/test_parameter_range \
	test/unit/common/test_parameters \
	test/unit/common/test_post_lock \
	test/unit/common/test_rate \
	test/unit/common/test_rtnl \
	test/unit/common/test_sock_service \
	test/unit/common/test_trace
test_unit_common_test_clock_LDADD = $(CMOCKA_LIBS)
test_unit_common_test_descriptors_SOURCES = test/unit/common/test_descriptors.c $(printed)
# The check of the lock order is in every build of these tests.
test_unit_common_test_lock_SOURCES = test/unit/common/test_lock.c common/lock.c common/lock_check.c
test_unit_common_test_lock_CPPFLAGS = $(AM_CPPFLAGS) -DDAPL_LOCK_CHECK=1
test_unit_common_test_lock_LDADD = $(CMOCKA_LIBS) -lpthread
test_unit_common_test_lock_check_SOURCES = test/unit/common/test_lock_check.c common/lock.c common/lock_check.c
test_unit_common_test_lock_check_CPPFLAGS = $(AM_CPPFLAGS) -DDAPL_LOCK_CHECK=1
test_unit_common_test_lock_check_LDADD = $(CMOCKA_LIBS) -lpthread
test_unit_common_test_post_lock_SOURCES = test/unit/common/test_post_lock.c common/post_lock.c common/lock_check.c
test_unit_common_test_post_lock_CPPFLAGS = $(AM_CPPFLAGS) -DDAPL_LOCK_CHECK=1
test_unit_common_test_post_lock_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=syscall
test_unit_common_test_sock_service_SOURCES = test/unit/common/test_sock_service.c common/sock_service.c
test_unit_common_test_sock_service_CPPFLAGS = $(AM_CPPFLAGS)
test_unit_common_test_sock_service_LDADD = $(CMOCKA_LIBS)
test_unit_common_test_post_lock_LDADD = $(CMOCKA_LIBS) -lpthread
test_unit_common_test_rtnl_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=socket

# libdat2, without a provider.
unit_dat = \
	test/unit/dat/test_busy \
	test/unit/dat/test_closed \
	test/unit/dat/test_forks \
	test/unit/dat/test_conf \
	test/unit/dat/test_devices \
	test/unit/dat/test_entries \
	test/unit/dat/test_entry_table \
	test/unit/dat/test_entry_text \
	test/unit/dat/test_environment \
	test/unit/dat/test_ia_handle \
	test/unit/dat/test_lmr_table \
	test/unit/dat/test_listing \
	test/unit/dat/test_loader \
	test/unit/dat/test_lookup \
	test/unit/dat/test_lookup_busy \
	test/unit/dat/test_messages \
	test/unit/dat/test_providers \
	test/unit/dat/test_registry \
	test/unit/dat/test_soft_entries \
	test/unit/dat/test_sources \
	test/unit/dat/test_unknown_ia
unit_dat_libs = libregistry.la libcommon.la $(CMOCKA_LIBS) -lpthread
test_unit_dat_test_conf_SOURCES = test/unit/dat/test_conf.c dat/conf.c
test_unit_dat_test_conf_LDADD = $(CMOCKA_LIBS)
test_unit_dat_test_ia_handle_SOURCES = test/unit/dat/test_ia_handle.c dat/ia_handle.c
test_unit_dat_test_ia_handle_LDADD = libcommon.la $(CMOCKA_LIBS)
test_unit_dat_test_lmr_table_LDADD = $(unit_dat_libs)
test_unit_dat_test_closed_LDADD = $(unit_dat_libs)
test_unit_dat_test_closed_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=free
test_unit_dat_test_messages_SOURCES = test/unit/dat/test_messages.c $(printed)
test_unit_dat_test_messages_LDADD = $(unit_dat_libs)
test_unit_dat_test_unknown_ia_SOURCES = test/unit/dat/test_unknown_ia.c $(printed)
test_unit_dat_test_unknown_ia_LDADD = $(unit_dat_libs)
test_unit_dat_test_environment_SOURCES = test/unit/dat/test_environment.c $(printed)
test_unit_dat_test_environment_LDADD = $(unit_dat_libs)
test_unit_dat_test_devices_SOURCES = test/unit/dat/test_devices.c $(file_tree)
test_unit_dat_test_devices_LDADD = $(unit_dat_libs)
test_unit_dat_test_devices_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=strdup,--wrap=realloc,--wrap=opendir,--wrap=open64
test_unit_dat_test_entries_SOURCES = test/unit/dat/test_entries.c $(dat_conf_text)
test_unit_dat_test_entries_LDADD = $(unit_dat_libs)
test_unit_dat_test_entries_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=open64,--wrap=sources_generate,--wrap=loader_finds \
	-Wl,--wrap=malloc,--wrap=realloc
test_unit_dat_test_entry_table_SOURCES = test/unit/dat/test_entry_table.c $(dat_conf_text)
test_unit_dat_test_entry_table_LDADD = $(unit_dat_libs)
test_unit_dat_test_entry_table_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=open64
test_unit_dat_test_entry_text_SOURCES = test/unit/dat/test_entry_text.c $(printed)
test_unit_dat_test_entry_text_LDADD = $(unit_dat_libs)
test_unit_dat_test_listing_SOURCES = test/unit/dat/test_listing.c $(dat_conf_text) $(printed)
test_unit_dat_test_listing_LDADD = $(unit_dat_libs)
test_unit_dat_test_listing_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=open64,--wrap=unknown_ia_is_new
test_unit_dat_test_loader_LDADD = $(unit_dat_libs)
test_unit_dat_test_loader_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dlopen,--wrap=dlsym,--wrap=dlclose,--wrap=dlerror \
	-Wl,--wrap=dladdr,--wrap=dlinfo,--wrap=access,--wrap=usleep
test_unit_dat_test_lookup_SOURCES = test/unit/dat/test_lookup.c $(dat_libraries)
test_unit_dat_test_lookup_LDADD = $(unit_dat_libs)
test_unit_dat_test_lookup_LDFLAGS = $(AM_LDFLAGS) $(dat_libraries_wraps) -Wl,--wrap=log_report,--wrap=calloc
test_unit_dat_test_lookup_busy_SOURCES = test/unit/dat/test_lookup_busy.c $(dat_libraries)
test_unit_dat_test_lookup_busy_LDADD = $(unit_dat_libs)
test_unit_dat_test_lookup_busy_LDFLAGS = $(AM_LDFLAGS) $(dat_libraries_wraps) \
	-Wl,--wrap=busy_wait,--wrap=busy_wait_for_forks
test_unit_dat_test_providers_SOURCES = test/unit/dat/test_providers.c $(dat_conf_text)
test_unit_dat_test_providers_LDADD = $(unit_dat_libs)
test_unit_dat_test_providers_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=open64,--wrap=calloc
test_unit_dat_test_registry_SOURCES = test/unit/dat/test_registry.c $(dat_conf_text)
test_unit_dat_test_registry_LDADD = $(unit_dat_libs)
test_unit_dat_test_registry_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=open64,--wrap=calloc,--wrap=realloc \
	-Wl,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_unlock,-u,library_watch_forks
test_unit_dat_test_soft_entries_SOURCES = test/unit/dat/test_soft_entries.c $(interfaces) $(file_tree)
test_unit_dat_test_soft_entries_LDADD = $(unit_dat_libs)
test_unit_dat_test_soft_entries_LDFLAGS = $(AM_LDFLAGS) $(interfaces_wrap)
test_unit_dat_test_sources_SOURCES = test/unit/dat/test_sources.c $(file_tree) $(interfaces) $(printed)
test_unit_dat_test_sources_LDADD = $(unit_dat_libs)
test_unit_dat_test_sources_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=devices_make_entries $(interfaces_wrap)
test_unit_dat_test_forks_LDADD = $(unit_dat_libs)
test_unit_dat_test_forks_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc
test_unit_dat_test_busy_LDADD = $(unit_dat_libs)

# Core, without a device.
unit_core = \
	test/unit/core/test_async \
	test/unit/core/test_attr \
	test/unit/core/test_cause \
	test/unit/core/test_cno \
	test/unit/core/test_cno_trigger \
	test/unit/core/test_cno_wait \
	test/unit/core/test_conn \
	test/unit/core/test_conn_hooks \
	test/unit/core/test_conn_step \
	test/unit/core/test_connect \
	test/unit/core/test_counters \
	test/unit/core/test_cr \
	test/unit/core/test_control \
	test/unit/core/test_control_verbs \
	test/unit/core/test_dequeue \
	test/unit/core/test_diag \
	test/unit/core/test_diag_limit \
	test/unit/core/test_disconnect \
	test/unit/core/test_dm \
	test/unit/core/test_ep \
	test/unit/core/test_ep_attr \
	test/unit/core/test_ep_free \
	test/unit/core/test_ep_modify \
	test/unit/core/test_ep_qp \
	test/unit/core/test_ep_reset \
	test/unit/core/test_ep_state \
	test/unit/core/test_eth_ep \
	test/unit/core/test_eth_group \
	test/unit/core/test_eth_ops \
	test/unit/core/test_eth_rule \
	test/unit/core/test_eth_send \
	test/unit/core/test_event \
	test/unit/core/test_ext \
	test/unit/core/test_evd \
	test/unit/core/test_evd_channel \
	test/unit/core/test_evd_feed \
	test/unit/core/test_evd_notify \
	test/unit/core/test_evd_resize \
	test/unit/core/test_evd_wait \
	test/unit/core/test_failure \
	test/unit/core/test_flush \
	test/unit/core/test_fork \
	test/unit/core/test_ia \
	test/unit/core/test_lmr \
	test/unit/core/test_loop_owner \
	test/unit/core/test_mcast \
	test/unit/core/test_net_events \
	test/unit/core/test_net_messages \
	test/unit/core/test_net_watch \
	test/unit/core/test_object \
	test/unit/core/test_open_query \
	test/unit/core/test_polled \
	test/unit/core/test_post \
	test/unit/core/test_post_late \
	test/unit/core/test_post_own \
	test/unit/core/test_post_recv \
	test/unit/core/test_post_slow \
	test/unit/core/test_provider \
	test/unit/core/test_pz \
	test/unit/core/test_qp_table \
	test/unit/core/test_qual \
	test/unit/core/test_recv_repost \
	test/unit/core/test_evq \
	test/unit/core/test_rmr \
	test/unit/core/test_rmr_bind \
	test/unit/core/test_rmr_map \
	test/unit/core/test_service \
	test/unit/core/test_settings \
	test/unit/core/test_service_point \
	test/unit/core/test_sp_request \
	test/unit/core/test_sge_list \
	test/unit/core/test_srq \
	test/unit/core/test_srq_records \
	test/unit/core/test_status \
	test/unit/core/test_tap \
	test/unit/core/test_tap_client \
	test/unit/core/test_tap_posts \
	test/unit/core/test_terminate \
	test/unit/core/test_text \
	test/unit/core/test_ud \
	test/unit/core/test_wait_spin \
	test/unit/core/test_watermark \
	test/unit/core/test_zero_based
# With a device of the tests' own below core, core_device.c, and an endpoint above it, core_endpoint.c.
core_device = test/unit/core/core_device.c test/unit/core/core_device.h \
	test/unit/core/core_queues.c test/unit/core/core_queues.h \
	test/unit/core/core_endpoint.c test/unit/core/core_endpoint.h
# And the objects that endpoints are made from, core_objects.c.
core_objects = $(core_device) test/unit/core/core_objects.c test/unit/core/core_objects.h
# And a datagram endpoint, core_ud.c.
core_ud = $(core_objects) test/unit/core/core_ud.c test/unit/core/core_ud.h
# And an endpoint with a connection, core_conn.c.
core_conn = $(core_ud) test/unit/core/core_conn.c test/unit/core/core_conn.h
# And raw Ethernet endpoints, core_eth.c.
core_eth = $(core_objects) test/unit/core/core_eth.c test/unit/core/core_eth.h
# And device memory, core_dm.c.
core_dm = $(core_device) test/unit/core/core_dm.c test/unit/core/core_dm.h
test_unit_core_test_dequeue_SOURCES = test/unit/core/test_dequeue.c $(core_device)
test_unit_core_test_event_SOURCES = test/unit/core/test_event.c $(core_device)
test_unit_core_test_cno_SOURCES = test/unit/core/test_cno.c test/unit/core/core_cno.h $(core_device)
test_unit_core_test_cno_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_watch_start,--wrap=dapl_object_publish
test_unit_core_test_cno_wait_SOURCES = test/unit/core/test_cno_wait.c test/unit/core/core_cno.h $(core_device)
test_unit_core_test_cno_wait_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_mutex_wait,--wrap=epoll_wait,--wrap=poll,--wrap=write
test_unit_core_test_control_SOURCES = test/unit/core/test_control.c $(core_device)
test_unit_core_test_control_verbs_SOURCES = test/unit/core/test_control_verbs.c $(core_device)
test_unit_core_test_control_verbs_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_control_serve \
	-Wl,--wrap=dapl_registry_function
test_unit_core_test_net_events_SOURCES = test/unit/core/test_net_events.c $(core_device)
test_unit_core_test_net_events_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=getifaddrs,--wrap=freeifaddrs \
	-Wl,--wrap=interface_request_index,--wrap=dapl_timer_start,--wrap=dapl_async_offer
test_unit_core_test_net_messages_SOURCES = test/unit/core/test_net_messages.c $(core_device)
test_unit_core_test_net_messages_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=socket,--wrap=bind,--wrap=recv \
	-Wl,--wrap=getifaddrs,--wrap=freeifaddrs
test_unit_core_test_net_watch_SOURCES = test/unit/core/test_net_watch.c $(core_device)
test_unit_core_test_post_SOURCES = test/unit/core/test_post.c $(core_device)
test_unit_core_test_post_late_SOURCES = test/unit/core/test_post_late.c $(core_device)
test_unit_core_test_post_own_SOURCES = test/unit/core/test_post_own.c $(core_device)
test_unit_core_test_post_slow_SOURCES = test/unit/core/test_post_slow.c $(core_device)
test_unit_core_test_provider_SOURCES = test/unit/core/test_provider.c $(core_device)
test_unit_core_test_provider_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc \
	-Wl,--wrap=dat_registry_add_provider -Wl,--wrap=dat_registry_remove_provider
test_unit_core_test_pz_SOURCES = test/unit/core/test_pz.c $(core_device)
test_unit_core_test_lmr_SOURCES = test/unit/core/test_lmr.c $(core_device)
test_unit_core_test_dm_SOURCES = test/unit/core/test_dm.c $(core_dm) $(printed)
test_unit_core_test_dm_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_device_ops,--wrap=dapl_object_new \
	-Wl,--wrap=dapl_zero_based_set
test_unit_core_test_counters_SOURCES = test/unit/core/test_counters.c $(core_device) $(printed)
test_unit_core_test_counters_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fopen64
test_unit_core_test_eth_ep_SOURCES = test/unit/core/test_eth_ep.c $(core_eth)
test_unit_core_test_eth_ep_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_device_ops,--wrap=calloc,--wrap=dapl_ep_create
test_unit_core_test_eth_group_SOURCES = test/unit/core/test_eth_group.c $(core_eth)
test_unit_core_test_eth_group_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_device_ops,--wrap=dapl_object_new,--wrap=calloc \
	-Wl,--wrap=dapl_eth_groups_lock,--wrap=dapl_eth_groups_unlock
test_unit_core_test_eth_ops_SOURCES = test/unit/core/test_eth_ops.c $(core_eth)
test_unit_core_test_eth_ops_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_device_ops,--wrap=dapl_evd_notify
test_unit_core_test_eth_rule_SOURCES = test/unit/core/test_eth_rule.c $(core_eth)
test_unit_core_test_eth_rule_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_device_ops,--wrap=dapl_object_new
test_unit_core_test_eth_send_SOURCES = test/unit/core/test_eth_send.c $(core_eth)
test_unit_core_test_eth_send_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_device_ops
test_unit_core_test_ext_SOURCES = test/unit/core/test_ext.c $(core_dm)
test_unit_core_test_ext_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_device_ops -Wl,--wrap=dapl_ud_cm_free
test_unit_core_test_open_query_SOURCES = test/unit/core/test_open_query.c $(core_device)
test_unit_core_test_open_query_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_entry_find
test_unit_core_test_zero_based_SOURCES = test/unit/core/test_zero_based.c $(core_device)
test_unit_core_test_ia_SOURCES = test/unit/core/test_ia.c $(core_device) $(printed)
test_unit_core_test_ia_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_ep_broken,--wrap=dapl_ep_comm_established \
	-Wl,--wrap=dapl_srq_limit,--wrap=dapl_srq_failed
test_unit_core_test_attr_SOURCES = test/unit/core/test_attr.c $(core_device)
test_unit_core_test_disconnect_SOURCES = test/unit/core/test_disconnect.c $(core_device)
test_unit_core_test_post_recv_SOURCES = test/unit/core/test_post_recv.c $(core_device)
test_unit_core_test_connect_SOURCES = test/unit/core/test_connect.c $(core_device)
test_unit_core_test_evd_SOURCES = test/unit/core/test_evd.c $(core_device)
test_unit_core_test_evd_channel_SOURCES = test/unit/core/test_evd_channel.c $(core_device)
test_unit_core_test_evd_feed_SOURCES = test/unit/core/test_evd_feed.c $(core_device)
test_unit_core_test_evd_wait_SOURCES = test/unit/core/test_evd_wait.c $(core_device)
test_unit_core_test_flush_SOURCES = test/unit/core/test_flush.c $(core_device)
test_unit_core_test_polled_SOURCES = test/unit/core/test_polled.c $(core_device)
test_unit_core_test_rmr_SOURCES = test/unit/core/test_rmr.c $(core_device)
test_unit_core_test_rmr_map_SOURCES = test/unit/core/test_rmr_map.c $(core_device)
test_unit_core_test_settings_SOURCES = test/unit/core/test_settings.c $(core_device)
test_unit_core_test_terminate_SOURCES = test/unit/core/test_terminate.c $(core_device)
test_unit_core_test_watermark_SOURCES = test/unit/core/test_watermark.c $(core_device)
test_unit_core_test_evd_resize_SOURCES = test/unit/core/test_evd_resize.c $(core_device)
test_unit_core_test_evd_resize_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_watch_start
test_unit_core_test_service_point_SOURCES = test/unit/core/test_service_point.c $(core_device) $(printed)
test_unit_core_test_qual_LDADD = $(CMOCKA_LIBS)
test_unit_core_test_wait_spin_LDADD = $(CMOCKA_LIBS)
test_unit_core_test_evq_LDADD = $(CMOCKA_LIBS) -lpthread
test_unit_core_test_status_SOURCES = test/unit/core/test_status.c $(printed)
test_unit_core_test_tap_client_SOURCES = test/unit/core/test_tap_client.c $(core_device)
test_unit_core_test_tap_client_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_device_ops,--wrap=dapl_timer_start \
	-Wl,--wrap=dapl_timer_drain,--wrap=dapl_tap_begin,--wrap=dapl_async_enter_ias
test_unit_core_test_qp_table_SOURCES = test/unit/core/test_qp_table.c $(core_device)
test_unit_core_test_ep_attr_SOURCES = test/unit/core/test_ep_attr.c $(core_device)
test_unit_core_test_recv_repost_SOURCES = test/unit/core/test_recv_repost.c $(core_device)
test_unit_core_test_cno_trigger_SOURCES = test/unit/core/test_cno_trigger.c $(core_device)
test_unit_core_test_async_SOURCES = test/unit/core/test_async.c $(core_device)
test_unit_core_test_object_SOURCES = test/unit/core/test_object.c $(core_device)
test_unit_core_test_object_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sched_yield
test_unit_core_test_failure_SOURCES = test/unit/core/test_failure.c $(core_device)
test_unit_core_test_failure_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_diag_say
test_unit_core_test_diag_limit_SOURCES = test/unit/core/test_diag_limit.c $(printed)
test_unit_core_test_diag_limit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime \
	-Wl,--wrap=dapl_timer_start
# Without the registry, which would call the handlers.
test_unit_core_test_fork_LDADD = libdaplcore.la libcommon.la $(CMOCKA_LIBS) -lpthread
test_unit_core_test_fork_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=usleep
test_unit_core_test_evd_notify_SOURCES = test/unit/core/test_evd_notify.c $(core_device)
test_unit_core_test_ep_modify_SOURCES = test/unit/core/test_ep_modify.c $(core_device)
test_unit_core_test_ep_modify_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_ep_feed_evds
test_unit_core_test_ep_reset_SOURCES = test/unit/core/test_ep_reset.c $(core_device)
test_unit_core_test_sp_request_SOURCES = test/unit/core/test_sp_request.c $(core_objects)
test_unit_core_test_cr_SOURCES = test/unit/core/test_cr.c $(core_objects)
test_unit_core_test_cr_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
test_unit_core_test_conn_SOURCES = test/unit/core/test_conn.c $(core_conn)
test_unit_core_test_conn_hooks_SOURCES = test/unit/core/test_conn_hooks.c $(core_conn)
test_unit_core_test_conn_step_SOURCES = test/unit/core/test_conn_step.c $(core_objects)
test_unit_core_test_ep_SOURCES = test/unit/core/test_ep.c $(core_objects)
test_unit_core_test_ep_free_SOURCES = test/unit/core/test_ep_free.c $(core_objects)
test_unit_core_test_ep_free_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sched_yield
test_unit_core_test_ep_qp_SOURCES = test/unit/core/test_ep_qp.c $(core_objects)
test_unit_core_test_ud_SOURCES = test/unit/core/test_ud.c $(core_ud)
test_unit_core_test_mcast_SOURCES = test/unit/core/test_mcast.c $(core_ud)
test_unit_core_test_mcast_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_device_ops,--wrap=calloc \
	-Wl,--wrap=sched_yield
test_unit_core_test_srq_SOURCES = test/unit/core/test_srq.c $(core_objects)
test_unit_core_test_rmr_bind_SOURCES = test/unit/core/test_rmr_bind.c $(core_device)

# The software device, without core's upcalls: ends.c and device_harness.c record them.
unit_soft = \
	test/unit/soft/test_acceptor \
	test/unit/soft/test_acks \
	test/unit/soft/test_async_event \
	test/unit/soft/test_attach \
	test/unit/soft/test_attach_message \
	test/unit/soft/test_attach_server \
	test/unit/soft/test_attach_socket \
	test/unit/soft/test_cma \
	test/unit/soft/test_cm \
	test/unit/soft/test_cm_conn \
	test/unit/soft/test_cm_conn_upcalls \
	test/unit/soft/test_conn_state \
	test/unit/soft/test_cq \
	test/unit/soft/test_deliver \
	test/unit/soft/test_device \
	test/unit/soft/test_device_attr \
	test/unit/soft/test_dm \
	test/unit/soft/test_eth \
	test/unit/soft/test_eth_hold \
	test/unit/soft/test_eth_receive \
	test/unit/soft/test_eth_send \
	test/unit/soft/test_fastpath \
	test/unit/soft/test_fence \
	test/unit/soft/test_flush \
	test/unit/soft/test_foreign_peer \
	test/unit/soft/test_fork \
	test/unit/soft/test_fpdu \
	test/unit/soft/test_fpdu_rx \
	test/unit/soft/test_half_open \
	test/unit/soft/test_handshake \
	test/unit/soft/test_initiator \
	test/unit/soft/test_large \
	test/unit/soft/test_listen \
	test/unit/soft/test_liveness \
	test/unit/soft/test_local_address \
	test/unit/soft/test_mcast \
	test/unit/soft/test_mem \
	test/unit/soft/test_mpa \
	test/unit/soft/test_mr \
	test/unit/soft/test_mr_dir \
	test/unit/soft/test_offers \
	test/unit/soft/test_owner \
	test/unit/soft/test_owner_state \
	test/unit/soft/test_pace \
	test/unit/soft/test_pending \
	test/unit/soft/test_poll \
	test/unit/soft/test_populate \
	test/unit/soft/test_post \
	test/unit/soft/test_post_request \
	test/unit/soft/test_process \
	test/unit/soft/test_progress \
	test/unit/soft/test_proto \
	test/unit/soft/test_proto_table \
	test/unit/soft/test_qp \
	test/unit/soft/test_qp_life \
	test/unit/soft/test_random \
	test/unit/soft/test_obj_conn \
	test/unit/soft/test_reach \
	test/unit/soft/test_requester \
	test/unit/soft/test_requester_done \
	test/unit/soft/test_responder \
	test/unit/soft/test_responder_place \
	test/unit/soft/test_responder_quick \
	test/unit/soft/test_revoke \
	test/unit/soft/test_settings \
	test/unit/soft/test_shm_ring \
	test/unit/soft/test_shm_rx \
	test/unit/soft/test_rings \
	test/unit/soft/test_rmem_map \
	test/unit/soft/test_sealed_file \
	test/unit/soft/test_segment \
	test/unit/soft/test_shm \
	test/unit/soft/test_shm_conn \
	test/unit/soft/test_shm_conn_post \
	test/unit/soft/test_shm_fallback \
	test/unit/soft/test_shm_segment \
	test/unit/soft/test_socket \
	test/unit/soft/test_srq \
	test/unit/soft/test_stream \
	test/unit/soft/test_tap \
	test/unit/soft/test_transmit \
	test/unit/soft/test_tuning \
	test/unit/soft/test_ud \
	test/unit/soft/test_unexpected \
	test/unit/soft/test_wakeup \
	test/unit/soft/test_wire
descriptors = test/unit/descriptors.h
soft_ends = test/unit/soft/ends.c $(device_harness)
stream = test/unit/soft/stream.c $(device_harness)
stream_setups = test/unit/soft/stream_test.c test/unit/soft/stream_test.h
stream_test = $(stream_setups) $(stream)
test_unit_soft_test_cq_SOURCES = test/unit/soft/test_cq.c $(device_harness)
test_unit_soft_test_cq_LDFLAGS = $(AM_LDFLAGS) -Wl,-u,dapl_device_ops,--wrap=soft_progress_poll
test_unit_soft_test_cm_SOURCES = test/unit/soft/test_cm.c $(device_harness)
test_unit_soft_test_cm_LDFLAGS = $(AM_LDFLAGS) -Wl,-u,dapl_device_ops \
	-Wl,--wrap=initiator_attach_ready,--wrap=initiator_attach_expired,--wrap=initiator_connecting \
	-Wl,--wrap=initiator_reply_readable,--wrap=acceptor_take_request,--wrap=acceptor_first_readable \
	-Wl,--wrap=acceptor_speak_first,--wrap=acceptor_refuse,--wrap=listen_ready,--wrap=listen_watch \
	-Wl,--wrap=soft_conn_send,--wrap=shm_grant_revoke,--wrap=dapl_watch_start,--wrap=dapl_watch_stop \
	-Wl,--wrap=dapl_timer_start,--wrap=dapl_timer_drain,--wrap=dapl_task_queue,--wrap=dapl_service_flush \
	-Wl,--wrap=epoll_wait,--wrap=poll,--wrap=clock_gettime,--wrap=getsockopt
conn_steps = test/unit/soft/conn_steps.c test/unit/soft/conn_steps.h $(softeth_steps)
conn_steps_wraps = -Wl,-u,dapl_device_ops,--wrap=soft_progress_lock,--wrap=soft_conn_step,--wrap=dapl_task_queue \
	-Wl,--wrap=epoll_ctl,--wrap=close,--wrap=calloc,--wrap=malloc,--wrap=free
test_unit_soft_test_cm_conn_SOURCES = test/unit/soft/test_cm_conn.c $(conn_steps)
test_unit_soft_test_cm_conn_LDFLAGS = $(AM_LDFLAGS) $(conn_steps_wraps) -Wl,--wrap=shm_conn_free,--wrap=cm_set_state
test_unit_soft_test_cm_conn_upcalls_SOURCES = test/unit/soft/test_cm_conn_upcalls.c $(conn_steps)
test_unit_soft_test_cm_conn_upcalls_LDFLAGS = $(AM_LDFLAGS) $(conn_steps_wraps)
test_unit_soft_test_device_SOURCES = test/unit/soft/test_device.c \
	test/unit/soft/device_ends.c test/unit/soft/device_ends.h test/unit/soft/device_tests.h \
	test/unit/soft/device_data.c \
	test/unit/soft/device_errors.c \
	test/unit/soft/device_windows.c \
	test/unit/soft/device_queues.c \
	test/unit/soft/device_processes.c \
	$(printed) $(device_harness)
test_unit_soft_test_device_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc,--wrap=sched_yield
test_unit_soft_test_fastpath_SOURCES = test/unit/soft/test_fastpath.c $(soft_ends)
test_unit_soft_test_fastpath_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=send
test_unit_soft_test_device_attr_SOURCES = test/unit/soft/test_device_attr.c $(device_harness)
test_unit_soft_test_device_attr_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=interface_request_index,--wrap=getrlimit64
test_unit_soft_test_fork_SOURCES = test/unit/soft/test_fork.c $(soft_ends)
test_unit_soft_test_fork_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=free
test_unit_soft_test_mem_SOURCES = test/unit/soft/test_mem.c $(printed) $(soft_ends)
test_unit_soft_test_mem_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc
test_unit_soft_test_offers_SOURCES = test/unit/soft/test_offers.c $(soft_ends)
test_unit_soft_test_owner_SOURCES = test/unit/soft/test_owner.c $(soft_ends)
eth_sends = test/unit/soft/eth_sends.c test/unit/soft/eth_sends.h
eth_sends_wraps = -Wl,--wrap=clock_gettime,--wrap=timerfd_create,--wrap=timerfd_settime,--wrap=read,--wrap=close \
	-Wl,--wrap=calloc,--wrap=dapl_watch_start,--wrap=dapl_watch_stop,--wrap=soft_cq_add
eth_port = test/unit/soft/eth_port.c test/unit/soft/eth_port.h $(device_harness)
eth_port_wraps = -Wl,--wrap=dlopen,--wrap=dlsym,--wrap=dlclose,--wrap=calloc,--wrap=log_report \
	-Wl,--wrap=soft_qp_create,--wrap=soft_qp_reset,--wrap=soft_qp_error,--wrap=soft_qp_destroy \
	-Wl,--wrap=epoll_ctl,--wrap=dapl_timer_start,--wrap=dapl_timer_drain
test_unit_soft_test_eth_SOURCES = test/unit/soft/test_eth.c $(eth_port)
test_unit_soft_test_eth_LDFLAGS = $(AM_LDFLAGS) $(eth_port_wraps)
test_unit_soft_test_eth_receive_SOURCES = test/unit/soft/test_eth_receive.c $(eth_port)
test_unit_soft_test_eth_receive_LDFLAGS = $(AM_LDFLAGS) $(eth_port_wraps) -Wl,--wrap=soft_mem_local
test_unit_soft_test_eth_hold_SOURCES = test/unit/soft/test_eth_hold.c $(eth_sends)
test_unit_soft_test_eth_hold_LDFLAGS = $(AM_LDFLAGS) $(eth_sends_wraps)
test_unit_soft_test_eth_send_SOURCES = test/unit/soft/test_eth_send.c $(eth_sends)
test_unit_soft_test_eth_send_LDFLAGS = $(AM_LDFLAGS) $(eth_sends_wraps)
test_unit_soft_test_poll_SOURCES = test/unit/soft/test_poll.c $(device_harness)
test_unit_soft_test_poll_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,-u,dapl_device_ops,--wrap=soft_progress_poll,--wrap=soft_owner_sleep,--wrap=sched_yield
test_unit_soft_test_pending_SOURCES = test/unit/soft/test_pending.c $(soft_ends)
test_unit_soft_test_populate_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=madvise,--wrap=process_vm_readv
test_unit_soft_test_tap_SOURCES = test/unit/soft/test_tap.c $(tap_records) $(stream_test)
test_unit_soft_test_tap_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=soft_tcp_post
test_unit_soft_test_tuning_SOURCES = test/unit/soft/test_tuning.c $(soft_ends)
test_unit_soft_test_dm_SOURCES = test/unit/soft/test_dm.c $(soft_ends)
mapped = test/unit/soft/mapped.c test/unit/soft/mapped.h $(soft_ends)
test_unit_soft_test_revoke_SOURCES = test/unit/soft/test_revoke.c $(mapped)
test_unit_soft_test_rmem_map_SOURCES = test/unit/soft/test_rmem_map.c $(mapped)
test_unit_soft_test_shm_SOURCES = test/unit/soft/test_shm.c $(soft_ends)
copies = test/unit/soft/copies.c test/unit/soft/copies.h $(soft_ends)
copies_ldflags = $(AM_LDFLAGS) -Wl,--wrap=process_vm_writev -Wl,--wrap=process_vm_readv \
	-Wl,--wrap=access_copy
test_unit_soft_test_cma_SOURCES = test/unit/soft/test_cma.c $(copies)
test_unit_soft_test_cma_LDFLAGS = $(copies_ldflags)
test_unit_soft_test_large_SOURCES = test/unit/soft/test_large.c $(copies)
test_unit_soft_test_large_LDFLAGS = $(copies_ldflags)
test_unit_soft_test_shm_rx_SOURCES = test/unit/soft/test_shm_rx.c $(soft_ends)
test_unit_soft_test_shm_rx_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=shm_rx_receive
test_unit_soft_test_attach_server_SOURCES = test/unit/soft/test_attach_server.c $(descriptors) $(soft_ends)
test_unit_soft_test_attach_server_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=accept4,--wrap=calloc \
	-Wl,--wrap=attach_socket_listen,--wrap=dapl_watch_start,--wrap=dapl_timer_start
test_unit_soft_test_shm_fallback_SOURCES = test/unit/soft/test_shm_fallback.c $(soft_ends)
test_unit_soft_test_shm_fallback_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=accept4 \
	-Wl,--wrap=attach_socket_listen
peer_bytes = test/unit/soft/peer_bytes.c test/unit/soft/peer_bytes.h $(stream)
test_unit_soft_test_fpdu_rx_SOURCES = test/unit/soft/test_fpdu_rx.c $(peer_bytes) $(stream_setups)
test_unit_soft_test_stream_SOURCES = test/unit/soft/test_stream.c $(peer_bytes) $(stream_setups)
test_unit_soft_test_wakeup_SOURCES = test/unit/soft/test_wakeup.c $(soft_ends)
test_unit_soft_test_fence_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=syscall
test_unit_soft_test_reach_SOURCES = test/unit/soft/test_reach.c $(soft_ends)
test_unit_soft_test_deliver_SOURCES = test/unit/soft/test_deliver.c $(stream_test)
test_unit_soft_test_requester_done_SOURCES = test/unit/soft/test_requester_done.c $(stream_test)
test_unit_soft_test_requester_SOURCES = test/unit/soft/test_requester.c $(stream_test)
test_unit_soft_test_requester_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc
test_unit_soft_test_responder_SOURCES = test/unit/soft/test_responder.c $(stream_test)
test_unit_soft_test_responder_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
test_unit_soft_test_responder_place_SOURCES = test/unit/soft/test_responder_place.c $(stream_test)
test_unit_soft_test_responder_quick_SOURCES = test/unit/soft/test_responder_quick.c $(tap_records) $(stream_test)
test_unit_soft_test_transmit_SOURCES = test/unit/soft/test_transmit.c $(stream_test)
test_unit_soft_test_transmit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=send,--wrap=sendmsg,--wrap=shutdown,--wrap=malloc
test_unit_soft_test_qp_SOURCES = test/unit/soft/test_qp.c $(stream_test)
test_unit_soft_test_qp_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_task_queue
test_unit_soft_test_post_SOURCES = test/unit/soft/test_post.c $(stream_test)
test_unit_soft_test_post_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=soft_ud_send
test_unit_soft_test_post_request_SOURCES = test/unit/soft/test_post_request.c $(stream_test)
test_unit_soft_test_qp_life_SOURCES = test/unit/soft/test_qp_life.c $(stream_test)
test_unit_soft_test_qp_life_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=soft_random,--wrap=malloc,--wrap=calloc,--wrap=soft_ud_open \
	-Wl,--wrap=revoke_instead_of_flush,--wrap=rmem_map_for_consumer
test_unit_soft_test_process_SOURCES = test/unit/soft/test_process.c $(descriptors) $(device_harness)
test_unit_soft_test_process_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=eventfd,--wrap=memfd_create,--wrap=mmap64,--wrap=calloc
test_unit_soft_test_attach_SOURCES = test/unit/soft/test_attach.c $(descriptors) $(device_harness)
test_unit_soft_test_attach_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sendmsg
test_unit_soft_test_mr_SOURCES = test/unit/soft/test_mr.c $(device_harness)
test_unit_soft_test_mr_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=soft_populate,--wrap=madvise,--wrap=rmem_map_file,--wrap=soft_mr_add
test_unit_soft_test_shm_conn_SOURCES = test/unit/soft/test_shm_conn.c $(device_harness) $(soft_ring_reader)
test_unit_soft_test_shm_conn_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=calloc
test_unit_soft_test_shm_conn_post_SOURCES = test/unit/soft/test_shm_conn_post.c $(device_harness) $(soft_ring_reader) \
	$(tap_records)
test_unit_soft_test_shm_conn_post_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=soft_qp_executed \
	-Wl,--wrap=soft_mem_to_send,--wrap=soft_mem_local \
	-Wl,--wrap=rmem_map_write,--wrap=rmem_map_read,--wrap=rmem_map_atomic \
	-Wl,--wrap=cma_read_now,--wrap=cma_execute \
	-Wl,--wrap=proto_suits_cma,--wrap=proto_peer_polls,--wrap=proto_select_read,--wrap=proto_select_queued
test_unit_soft_test_shm_segment_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=mmap64,--wrap=munmap,--wrap=madvise
test_unit_soft_test_handshake_SOURCES = test/unit/soft/test_handshake.c $(device_harness)
test_unit_soft_test_handshake_LDFLAGS = $(AM_LDFLAGS) -Wl,-u,dapl_device_ops,--wrap=soft_conn_send,--wrap=getsockopt,--wrap=calloc
test_unit_soft_test_progress_SOURCES = test/unit/soft/test_progress.c $(device_harness)
test_unit_soft_test_progress_LDFLAGS = $(AM_LDFLAGS) -Wl,-u,dapl_device_ops,--wrap=epoll_wait,--wrap=epoll_ctl \
	-Wl,--wrap=sched_yield,--wrap=setsockopt,--wrap=dapl_task_queue,--wrap=soft_rings_poll,--wrap=soft_rings_add \
	-Wl,--wrap=soft_rings_del,--wrap=soft_acks_schedule,--wrap=soft_tcp_receive,--wrap=soft_conn_send \
	-Wl,--wrap=soft_unexpected_deliver
test_unit_soft_test_flush_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=shm_grant_revoke,--wrap=rndv_cancel,--wrap=revoke_before_flush,--wrap=soft_qp_end_flush
test_unit_soft_test_obj_conn_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=dapl_task_queue,--wrap=epoll_ctl,--wrap=getsockopt
test_unit_soft_test_ud_SOURCES = test/unit/soft/test_ud.c $(stream_test)
test_unit_soft_test_ud_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=sendmsg,--wrap=recvfrom
test_unit_soft_test_mcast_SOURCES = test/unit/soft/test_mcast.c $(device_harness)
test_unit_soft_test_mcast_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=socket,--wrap=bind,--wrap=close,--wrap=setsockopt \
	-Wl,--wrap=epoll_create1,--wrap=epoll_ctl,--wrap=epoll_wait \
	-Wl,--wrap=recvmsg,--wrap=soft_ud_deliver,--wrap=calloc,--wrap=free,-u,dapl_device_ops
test_unit_soft_test_local_address_SOURCES = test/unit/soft/test_local_address.c $(interfaces) $(reported)
test_unit_soft_test_local_address_LDFLAGS = $(AM_LDFLAGS) $(interfaces_wrap) \
	-Wl,--wrap=getaddrinfo,--wrap=strndup
test_unit_soft_test_random_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=getrandom,--wrap=clock_gettime
test_unit_soft_test_rings_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=shm_rx_receive \
	-Wl,--wrap=soft_acks_schedule,--wrap=soft_acks_flush_ring,--wrap=soft_conn_send
test_unit_soft_test_acks_SOURCES = test/unit/soft/test_acks.c test/unit/soft/ends.c $(stream_test)
test_unit_soft_test_unexpected_SOURCES = test/unit/soft/test_unexpected.c $(stream_test)
foreign_peer = test/unit/soft/foreign_peer.c test/unit/soft/foreign_peer.h $(device_harness)
test_unit_soft_test_acceptor_SOURCES = test/unit/soft/test_acceptor.c $(foreign_peer) $(printed)
test_unit_soft_test_acceptor_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ioctl
test_unit_soft_test_initiator_SOURCES = test/unit/soft/test_initiator.c $(foreign_peer) $(printed)
test_unit_soft_test_initiator_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=connect
test_unit_soft_test_listen_SOURCES = test/unit/soft/test_listen.c $(foreign_peer) $(printed)
test_unit_soft_test_listen_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=accept4 -Wl,--wrap=listen_watch
test_unit_soft_test_foreign_peer_SOURCES = test/unit/soft/test_foreign_peer.c \
	$(foreign_peer) test/unit/soft/foreign_tests.h \
	test/unit/soft/foreign_handshake.c \
	test/unit/soft/foreign_half_open.c \
	test/unit/soft/foreign_frames.c \
	test/unit/soft/foreign_ends.c \
	test/own_network.h
test_unit_soft_test_mpa_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc
test_unit_soft_test_srq_SOURCES = test/unit/soft/test_srq.c $(device_harness)
test_unit_soft_test_srq_LDFLAGS = $(AM_LDFLAGS) -Wl,-u,dapl_device_ops,--wrap=dapl_task_queue
test_unit_soft_test_async_event_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dapl_task_queue \
	-Wl,--wrap=dapl_up_async
test_unit_soft_test_sealed_file_SOURCES = test/unit/soft/test_sealed_file.c $(descriptors)
test_unit_soft_test_segment_SOURCES = test/unit/soft/test_segment.c $(device_harness)
test_unit_soft_test_segment_LDFLAGS = $(AM_LDFLAGS) -Wl,-u,dapl_device_ops,--wrap=soft_responder_send_begin
test_unit_soft_test_attach_message_SOURCES = test/unit/soft/test_attach_message.c $(descriptors)
test_unit_soft_test_liveness_SOURCES = test/unit/soft/test_liveness.c $(device_harness)
test_unit_soft_test_liveness_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime \
	-Wl,--wrap=dapl_timer_start -Wl,--wrap=getsockopt -Wl,-u,dapl_device_ops
test_unit_soft_test_socket_SOURCES = test/unit/soft/test_socket.c $(device_harness)
test_unit_soft_test_socket_LDFLAGS = $(AM_LDFLAGS) -Wl,-u,dapl_device_ops

# libdaplsoft-eth, without a network.
unit_softeth = \
	test/unit/common/test_bpf_code test/unit/common/test_frame_layout test/unit/common/test_tunnel \
	test/unit/softeth/test_bpf \
	test/unit/softeth/test_change test/unit/softeth/test_filter test/unit/softeth/test_filter_hash \
	test/unit/softeth/test_group test/unit/softeth/test_ingress \
	test/unit/softeth/test_match \
	test/unit/softeth/test_receive test/unit/softeth/test_port \
	test/unit/softeth/test_place test/unit/softeth/test_packet_ring test/unit/softeth/test_ring_open \
	test/unit/softeth/test_rule_find test/unit/softeth/test_rules \
	test/unit/softeth/test_send test/unit/softeth/test_send_offload test/unit/softeth/test_spread \
	test/unit/softeth/test_steer test/unit/softeth/test_validate \
	test/unit/softeth/test_xdp test/unit/softeth/test_xsk
test_unit_common_test_bpf_code_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
test_unit_softeth_test_bpf_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=syscall,--wrap=uname,--wrap=close
test_unit_softeth_test_change_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime
test_unit_softeth_test_filter_SOURCES = test/unit/softeth/test_filter.c $(softeth_cbpf) $(softeth_parsed)
test_unit_softeth_test_filter_hash_SOURCES = test/unit/softeth/test_filter_hash.c $(softeth_cbpf) $(softeth_parsed)
test_unit_softeth_test_group_SOURCES = test/unit/softeth/test_group.c $(softeth_port_calls)
test_unit_softeth_test_group_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=eth_rule_unsteer,--wrap=eth_rule_detach \
	-Wl,--wrap=eth_rule_end_all,--wrap=port_filter_renew,--wrap=setsockopt,--wrap=clock_gettime \
	-Wl,--wrap=calloc,--wrap=malloc,--wrap=free
test_unit_softeth_test_ingress_SOURCES = test/unit/softeth/test_ingress.c $(softeth_steps)
test_unit_softeth_test_ingress_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=steer_make,--wrap=steer_make_xdp \
	-Wl,--wrap=interface_request_index,--wrap=eth_xdp_sockets,--wrap=syscall,--wrap=close,--wrap=calloc
test_unit_softeth_test_match_SOURCES = test/unit/softeth/test_match.c $(softeth_parsed)
test_unit_softeth_test_receive_SOURCES = test/unit/softeth/test_receive.c $(softeth_control)
test_unit_softeth_test_receive_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=recvmsg,--wrap=recv,--wrap=getsockopt \
	-Wl,--wrap=getifaddrs,--wrap=freeifaddrs,--wrap=eth_rule_find,--wrap=eth_validate
test_unit_softeth_test_port_SOURCES = test/unit/softeth/test_port.c $(softeth_steps)
test_unit_softeth_test_port_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=socket,--wrap=ioctl,--wrap=if_indextoname \
	-Wl,--wrap=setsockopt,--wrap=bind,--wrap=getifaddrs,--wrap=freeifaddrs,--wrap=close,--wrap=calloc \
	-Wl,--wrap=bpf_has_tcx,--wrap=packet_ring_open,--wrap=packet_ring_close,--wrap=eth_group_leave
test_unit_softeth_test_place_SOURCES = test/unit/softeth/test_place.c $(softeth_port_calls)
test_unit_softeth_test_place_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=eth_rule_attach,--wrap=eth_rule_steer \
	-Wl,--wrap=eth_rule_unsteer,--wrap=eth_rule_detach,--wrap=eth_rule_has,--wrap=eth_steer_count
test_unit_softeth_test_packet_ring_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=eth_rule_find,--wrap=eth_rule_count_frames \
	-Wl,--wrap=eth_validate,--wrap=getsockopt
test_unit_softeth_test_ring_open_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=setsockopt,--wrap=mmap64,--wrap=munmap,--wrap=calloc
test_unit_softeth_test_rule_find_SOURCES = test/unit/softeth/test_rule_find.c $(softeth_frames) $(descriptors)
test_unit_softeth_test_rule_find_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=setsockopt
test_unit_softeth_test_rules_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=setsockopt
test_unit_softeth_test_send_SOURCES = test/unit/softeth/test_send.c \
	$(softeth_control) $(softeth_frames) $(softeth_steps)
test_unit_softeth_test_send_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sendmsg,--wrap=sendmmsg,--wrap=recvmsg \
	-Wl,--wrap=setsockopt,--wrap=interface_request_index,--wrap=malloc,--wrap=ioctl
test_unit_softeth_test_send_offload_SOURCES = test/unit/softeth/test_send_offload.c $(softeth_frames)
test_unit_softeth_test_send_offload_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sendmsg
test_unit_softeth_test_steer_SOURCES = test/unit/softeth/test_steer.c $(softeth_ebpf) $(softeth_frames)
test_unit_softeth_test_xdp_SOURCES = test/unit/softeth/test_xdp.c $(softeth_steps)
test_unit_softeth_test_xdp_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=xsk_open,--wrap=xsk_close,--wrap=xsk_has_frame \
	-Wl,--wrap=xsk_take,--wrap=xsk_give,--wrap=xsk_commit,--wrap=xsk_read_drops,--wrap=syscall,--wrap=eth_steer_renew \
	-Wl,--wrap=eth_steer_detach,--wrap=eth_rule_find,--wrap=close
test_unit_softeth_test_xsk_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=getsockopt,--wrap=recvfrom

# The BTL component: its tables need no Open MPI, the rest needs Open MPI's libopen-pal.
unit_openmpi = test/unit/openmpi/test_state_table
test_unit_openmpi_test_state_table_SOURCES = test/unit/openmpi/test_state_table.c contrib/openmpi/state_table.c \
	contrib/openmpi/state_table.h
test_unit_openmpi_test_state_table_LDADD = $(CMOCKA_LIBS)
if OPENMPI
unit_openmpi += \
	test/unit/openmpi/test_address \
	test/unit/openmpi/test_component \
	test/unit/openmpi/test_conn \
	test/unit/openmpi/test_connect \
	test/unit/openmpi/test_control \
	test/unit/openmpi/test_endpoint \
	test/unit/openmpi/test_frag \
	test/unit/openmpi/test_hello \
	test/unit/openmpi/test_help \
	test/unit/openmpi/test_memory \
	test/unit/openmpi/test_module \
	test/unit/openmpi/test_progress \
	test/unit/openmpi/test_push \
	test/unit/openmpi/test_rdma \
	test/unit/openmpi/test_rdma_post \
	test/unit/openmpi/test_receive \
	test/unit/openmpi/test_recv_post \
	test/unit/openmpi/test_reg_cache \
	test/unit/openmpi/test_ring \
	test/unit/openmpi/test_ring_poll \
	test/unit/openmpi/test_ring_setup \
	test/unit/openmpi/test_send \
	test/unit/openmpi/test_staging \
	test/unit/openmpi/test_state
unit_openmpi_libs = libbtludapl.la libdat2.la $(OPENMPI_LIBS) $(CMOCKA_LIBS)
unit_openmpi_cppflags = -D_GNU_SOURCE -I$(top_srcdir) -I$(top_srcdir)/include $(OPENMPI_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_openmpi_test_address_SOURCES = test/unit/openmpi/test_address.c $(openmpi_btl)
test_unit_openmpi_test_address_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_address_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_address_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_address_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=getifaddrs -Wl,--wrap=freeifaddrs
test_unit_openmpi_test_component_SOURCES = test/unit/openmpi/test_component.c $(openmpi_btl) $(openmpi_modex)
test_unit_openmpi_test_component_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_component_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_component_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_component_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=udapl_module_open,--wrap=udapl_finalize,--wrap=udapl_show_help,--wrap=udapl_add_help_dir \
	-Wl,--wrap=mca_base_component_var_register,--wrap=mca_btl_base_param_register,--wrap=opal_output
test_unit_openmpi_test_conn_SOURCES = test/unit/openmpi/test_conn.c $(openmpi_btl)
test_unit_openmpi_test_conn_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_conn_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_conn_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_conn_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=udapl_show_help
test_unit_openmpi_test_connect_SOURCES = test/unit/openmpi/test_connect.c $(openmpi_btl)
test_unit_openmpi_test_connect_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_connect_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_connect_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_connect_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime,--wrap=udapl_show_help
test_unit_openmpi_test_control_SOURCES = test/unit/openmpi/test_control.c $(openmpi_btl)
test_unit_openmpi_test_control_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_control_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_control_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_endpoint_SOURCES = test/unit/openmpi/test_endpoint.c $(openmpi_btl)
test_unit_openmpi_test_endpoint_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_endpoint_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_endpoint_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_endpoint_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=opal_hash_table_set_value_uint64
test_unit_openmpi_test_frag_SOURCES = test/unit/openmpi/test_frag.c $(openmpi_btl)
test_unit_openmpi_test_frag_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_frag_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_frag_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_hello_SOURCES = test/unit/openmpi/test_hello.c $(openmpi_btl)
test_unit_openmpi_test_hello_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_hello_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_hello_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_help_SOURCES = test/unit/openmpi/test_help.c $(openmpi_btl) $(printed)
test_unit_openmpi_test_help_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_help_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_help_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_help_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=opal_show_help_vstring -Wl,--wrap=opal_show_help_add_dir -Wl,--wrap=dladdr
test_unit_openmpi_test_memory_SOURCES = test/unit/openmpi/test_memory.c $(openmpi_btl)
test_unit_openmpi_test_memory_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_memory_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_memory_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_memory_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=memfd_create,--wrap=ftruncate,--wrap=mmap,--wrap=munmap,--wrap=close
test_unit_openmpi_test_module_SOURCES = test/unit/openmpi/test_module.c $(openmpi_btl) $(openmpi_adapters)
test_unit_openmpi_test_module_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_module_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_module_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_module_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc,--wrap=clock_gettime,--wrap=udapl_show_help
test_unit_openmpi_test_progress_SOURCES = test/unit/openmpi/test_progress.c $(openmpi_btl)
test_unit_openmpi_test_progress_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_progress_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_progress_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_push_SOURCES = test/unit/openmpi/test_push.c $(openmpi_btl)
test_unit_openmpi_test_push_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_push_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_push_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_rdma_SOURCES = test/unit/openmpi/test_rdma.c $(openmpi_btl)
test_unit_openmpi_test_rdma_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_rdma_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_rdma_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_rdma_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=opal_progress
test_unit_openmpi_test_rdma_post_SOURCES = test/unit/openmpi/test_rdma_post.c $(openmpi_btl)
test_unit_openmpi_test_rdma_post_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_rdma_post_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_rdma_post_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_receive_SOURCES = test/unit/openmpi/test_receive.c $(openmpi_btl)
test_unit_openmpi_test_receive_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_receive_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_receive_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_recv_post_SOURCES = test/unit/openmpi/test_recv_post.c $(openmpi_btl)
test_unit_openmpi_test_recv_post_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_recv_post_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_recv_post_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_reg_cache_SOURCES = test/unit/openmpi/test_reg_cache.c $(openmpi_btl)
test_unit_openmpi_test_reg_cache_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_reg_cache_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_reg_cache_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_reg_cache_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=usleep -Wl,--wrap=udapl_show_help
test_unit_openmpi_test_ring_SOURCES = test/unit/openmpi/test_ring.c $(openmpi_btl)
test_unit_openmpi_test_ring_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_ring_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_ring_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_ring_poll_SOURCES = test/unit/openmpi/test_ring_poll.c $(openmpi_btl)
test_unit_openmpi_test_ring_poll_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_ring_poll_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_ring_poll_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_ring_setup_SOURCES = test/unit/openmpi/test_ring_setup.c $(openmpi_btl)
test_unit_openmpi_test_ring_setup_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_ring_setup_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_ring_setup_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_send_SOURCES = test/unit/openmpi/test_send.c $(openmpi_btl)
test_unit_openmpi_test_send_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_send_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_send_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_staging_SOURCES = test/unit/openmpi/test_staging.c $(openmpi_btl)
test_unit_openmpi_test_staging_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_staging_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_staging_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_state_SOURCES = test/unit/openmpi/test_state.c $(openmpi_btl)
test_unit_openmpi_test_state_CPPFLAGS = $(unit_openmpi_cppflags)
test_unit_openmpi_test_state_CFLAGS = $(libbtludapl_la_CFLAGS)
test_unit_openmpi_test_state_LDADD = $(unit_openmpi_libs)
test_unit_openmpi_test_state_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=opal_output,--wrap=opal_output_verbose,--wrap=opal_output_check_verbosity
endif

if SOCK
# libdatsock's parts that need no interposed calls.
unit_sock = \
	test/unit/sock/test_conn \
	test/unit/sock/test_hosts \
	test/unit/sock/test_link \
	test/unit/sock/test_link_message \
	test/unit/sock/test_polls \
	test/unit/sock/test_remote \
	test/unit/sock/test_ring \
	test/unit/sock/test_settings \
	test/unit/sock/test_share \
	test/unit/sock/test_timers
test_unit_sock_test_conn_LDADD = libsockparts.la libcommon.la $(CMOCKA_LIBS) -lpthread -ldl
test_unit_sock_test_hosts_LDADD = libsockparts.la libcommon.la $(CMOCKA_LIBS) -lpthread -ldl
test_unit_sock_test_link_SOURCES = test/unit/sock/test_link.c sock/link.c
test_unit_sock_test_link_CPPFLAGS = $(AM_CPPFLAGS)
test_unit_sock_test_link_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=dlopen,--wrap=dlsym
test_unit_sock_test_link_LDADD = libsockparts.la libcommon.la $(CMOCKA_LIBS) -lpthread -ldl
test_unit_sock_test_link_message_LDADD = libsockparts.la $(CMOCKA_LIBS)
# What moves bytes, over a link that the test plays.
test_unit_sock_test_remote_SOURCES = test/unit/sock/test_remote.c sock/move.c $(sock_remote) sock/stream.c sock/wait.c
test_unit_sock_test_remote_CPPFLAGS = $(AM_CPPFLAGS)
test_unit_sock_test_remote_LDADD = libsockparts.la libcommon.la $(CMOCKA_LIBS) -lpthread -ldl
test_unit_sock_test_share_LDADD = libsockparts.la $(CMOCKA_LIBS)
test_unit_sock_test_polls_LDADD = libsockparts.la $(CMOCKA_LIBS)
test_unit_sock_test_ring_LDADD = libsockparts.la $(CMOCKA_LIBS)
test_unit_sock_test_settings_SOURCES = test/unit/sock/test_settings.c $(printed)
test_unit_sock_test_settings_LDADD = libsockparts.la $(CMOCKA_LIBS)
test_unit_sock_test_timers_LDADD = libsockparts.la $(CMOCKA_LIBS)
endif

unit_tests = $(unit_common) $(unit_dat) $(unit_core) $(unit_soft) $(unit_softeth) $(unit_sock) $(unit_openmpi)
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests) test/unit/soft/over-tcp test/unit/soft/copy-only
dist_check_SCRIPTS += test/unit/soft/over-tcp test/unit/soft/copy-only
endif

if VERBS
# The device over libibverbs: what needs no hardware.
if CMOCKA
unit_verbs = \
	test/unit/verbs/test_acceptor \
	test/unit/verbs/test_address \
	test/unit/verbs/test_address_places \
	test/unit/verbs/test_cm \
	test/unit/verbs/test_cm_listen \
	test/unit/verbs/test_conn \
	test/unit/verbs/test_conn_cause \
	test/unit/verbs/test_conn_event \
	test/unit/verbs/test_conn_qp \
	test/unit/verbs/test_conn_report \
	test/unit/verbs/test_conn_state \
	test/unit/verbs/test_device \
	test/unit/verbs/test_dm \
	test/unit/verbs/test_eth \
	test/unit/verbs/test_eth_attr \
	test/unit/verbs/test_eth_clock \
	test/unit/verbs/test_eth_cq \
	test/unit/verbs/test_eth_flow \
	test/unit/verbs/test_eth_group \
	test/unit/verbs/test_eth_hash \
	test/unit/verbs/test_eth_probe \
	test/unit/verbs/test_eth_qp \
	test/unit/verbs/test_eth_recv \
	test/unit/verbs/test_eth_recv_ring \
	test/unit/verbs/test_eth_rule \
	test/unit/verbs/test_eth_send \
	test/unit/verbs/test_eth_wq \
	test/unit/verbs/test_hw \
	test/unit/verbs/test_initiator \
	test/unit/verbs/test_mcast \
	test/unit/verbs/test_objects \
	test/unit/verbs/test_pdata \
	test/unit/verbs/test_probe \
	test/unit/verbs/test_segments \
	test/unit/verbs/test_flush \
	test/unit/verbs/test_siw \
	test/unit/verbs/test_siw_queue \
	test/unit/verbs/test_object_table \
	test/unit/verbs/test_tap \
	test/unit/verbs/test_tap_messages \
	test/unit/verbs/test_ud
check_PROGRAMS += $(unit_verbs)
TESTS += $(unit_verbs)
unit_verbs_libs = libdaplverbs.la libdaplcore.la libcommon.la $(CMOCKA_LIBS) $(VERBS_LIBS)
# What conn_sides.c replaces.
verbs_conn_sides_flags = -Wl,--wrap=dapl_task_queue,--wrap=dapl_timer_start,--wrap=dapl_timer_stop,--wrap=calloc
test_unit_verbs_test_acceptor_SOURCES = test/unit/verbs/test_acceptor.c $(verbs_conn_sides)
test_unit_verbs_test_acceptor_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_acceptor_LDFLAGS = $(AM_LDFLAGS) $(verbs_conn_sides_flags)
test_unit_verbs_test_address_SOURCES = test/unit/verbs/test_address.c $(reported)
test_unit_verbs_test_address_LDADD = libdaplverbs.la libcommon.la $(CMOCKA_LIBS) $(VERBS_LIBS)
test_unit_verbs_test_address_places_SOURCES = test/unit/verbs/test_address_places.c $(file_tree) $(interfaces) $(reported)
test_unit_verbs_test_address_places_LDADD = libdaplverbs.la libcommon.la $(CMOCKA_LIBS) $(VERBS_LIBS)
test_unit_verbs_test_address_places_LDFLAGS = $(AM_LDFLAGS) $(interfaces_wrap) \
	-Wl,--wrap=getaddrinfo,--wrap=opendir,--wrap=fopen64,--wrap=access
# What cm_channel.c replaces besides.
verbs_cm_channel_flags = $(verbs_conn_sides_flags) -Wl,--wrap=hw_mcast_event \
	-Wl,--wrap=dapl_service_flush,--wrap=dapl_watch_start,--wrap=dapl_watch_stop
test_unit_verbs_test_cm_SOURCES = test/unit/verbs/test_cm.c $(verbs_cm_channel) $(printed)
test_unit_verbs_test_cm_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_cm_LDFLAGS = $(AM_LDFLAGS) $(verbs_cm_channel_flags) -Wl,--wrap=hw_conn_event,--wrap=hw_acceptor_from_request
test_unit_verbs_test_cm_listen_SOURCES = test/unit/verbs/test_cm_listen.c $(verbs_cm_channel)
test_unit_verbs_test_cm_listen_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_cm_listen_LDFLAGS = $(AM_LDFLAGS) $(verbs_cm_channel_flags) -Wl,--wrap=free
test_unit_verbs_test_conn_SOURCES = test/unit/verbs/test_conn.c $(verbs_conn_sides)
test_unit_verbs_test_conn_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_conn_LDFLAGS = $(AM_LDFLAGS) $(verbs_conn_sides_flags)
test_unit_verbs_test_conn_cause_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_conn_event_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_conn_qp_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_conn_report_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_conn_state_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_device_SOURCES = test/unit/verbs/test_device.c \
	test/unit/verbs/device_steps.c test/unit/verbs/device_steps.h $(softeth_steps) $(device_harness)
test_unit_verbs_test_device_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_device_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=hw_address_find_places,--wrap=hw_probe,--wrap=dapl_task_queue \
	-Wl,--wrap=dapl_watch_start,--wrap=dapl_watch_stop,--wrap=dapl_up_async,--wrap=log_report \
	-Wl,--wrap=dlopen,--wrap=calloc,--wrap=free
test_unit_verbs_test_dm_SOURCES = test/unit/verbs/test_dm.c $(softeth_steps)
test_unit_verbs_test_dm_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_eth_SOURCES = test/unit/verbs/test_eth.c $(verbs_eth_objects)
test_unit_verbs_test_eth_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_eth_attr_SOURCES = test/unit/verbs/test_eth_attr.c $(verbs_eth_objects)
test_unit_verbs_test_eth_attr_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_eth_attr_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fopen64,--wrap=fclose,--wrap=calloc,--wrap=hw_eth_cq_forget
test_unit_verbs_test_eth_clock_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_eth_clock_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime
test_unit_verbs_test_eth_cq_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_eth_flow_SOURCES = test/unit/verbs/test_eth_flow.c dapl/verbs/eth_flow.c
test_unit_verbs_test_eth_flow_LDADD = $(CMOCKA_LIBS)
test_unit_verbs_test_eth_group_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_eth_hash_SOURCES = test/unit/verbs/test_eth_hash.c dapl/verbs/eth_hash.c
test_unit_verbs_test_eth_hash_LDADD = $(CMOCKA_LIBS)
test_unit_verbs_test_eth_probe_SOURCES = test/unit/verbs/test_eth_probe.c $(verbs_eth_objects)
test_unit_verbs_test_eth_probe_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_eth_qp_SOURCES = test/unit/verbs/test_eth_qp.c $(verbs_eth_objects) $(printed)
test_unit_verbs_test_eth_qp_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_eth_qp_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
test_unit_verbs_test_eth_recv_SOURCES = test/unit/verbs/test_eth_recv.c $(verbs_eth_receives)
test_unit_verbs_test_eth_recv_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_eth_recv_ring_SOURCES = test/unit/verbs/test_eth_recv_ring.c $(verbs_eth_receives)
test_unit_verbs_test_eth_recv_ring_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_eth_rule_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_eth_send_SOURCES = test/unit/verbs/test_eth_send.c $(softeth_frames)
test_unit_verbs_test_eth_send_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_eth_wq_SOURCES = test/unit/verbs/test_eth_wq.c $(verbs_eth_objects)
test_unit_verbs_test_eth_wq_LDADD = $(unit_verbs_libs)
# Without librdmacm, which libdaplverbs needs.
test_unit_verbs_test_hw_SOURCES = test/unit/verbs/test_hw.c dapl/verbs/hw.c
test_unit_verbs_test_hw_LDADD = $(CMOCKA_LIBS)
test_unit_verbs_test_initiator_SOURCES = test/unit/verbs/test_initiator.c $(verbs_conn_sides)
test_unit_verbs_test_initiator_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_initiator_LDFLAGS = $(AM_LDFLAGS) $(verbs_conn_sides_flags)
test_unit_verbs_test_mcast_SOURCES = test/unit/verbs/test_mcast.c $(softeth_steps)
test_unit_verbs_test_mcast_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_mcast_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc,--wrap=dapl_task_queue
test_unit_verbs_test_objects_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_pdata_LDADD = libdaplverbs.la libcommon.la $(CMOCKA_LIBS) $(VERBS_LIBS)
test_unit_verbs_test_probe_SOURCES = test/unit/verbs/test_probe.c $(printed)
test_unit_verbs_test_probe_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_segments_SOURCES = test/unit/verbs/test_segments.c $(printed)
test_unit_verbs_test_segments_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_flush_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_siw_SOURCES = test/unit/verbs/test_siw.c $(verbs_siw_below)
test_unit_verbs_test_siw_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_siw_queue_SOURCES = test/unit/verbs/test_siw_queue.c $(verbs_siw_below)
test_unit_verbs_test_siw_queue_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_object_table_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_ud_SOURCES = test/unit/verbs/test_ud.c $(softeth_steps)
test_unit_verbs_test_ud_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_ud_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
test_unit_verbs_test_tap_SOURCES = test/unit/verbs/test_tap.c $(verbs_tapped)
test_unit_verbs_test_tap_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_tap_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc
test_unit_verbs_test_tap_messages_SOURCES = test/unit/verbs/test_tap_messages.c $(verbs_tapped)
test_unit_verbs_test_tap_messages_LDADD = $(unit_verbs_libs)
test_unit_verbs_test_tap_messages_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc
endif
# device_probe "NETDEV 0", in the test machine: not in TESTS, it needs a device.
check_PROGRAMS += test/unit/verbs/device_probe
test_unit_verbs_device_probe_SOURCES = test/unit/verbs/device_probe.c \
	test/unit/verbs/probe.c test/unit/verbs/probe.h test/unit/verbs/probe_cases.h \
	test/unit/verbs/probe_names.c \
	test/unit/verbs/probe_requests.c \
	test/unit/verbs/probe_data.c \
	test/unit/verbs/probe_life.c \
	test/unit/verbs/probe_foreign.c \
	test/unit/verbs/probe_datagrams.c \
	$(device_harness)
test_unit_verbs_device_probe_LDADD = libdaplverbs.la libdaplcore.la libcommon.la $(VERBS_LIBS)
# fence_probe ADDRESS, in the test machine: what siw does with requests that wait.
check_PROGRAMS += test/unit/verbs/fence_probe
test_unit_verbs_fence_probe_LDADD = $(VERBS_LIBS) -lpthread
endif
