/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ib-operations.c - what the macros of dat_ib_extensions.h put on the stack: operation,
 * handle, and the variable arguments in the types and order a provider reads. */
#include <dat2/dat_ib_extensions.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int wrong;
static const char *called, *expected_handle, *shape;
static DAT_EXTENDED_OP expected_op;

#define CHECK(what) \
	do { \
		if (!(what)) \
			wrong += printf("%s: not so: %s\n", called, #what); \
	} while (0)

/* `shape` has a letter for each argument after the operation: what it is, and as which
 * number between 1 and 9 it must arrive. i an int, u a 64-bit number, p a pointer to
 * object[n], c a context. */
static char object[10];

DAT_RETURN dat_extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, ...)
{
	const char *s;
	va_list args;

	CHECK(handle == expected_handle);
	CHECK(op == expected_op);
	va_start(args, op);
	for (s = shape; *s; s += 2) {
		int n = s[1] - '0';

		switch (*s) {
		case 'i':
			CHECK(va_arg(args, int) == n);
			break;
		case 'u':
			CHECK(va_arg(args, DAT_UINT64) == ((DAT_UINT64)n << 32 | (DAT_UINT64)n));
			break;
		case 'p':
			CHECK(va_arg(args, char *) == object + n);
			break;
		case 'c':
			CHECK(va_arg(args, DAT_CONTEXT).as_64 == (DAT_UINT64)n);
			break;
		}
	}
	va_end(args);
	return DAT_SUCCESS;
}

static DAT_CONTEXT ctx(int n)
{
	DAT_CONTEXT c;

	memset(&c, 0, sizeof c);
	c.as_64 = (DAT_UINT64)n;
	return c;
}

#define H ((DAT_HANDLE)object)
#define P(n) ((void *)(object + (n)))
#define U(n) ((DAT_UINT64)(n) << 32 | (n))
#define OP(number, handle, arguments, call) \
	do { \
		called = #call; \
		expected_op = (number); \
		expected_handle = (handle); \
		shape = (arguments); \
		CHECK((call) == DAT_SUCCESS); \
	} while (0)

int main(void)
{
	OP(0, H, "u1p2c3p4i5", dat_ib_post_fetch_and_add(H, U(1), P(2), ctx(3), P(4), 5));
	OP(1, H, "u1u2p3c4p5i6", dat_ib_post_cmp_and_swap(H, U(1), U(2), P(3), ctx(4), P(5), 6));
	OP(2, H, "i1p2c3p4i5i6", dat_ib_post_rdma_write_immed(H, 1, P(2), ctx(3), P(4), 5, 6));
	OP(3, H, "i1p2p3c4i5", dat_ib_post_send_ud(H, 1, P(2), P(3), ctx(4), 5));
	OP(28, H, "c1", dat_ib_ud_cm_free(H, ctx(1)));
	OP(29, H, "p1", dat_ib_ud_ah_free(H, P(1)));

	OP(4, H, "i1p2i3", dat_ib_query_counters(H, 1, P(2), 3));
	OP(5, H, "i1i2", dat_ib_print_counters(H, 1, 2));
	OP(4, H, "i1p2i3", dat_query_counters(H, 1, P(2), 3));
	OP(5, H, "i1i2", dat_print_counters(H, 1, 2));
	OP(26, H, "i2", dat_ib_start_counter(H, 2));
	OP(27, H, "i1", dat_ib_stop_counter(H, 1));

	OP(0x1000, NULL, "p1p2u3p4u5p6", dat_ib_open_query(P(1), P(2), U(3), P(4), U(5), P(6)));
	OP(0x2000, H, "", dat_ib_close_query(H));

	OP(6, H, "p1p2p3", dat_ib_collective_create_member(H, P(1), P(2), P(3)));
	OP(7, H, "p1", dat_ib_collective_free_member(H, P(1)));
	OP(8, H, "p1i2i3i4p5p6c7", dat_ib_collective_create_group(P(1), 2, 3, 4, P(5), H, P(6), ctx(7)));
	OP(9, H, "", dat_ib_collective_free_group(H));
	OP(10, H, "u1c2", dat_ib_collective_set_clock(H, U(1), ctx(2)));
	OP(11, H, "p1", dat_ib_collective_read_clock(H, P(1)));
	OP(12, H, "p1i2p3i4i5c6i7", dat_ib_collective_scatter(H, P(1), 2, P(3), 4, 5, ctx(6), 7));
	OP(13, H, "p1p2p3p4i5i6c7i8", dat_ib_collective_scatterv(H, P(1), P(2), P(3), P(4), 5, 6, ctx(7), 8));
	OP(14, H, "p1i2p3i4i5c6i7", dat_ib_collective_gather(H, P(1), 2, P(3), 4, 5, ctx(6), 7));
	OP(15, H, "p1i2p3p4p5i6c7i8", dat_ib_collective_gatherv(H, P(1), 2, P(3), P(4), P(5), 6, ctx(7), 8));
	OP(16, H, "p1i2p3i4c5i6", dat_ib_collective_allgather(H, P(1), 2, P(3), 4, ctx(5), 6));
	OP(17, H, "p1i2p3p4p5c6i7", dat_ib_collective_allgatherv(H, P(1), 2, P(3), P(4), P(5), ctx(6), 7));
	OP(18, H, "p1i2p3i4c5i6", dat_ib_collective_alltoall(H, P(1), 2, P(3), 4, ctx(5), 6));
	OP(19, H, "p1p2p3p4p5p6c7i8", dat_ib_collective_alltoallv(H, P(1), P(2), P(3), P(4), P(5), P(6), ctx(7), 8));
	OP(20, H, "p1i2p3i4i5i6i7c8i9", dat_ib_collective_reduce(H, P(1), 2, P(3), 4, 5, 6, 7, ctx(8), 9));
	OP(21, H, "p1i2p3i4i5i6c7i8", dat_ib_collective_allreduce(H, P(1), 2, P(3), 4, 5, 6, ctx(7), 8));
	OP(22, H, "p1i2p3p4i5i6c7i8", dat_ib_collective_reduce_scatter(H, P(1), 2, P(3), P(4), 5, 6, ctx(7), 8));
	OP(23, H, "p1i2p3i4i5i6c7i8", dat_ib_collective_scan(H, P(1), 2, P(3), 4, 5, 6, ctx(7), 8));
	OP(24, H, "p1i2i3c4i5", dat_ib_collective_broadcast(H, P(1), 2, 3, ctx(4), 5));
	OP(25, H, "c1i2", dat_ib_collective_barrier(H, ctx(1), 2));
	return wrong != 0;
}
