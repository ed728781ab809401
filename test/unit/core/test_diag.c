/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_diag.c - the text about a failed connection: addresses, steps, causes, hints.
 * test/life/diagnosis tests that there is one line, and when. */
#include "dapl/core/base/diag.h"
#include "test/unit/unit.h"

static struct sockaddr_storage four(const char *text, uint16_t port)
{
	struct sockaddr_storage address = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&address;

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	assert_int_equal(inet_pton(AF_INET, text, &in->sin_addr), 1);
	return address;
}

static struct sockaddr_storage six(const char *text, uint16_t port)
{
	struct sockaddr_storage address = { 0 };
	struct sockaddr_in6 *in = (struct sockaddr_in6 *)&address;

	in->sin6_family = AF_INET6;
	in->sin6_port = htons(port);
	assert_int_equal(inet_pton(AF_INET6, text, &in->sin6_addr), 1);
	return address;
}

static struct dapl_diag failed(enum dapl_diag_what what, enum dapl_conn_step step, int err)
{
	return (struct dapl_diag){ .ia = "ofa-v2-eth1", .what = what, .cause = { .step = step,
		.err = err, .local = four("192.0.2.2", 0), .remote = four("192.0.2.7", 45290) } };
}

static void expect(const struct dapl_diag *diag, enum log_id id, const char *expected)
{
	char text[DIAG_TEXT];

	assert_string_equal(dapl_diag_format(diag, text), expected);
	assert_int_equal(dapl_diag_id(diag), id);
}

/* Behind the hint may be the interface on the way, if this host has a route to the peer. */
UNIT_TEST(loopback_adapter_is_told_to_reach_this_host_only)
{
	static const char hint[] = "(ofa-v2-eth1 is on the loopback interface, which reaches this host only";
	struct dapl_diag d = failed(DIAG_CONNECT, DAPL_STEP_CONNECT, EINVAL);
	char text[DIAG_TEXT];

	assert_null(strstr(dapl_diag_format(&d, text), hint));
	d.cause.local = four("127.0.0.1", 0);
	assert_non_null(strstr(dapl_diag_format(&d, text), hint));
	d.cause.local = six("::1", 0);
	d.cause.remote = six("2001:db8::7", 45290);
	d.cause.err = ENETUNREACH;
	assert_non_null(strstr(dapl_diag_format(&d, text), hint));
	d.cause.remote = six("::1", 45290);
	assert_null(strstr(dapl_diag_format(&d, text), hint));
}

UNIT_TEST(lost_address_is_told)
{
	struct dapl_diag d = failed(DIAG_CONNECT, DAPL_STEP_CONNECT, EADDRNOTAVAIL);
	char text[DIAG_TEXT];

	d.cause.local = four("203.0.113.77", 0);
	assert_non_null(strstr(dapl_diag_format(&d, text), "(203.0.113.77 is no address of this host any more)"));
}

UNIT_TEST(durations_have_a_fitting_unit)
{
	struct dapl_diag d = failed(DIAG_CONNECT, DAPL_STEP_CONNECT, EIO);
	static const struct {
		uint64_t ns;
		const char *text;
	} rows[] = { { 9940000, " after 9.9 ms" }, { 12000000, " after 12 ms" },
		{ 999000000, " after 999 ms" }, { 1500000000, " after 1.5 s" }, { 0, "error" } };
	char text[DIAG_TEXT];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		d.elapsed_ns = rows[i].ns;
		dapl_diag_format(&d, text);
		assert_string_equal(text + strlen(text) - strlen(rows[i].text), rows[i].text);
	}
}

UNIT_TEST(each_step_has_its_text_and_hint)
{
	struct dapl_diag d = failed(DIAG_CONNECT, DAPL_STEP_RESOLVE_ADDRESS, ETIMEDOUT);

	expect(&d, REPORT_NO_ROUTE, "connect to 192.0.2.7 port 45290 from 192.0.2.2 (ofa-v2-eth1): "
	       "resolve address: connection timed out (does a host on this network have that "
	       "address?)");
	d.cause.err = ENODEV;
	expect(&d, REPORT_NO_ROUTE, "connect to 192.0.2.7 port 45290 from 192.0.2.2 (ofa-v2-eth1): "
	       "resolve address: no such device (no RDMA device has address 192.0.2.2)");
	d.cause.step = DAPL_STEP_CONNECT;
	d.cause.err = ETIMEDOUT;
	expect(&d, REPORT_TIMED_OUT, "connect to 192.0.2.7 port 45290 from 192.0.2.2 (ofa-v2-eth1): "
	       "connection timed out (is a firewall dropping port 45290?)");
	d.cause.step = DAPL_STEP_REPLY;
	d.cause.err = EMFILE;
	expect(&d, REPORT_NO_DESCRIPTORS, "connect to 192.0.2.7 port 45290 from 192.0.2.2 "
	       "(ofa-v2-eth1): reply: too many open files (see ulimit -n)");
}

