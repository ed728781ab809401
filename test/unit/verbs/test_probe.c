/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_probe.c - what an opened device is said to be and to have: limits that drivers report wrongly, abilities that
 * only an attempt shows, the P_Key and the GID of the address. The device and rdma_cm are replaced here. */
#include <limits.h>
#include <rdma/rdma_cma.h>
#include "common/log.h"
#include "dapl/core/base/settings.h"
#include "dapl/verbs/address.h"
#include "dapl/verbs/dm.h"
#include "dapl/verbs/eth_attr.h"
#include "dapl/verbs/flush.h"
#include "dapl/verbs/hw.h"
#include "dapl/verbs/pdata.h"
#include "dapl/verbs/probe.h"
#include "dapl/verbs/segments.h"
#include "dapl/verbs/siw.h"
#include "test/unit/printed.h"
#include "test/unit/unit.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { SIW_VENDOR = 0x626d74, RXE_VENDOR = 0xffffff, PORT = 2, FILLER = 16385 };

struct dapl_settings dapl_settings;		/* in place of the environment */

static struct ibv_device ibv_device;
static struct verbs_context verbs;
static struct dapl_device dev;
static struct rdma_cm_id bound;
static struct ibv_pd pd = { .context = &verbs.context };
static struct ibv_cq cq;
static struct ibv_qp qp;
static struct ibv_mw mw = { .context = &verbs.context };

/* The device */
static struct ibv_device_attr limits;
static struct ibv_port_attr port;
static int query_result, alive;
static bool no_port, no_cq, no_qp, no_windows[3];	/* by type */
static uint32_t grants_inline;
static int pkey_index;				/* of 0x8001; -1: it is not in the table */
static int cm_index;				/* what rdma_cm says; -1: nothing */
static int gid_asked, siw_adopted, fillers, filler_first;

const char *ibv_get_device_name(struct ibv_device *of)
{
	assert_ptr_equal(of, &ibv_device);
	return "fake0";
}

int ibv_query_device(struct ibv_context *of, struct ibv_device_attr *out)
{
	assert_ptr_equal(of, &verbs.context);
	*out = limits;
	return query_result;
}

static uint64_t caps_ex;
static int query_ex_result;

static int query_device_ex(struct ibv_context *of, const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *out, size_t size)
{
	assert_ptr_equal(of, &verbs.context);
	assert_null(input);
	memset(out, 0, size);
	out->device_cap_flags_ex = caps_ex;
	return query_ex_result;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *of, uint8_t number, struct _compat_ibv_port_attr *out)
{
	assert_ptr_equal(of, &verbs.context);
	assert_int_equal(number, PORT);
	memcpy(out, &port, sizeof port);
	return no_port ? ENODEV : 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *of)
{
	assert_ptr_equal(of, &verbs.context);
	alive++;
	return &pd;
}

int ibv_dealloc_pd(struct ibv_pd *of)
{
	assert_ptr_equal(of, &pd);
	alive--;
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *of, int cqe, void *cq_context, struct ibv_comp_channel *on, int vector)
{
	assert_ptr_equal(of, &verbs.context);
	assert_null(cq_context);
	assert_null(on);
	assert_int_equal(vector, 0);
	if (cqe == FILLER) {
		fillers++;
		filler_first = !alive;
		return &cq;
	}
	assert_int_equal(cqe, 1);
	if (no_cq) {
		errno = ENOMEM;
		return NULL;
	}
	alive++;
	return &cq;
}

int ibv_destroy_cq(struct ibv_cq *of)
{
	assert_ptr_equal(of, &cq);
	alive--;
	return 0;
}

static struct ibv_mw *alloc_mw(struct ibv_pd *of, enum ibv_mw_type type)
{
	assert_ptr_equal(of, &pd);
	if (no_windows[type])
		return NULL;
	alive++;
	return &mw;
}

static int dealloc_mw(struct ibv_mw *of)
{
	assert_ptr_equal(of, &mw);
	alive--;
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *of, struct ibv_qp_init_attr *attr)
{
	assert_ptr_equal(of, &pd);
	assert_ptr_equal(attr->send_cq, &cq);
	assert_ptr_equal(attr->recv_cq, &cq);
	assert_int_equal(attr->cap.max_send_wr, 1);
	assert_int_equal(attr->cap.max_recv_wr, 1);
	assert_int_equal(attr->cap.max_send_sge, 1);
	assert_int_equal(attr->cap.max_recv_sge, 1);
	if (no_qp || attr->cap.max_inline_data > grants_inline)
		return NULL;
	attr->cap.max_inline_data += 4;		/* as much as fits where that does */
	alive++;
	return &qp;
}

