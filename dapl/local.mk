# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The providers: one core, a device below each.
noinst_LTLIBRARIES += libdaplcore.la
libdaplcore_la_SOURCES = \
	dapl/core/ia/provider.c dapl/core/ia/provider.h \
	dapl/core/device.h \
	dapl/core/dapl.h \
	dapl/core/base/object.c dapl/core/base/object.h \
	dapl/core/ia/ia.c dapl/core/ia/ia.h \
	dapl/core/ia/attr.c dapl/core/ia/attr.h \
	dapl/core/mem/pz.c dapl/core/mem/pz.h \
	dapl/core/mem/lmr.c dapl/core/mem/lmr.h \
	dapl/core/mem/rmr.c dapl/core/mem/rmr.h \
	dapl/core/mem/dm.c dapl/core/mem/dm.h \
	dapl/core/mem/zero_based.c dapl/core/mem/zero_based.h \
	dapl/core/ep/srq.c dapl/core/ep/srq.h \
	dapl/core/event/async.c dapl/core/event/async.h \
	dapl/core/event/cno.c dapl/core/event/cno.h \
	dapl/core/event/cno_trigger.c dapl/core/event/cno_trigger.h \
	dapl/core/event/cno_wait.c \
	dapl/core/event/evd_channel.c dapl/core/event/evd_channel.h \
	dapl/core/event/watermark.c dapl/core/event/watermark.h \
	dapl/core/event/evd.c dapl/core/event/evd.h \
	dapl/core/event/evd_feed.c dapl/core/event/evd_feed.h \
	dapl/core/event/evd_notify.c dapl/core/event/evd_notify.h \
	dapl/core/event/evd_resize.c dapl/core/event/evd_resize.h \
	dapl/core/event/evd_wait.c \
	dapl/core/event/wait_spin.h \
	dapl/core/ep/ep.c dapl/core/ep/ep.h \
	dapl/core/ep/rmr_bind.c \
	dapl/core/ep/ep_attr.c dapl/core/ep/ep_attr.h \
	dapl/core/ep/ep_evds.c dapl/core/ep/ep_evds.h \
	dapl/core/ep/ep_qp.c dapl/core/ep/ep_qp.h \
	dapl/core/ep/ep_modify.c dapl/core/ep/calls.h \
	dapl/core/ep/ep_state.c dapl/core/ep/ep_state.h \
	dapl/core/ep/recv_repost.c dapl/core/ep/recv_repost.h \
	dapl/core/conn/conn.c dapl/core/conn/conn.h \
	dapl/core/conn/conn_step.c dapl/core/conn/conn_step.h \
	dapl/core/conn/connect.c dapl/core/conn/connect.h \
	dapl/core/conn/ready.c dapl/core/conn/ready.h \
	dapl/core/conn/disconnect.c dapl/core/conn/disconnect.h \
	dapl/core/conn/terminate.c dapl/core/conn/terminate.h \
	dapl/core/conn/ep_free.c dapl/core/conn/ep_free.h \
	dapl/core/conn/service_point.c dapl/core/conn/service_point.h dapl/core/base/qual.h \
	dapl/core/conn/sp_request.c dapl/core/conn/sp_request.h \
	dapl/core/conn/cr.c dapl/core/conn/cr.h \
	dapl/core/conn/mcast.c dapl/core/conn/mcast.h \
	dapl/core/conn/ud.c dapl/core/conn/ud.h \
	dapl/core/mem/rmr_map.c dapl/core/mem/rmr_map.h \
	dapl/core/base/cause.c dapl/core/base/cause.h \
	dapl/core/base/diag.c dapl/core/base/diag.h \
	dapl/core/base/diag_limit.c dapl/core/base/diag_limit.h \
	dapl/core/base/text.c dapl/core/base/text.h \
	dapl/core/conn/failure.c dapl/core/conn/failure.h \
	dapl/core/ia/net_watch.c dapl/core/ia/net_watch.h \
	dapl/core/ia/net_events.c dapl/core/ia/net_events.h \
	dapl/core/ia/net_socket.c dapl/core/ia/net_socket.h \
	dapl/core/ia/ext.c dapl/core/ia/ext.h \
	dapl/core/eth_device.h \
	dapl/core/eth/eth.h \
	dapl/core/eth/ep.c dapl/core/eth/ep.h \
	dapl/core/eth/group.c dapl/core/eth/group.h \
	dapl/core/eth/ops.c dapl/core/eth/ops.h \
	dapl/core/eth/rule.c dapl/core/eth/rule.h \
	dapl/core/eth/send.c dapl/core/eth/send.h \
	dapl/core/ia/counters.c dapl/core/ia/counters.h \
	dapl/core/base/ia_handle.c dapl/core/base/ia_handle.h \
	dapl/core/base/qp_table.c dapl/core/base/qp_table.h \
	dapl/core/base/srq_records.c dapl/core/base/srq_records.h \
	dapl/core/base/status.c dapl/core/base/status.h \
	dapl/core/base/service.c dapl/core/base/service.h \
	dapl/core/base/loop_owner.c dapl/core/base/loop_owner.h \
	dapl/core/base/fork.c dapl/core/base/fork.h \
	dapl/core/base/registry.c dapl/core/base/registry.h \
	dapl/core/base/settings.c dapl/core/base/settings.h dapl/core/base/parameter.h \
	dapl/core/base/traffic_class.c dapl/core/base/traffic_class.h \
	dapl/core/base/control.c dapl/core/base/control.h \
	dapl/core/base/tap.c dapl/core/base/tap.h \
	dapl/core/base/tap_posts.c dapl/core/base/tap_posts.h \
	dapl/core/ia/tap.c dapl/core/ia/tap.h \
	dapl/core/ia/control_verbs.c dapl/core/ia/control_verbs.h \
	dapl/core/ia/control_answer.c dapl/core/ia/control_answer.h \
	dapl/core/ia/control_objects.c dapl/core/ia/control_objects.h \
	dapl/core/ep/post.c dapl/core/ep/post.h \
	dapl/core/ep/post_slow.c dapl/core/ep/post_slow.h \
	dapl/core/ep/post_recv.c \
	dapl/core/ep/sge_list.c dapl/core/ep/sge_list.h \
	dapl/core/event/event.c dapl/core/event/event.h \
	dapl/core/event/dequeue.c dapl/core/event/calls.h \
	dapl/core/event/polled.c dapl/core/event/polled.h \
	dapl/core/event/flush.c dapl/core/event/flush.h \
	dapl/core/ep/request.h dapl/core/event/evq.h