UNIT_TEST(codes_have_names)
{
	struct dapl_diag d = failed(DIAG_CONNECT, DAPL_STEP_REPLY, 0);

	d.cause.code_kind = DAPL_CODE_IB_REJECT;
	d.cause.code = 8;
	expect(&d, REPORT_REFUSED, "connect to 192.0.2.7 port 45290 from 192.0.2.2 (ofa-v2-eth1): "
	       "reply: rejected: invalid service ID (8) (nobody listens there)");
	d.cause.code = 77;
	expect(&d, REPORT_REFUSED, "connect to 192.0.2.7 port 45290 from 192.0.2.2 (ofa-v2-eth1): "
	       "reply: rejected: code (77)");
	d = failed(DIAG_CONNECTION, DAPL_STEP_TRANSFER, 0);
	d.cause.code_kind = DAPL_CODE_TERMINATE_RECEIVED;
	d.cause.code = 0x0102;
	expect(&d, REPORT_CONNECTION_BROKEN, "connection to 192.0.2.7 port 45290 from 192.0.2.2 "
	       "(ofa-v2-eth1): transfer: Terminate received: remote access: no such right (0/1/2) "
	       "(compare RMR context, range and access rights with the peer's LMR)");
	d.cause.code_kind = DAPL_CODE_COMPLETION;
	d.cause.code = IBV_WC_RNR_RETRY_EXC_ERR;
	expect(&d, REPORT_CONNECTION_BROKEN, "connection to 192.0.2.7 port 45290 from 192.0.2.2 "
	       "(ofa-v2-eth1): transfer: receiver-not-ready retries exhausted (13) (the peer has "
	       "posted no receive)");
}

UNIT_TEST(cm_status_is_printed_once)
{
	struct dapl_diag d = failed(DIAG_CONNECT, DAPL_STEP_REPLY, ECONNRESET);

	d.cause.code_kind = DAPL_CODE_CM_STATUS;
	d.cause.code = (unsigned)-ECONNRESET;
	expect(&d, REPORT_CONNECT_FAILED, "connect to 192.0.2.7 port 45290 from 192.0.2.2 "
	       "(ofa-v2-eth1): reply: connection reset by peer");
	d.cause.err = 0;
	d.cause.code = 5;
	expect(&d, REPORT_CONNECT_FAILED, "connect to 192.0.2.7 port 45290 from 192.0.2.2 "
	       "(ofa-v2-eth1): reply: CM status 5");
}

UNIT_TEST(addresses_of_both_families_and_sides_are_printed)
{
	struct dapl_diag d = failed(DIAG_ACCEPT, DAPL_STEP_ACCEPT, EPIPE);

	d.cause.local = six("2001:db8::1", 7000);
	d.cause.remote = six("2001:db8::2", 40000);
	expect(&d, REPORT_CONNECT_FAILED, "accept from 2001:db8::2 port 40000 at 2001:db8::1 port "
	       "7000 (ofa-v2-eth1): broken pipe");
	d.ud = true;
	d.cause.local.ss_family = AF_UNSPEC;
	expect(&d, REPORT_CONNECT_FAILED, "UD accept from 2001:db8::2 port 40000 at ? "
	       "(ofa-v2-eth1): broken pipe");
}

UNIT_TEST(unknown_cause_is_named_unknown)
{
	struct dapl_diag d = failed(DIAG_CONNECTION, DAPL_STEP_TRANSFER, 0);

	expect(&d, REPORT_CONNECTION_BROKEN, "connection to 192.0.2.7 port 45290 from 192.0.2.2 "
	       "(ofa-v2-eth1): transfer: unknown cause");
}

UNIT_TEST(a_long_line_is_cut)
{
	struct dapl_diag d = failed(DIAG_CONNECT, DAPL_STEP_CONNECT, ECONNREFUSED);
	char name[2 * DIAG_TEXT], text[DIAG_TEXT + 1];

	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	text[DIAG_TEXT] = '#';
	d.ia = name;
	dapl_diag_format(&d, text);
	assert_int_equal(strlen(text), DIAG_TEXT - 1);
	assert_int_equal(text[DIAG_TEXT], '#');
}

UNIT_MAIN(NULL, NULL)
