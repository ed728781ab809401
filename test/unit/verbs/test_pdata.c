/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_pdata.c - private data on the wire: every length in both directions, data of
 * other implementations, and hostile data. */
#include "dapl/verbs/pdata.h"
#include "test/unit/unit.h"

static const size_t padded[3][3] = {
	[HW_WIRE_IB] = { 56, 196, 148 }, [HW_WIRE_UD] = { 180, 136, 136 },
};

/* Does what rdma_cm does with private data: pads it with zeros, except on iWARP. */
static size_t carry(uint8_t wire[256], enum hw_wire w, enum hw_message m, size_t len)
{
	if (w == HW_WIRE_IWARP)
		return len;
	assert_true(len <= padded[w][m]);
	memset(wire + len, 0, padded[w][m] - len);
	return padded[w][m];
}

UNIT_TEST(every_length_arrives)
{
	struct hw_ud_self self = { .qpn = 0xabcdef, .qkey = 0x01234567, .lid = 0x1234 };
	uint8_t data[256], out[256];
	struct hw_pdata p;

	memset(self.gid, 0x5a, sizeof(self.gid));
	for (int w = 0; w < 3; w++)
		for (int m = 0; m < 3; m++) {
			size_t room = hw_pdata_room(w, m);

			for (size_t n = 0; n <= room; n++) {
				/* zeros, ones, and bytes like this provider's header */
				for (int kind = 0; kind < 3; kind++) {
					memset(data, kind == 0 ? 0 : kind == 1 ? 0xff : 0xda,
					       sizeof(data));
					int len = hw_pdata_pack(out, w, m, data, n, 3, false,
								&self);

					assert_true(len >= 0 && len <= 255);
					hw_pdata_unpack(&p, w, m, out, carry(out, w, m, len));
					assert_true(p.exact);
					assert_false(p.refused);
					assert_int_equal(p.len, n);
					assert_memory_equal(p.data, data, n);
					if (m != HW_REJECT && w != HW_WIRE_IWARP)
						assert_int_equal(p.mtu, 3);
					assert_int_equal(p.has_self, w == HW_WIRE_UD && m == HW_REQUEST);
					if (p.has_self)
						assert_memory_equal(&p.self, &self, sizeof(self));
				}
			}
			assert_int_equal(hw_pdata_pack(out, w, m, data, room + 1, 0, false,
						       &self), -1);
		}
}

UNIT_TEST(private_data_of_other_implementations_is_unchanged)
{
	uint8_t in[256];
	struct hw_pdata p;

	for (int fill = 0; fill < 256; fill++) {
		memset(in, fill, sizeof(in));
		hw_pdata_unpack(&p, HW_WIRE_IB, HW_REQUEST, in, 56);
		assert_int_equal(p.len, 56);
		assert_false(p.exact);
		hw_pdata_unpack(&p, HW_WIRE_IB, HW_ACCEPT, in, 196);
		assert_int_equal(p.len, 196);
	}
	hw_pdata_unpack(&p, HW_WIRE_IB, HW_ACCEPT, NULL, 0);
	assert_int_equal(p.len, 0);
}

UNIT_TEST(refusals_of_the_provider_and_of_the_kernel_are_recognised)
{
	uint8_t out[256];
	struct hw_pdata p;

	for (int w = 0; w < 3; w++) {
		int len = hw_pdata_pack(out, w, HW_REJECT, NULL, 0, 0, true, NULL);

		hw_pdata_unpack(&p, w, HW_REJECT, out, carry(out, w, HW_REJECT, len));
		assert_true(p.refused);
		/* the kernel's own message: no data, or padding only */
		memset(out, 0, sizeof(out));
		hw_pdata_unpack(&p, w, HW_REJECT, out, carry(out, w, HW_REJECT, 0));
		assert_true(p.refused);
		assert_int_equal(p.len, 0);
	}
	hw_pdata_unpack(&p, HW_WIRE_IWARP, HW_REJECT, NULL, 0);
	assert_true(p.refused);
}

UNIT_TEST(rejection_by_the_ofa_provider_is_recognised)
{
	uint8_t in[148] = "\2\0\2\x09hello";
	struct hw_pdata p;

	hw_pdata_unpack(&p, HW_WIRE_IB, HW_REJECT, in, 148);
	assert_false(p.refused);
	assert_int_equal(p.len, 144);
	assert_memory_equal(p.data, "hello", 6);
	hw_pdata_unpack(&p, HW_WIRE_IWARP, HW_REJECT, in, 9);
	assert_int_equal(p.len, 5);
	hw_pdata_unpack(&p, HW_WIRE_IWARP, HW_REJECT, in, 4);
	assert_false(p.refused);
	assert_int_equal(p.len, 0);
}

UNIT_TEST(hostile_lengths_stay_within_the_frame)
{
	uint8_t in[256];
	struct hw_pdata p;

	srandom(1);
	for (int i = 0; i < 200000; i++) {
		size_t len = random() % 256;
		uint8_t *copy;

		/* mostly this provider's header, with few wrong bytes; on the heap, so that a
		 * sanitizer sees an overrun */
		memset(in, random() % 3 ? 0 : 0xff, sizeof(in));
		in[0] = 0xda, in[1] = 0x92, in[2] = random(), in[3] = random();
		if (len >= 4)
			memcpy(in + len - 4, in, 4);
		copy = malloc(len ? len : 1);
		memcpy(copy, in, len);
		for (int w = 0; w < 3; w++)
			for (int m = 0; m < 3; m++) {
				hw_pdata_unpack(&p, w, m, copy, len);
				assert_true(p.len <= len);
				assert_true(p.data >= copy && p.data + p.len <= copy + len);
				assert_true(p.mtu <= 5);
			}
		free(copy);
	}
}

UNIT_MAIN(NULL, NULL)