# gcc 12 packs two stores of a record into vector code that is longer.
libdaplcore_la_CFLAGS = $(AM_CFLAGS) -fno-tree-slp-vectorize

provider_ldflags = $(AM_LDFLAGS) -version-info 2:0:0 -no-undefined $(ZDEFS) -Wl,-z,now
EXTRA_DIST += dapl/libdaplofa.map dapl/libdaplsoft.map

# The device over libibverbs and librdmacm.
if VERBS
noinst_LTLIBRARIES += libdaplverbs.la
libdaplverbs_la_SOURCES = \
	dapl/verbs/hw.c dapl/verbs/hw.h \
	dapl/verbs/device.c \
	dapl/verbs/address.c dapl/verbs/address.h \
	dapl/verbs/probe.c dapl/verbs/probe.h \
	dapl/verbs/siw.c dapl/verbs/siw.h \
	dapl/verbs/siw_queue.c dapl/verbs/siw_queue.h \
	dapl/verbs/segments.c dapl/verbs/segments.h \
	dapl/verbs/flush.c dapl/verbs/flush.h \
	dapl/verbs/object_table.c dapl/verbs/object_table.h \
	dapl/verbs/objects.c dapl/verbs/objects.h \
	dapl/verbs/dm.c dapl/verbs/dm.h \
	dapl/verbs/eth_types.h \
	dapl/verbs/eth.c dapl/verbs/eth.h \
	dapl/verbs/eth_attr.c dapl/verbs/eth_attr.h \
	dapl/verbs/eth_clock.c dapl/verbs/eth_clock.h \
	dapl/verbs/eth_cq.c dapl/verbs/eth_cq.h \
	dapl/verbs/eth_flow.c dapl/verbs/eth_flow.h \
	dapl/verbs/eth_group.c dapl/verbs/eth_group.h \
	dapl/verbs/eth_hash.c dapl/verbs/eth_hash.h \
	dapl/verbs/eth_probe.c dapl/verbs/eth_probe.h \
	dapl/verbs/eth_qp.c dapl/verbs/eth_qp.h \
	dapl/verbs/eth_recv.c dapl/verbs/eth_recv.h \
	dapl/verbs/eth_rule.c dapl/verbs/eth_rule.h \
	dapl/verbs/eth_send.c dapl/verbs/eth_send.h \
	dapl/verbs/eth_wq.c dapl/verbs/eth_wq.h \
	common/frame_layout.c common/frame_layout.h common/tunnel.c common/tunnel.h \
	dapl/verbs/cm.c dapl/verbs/cm.h dapl/verbs/conn_types.h \
	dapl/verbs/acceptor.c dapl/verbs/acceptor.h \
	dapl/verbs/conn.c dapl/verbs/conn.h \
	dapl/verbs/conn_cause.c dapl/verbs/conn_cause.h \
	dapl/verbs/conn_event.c dapl/verbs/conn_event.h \
	dapl/verbs/conn_qp.c dapl/verbs/conn_qp.h \
	dapl/verbs/conn_report.c dapl/verbs/conn_report.h \
	dapl/verbs/conn_state.c dapl/verbs/conn_state.h \
	dapl/verbs/initiator.c dapl/verbs/initiator.h \
	dapl/verbs/late_refusal.c dapl/verbs/late_refusal.h \
	dapl/verbs/mcast.c dapl/verbs/mcast.h \
	dapl/verbs/pdata.c dapl/verbs/pdata.h \
	dapl/verbs/tap.c dapl/verbs/tap.h \
	dapl/verbs/ud.c dapl/verbs/ud.h
