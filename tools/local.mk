# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Consumers: the public headers and libdat2; of this tree the headers of common/ that test/lint/layers lists.
# The commit that is built. Its file changes only when the commit does, so that version.c alone is compiled again.
noinst_LTLIBRARIES += libversion.la
libversion_la_SOURCES = tools/version.c tools/version.h
tools/version.lo: tools/commit.h
tools/commit.h: FORCE
	$(AM_V_at)$(MKDIR_P) tools && $(srcdir)/tools/commit $(srcdir) $@
FORCE:
.PHONY: FORCE
CLEANFILES += tools/commit.h
EXTRA_DIST += tools/commit
dist-hook: dist-commit
.PHONY: dist-commit
dist-commit:
	commit=`$(srcdir)/tools/commit $(srcdir)` && { test -z "$$commit" || echo "$$commit" > $(distdir)/COMMIT; }

bin_PROGRAMS += datperf
datperf_SOURCES = \
	tools/datperf/main.c \
	tools/datperf/adapter.c tools/datperf/adapter.h \
	tools/datperf/baseline.c tools/datperf/baseline.h \
	tools/datperf/baseline_verbs.c tools/datperf/baseline_verbs.h \
	tools/datperf/compare.c tools/datperf/compare.h \
	tools/datperf/connect.c tools/datperf/connect.h \
	tools/datperf/datagrams.c tools/datperf/datagrams.h \
	tools/datperf/exchange.c tools/datperf/exchange.h \
	tools/datperf/group.c tools/datperf/group.h \
	tools/datperf/heatmap.c \
	tools/datperf/hosts.c tools/datperf/hosts.h \
	tools/datperf/limits.c tools/datperf/limits.h \
	tools/datperf/link.c tools/datperf/link.h \
	tools/datperf/matrix.c tools/datperf/matrix.h \
	tools/datperf/measure.c tools/datperf/measure.h \
	tools/datperf/options.c tools/datperf/options.h \
	tools/datperf/origin.c tools/datperf/origin.h \
	tools/datperf/patience.c tools/datperf/patience.h \
	tools/datperf/plot.c tools/datperf/plot.h \
	tools/datperf/report.c tools/datperf/report.h \
	tools/datperf/serve.c \
	tools/datperf/side.c tools/datperf/side.h \
	tools/datperf/stats.c tools/datperf/stats.h \
	tools/datperf/target.c tools/datperf/target.h \
	tools/datperf/tcp.c tools/datperf/tcp.h \
	tools/datperf/transfer.c \
	tools/datperf/usage.c tools/datperf/usage.h \
	tools/datperf/whole_file.c tools/datperf/whole_file.h \
	tools/call.c tools/call.h \
	tools/ia_choice.c tools/ia_choice.h \
	common/nearest.c common/nearest.h common/variables.h \
	tools/libverbs.c tools/libverbs.h \
	tools/messages.c tools/messages.h common/log_handler.h \
	tools/cli.c tools/cli.h \
	tools/names.c tools/names.h
datperf_CPPFLAGS = $(AM_CPPFLAGS)
datperf_LDADD = libversion.la libdat2.la -lpthread -lm -ldl
# The carrier is asked of the control socket, which needs jansson.
if DATINFO
datperf_SOURCES += tools/datperf/carrier.c tools/datperf/carrier.h tools/control/client.c tools/control/client.h \
	tools/parse_json.c tools/parse_json.h
datperf_CPPFLAGS += -DDATPERF_CARRIER=1 $(JANSSON_CFLAGS)
datperf_LDADD += $(JANSSON_LIBS)
else
EXTRA_DIST += tools/datperf/carrier.c tools/datperf/carrier.h
endif
dist_man_MANS += doc/man/datperf.1

