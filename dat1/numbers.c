/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* numbers.c - tables of the numbers that differ between DAT 1.2 and DAT 2.0. */
#include "dat1/numbers.h"
#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* --- return codes ------------------------------------------------------------- */

#define NOT_IMPLEMENTED_1_2 0x0fff0000u
#define TYPE_LAST_1_2 DAT_CONN_QUAL_UNAVAILABLE

/* Types of 2.0 that have another number in 1.2, or none. The others up to TYPE_LAST_1_2 are equal. */
static const struct {
	DAT_RETURN in_2_0, in_1_2;
} types[] = {
	{ DAT_NOT_IMPLEMENTED, NOT_IMPLEMENTED_1_2 },
	{ DAT_PORT_IN_USE, DAT_CONN_QUAL_IN_USE },
	{ DAT_COMM_NOT_SUPPORTED, DAT_MODEL_NOT_SUPPORTED },
};

/* Ranges of subtypes that are higher in 2.0. It has DAT_INVALID_HANDLE_CSP and
 * DAT_INVALID_STATE_SRQ_SHUTDOWN between them. */
static const struct {
	DAT_UINT32 first, last;		/* numbers of 2.0 */
	DAT_UINT32 higher;
} subtypes[] = {
	{ DAT_NO_SUBTYPE, DAT_INVALID_HANDLE_SRQ, 0 },
	{ DAT_INVALID_HANDLE1, DAT_INVALID_STATE_SRQ_IN_USE, 1 },
	{ DAT_PRIVILEGES_READ, DAT_THREAD_SAFETY_NOT_FOUND, 2 },
};

static DAT_RETURN type_to_1_2(DAT_RETURN type)
{
	for (size_t i = 0; i < COUNT(types); i++)
		if (type == types[i].in_2_0)
			return types[i].in_1_2;
	return type <= TYPE_LAST_1_2 ? type : (DAT_RETURN)DAT_INTERNAL_ERROR;
}

static DAT_UINT32 subtype_to_1_2(DAT_UINT32 subtype)
{
	for (size_t i = 0; i < COUNT(subtypes); i++)
		if (subtype >= subtypes[i].first && subtype <= subtypes[i].last)
			return subtype - subtypes[i].higher;
	return DAT_NO_SUBTYPE;
}

DAT_RETURN return_to_1_2(DAT_RETURN ret)
{
	if (ret == DAT_SUCCESS)
		return DAT_SUCCESS;
	return (ret & (DAT_CLASS_ERROR | DAT_CLASS_WARNING)) | type_to_1_2(DAT_GET_TYPE(ret)) |
	       subtype_to_1_2(DAT_GET_SUBTYPE(ret));
}

DAT_RETURN return_to_2_0(DAT_RETURN ret)
{
	DAT_RETURN type = DAT_GET_TYPE(ret);
	DAT_UINT32 subtype = DAT_GET_SUBTYPE(ret);

	if (type == NOT_IMPLEMENTED_1_2)
		type = DAT_NOT_IMPLEMENTED;
	else if (type > TYPE_LAST_1_2)
		type = DAT_TYPE_MASK - 0x10000;		/* no type of 2.0 either */
	for (size_t i = 0; i < COUNT(subtypes); i++) {
		DAT_UINT32 higher = subtypes[i].higher;

		if (subtype + higher >= subtypes[i].first && subtype + higher <= subtypes[i].last)
			return (ret & (DAT_CLASS_ERROR | DAT_CLASS_WARNING)) | type | (subtype + higher);
	}
	return (ret & (DAT_CLASS_ERROR | DAT_CLASS_WARNING)) | type | DAT_SUBTYPE_MASK;
}

/* --- masks -------------------------------------------------------------------- */

/* Bits of 1.2, and by how many places they are higher in 2.0. */
struct bits {
	DAT_UINT64 in_1_2;
	unsigned higher;
};

static const struct bits ia_bits[] = { { 0x7fffffff, 0 }, { 0x780000000, 3 } };
static const struct bits provider_bits[] = { { 0xffffff, 0 }, { 0x3000000, 5 } };
static const struct bits ep_bits[] = { { 0x3, 0 }, { 0x7fc, 1 }, { 0x7ffff000, 0 } };
static const struct bits lmr_bits[] = { { 0x3f, 0 }, { 0x3c0, 1 } };
static const struct bits rmr_bits[] = { { 0x1f, 0 } };

static DAT_UINT64 move_bits(DAT_UINT64 mask, const struct bits *bits, size_t count,
			    DAT_UINT64 unknown)
{
	DAT_UINT64 result = 0, known = 0;

	for (size_t i = 0; i < count; i++) {
		result |= (mask & bits[i].in_1_2) << bits[i].higher;
		known |= bits[i].in_1_2;
	}
	return mask & ~known ? result | unknown : result;
}

#define UNKNOWN_64 ((DAT_UINT64)1 << 63)	/* no attribute of 2.0 */
#define UNKNOWN_32 0x40000000u

DAT_IA_ATTR_MASK ia_mask(DAT_UINT64 mask)
{
	return move_bits(mask, ia_bits, COUNT(ia_bits), UNKNOWN_64);
}

DAT_PROVIDER_ATTR_MASK provider_mask(DAT_UINT64 mask)
{
	return move_bits(mask, provider_bits, COUNT(provider_bits), UNKNOWN_64);
}

DAT_EP_PARAM_MASK ep_mask(DAT_UINT64 mask)
{
	return move_bits(mask, ep_bits, COUNT(ep_bits), UNKNOWN_64);
}

DAT_LMR_PARAM_MASK lmr_mask(DAT_UINT32 mask)
{
	return (DAT_LMR_PARAM_MASK)move_bits(mask, lmr_bits, COUNT(lmr_bits), UNKNOWN_32);
}

DAT_RMR_PARAM_MASK rmr_mask(DAT_UINT32 mask)
{
	return (DAT_RMR_PARAM_MASK)move_bits(mask, rmr_bits, COUNT(rmr_bits), UNKNOWN_32);
}

/* --- enumerations --------------------------------------------------------------- */

DAT_EP_STATE ep_state_to_1_2(DAT_EP_STATE state)
{
	if (state == DAT_EP_STATE_CONNECTED_SINGLE_PATH || state == DAT_EP_STATE_CONNECTED_MULTI_PATH)
		return DAT_EP_STATE_CONNECTED;
	return state;
}

/* In 1.2 OPERATIONAL is 0 and ERROR is 1; a queue that is shut down is of no use either. */
DAT_SRQ_STATE srq_state_to_1_2(DAT_SRQ_STATE state)
{
	return (DAT_SRQ_STATE)(state == DAT_SRQ_STATE_OPERATIONAL ? 0 : 1);
}

/* In 1.2 DAT_PZ_SAME is between the two. */
DAT_PZ_SUPPORT pz_support_to_1_2(DAT_PZ_SUPPORT support)
{
	return (DAT_PZ_SUPPORT)(support == DAT_PZ_SHAREABLE ? 2 : 0);
}

DAT_DTO_COMPLETION_STATUS dto_status_to_1_2(DAT_DTO_COMPLETION_STATUS status)
{
	return status == DAT_DTO_ERR_LOCAL_MM_ERROR ? DAT_DTO_ERR_LOCAL_PROTECTION : status;
}