libdaplverbs_la_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)

lib_LTLIBRARIES += libdaplofa.la
libdaplofa_la_SOURCES =
libdaplofa_la_LIBADD = libdaplcore.la libdaplverbs.la libcommon.la libdat2.la $(VERBS_LIBS)
libdaplofa_la_LDFLAGS = $(provider_ldflags) -Wl,--version-script=$(srcdir)/dapl/libdaplofa.map

# Shipped dat.conf files name these.
install_exec_hooks += libdaplofa-links
libdaplofa-links:
	cd $(DESTDIR)$(libdir) && for l in scm ucm; do \
		rm -f libdaplo$$l.so.2 && $(LN_S) libdaplofa.so.2 libdaplo$$l.so.2 || exit 1; done
uninstall_hooks += libdaplofa-unlink
libdaplofa-unlink:
	cd $(DESTDIR)$(libdir) && rm -f libdaploscm.so.2 libdaploucm.so.2
endif

# The software RNIC. Needs nothing at run time but libc.
noinst_LTLIBRARIES += libdaplsoftdev.la
libdaplsoftdev_la_SOURCES = \
	dapl/soft/tunables.h \
	dapl/soft/device.c \
	dapl/soft/fork.c dapl/soft/fork.h \
	dapl/soft/local_address.c dapl/soft/local_address.h \
	dapl/soft/wire/wire.c dapl/soft/wire/wire.h dapl/soft/wire/message.h \
	dapl/soft/obj/conn.c dapl/soft/obj/conn.h \
	dapl/soft/obj/fastpath.h dapl/soft/obj/store.h \
	dapl/soft/obj/rnic.c dapl/soft/obj/rnic.h \
	dapl/soft/obj/mem.c dapl/soft/obj/mem.h \
	dapl/soft/obj/stags.c dapl/soft/obj/stags.h \
	dapl/soft/obj/window.c dapl/soft/obj/window.h \
	dapl/soft/obj/populate.c dapl/soft/obj/populate.h \
	dapl/soft/obj/random.c dapl/soft/obj/random.h \
	dapl/soft/obj/async_event.c dapl/soft/obj/async_event.h \
	dapl/soft/obj/cq.c dapl/soft/obj/cq.h \
	dapl/soft/obj/qp.c dapl/soft/obj/qp.h \
	dapl/soft/obj/rq.h \
	dapl/soft/obj/srq.c dapl/soft/obj/srq.h \
	dapl/soft/obj/tap_record.c dapl/soft/obj/tap_record.h \
	dapl/soft/cm/cm.c dapl/soft/cm/cm.h \
	dapl/soft/cm/conn.c dapl/soft/cm/conn.h \
	dapl/soft/cm/conn_state.c dapl/soft/cm/conn_state.h \
	dapl/soft/cm/listen.c dapl/soft/cm/listen.h \
	dapl/soft/cm/mcast.c dapl/soft/cm/mcast.h \
	dapl/soft/cm/initiator.c dapl/soft/cm/initiator.h \
	dapl/soft/cm/acceptor.c dapl/soft/cm/acceptor.h \
	dapl/soft/cm/handshake.c dapl/soft/cm/handshake.h \
	dapl/soft/cm/mpa.c dapl/soft/cm/mpa.h \
	dapl/soft/cm/liveness.c dapl/soft/cm/liveness.h \
	dapl/soft/cm/socket.c dapl/soft/cm/socket.h \
	dapl/soft/cm/shm_fallback.c dapl/soft/cm/shm_fallback.h \
	dapl/soft/cm/half_open.c dapl/soft/cm/half_open.h \
	dapl/soft/rdmap/mcast.c dapl/soft/rdmap/mcast.h \
	dapl/soft/rdmap/ud.c dapl/soft/rdmap/ud.h \
	dapl/soft/tcp/fpdu.c dapl/soft/tcp/fpdu.h \
	dapl/soft/rdmap/flush.c dapl/soft/rdmap/flush.h \
	dapl/soft/rdmap/transmit.c dapl/soft/rdmap/transmit.h \
	dapl/soft/receive/fpdu_rx.c dapl/soft/receive/fpdu_rx.h \
	dapl/soft/receive/shm_rx.c dapl/soft/receive/shm_rx.h \
	dapl/soft/verbs/mr.c dapl/soft/verbs/mr.h \
	dapl/soft/verbs/post.c dapl/soft/verbs/post.h \
	dapl/soft/verbs/qp_life.c dapl/soft/verbs/qp_life.h \
	dapl/soft/verbs/tap.c dapl/soft/verbs/tap.h \
	dapl/soft/shm/shared.h \
	dapl/soft/shm/shm_ring.c dapl/soft/shm/shm_ring.h \
	dapl/soft/shm/shm_conn.c dapl/soft/shm/shm_conn.h \
	dapl/soft/rdmap/requester.c dapl/soft/rdmap/requester.h \
	dapl/soft/rdmap/requester_done.c dapl/soft/rdmap/requester_done.h \
	dapl/soft/rdmap/segment.c dapl/soft/rdmap/segment.h \
	dapl/soft/rdmap/stream.c dapl/soft/rdmap/stream.h \
	dapl/soft/progress/wakeup.c dapl/soft/progress/wakeup.h \
	dapl/soft/shm/attach.c dapl/soft/shm/attach.h \
	dapl/soft/shm/attach_message.c dapl/soft/shm/attach_message.h \
	dapl/soft/shm/attach_server.c dapl/soft/shm/attach_server.h \
	dapl/soft/shm/offers.c dapl/soft/shm/offers.h \
	dapl/soft/shm/process.c dapl/soft/shm/process.h \
	dapl/soft/shm/peer.h \
	dapl/soft/shm/sealed_file.c dapl/soft/shm/sealed_file.h \
	dapl/soft/shm/shm_segment.c dapl/soft/shm/shm_segment.h \
	dapl/soft/shm/attach_socket.c dapl/soft/shm/attach_socket.h \
	dapl/soft/shm/cma.c dapl/soft/shm/cma.h \
	dapl/soft/shm/mr_dir.c dapl/soft/shm/mr_dir.h \
	dapl/soft/shm/reach.c dapl/soft/shm/reach.h \
	dapl/soft/shm/revoke.c dapl/soft/shm/revoke.h \
	dapl/soft/shm/rmem_map.c dapl/soft/shm/rmem_map.h \
	dapl/soft/shm/dm.c dapl/soft/shm/dm.h \
	dapl/soft/shm/proto.c dapl/soft/shm/proto.h \
	dapl/soft/shm/proto_table.c dapl/soft/shm/proto_table.h \
	dapl/soft/shm/pending.c dapl/soft/shm/pending.h \
	dapl/soft/rdmap/responder.c dapl/soft/rdmap/responder.h \
	dapl/soft/rdmap/responder_place.c dapl/soft/rdmap/responder_place.h \
	dapl/soft/rdmap/unexpected.c dapl/soft/rdmap/unexpected.h \
	dapl/soft/rdmap/deliver.c dapl/soft/rdmap/deliver.h \
	dapl/soft/progress/progress.c dapl/soft/progress/progress.h \
	dapl/soft/progress/rings.c dapl/soft/progress/rings.h \
	dapl/soft/progress/acks.c dapl/soft/progress/acks.h \
	dapl/soft/progress/owner.c dapl/soft/progress/owner.h \
	dapl/soft/progress/owner_state.c dapl/soft/progress/owner_state.h \
	dapl/soft/eth/eth.c dapl/soft/eth/eth.h dapl/soft/eth/raw.h dapl/softeth/port.h \
	dapl/soft/eth/receive.c dapl/soft/eth/receive.h \
	dapl/soft/eth/pace.c dapl/soft/eth/pace.h \
	dapl/soft/eth/send.c dapl/soft/eth/send.h \
	dapl/soft/settings.c dapl/soft/settings.h

