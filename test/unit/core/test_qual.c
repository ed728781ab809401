/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_qual.c - the port of a connection qualifier. Peers compute it too, so the tests
 * compare with literal numbers. */
#include "dapl/core/base/qual.h"
#include "test/unit/unit.h"

UNIT_TEST(qualifier_that_is_a_port_is_that_port)
{
	for (unsigned q = 0; q <= 65535; q++)
		assert_int_equal(dapl_qual_port(q), q);
}

UNIT_TEST(larger_qualifiers_map_to_shared_ports)
{
	static const struct { DAT_CONN_QUAL qual; uint16_t port; } known[] = {
		{ 65536, 35068 }, { 70000, 39532 }, { 96002, 65534 }, { 96003, 33534 },
		{ 96003 + 32000, 65534 }, { 96003 + 32001, 33534 },
		{ UINT64_C(1) << 32, 50617 }, { UINT64_C(1) << 63, 39419 }, { UINT64_MAX, 45303 },
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		assert_int_equal(dapl_qual_port(known[i].qual), known[i].port);
}

UNIT_MAIN(NULL, NULL)
