/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_local_address.c - which local address the ia_params of an entry select for the software device, and the line
 * about why there is none (dapl/soft/local_address.c). Interfaces, memory, the name of the host and the name server are
 * replaced here. */
#include <linux/if_addr.h>
#include <netdb.h>
#include "common/address.h"
#include "dapl/soft/local_address.h"
#include "test/unit/interfaces.h"
#include "test/unit/reported.h"
#include "test/unit/unit.h"

static unsigned questions;			/* to the name server */
static bool no_memory;				/* for strndup */

/* --- what is replaced ---------------------------------------------------------------------------------------- */

EXTEND(getaddrinfo, strndup)

/* The name server knows two names, both of 10.0.0.1. */
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	struct in6_addr digits;

	if (inet_pton(AF_INET, name, &digits) == 1 || inet_pton(AF_INET6, name, &digits) == 1)
		return __real_getaddrinfo(name, service, hints, found);
	questions++;
	if (strcmp(name, "thishost") && strcmp(name, "host.example"))
		return EAI_NONAME;
	return __real_getaddrinfo("10.0.0.1", service, hints, found);
}

char *__wrap_strndup(const char *text, size_t length) { return no_memory ? NULL : __real_strndup(text, length); }

/* --- fixture ------------------------------------------------------------------------------------------------- */

UNIT_FIXTURE(clear)
{
	clear_interfaces();
	no_memory = false;
}

static void assert_found(const char *params, const char *netdev, const char *text)
{
	struct sockaddr_storage address;
	char found[IF_NAMESIZE], at[INET6_ADDRSTRLEN];

	reported.lines = 0;
	memset(&address, 0xee, sizeof address);
	assert_int_equal(soft_local_address_find(params, &address, found), 0);
	assert_int_equal(reported.lines, 0);
	assert_int_equal(sockets_open, 0);
	assert_string_equal(found, netdev);
	assert_int_equal(address_port((struct sockaddr *)&address), 0);
	assert_int_equal(address.ss_family, strchr(text, ':') ? AF_INET6 : AF_INET);
	assert_non_null(inet_ntop(address.ss_family,
				  address.ss_family == AF_INET ? (void *)&((struct sockaddr_in *)&address)->sin_addr :
				  (void *)&((struct sockaddr_in6 *)&address)->sin6_addr, at, sizeof at));
	assert_string_equal(at, text);
}

/* One line, which ends with `end`. */
static void assert_none(const char *params, int err, enum log_id id, const char *end)
{
	struct sockaddr_storage address;
	char found[IF_NAMESIZE];

	reported.lines = 0;
	assert_int_equal(soft_local_address_find(params, &address, found), err);
	assert_int_equal(reported.lines, 1);
	assert_int_equal(reported.id, id);
	assert_in_range(strlen(end), 1, strlen(reported.text));
	assert_string_equal(reported.text + strlen(reported.text) - strlen(end), end);
}

#define CASE(name) UNIT_TEST_WITH(name, clear, NULL)

/* --- interfaces ---------------------------------------------------------------------------------------------- */

CASE(ipv4_address_of_an_interface_is_preferred)
{
	add_interface("lo", IFF_UP, "127.0.0.1");
	add_interface("eth0", IFF_UP, "fe80::1");
	add_interface("eth0", IFF_UP, "2001:db8::1");
	add_interface("eth0", IFF_UP, "10.0.0.1");
	add_interface("eth0", IFF_UP, "10.0.0.2");
	assert_found("eth0 0", "eth0", "10.0.0.1");
	keep_interfaces(3);
	assert_found("eth0 0", "eth0", "2001:db8::1");
	keep_interfaces(2);
	assert_found("eth0 0 eth_qdisc=bypass", "eth0", "fe80::1");
}

