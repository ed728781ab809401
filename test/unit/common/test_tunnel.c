/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_tunnel.c - headers of tunnels: their numbers, what is within, and headers that are cut off. */
#include "common/tunnel.h"
#include "test/unit/unit.h"

#define AT(text) ((const uint8_t *)(text))

UNIT_TEST(vxlan_has_a_number_and_a_frame)
{
	struct tunnel t;

	assert_true(tunnel_read_udp(AT("\x08\0\0\0\x01\x02\x03\xff"), 8, PORT_VXLAN, &t));
	assert_int_equal(t.kind, TUNNEL_VXLAN);
	assert_int_equal(t.id, 0x010203);
	assert_int_equal(t.type, TYPE_BRIDGING);
	assert_int_equal(t.length, 8);
	assert_false(tunnel_read_udp(AT("\x08\0\0\0\x01\x02\x03\xff"), 7, PORT_VXLAN, &t));
	assert_false(tunnel_read_udp(AT("\xf7\0\0\0\x01\x02\x03\xff"), 8, PORT_VXLAN,
				     &t)); /* no valid number */
	assert_false(tunnel_read_udp(AT("\x08\0\0\0\x01\x02\x03\xff"), 8, PORT_VXLAN + 1, &t));
}

UNIT_TEST(geneve_has_options_and_any_type)
{
	struct tunnel t;

	assert_true(tunnel_read_udp(AT("\x03\0\x08\0\x01\x02\x03\0"), 8, PORT_GENEVE, &t));
	assert_int_equal(t.kind, TUNNEL_GENEVE);
	assert_int_equal(t.id, 0x010203);
	assert_int_equal(t.type, 0x0800);
	assert_int_equal(t.length, 8 + 3 * 4);
	assert_false(tunnel_read_udp(AT("\x03\0\x08\0\x01\x02\x03\0"), 7, PORT_GENEVE, &t));
	assert_false(tunnel_read_udp(AT("\x43\0\x08\0\x01\x02\x03\0"), 8, PORT_GENEVE,
				     &t)); /* version 1 */
}

/* With each set of fields: checksum, key, sequence number. The key is the bytes 1 to 4. */
UNIT_TEST(gre_has_the_fields_that_its_flags_announce)
{
	for (unsigned fields = 0; fields < 8; fields++) {
		uint8_t header[16] = { 0, 0, 0x08, 0x00 };
		size_t length = 4;
		struct tunnel t;

		if (fields & 1) {
			header[0] |= GRE_FLAG_CHECKSUM;
			length += 4;
		}
		if (fields & 2) {
			header[0] |= GRE_FLAG_KEY;
			memcpy(header + length, "\x01\x02\x03\x04", 4);
			length += 4;
		}
		if (fields & 4) {
			header[0] |= GRE_FLAG_SEQUENCE;
			length += 4;
		}
		assert_true(tunnel_read_gre(header, length, &t));
		assert_int_equal(t.kind, TUNNEL_GRE);
		assert_int_equal(t.length, length);
		assert_int_equal(t.type, 0x0800);
		assert_int_equal(t.id, fields & 2 ? 0x01020304 : 0);
		for (size_t left = 0; left < length; left++)
			assert_false(tunnel_read_gre(header, left, &t));
		memcpy(header + 2, "\x65\x58", 2);
		assert_true(tunnel_read_gre(header, length, &t));
		assert_int_equal(t.kind, fields & 2 ? TUNNEL_NVGRE : TUNNEL_GRE);
		assert_int_equal(t.id, fields & 2 ? 0x010203 : 0);
	}
}

UNIT_TEST(other_gre_is_no_tunnel)
{
	struct tunnel t;

	assert_false(tunnel_read_gre(AT("\x40\0\x08\0\0\0\0\0"), 8, &t));   /* routing */
	assert_false(tunnel_read_gre(AT("\0\x01\x88\x0b\0\0\0\0"), 8, &t)); /* version 1: PPTP */
}

UNIT_MAIN(NULL, NULL)