# Needs jansson.
if DATINFO
bin_PROGRAMS += datinfo
datinfo_SOURCES = \
	tools/info/datinfo.c \
	tools/info/adapters.c tools/info/adapters.h \
	tools/info/anonymous.c tools/info/anonymous.h \
	tools/info/attributes.c tools/info/attributes.h \
	tools/info/await.c tools/info/await.h \
	tools/info/conf_file.c tools/info/conf_file.h \
	tools/info/device_views.c tools/info/device_views.h \
	tools/info/devices.c tools/info/devices.h \
	tools/info/verbs.c tools/info/verbs.h \
	tools/info/environment.c tools/info/environment.h \
	tools/info/network.h \
	tools/info/output.c tools/info/output.h \
	tools/info/ports.c tools/info/ports.h \
	tools/info/probe.c tools/info/probe.h \
	tools/info/remedy.c tools/info/remedy.h \
	tools/info/report.c tools/info/report.h \
	tools/control/run.c tools/control/run.h \
	tools/info/system.c tools/info/system.h \
	tools/info/programs.c tools/info/programs.h \
	tools/info/screen.c tools/info/screen.h \
	tools/info/metrics.c tools/info/metrics.h \
	tools/info/timeline.c tools/info/timeline.h \
	tools/info/trace_file.c tools/info/trace_file.h \
	tools/info/top.c tools/info/top.h \
	tools/info/top_rows.c tools/info/top_rows.h \
	tools/info/traffic.c tools/info/traffic.h \
	tools/info/users.c tools/info/users.h \
	tools/info/listeners.h tools/control/rdma_objects.h \
	tools/control/client.c tools/control/client.h tools/parse_json.c tools/parse_json.h \
	tools/control/owner.c tools/control/owner.h \
	tools/libverbs.c tools/libverbs.h \
	tools/cli.c tools/cli.h \
	tools/names.c tools/names.h
datinfo_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
datinfo_LDADD = libversion.la libdat2.la libcommon.la $(JANSSON_LIBS)
if NET
datinfo_SOURCES += \
	tools/info/monitor.c tools/info/monitor.h \
	tools/info/routes.c tools/info/routes.h \
	tools/info/listeners.c \
	tools/control/rdma_objects.c \
	tools/control/netlink.c tools/control/netlink.h
datinfo_CPPFLAGS += -DTOOLS_NET=1 $(LIBNL_CFLAGS)
datinfo_LDADD += libdatnet.la $(LIBNL_LIBS)
endif
# datinfo --metrics --listen.
if LIBEVENT
datinfo_SOURCES += tools/info/metrics_http.c
datinfo_CPPFLAGS += -DTOOLS_HTTP=1 $(LIBEVENT_CFLAGS)
datinfo_LDADD += $(LIBEVENT_LIBS)
endif
dist_man_MANS += doc/man/datinfo.1

# datctl for devices that exist from the start of the system on.
units = tools/units/dapl-rxe@.service tools/units/dapl-siw@.service
if SOCK
units += tools/units/datsockd.service
endif
EXTRA_DIST += tools/units/dapl-rxe@.service.in tools/units/dapl-siw@.service.in tools/units/datsockd.service.in
nodist_systemdsystemunit_DATA = $(units)
CLEANFILES += $(units)
$(units): %: %.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed 's,@bindir[@],$(bindir),; s,@sbindir[@],$(sbindir),' $(srcdir)/$@.in > $@.new && mv $@.new $@

bin_PROGRAMS += datctl
datctl_SOURCES = \
	tools/ctl/datctl.c tools/ctl/ctl.h \
	tools/ctl/parameters.c \
	tools/ctl/persist.c \
	tools/ctl/links.c \
	tools/control/client.c tools/control/client.h tools/parse_json.c tools/parse_json.h \
	tools/control/owner.c tools/control/owner.h \
	tools/control/run.c tools/control/run.h \
	tools/control/rdma_objects.h \
	tools/info/output.c tools/info/output.h \
	tools/info/system.c tools/info/system.h \
	common/address.c common/address.h common/local_addresses.c common/local_addresses.h common/rtnl.c common/rtnl.h \
	common/control.h common/nearest.c common/nearest.h common/variables.h \
	common/parameter_range.c common/parameter_range.h \
	tools/messages.c tools/messages.h common/log_handler.h \
	tools/cli.c tools/cli.h \
	tools/names.c tools/names.h