int ibv_destroy_qp(struct ibv_qp *of)
{
	assert_ptr_equal(of, &qp);
	alive--;
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *of, uint8_t number, __be16 pkey)
{
	assert_ptr_equal(of, &verbs.context);
	assert_int_equal(number, PORT);
	return pkey == htons(0x8001) ? pkey_index : -1;
}

int rdma_init_qp_attr(struct rdma_cm_id *of, struct ibv_qp_attr *attr, int *mask)
{
	assert_ptr_equal(of, &bound);
	assert_int_equal(attr->qp_state, IBV_QPS_INIT);
	attr->pkey_index = 77;
	*mask = 0;
	if (cm_index < 0)
		return 0;
	attr->pkey_index = (uint16_t)cm_index;
	*mask = IBV_QP_PKEY_INDEX;
	return 0;
}

int ibv_query_gid(struct ibv_context *of, uint8_t number, int index, union ibv_gid *gid)
{
	assert_ptr_equal(of, &verbs.context);
	assert_int_equal(number, PORT);
	assert_int_equal(index, 0);
	gid->global.interface_id = 99;
	gid_asked++;
	return 0;
}

void hw_siw_adopt(struct ibv_context *of)
{
	assert_ptr_equal(of, &verbs.context);
	siw_adopted++;
}

static bool offers_flush;
static int flush_adopted, flush_result;

bool hw_flush_is_offered(struct ibv_pd *of, struct ibv_cq *with)
{
	assert_ptr_equal(of, &pd);
	assert_ptr_equal(with, &cq);
	return offers_flush;
}

int hw_flush_adopt(struct ibv_context *of)
{
	assert_ptr_equal(of, &verbs.context);
	assert_int_equal(alive, 0);
	flush_adopted++;
	return flush_result;
}

void hw_dm_probe(struct dapl_device *of) { of->attr.dm_unit = 4; }
void hw_eth_open(struct dapl_device *of) { of->attr.raw_ethernet = true; }

/* --- cases ------------------------------------------------------------------------------------------ */

UNIT_FIXTURE(begin)
{
	memset(&dapl_settings, 0, sizeof dapl_settings);
	dapl_settings.ib_pkey = -1;
	dapl_settings.max_inline = 64;
	memset(&dev, 0, sizeof dev);
	memset(&bound, 0, sizeof bound);
	memset(no_windows, 0, sizeof no_windows);
	memset(&port, 0, sizeof port);
	limits = (struct ibv_device_attr){ .vendor_id = 0x2c9, .vendor_part_id = 7, .max_qp = 100, .max_qp_wr = 101,
		.max_sge = 30, .max_sge_rd = 20, .max_cq = 102, .max_cqe = 103, .max_mr = 104, .max_pd = 105,
		.max_mw = 106, .max_ah = 107, .max_srq = 108, .max_srq_wr = 109, .max_srq_sge = 31,
		.max_qp_rd_atom = 16, .max_qp_init_rd_atom = 17, .max_mcast_grp = 1, .atomic_cap = IBV_ATOMIC_HCA,
		.device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS };
	port.state = IBV_PORT_ACTIVE;
	port.active_mtu = IBV_MTU_2048;
	port.max_msg_sz = 1 << 20;
	ibv_device.transport_type = IBV_TRANSPORT_IB;
	verbs = (struct verbs_context){ .sz = sizeof verbs, .query_device_ex = query_device_ex,
		.context = { .abi_compat = __VERBS_ABI_IS_EXTENDED } };
	caps_ex = 0;
	query_ex_result = 0;
	verbs.context.device = &ibv_device;
	verbs.context.ops.alloc_mw = alloc_mw;
	verbs.context.ops.dealloc_mw = dealloc_mw;
	dev.verbs = &verbs.context;
	bound.port_num = PORT;
	bound.route.addr.addr.ibaddr.sgid.global.interface_id = 55;
	query_result = alive = gid_asked = siw_adopted = fillers = 0;
	no_port = no_cq = no_qp = offers_flush = false;
	flush_adopted = flush_result = 0;
	grants_inline = 1000;
	pkey_index = cm_index = -1;
}

/* Whatever is found, nothing is left of the attempts. */
static void probed(int err)
{
	assert_int_equal(hw_probe(&dev, &bound), err);
	assert_int_equal(alive, 0);
}

#define TEST(name) UNIT_TEST_WITH(name, begin, NULL)