lib_LTLIBRARIES += libdaplsoft.la
libdaplsoft_la_SOURCES =
libdaplsoft_la_LIBADD = libdaplcore.la libdaplsoftdev.la libcommon.la libdat2.la
libdaplsoft_la_LDFLAGS = $(provider_ldflags) -Wl,--version-script=$(srcdir)/dapl/libdaplsoft.map

# Packet sockets for its raw Ethernet endpoints, loaded at the first of them.
noinst_LTLIBRARIES += libsofteth.la
libsofteth_la_SOURCES = \
	dapl/softeth/port.c dapl/softeth/port.h dapl/softeth/port_types.h \
	dapl/softeth/counters.c dapl/softeth/counters.h \
	dapl/softeth/receive.c dapl/softeth/receive.h \
	dapl/softeth/bpf.c dapl/softeth/bpf.h common/bpf_code.c common/bpf_code.h \
	dapl/softeth/change.c dapl/softeth/change.h \
	dapl/softeth/filter.c dapl/softeth/filter.h \
	dapl/softeth/filter_hash.c dapl/softeth/filter_hash.h \
	dapl/softeth/group.c dapl/softeth/group.h \
	dapl/softeth/ingress.c dapl/softeth/ingress.h \
	dapl/softeth/membership.c dapl/softeth/membership.h \
	dapl/softeth/place.c dapl/softeth/place.h \
	dapl/softeth/port_filter.c dapl/softeth/port_filter.h \
	dapl/softeth/match.c dapl/softeth/match.h \
	common/frame_layout.c common/frame_layout.h common/tunnel.c common/tunnel.h \
	dapl/softeth/packet_ring.c dapl/softeth/packet_ring.h \
	dapl/softeth/rule_find.c dapl/softeth/rule_find.h \
	dapl/softeth/rules.c dapl/softeth/rules.h \
	dapl/softeth/send.c dapl/softeth/send.h \
	dapl/softeth/spread.c dapl/softeth/spread.h \
	dapl/softeth/steer.c dapl/softeth/steer.h \
	dapl/softeth/steer_headers.c dapl/softeth/steer_headers.h \
	dapl/softeth/validate.c dapl/softeth/validate.h \
	dapl/softeth/xdp.c dapl/softeth/xdp.h \
	dapl/softeth/xsk.c dapl/softeth/xsk.h
lib_LTLIBRARIES += libdaplsoft-eth.la
libdaplsoft_eth_la_SOURCES =
libdaplsoft_eth_la_LIBADD = libsofteth.la libcommon.la
libdaplsoft_eth_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -no-undefined $(ZDEFS) -Wl,-z,now