datctl_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
datctl_LDADD = libversion.la libdat2.la $(JANSSON_LIBS) -ldl
if NET
datctl_SOURCES += tools/control/rdma_objects.c tools/control/netlink.c tools/control/netlink.h
datctl_CPPFLAGS += -DTOOLS_NET=1 $(LIBNL_CFLAGS)
datctl_LDADD += $(LIBNL_LIBS)
endif
dist_man_MANS += doc/man/datctl.1
if CMOCKA
check_PROGRAMS += test/unit/tools/test_owner
TESTS += test/unit/tools/test_owner
test_unit_tools_test_owner_SOURCES = test/unit/tools/test_owner.c tools/control/owner.c tools/info/output.c tools/cli.c
test_unit_tools_test_owner_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
test_unit_tools_test_owner_LDADD = $(CMOCKA_LIBS) $(JANSSON_LIBS)
endif
else
EXTRA_DIST += doc/man/datinfo.1 doc/man/datctl.1
endif

# What `datcap rdma --wireshark` writes.
wireshark_profile = tools/datcap/wireshark/dapl.lua tools/datcap/wireshark/preferences \
	tools/datcap/wireshark/heuristic_protos
EXTRA_DIST += $(wireshark_profile)

# Needs libpcap, jansson and libnl-route-3.
if DATCAP
bin_PROGRAMS += datcap
datcap_SOURCES = \
	tools/datcap/main.c tools/datcap/datcap.h \
	tools/datcap/options.c tools/datcap/options.h tools/datcap/stop.c tools/datcap/stop.h \
	tools/datcap/capture.c tools/datcap/lines.c tools/datcap/lines.h \
	tools/datcap/dissect.c tools/datcap/dissect.h common/tunnel.c common/tunnel.h \
	tools/datcap/devices.c \
	tools/datcap/replay.c \
	tools/datcap/frame_file.c tools/datcap/frame_file.h \
	tools/datcap/pcapng_read.c tools/datcap/pcapng_read.h \
	tools/datcap/make.c \
	tools/datcap/send.c tools/datcap/send.h \
	tools/datcap/default_route.c tools/datcap/default_route.h \
	tools/datcap/frame_parse.c tools/datcap/frame_build.c tools/datcap/sum16.h tools/datcap/frame.h \
	tools/datcap/caps.c \
	tools/datcap/device.c tools/datcap/device.h tools/ia_choice.c tools/ia_choice.h \
	tools/datcap/output.c tools/datcap/output.h tools/datcap/vlan.h \
	tools/datcap/writer.c tools/datcap/writer.h \
	tools/datcap/print.c tools/datcap/print.h \
	tools/datcap/pcapng.c tools/datcap/pcapng.h \
	tools/datcap/rule.c tools/datcap/rule.h \
	tools/datcap/filter_rules.c tools/datcap/filter_rules.h \
	tools/datcap/capture_report.c tools/datcap/capture_report.h tools/datcap/capture_types.h \
	tools/datcap/frame_filter.c tools/datcap/frame_filter.h \
	tools/datcap/rdma.c \
	tools/datcap/iwarp.c tools/datcap/iwarp.h \
	tools/datcap/roce.c tools/datcap/roce.h \
	tools/datcap/wireshark.c tools/datcap/wireshark.h \
	tools/datcap/flow.c tools/datcap/flow.h \
	tools/datcap/crc.c tools/datcap/crc.h \
	tools/datcap/taps.c tools/datcap/taps.h tools/datcap/tap_record.h \
	tools/datcap/tick_clock.c tools/datcap/tick_clock.h \
	tools/datcap/lease.c tools/datcap/lease.h \
	tools/control/client.c tools/control/client.h tools/parse_json.c tools/parse_json.h common/tap.h common/clock.h common/ticks.h \
	common/interface.c common/interface.h \
	tools/messages.c tools/messages.h common/log_handler.h \
	tools/cli.c tools/cli.h \
	tools/names.c tools/names.h