TEST(device_is_named_with_its_port_and_vendor)
{
	probed(0);
	assert_string_equal(dev.attr.device, "fake0");
	assert_string_equal(dev.attr.vendor, "vendor 0x0002c9 part 7");
	assert_int_equal(dev.attr.port, PORT);
	assert_false(dev.attr.iwarp);
	assert_int_equal(dev.attr.dm_unit, 4);
	assert_true(dev.attr.raw_ethernet);
}

static const struct { size_t offset; int most; } clamped[] = {
#define LIMIT(name, most) { offsetof(struct ibv_device_attr, name), most }
	LIMIT(max_qp, 1 << 24), LIMIT(max_qp_wr, 1 << 20), LIMIT(max_sge, 256), LIMIT(max_cq, 1 << 24),
	LIMIT(max_cqe, 1 << 24), LIMIT(max_mr, INT_MAX), LIMIT(max_pd, INT_MAX), LIMIT(max_mw, INT_MAX),
	LIMIT(max_ah, INT_MAX), LIMIT(max_srq, INT_MAX), LIMIT(max_srq_wr, 1 << 20), LIMIT(max_srq_sge, 256),
	LIMIT(max_qp_rd_atom, 254), LIMIT(max_qp_init_rd_atom, 254), LIMIT(max_sge_rd, 30),
};

static int *limit(struct ibv_device_attr *in, size_t i) { return (int *)((char *)in + clamped[i].offset); }

TEST(limits_within_reason_stay)
{
	probed(0);
	assert_memory_equal(&dev.attr.limits, &limits, sizeof limits);
	for (size_t i = 0; i < COUNT(clamped); i++) {
		begin(state);
		*limit(&limits, i) = clamped[i].most;
		probed(0);
		assert_int_equal(*limit(&dev.attr.limits, i), clamped[i].most);
	}
}

TEST(limit_beyond_reason_is_lowered)
{
	for (size_t i = 0; i < COUNT(clamped); i++)
		for (int negative = 0; negative < 2; negative++) {
			if (!negative && clamped[i].most == INT_MAX)
				continue;
			begin(state);
			*limit(&limits, i) = negative ? -1 : clamped[i].most + 1;
			probed(0);
			assert_int_equal(*limit(&dev.attr.limits, i), clamped[i].most);
		}
}

TEST(read_segments_depend_on_what_the_driver_says)
{
	probed(0);
	assert_int_equal(dev.attr.max_read_sge, 20);
	limits.max_sge_rd = 0;
	probed(0);
	assert_int_equal(dev.attr.max_read_sge, 30);
	ibv_device.transport_type = IBV_TRANSPORT_IWARP;
	probed(0);
	assert_int_equal(dev.attr.max_read_sge, 1);
}

static void print_probe(void *err) { probed(*(int *)err); }

/* And says so, in one line. */
static void fails(int err, const char *says)
{
	const char *text;

	log_init("t", NULL, NULL, NULL, 3);
	text = printed_by(print_probe, &err);
	assert_int_equal(times_in(text, "\n"), 1);
	assert_int_equal(times_in(text, says), 1);
}

TEST(device_that_tells_nothing_is_an_error)
{
	query_result = -ENODEV;
	fails(ENODEV, "fake0 port 2: cannot find out what the device can do");
	query_result = 0;
	no_cq = true;
	fails(ENOMEM, "fake0 port 2: cannot find out what the device can do");
}

TEST(port_tells_its_state_mtu_and_message_size)
{
	static const struct { enum ibv_mtu code; unsigned bytes; } mtus[] = { { IBV_MTU_256, 256 },
		{ IBV_MTU_512, 512 },
		{ IBV_MTU_1024, 1024 }, { IBV_MTU_4096, 4096 }, { (enum ibv_mtu)0, 1024 }, { (enum ibv_mtu)6, 1024 } };
	static const struct { uint32_t told, is; } sizes[] = { { 0, 1u << 31 }, { UINT32_MAX, 1u << 31 },
		{ 4096, 4096 } };

	probed(0);
	assert_true(dev.attr.port_active);
	assert_int_equal(dev.attr.mtu, 2048);
	assert_int_equal(dev.attr.max_message, 1 << 20);
	for (size_t i = 0; i < COUNT(mtus); i++) {
		port.active_mtu = mtus[i].code;
		probed(0);
		assert_int_equal(dev.attr.mtu, mtus[i].bytes);
	}
	for (size_t i = 0; i < COUNT(sizes); i++) {
		port.max_msg_sz = sizes[i].told;
		probed(0);
		assert_int_equal(dev.attr.max_message, sizes[i].is);
	}
	port.state = IBV_PORT_DOWN;
	probed(0);
	assert_false(dev.attr.port_active);
}