CASE(without_a_name_a_running_interface_is_preferred_to_loopback)
{
	add_interface("lo", IFF_UP | IFF_RUNNING | IFF_LOOPBACK, "127.0.0.1");
	add_interface("down0", IFF_RUNNING, "10.0.0.1");
	add_interface("idle0", IFF_UP, "10.0.0.2");
	assert_found("", "lo", "127.0.0.1");
	add_interface("eth0", IFF_UP | IFF_RUNNING, "fe80::1");
	assert_found("", "eth0", "fe80::1");
	add_interface("eth1", IFF_UP | IFF_RUNNING, "10.0.1.1");
	add_interface("eth2", IFF_UP | IFF_RUNNING, "10.0.2.1");
	assert_found("  ", "eth1", "10.0.1.1");
}

CASE(raw_interface_needs_no_address)
{
	struct sockaddr_storage address;
	struct sockaddr_in *at = (struct sockaddr_in *)&address;
	char found[IF_NAMESIZE];

	add_interface("eth0", IFF_UP, NULL);
	add_alternative_name("capture0");
	reported.lines = 0;
	memset(&address, 0xee, sizeof address);
	assert_int_equal(soft_local_address_find("raw:eth0 0", &address, found), 0);
	assert_int_equal(reported.lines, 0);
	assert_string_equal(found, "eth0");
	assert_int_equal(soft_local_address_find("raw:capture0 0", &address, found), 0);
	assert_string_equal(found, "eth0");
	assert_int_equal(at->sin_family, AF_INET);
	assert_int_equal(at->sin_port, 0);
	assert_int_equal(at->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	assert_none("raw:eth1 0", ENODEV, REPORT_NO_ADDRESS, "\"raw:eth1\": no such interface");
}

CASE(interface_is_found_by_each_of_its_names)
{
	add_interface("eth0", IFF_UP, "10.0.0.1");
	set_label("eth0:vip");
	add_interface("eth1", IFF_UP, "10.0.1.1");
	add_alternative_name("storage0");
	add_interface("eth1", IFF_UP, "10.0.1.2");
	set_label("eth1:0");
	add_interface("eth2", IFF_UP, "10.0.2.1");
	add_alternative_name("a-name-longer-than-the-fifteen-bytes-of-ifr_name");
	add_interface("eth3", IFF_UP, "10.0.3.1");
	set_label("eth0");		/* the kernel takes any label */
	assert_found("eth0 0", "eth0", "10.0.0.1");
	assert_found("eth0:vip 0", "eth0", "10.0.0.1");
	assert_found("storage0 0", "eth1", "10.0.1.1");
	assert_found("eth1:0 0", "eth1", "10.0.1.2");
	assert_found("a-name-longer-than-the-fifteen-bytes-of-ifr_name 0", "eth2", "10.0.2.1");
	assert_none("storage 0", ENODEV, REPORT_NO_ADDRESS, ": no such interface or local address");
	assert_none("eth0:vi 0", ENODEV, REPORT_NO_ADDRESS, ": no such interface or local address");
}

CASE(usable_address_that_stays_is_preferred)
{
	add_interface("eth0", IFF_UP | IFF_RUNNING, "2001:db8::1");
	set_address_flags(IFA_F_TENTATIVE);
	assert_found("eth0 0", "eth0", "2001:db8::1");	/* it may become usable */
	add_interface("eth0", IFF_UP | IFF_RUNNING, "2001:db8::2");
	set_address_flags(IFA_F_DADFAILED | IFA_F_PERMANENT);
	add_interface("eth0", IFF_UP | IFF_RUNNING, "fe80::1");
	assert_found("eth0 0", "eth0", "fe80::1");
	add_interface("eth0", IFF_UP | IFF_RUNNING, "2001:db8::3");
	set_address_flags(IFA_F_DEPRECATED);
	assert_found("eth0 0", "eth0", "2001:db8::3");
	add_interface("eth0", IFF_UP | IFF_RUNNING, "2001:db8::4");
	set_address_flags(IFA_F_TEMPORARY);
	assert_found("eth0 0", "eth0", "2001:db8::4");
	add_interface("eth0", IFF_UP | IFF_RUNNING, "2001:db8::5");
	set_address_flags(IFA_F_TENTATIVE | IFA_F_OPTIMISTIC);
	assert_found("eth0 0", "eth0", "2001:db8::5");
	assert_found("", "eth0", "2001:db8::5");
	assert_found("2001:db8::2 0", "eth0", "2001:db8::2");
}

CASE(without_a_name_no_unusable_address_is_preferred)
{
	add_interface("lo", IFF_UP | IFF_RUNNING | IFF_LOOPBACK, "127.0.0.1");
	add_interface("eth0", IFF_UP | IFF_RUNNING, "2001:db8::1");
	set_address_flags(IFA_F_DADFAILED | IFA_F_TENTATIVE);
	assert_found("", "lo", "127.0.0.1");
}

CASE(of_equal_addresses_the_usable_is_taken)
{
	add_interface("down0", 0, "10.0.0.1");
	add_interface("eth0", IFF_UP, "10.0.0.1");
	assert_found("10.0.0.1 0", "eth0", "10.0.0.1");
	keep_interfaces(1);
	assert_found("10.0.0.1 0", "down0", "10.0.0.1");
}

/* --- addresses and names ------------------------------------------------------------------------------------- */

CASE(address_is_that_of_its_interface)
{
	add_interface("bare0", IFF_UP, NULL);
	add_interface("eth0", IFF_UP, "10.0.0.1");
	add_interface("eth1", IFF_UP, "2001:db8::1");
	questions = 0;
	assert_found("10.0.0.1 0", "eth0", "10.0.0.1");
	assert_found("2001:db8::1 0", "eth1", "2001:db8::1");
	assert_int_equal(questions, 0);
}

CASE(names_of_this_host_are_looked_up)
{
	add_interface("eth0", IFF_UP, "10.0.0.1");
	questions = 0;
	assert_found("thishost 0", "eth0", "10.0.0.1");
	assert_found("host.example 0", "eth0", "10.0.0.1");
	assert_int_equal(questions, 2);
	assert_none("nosuch.example 0", ENODEV, REPORT_NO_ADDRESS, ": no such interface or local address");
	assert_int_equal(questions, 3);
	assert_none("eth1 0", ENODEV, REPORT_NO_ADDRESS, ": no such interface or local address");
	assert_int_equal(questions, 3);		/* it may be the name of an absent interface */
}

/* --- why there is none --------------------------------------------------------------------------------------- */

CASE(line_tells_why_there_is_no_address)
{
	static const struct { const char *params, *end; } cases[] = {
		{ "", "ia_params \"\": no such interface: none that is up has an IP address" },
		{ "bare0 0", "ia_params \"bare0 0\": interface bare0 has no IP address" },
		{ "down0 0", "ia_params \"down0 0\": interface down0 is down and has no IP address" },
		{ "127.0.0.9 0", "it can be added to lo: ip address add 127.0.0.9/8 dev lo" },
		{ "203.0.113.7 0", ": no such local address; no interface of this host has it" },
		{ "2001:db8::7 0", ": no such local address; no interface of this host has it" },
		{ "nosuch0", ": no such interface or local address" },
	};

	add_interface("bare0", IFF_UP, NULL);
	add_interface("down0", 0, NULL);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_none(cases[i].params, ENODEV, REPORT_NO_ADDRESS, cases[i].end);
		assert_int_equal(sockets_open, 0);
	}
}

CASE(unreadable_params_are_refused)
{
	assert_none("eth0 x", EINVAL, REPORT_BAD_PARAMS,
		    "\"eth0 x\": the port is not a number; expected \"interface 0\", \"address 0\" or \"hostname 0\"");
}

CASE(interfaces_that_cannot_be_listed_are_an_error)
{
	list_error = EMFILE;
	assert_none("eth\t0", EMFILE, REPORT_OPEN_FAILED,
		    "ia_params \"eth?0\": interfaces cannot be listed, rtnetlink: Too many open files");
	assert_int_equal(reported.err, EMFILE);
	assert_int_equal(sockets_open, 0);
}

CASE(lack_of_memory_is_an_error)
{
	no_memory = true;
	assert_none("eth0 0", ENOMEM, REPORT_OPEN_FAILED, "ia_params \"eth0 0\": Cannot allocate memory");
	assert_int_equal(reported.err, ENOMEM);
}

UNIT_MAIN(NULL, NULL)
