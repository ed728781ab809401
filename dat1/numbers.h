/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* numbers.h - return codes, field masks and enumerations: their numbers in DAT 1.2 and in DAT 2.0. */
#ifndef DAT1_NUMBERS_H
#define DAT1_NUMBERS_H
#include <dat-1.2/dat/udat.h>

#define DAT_ERROR(type, subtype) ((DAT_RETURN)(DAT_CLASS_ERROR | (type) | (subtype)))

/* What a call of libdat2 returned, in the numbers of 1.2. */
DAT_RETURN return_to_1_2(DAT_RETURN ret);
/* What a 1.2 program has, in the numbers of 2.0. */
DAT_RETURN return_to_2_0(DAT_RETURN ret);

/* Masks of 1.2 in the bits of 2.0. A bit that 1.2 does not have becomes one that 2.0 does not have,
 * so that the call fails as it would have in 1.2. */
DAT_IA_ATTR_MASK ia_mask(DAT_UINT64 mask);
DAT_PROVIDER_ATTR_MASK provider_mask(DAT_UINT64 mask);
DAT_EP_PARAM_MASK ep_mask(DAT_UINT64 mask);
DAT_LMR_PARAM_MASK lmr_mask(DAT_UINT32 mask);
DAT_RMR_PARAM_MASK rmr_mask(DAT_UINT32 mask);

/* Values of 2.0 as the nearest ones of 1.2. */
DAT_EP_STATE ep_state_to_1_2(DAT_EP_STATE state);
DAT_SRQ_STATE srq_state_to_1_2(DAT_SRQ_STATE state);
DAT_PZ_SUPPORT pz_support_to_1_2(DAT_PZ_SUPPORT support);
DAT_DTO_COMPLETION_STATUS dto_status_to_1_2(DAT_DTO_COMPLETION_STATUS status);

#endif