TEST(port_that_cannot_be_asked_changes_nothing)
{
	probed(0);
	no_port = true;
	port.active_mtu = IBV_MTU_256;
	hw_probe_port(&dev, &dev.attr);
	assert_int_equal(dev.attr.mtu, 2048);
}

TEST(inline_size_is_what_an_attempt_gets)
{
	probed(0);
	assert_int_equal(dev.attr.max_inline, 68);	/* granted, not asked for */
	grants_inline = 20;
	probed(0);
	assert_int_equal(dev.attr.max_inline, 20);	/* 64, 32, 16 */
	grants_inline = 0;
	probed(0);
	assert_int_equal(dev.attr.max_inline, 4);
	no_qp = true;
	probed(0);
	assert_int_equal(dev.attr.max_inline, 0);
}

TEST(windows_of_each_type_are_tried)
{
	for (int types = 0; types < 4; types++) {
		bool one = types & 1, two = types & 2;

		begin(state);
		no_windows[IBV_MW_TYPE_1] = !one;
		no_windows[IBV_MW_TYPE_2] = !two;
		probed(0);
		assert_int_equal(dev.attr.windows_1, one);
		assert_int_equal(dev.attr.windows_2, two);
		assert_int_equal(dev.attr.bind_access, one || two);
		assert_int_equal(dev.attr.send_invalidate, two);
		assert_int_equal(dev.attr.limits.max_mw, one || two ? 106 : 0);
		assert_int_equal(!!(dev.qp_access & IBV_ACCESS_MW_BIND), one || two);
	}
	begin(state);
	limits.device_cap_flags = 0;
	probed(0);
	assert_false(dev.attr.send_invalidate);
}

TEST(infiniband_has_what_iwarp_lacks)
{
	unsigned rdma = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;

	for (int iwarp = 0; iwarp < 2; iwarp++) {
		enum hw_wire wire = iwarp ? HW_WIRE_IWARP : HW_WIRE_IB;
		const struct dapl_device_attr *a = &dev.attr;

		begin(state);
		ibv_device.transport_type = iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
		probed(0);
		assert_int_equal(a->iwarp, iwarp);
		assert_int_equal(a->atomics, !iwarp);
		assert_int_equal(a->write_immediate, !iwarp);
		assert_int_equal(a->ud, !iwarp);
		assert_int_equal(a->multicast, !iwarp);
		assert_int_equal(a->zero_based, !iwarp);
		assert_int_equal(a->read_sink_remote, iwarp);
		assert_int_equal(a->tunes, iwarp ? DAPL_TUNES_CLASS :
				 DAPL_TUNES_CLASS | DAPL_TUNES_ACK | DAPL_TUNES_RNR);
		assert_int_equal(dev.qp_access, iwarp ? rdma : rdma | IBV_ACCESS_REMOTE_ATOMIC);
		assert_int_equal(a->pdata_connect, hw_pdata_room(wire, HW_REQUEST));
		assert_int_equal(a->pdata_accept, hw_pdata_room(wire, HW_ACCEPT));
		assert_int_equal(a->pdata_reject, hw_pdata_room(wire, HW_REJECT));
	}
	begin(state);
	limits.atomic_cap = IBV_ATOMIC_NONE;
	limits.max_mcast_grp = 0;
	probed(0);
	assert_false(dev.attr.atomics);
	assert_false(dev.attr.multicast);
	assert_int_equal(dev.qp_access, rdma);
}

TEST(only_siw_is_treated_as_siw)
{
	for (int iwarp = 0; iwarp < 2; iwarp++)
		for (int vendor = 0; vendor < 2; vendor++) {
			bool siw = iwarp && vendor;

			begin(state);
			ibv_device.transport_type = iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
			if (vendor)
				limits.vendor_id = SIW_VENDOR;
			probed(0);
			assert_int_equal(dev.attr.no_late_flush, siw);
			assert_int_equal(dev.attr.no_solicited, siw);
			assert_int_equal(dev.attr.no_empty_receive, siw);
			assert_int_equal(siw_adopted, siw);
			assert_int_equal(fillers, siw);
			assert_ptr_equal(dev.siw_filler, siw ? &cq : NULL);
			hw_segments_release(&verbs.context);
		}
	assert_true(filler_first);
}

