/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* numbers.c - dat1/numbers.c: every number of 1.2 has one of 2.0 and comes back; what only 2.0 has becomes
 * something that 1.2 has; every bit of a mask moves to its place. The numbers of 1.2 stand here as they
 * are in doc/spec/dat-1.2.md. */
#include "dat1/numbers.h"
#include <stdio.h>

static int failed;
#define EXPECT_IS(value, expected) is(#value, (unsigned long long)(value), (expected))
static void is(const char *what, unsigned long long value, unsigned long long expected)
{
	if (value == expected)
		return;
	fprintf(stderr, "%s is 0x%llx, expected 0x%llx\n", what, value, expected);
	failed = 1;
}

static void return_codes(void)
{
	DAT_RETURN error = DAT_CLASS_ERROR | DAT_INVALID_PARAMETER;

	EXPECT_IS(return_to_1_2(DAT_SUCCESS), 0);
	EXPECT_IS(return_to_1_2(DAT_CLASS_ERROR | DAT_NOT_IMPLEMENTED), 0x8fff0000);
	EXPECT_IS(return_to_1_2(error | DAT_INVALID_HANDLE_SRQ), 0x80060019);
	EXPECT_IS(return_to_1_2(error | DAT_INVALID_HANDLE_CSP), 0x80060000);
	EXPECT_IS(return_to_1_2(error | DAT_INVALID_HANDLE1), 0x8006001a);
	EXPECT_IS(return_to_1_2(error | DAT_INVALID_ARG1), 0x80060024);
	EXPECT_IS(return_to_1_2(DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_NAME_NOT_REGISTERED),
		  0x800a0062);
	EXPECT_IS(return_to_1_2(DAT_CLASS_ERROR | DAT_PORT_IN_USE), 0x80020000);
	EXPECT_IS(return_to_1_2(DAT_CLASS_ERROR | DAT_EXTENSION_BASE), 0x80040000);
	EXPECT_IS(return_to_1_2(DAT_QUEUE_EMPTY), 0xd0000);	/* without the class, as it came */
	for (DAT_UINT32 type = 0x10000; type <= 0x140000; type += 0x10000)
		for (DAT_UINT32 subtype = 0; subtype <= 0x65; subtype++) {
			DAT_RETURN ret = DAT_CLASS_ERROR | type | subtype;

			EXPECT_IS(return_to_1_2(return_to_2_0(ret)), ret);
		}
	EXPECT_IS(return_to_1_2(return_to_2_0(0x8fff0000)), 0x8fff0000);
	/* numbers that 1.2 does not have get no name of 2.0 */
	EXPECT_IS(DAT_GET_TYPE(return_to_2_0(0x80160000)) != DAT_PORT_IN_USE, 1);
	EXPECT_IS(DAT_GET_SUBTYPE(return_to_2_0(0x80060066)), 0xffff);
}

static void masks(void)
{
	EXPECT_IS(ia_mask(0x7ffffffff), DAT_IA_FIELD_ALL & ~(DAT_IA_FIELD_IA_ZB_SUPPORTED | DAT_IA_FIELD_IA_EXTENSION |
							     DAT_IA_FIELD_IA_EXTENSION_VERSION));
	EXPECT_IS(ia_mask(0x80000000), DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR);
	EXPECT_IS(ia_mask(0x400000000), DAT_IA_FIELD_IA_VENDOR_ATTR);
	EXPECT_IS(ia_mask(0x800000000) & ~DAT_IA_FIELD_ALL, 1ULL << 63);
	EXPECT_IS(provider_mask(0x800000), DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ);
	EXPECT_IS(provider_mask(0x1000000), DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR);
	EXPECT_IS(provider_mask(0x2000000), DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR);
	EXPECT_IS(provider_mask(0x4000000) & ~DAT_PROVIDER_FIELD_ALL, 1ULL << 63);
	EXPECT_IS(ep_mask(0x7ffff7ff), DAT_EP_FIELD_ALL & ~DAT_EP_FIELD_COMM);
	EXPECT_IS(ep_mask(0x2), DAT_EP_FIELD_EP_STATE);
	EXPECT_IS(ep_mask(0x4), DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR);
	EXPECT_IS(ep_mask(0x80), DAT_EP_FIELD_RECV_EVD_HANDLE);
	EXPECT_IS(ep_mask(0x400), DAT_EP_FIELD_SRQ_HANDLE);
	EXPECT_IS(ep_mask(0x1000), DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE);
	EXPECT_IS(ep_mask(0x800) & ~DAT_EP_FIELD_ALL, 1ULL << 63);
	EXPECT_IS(lmr_mask(0x3ff), DAT_LMR_FIELD_ALL & ~DAT_LMR_FIELD_VA_TYPE);
	EXPECT_IS(lmr_mask(0x20), DAT_LMR_FIELD_MEM_PRIV);
	EXPECT_IS(lmr_mask(0x40), DAT_LMR_FIELD_LMR_CONTEXT);
	EXPECT_IS(lmr_mask(0x400) & ~DAT_LMR_FIELD_ALL, 0x40000000);
	EXPECT_IS(rmr_mask(0x1f), 0x1f);
	EXPECT_IS(rmr_mask(0x20) & ~DAT_RMR_FIELD_ALL, 0x40000000);
}

static void enumerations(void)
{
	EXPECT_IS(srq_state_to_1_2(DAT_SRQ_STATE_OPERATIONAL), 0);
	EXPECT_IS(srq_state_to_1_2(DAT_SRQ_STATE_ERROR), 1);
	EXPECT_IS(srq_state_to_1_2(DAT_SRQ_STATE_SHUTDOWN), 1);
	EXPECT_IS(ep_state_to_1_2(DAT_EP_STATE_COMPLETION_PENDING), 12);
	EXPECT_IS(ep_state_to_1_2(DAT_EP_STATE_CONNECTED_SINGLE_PATH), 9);
	EXPECT_IS(ep_state_to_1_2(DAT_EP_STATE_CONNECTED_MULTI_PATH), 9);
	EXPECT_IS(pz_support_to_1_2(DAT_PZ_UNIQUE), 0);
	EXPECT_IS(pz_support_to_1_2(DAT_PZ_SHAREABLE), 2);
	EXPECT_IS(dto_status_to_1_2(DAT_RMR_OPERATION_FAILED), 11);
	EXPECT_IS(dto_status_to_1_2(DAT_DTO_ERR_LOCAL_MM_ERROR), DAT_DTO_ERR_LOCAL_PROTECTION);
}

int main(void)
{
	return_codes();
	masks();
	enumerations();
	return failed;
}
