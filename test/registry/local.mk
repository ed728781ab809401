# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The registry as programs and providers see it: scenarios in processes of their own, on
# mock providers. Needs no device.
EXTRA_DIST += test/registry/fixtures

if CMOCKA
registry_modules = \
	test/registry/mock.la \
	test/registry/no_fini.la \
	test/registry/opens_in_constructor.la \
	test/registry/plugin.la
check_LTLIBRARIES += $(registry_modules)
registry_module_flags = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
# Like other people's providers, not linked to libdat2.
test_registry_mock_la_SOURCES = test/registry/mock.c
test_registry_mock_la_LDFLAGS = $(registry_module_flags)
test_registry_no_fini_la_SOURCES = test/registry/no_fini.c
test_registry_no_fini_la_LDFLAGS = $(registry_module_flags)
test_registry_opens_in_constructor_la_SOURCES = test/registry/opens_in_constructor.c
test_registry_opens_in_constructor_la_LDFLAGS = $(registry_module_flags)
test_registry_opens_in_constructor_la_LIBADD = libdat2.la
test_registry_plugin_la_SOURCES = test/registry/plugin.c
test_registry_plugin_la_LDFLAGS = $(registry_module_flags)
test_registry_plugin_la_LIBADD = libdat2.la

registry_tests = \
	test/registry/test_conf \
	test/registry/test_devices \
	test/registry/test_ia \
	test/registry/test_calls \
	test/registry/test_providers \
	test/registry/test_reread \
	test/registry/test_threads \
	test/registry/test_load
check_PROGRAMS += $(registry_tests)
TESTS += $(registry_tests)

registry_cppflags = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) \
	-DFIXTURES='"$(abs_top_srcdir)/test/registry/fixtures"' \
	-DMODULES='"$(abs_top_builddir)/test/registry/.libs"' \
	-DSHIPPED_CONF='"$(abs_top_srcdir)/etc/dat.conf"' \
	-DSYSCONFDIR='"$(sysconfdir)"' \
	-DLIBDAT2='"$(abs_top_builddir)/.libs/libdat2.so.2"'
registry_ldflags = $(AM_LDFLAGS) -export-dynamic
registry_ldadd = libdat2.la $(CMOCKA_LIBS)
scenario = test/registry/scenario.c test/registry/scenario.h test/registry/program.c

test_registry_test_conf_SOURCES = test/registry/test_conf.c $(scenario)
test_registry_test_conf_CPPFLAGS = $(registry_cppflags)
test_registry_test_conf_LDFLAGS = $(registry_ldflags)
test_registry_test_conf_LDADD = $(registry_ldadd)
EXTRA_test_registry_test_conf_DEPENDENCIES = $(registry_modules)

test_registry_test_devices_SOURCES = test/registry/test_devices.c $(scenario)
test_registry_test_devices_CPPFLAGS = $(registry_cppflags)
test_registry_test_devices_LDFLAGS = $(registry_ldflags)
test_registry_test_devices_LDADD = $(registry_ldadd)
EXTRA_test_registry_test_devices_DEPENDENCIES = $(registry_modules)

test_registry_test_reread_SOURCES = test/registry/test_reread.c $(scenario)
test_registry_test_reread_CPPFLAGS = $(registry_cppflags)
test_registry_test_reread_LDFLAGS = $(registry_ldflags)
test_registry_test_reread_LDADD = $(registry_ldadd)
EXTRA_test_registry_test_reread_DEPENDENCIES = $(registry_modules)

test_registry_test_ia_SOURCES = test/registry/test_ia.c $(scenario)
test_registry_test_ia_CPPFLAGS = $(registry_cppflags)
test_registry_test_ia_LDFLAGS = $(registry_ldflags)
test_registry_test_ia_LDADD = $(registry_ldadd)
EXTRA_test_registry_test_ia_DEPENDENCIES = $(registry_modules)

test_registry_test_calls_SOURCES = test/registry/test_calls.c $(scenario)
test_registry_test_calls_CPPFLAGS = $(registry_cppflags)
test_registry_test_calls_LDFLAGS = $(registry_ldflags)
test_registry_test_calls_LDADD = $(registry_ldadd)
EXTRA_test_registry_test_calls_DEPENDENCIES = $(registry_modules)

test_registry_test_providers_SOURCES = test/registry/test_providers.c $(scenario)
test_registry_test_providers_CPPFLAGS = $(registry_cppflags)
test_registry_test_providers_LDFLAGS = $(registry_ldflags)
test_registry_test_providers_LDADD = $(registry_ldadd)
EXTRA_test_registry_test_providers_DEPENDENCIES = $(registry_modules)

test_registry_test_threads_SOURCES = test/registry/test_threads.c $(scenario)
test_registry_test_threads_CPPFLAGS = $(registry_cppflags)
test_registry_test_threads_LDFLAGS = $(registry_ldflags)
test_registry_test_threads_LDADD = $(registry_ldadd)
EXTRA_test_registry_test_threads_DEPENDENCIES = $(registry_modules)

# Not linked to libdat2, which it loads and unloads.
test_registry_test_load_SOURCES = test/registry/test_load.c test/registry/scenario.c
test_registry_test_load_CPPFLAGS = $(registry_cppflags)
test_registry_test_load_LDFLAGS = $(registry_ldflags)
test_registry_test_load_LDADD = $(CMOCKA_LIBS)
EXTRA_test_registry_test_load_DEPENDENCIES = libdat2.la $(registry_modules)
endif