/* Their requests go through the check of segments, or of siw below it. */
TEST(segments_are_checked_on_the_kernels_devices)
{
	static const struct { int vendor; bool iwarp, checked; } devices[] = {
		{ RXE_VENDOR, false, true }, { SIW_VENDOR, true, true }, { RXE_VENDOR, true, false },
		{ SIW_VENDOR, false, false }, { 0x2c9, false, false }, { 0x2c9, true, false },
	};

	for (size_t i = 0; i < COUNT(devices); i++) {
		begin(state);
		ibv_device.transport_type = devices[i].iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
		limits.vendor_id = devices[i].vendor;
		verbs.context.ops.post_send = NULL;
		probed(0);
		assert_int_equal(verbs.context.ops.post_send != NULL, devices[i].checked);
		hw_segments_release(&verbs.context);
	}
}

TEST(pkey_is_that_of_the_address)
{
	probed(0);
	assert_int_equal(dev.pkey_index, 0);
	cm_index = 3;
	probed(0);
	assert_int_equal(dev.pkey_index, 3);
}

TEST(pkey_of_the_environment_must_be_in_the_table)
{
	cm_index = 3;
	dapl_settings.ib_pkey = 0x8001;
	fails(ENODEV, "fake0 port 2: DAPL_IB_PKEY is 0x8001, which is not in the port's P_Key table");
	pkey_index = 6;
	probed(0);
	assert_int_equal(dev.pkey_index, 6);
	pkey_index = 0;
	probed(0);
	assert_int_equal(dev.pkey_index, 0);
	begin(state);
	dapl_settings.ib_pkey = 0x8001;		/* iWARP has none */
	ibv_device.transport_type = IBV_TRANSPORT_IWARP;
	probed(0);
	assert_int_equal(dev.pkey_index, 0);
}

TEST(gid_is_that_of_the_address_if_rdma_cm_knows)
{
	probed(0);
	assert_int_equal(dev.attr.gid.global.interface_id, 55);
	assert_int_equal(gid_asked, 0);
	bound.route.addr.addr.ibaddr.sgid.global.interface_id = 0;
	probed(0);
	assert_int_equal(dev.attr.gid.global.interface_id, 99);
	begin(state);
	ibv_device.transport_type = IBV_TRANSPORT_IWARP;
	probed(0);
	assert_int_equal(dev.attr.gid.global.interface_id, 99);
}

TEST(flush_and_atomic_write_are_what_the_driver_has)
{
	static const struct { uint64_t caps; bool global, persistent, atomic; } cases[] = {
		{ .caps = 0 }, { .caps = UINT64_C(1) << 38, .global = true },
		{ .caps = UINT64_C(1) << 39, .persistent = true },
		{ .caps = UINT64_C(1) << 40, .atomic = true }, { .caps = ~(UINT64_C(7) << 38) },
		{ UINT64_C(7) << 38, true, true, true },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(state);
		caps_ex = cases[i].caps;
		probed(0);
		assert_int_equal(dev.attr.flush_global, cases[i].global);
		assert_int_equal(dev.attr.flush_persistent, cases[i].persistent);
		assert_int_equal(dev.attr.atomic_write, cases[i].atomic);
	}
	begin(state);
	caps_ex = UINT64_C(7) << 38;
	query_ex_result = EOPNOTSUPP;		/* the answer means nothing */
	probed(0);
	assert_false(dev.attr.flush_global || dev.attr.flush_persistent || dev.attr.atomic_write);
}

TEST(acknowledgements_can_be_delayed_where_driver_and_library_flush)
{
	static const struct { uint64_t caps; bool offered; } cases[] = { { 0, true }, { UINT64_C(1) << 38, false },
		{ UINT64_C(1) << 39, true }, { UINT64_C(1) << 38, true } };

	for (size_t i = 0; i < COUNT(cases); i++) {
		bool delays = i == COUNT(cases) - 1, flushes = cases[i].caps == UINT64_C(1) << 38;

		begin(state);
		caps_ex = cases[i].caps;
		offers_flush = cases[i].offered;
		probed(0);
		assert_int_equal(dev.attr.delayed_ack, delays);
		assert_int_equal(flush_adopted, delays);
		/* Peers may flush, also without a library that can. */
		assert_int_equal(dev.qp_access & DAPL_ACCESS_FLUSH, flushes ? DAPL_ACCESS_FLUSH : 0);
	}
	flush_result = ENOMEM;
	probed(ENOMEM);
}

UNIT_MAIN(NULL, NULL)