nodist_datcap_SOURCES = tools/datcap/wireshark_files.c
# The files of the profile, as strings of C.
tools/datcap/wireshark_files.c: $(wireshark_profile)
	$(AM_V_GEN)$(MKDIR_P) tools/datcap; \
	{ echo '#include "tools/datcap/wireshark.h"'; echo 'const struct wireshark_file wireshark_files[] = {'; \
	for name in $(wireshark_profile); do file=$$name; test -f $$file || file=$(srcdir)/$$name; \
		echo "{ \"`basename $$name`\","; sed 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$$/\\n"/' $$file || exit 1; echo '},'; done; \
	echo '{ 0, 0 } };'; } >$@.tmp && mv $@.tmp $@
CLEANFILES += tools/datcap/wireshark_files.c
datcap_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(PCAP_CFLAGS) $(LIBNL_CFLAGS)
datcap_LDADD = libversion.la libdat2.la $(JANSSON_LIBS) $(PCAP_LIBS) $(LIBNL_LIBS) -lpthread -ldl
dist_man_MANS += doc/man/datcap.1
if CMOCKA
check_PROGRAMS += test/unit/tools/test_pcapng
TESTS += test/unit/tools/test_pcapng
test_unit_tools_test_pcapng_SOURCES = test/unit/tools/test_pcapng.c tools/datcap/pcapng.c
test_unit_tools_test_pcapng_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(PCAP_CFLAGS)
test_unit_tools_test_pcapng_LDADD = $(CMOCKA_LIBS) $(PCAP_LIBS)
check_PROGRAMS += test/unit/tools/test_dissect
TESTS += test/unit/tools/test_dissect
test_unit_tools_test_dissect_SOURCES = test/unit/tools/test_dissect.c tools/datcap/dissect.c common/tunnel.c
test_unit_tools_test_dissect_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_tools_test_dissect_LDADD = $(CMOCKA_LIBS)
check_PROGRAMS += test/unit/tools/test_pcapng_read
TESTS += test/unit/tools/test_pcapng_read
test_unit_tools_test_pcapng_read_SOURCES = test/unit/tools/test_pcapng_read.c tools/datcap/pcapng_read.c
test_unit_tools_test_pcapng_read_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_tools_test_pcapng_read_LDADD = $(CMOCKA_LIBS)
check_PROGRAMS += test/unit/tools/test_filter_rules
TESTS += test/unit/tools/test_filter_rules
test_unit_tools_test_filter_rules_SOURCES = test/unit/tools/test_filter_rules.c tools/datcap/filter_rules.c \
	tools/datcap/rule.c $(softeth_frames)
test_unit_tools_test_filter_rules_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(PCAP_CFLAGS)
test_unit_tools_test_filter_rules_LDADD = libsofteth.la libcommon.la $(CMOCKA_LIBS) $(PCAP_LIBS)
check_PROGRAMS += test/unit/tools/test_anonymous
TESTS += test/unit/tools/test_anonymous
test_unit_tools_test_anonymous_SOURCES = test/unit/tools/test_anonymous.c tools/info/anonymous.c tools/cli.c
test_unit_tools_test_anonymous_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_tools_test_anonymous_LDADD = $(CMOCKA_LIBS)
check_PROGRAMS += test/unit/tools/test_parse_json
TESTS += test/unit/tools/test_parse_json
test_unit_tools_test_parse_json_SOURCES = test/unit/tools/test_parse_json.c tools/parse_json.c tools/cli.c
test_unit_tools_test_parse_json_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
test_unit_tools_test_parse_json_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc
test_unit_tools_test_parse_json_LDADD = $(CMOCKA_LIBS) $(JANSSON_LIBS)
check_PROGRAMS += test/unit/tools/test_lease
TESTS += test/unit/tools/test_lease
test_unit_tools_test_lease_SOURCES = test/unit/tools/test_lease.c tools/datcap/lease.c tools/cli.c
test_unit_tools_test_lease_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
test_unit_tools_test_lease_LDADD = $(CMOCKA_LIBS) $(JANSSON_LIBS) -lpthread
check_PROGRAMS += test/unit/tools/test_rdma
TESTS += test/unit/tools/test_rdma
test_unit_tools_test_rdma_SOURCES = test/unit/tools/test_rdma.c tools/datcap/rdma.c tools/datcap/flow.c \
	tools/datcap/iwarp.c tools/datcap/roce.c tools/datcap/crc.c tools/datcap/output.c \
	tools/datcap/print.c tools/datcap/pcapng.c tools/cli.c
test_unit_tools_test_rdma_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
test_unit_tools_test_rdma_LDADD = libdat2.la $(CMOCKA_LIBS) $(JANSSON_LIBS) -lpthread
check_PROGRAMS += test/unit/tools/test_taps
TESTS += test/unit/tools/test_taps
test_unit_tools_test_taps_SOURCES = test/unit/tools/test_taps.c tools/datcap/taps.c tools/datcap/tick_clock.c tools/cli.c
test_unit_tools_test_taps_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
test_unit_tools_test_taps_LDADD = $(CMOCKA_LIBS) $(JANSSON_LIBS)
endif
else
EXTRA_DIST += doc/man/datcap.1
endif

if CMOCKA
check_PROGRAMS += test/unit/tools/test_datperf_stats
TESTS += test/unit/tools/test_datperf_stats
test_unit_tools_test_datperf_stats_SOURCES = test/unit/tools/test_datperf_stats.c tools/datperf/stats.c
test_unit_tools_test_datperf_stats_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
test_unit_tools_test_datperf_stats_LDADD = $(CMOCKA_LIBS)
endif

if NET
if DATINFO
if CMOCKA
check_PROGRAMS += test/unit/tools/test_netlink_answers
TESTS += test/unit/tools/test_netlink_answers
test_unit_tools_test_netlink_answers_SOURCES = test/unit/tools/test_netlink_answers.c \
	tools/info/listeners.c tools/control/rdma_objects.c tools/control/netlink.c \
	tools/control/client.c tools/parse_json.c tools/info/output.c tools/cli.c
test_unit_tools_test_netlink_answers_CPPFLAGS = $(AM_CPPFLAGS) -DTOOLS_NET=1 $(CMOCKA_CFLAGS) \
	$(JANSSON_CFLAGS) $(LIBNL_CFLAGS)
test_unit_tools_test_netlink_answers_LDADD = $(CMOCKA_LIBS) $(JANSSON_LIBS) $(LIBNL_LIBS)
endif
endif
endif

include tools/dtest/local.mk
include tools/dapltest/local.mk
include tools/ping/local.mk

# Loaded by bash-completion when the first word is the name of the file.
completiondir = $(datadir)/bash-completion/completions
dist_completion_DATA = tools/completion/datperf
completed = datinfo datping datctl datcap datsock dtest dapltest
install_exec_hooks += link-completions
link-completions:
	$(MKDIR_P) $(DESTDIR)$(completiondir)
	cd $(DESTDIR)$(completiondir) && for tool in $(completed); do tool=`echo $$tool | sed '$(transform)'`; \
		rm -f $$tool && $(LN_S) datperf $$tool || exit 1; done
uninstall_hooks += unlink-completions
unlink-completions:
	for tool in $(completed); do rm -f $(DESTDIR)$(completiondir)/`echo $$tool | sed '$(transform)'`; done
