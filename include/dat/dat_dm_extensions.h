/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_dm_extensions.h - memory of the device: a program allocates a piece of it, registers it,
 * copies data in and out, and names it in requests as it names its own memory. An addition of
 * these providers; the old stack has nothing like it.
 *
 * RDMA adapters of some kinds have such memory on the chip. The software device uses memory that
 * its peers on the same host read and write themselves. The provider-specific attribute
 * DAT_DM_ATTR_SIZE of an IA tells how much it has. Like all extensions the calls go through
 * dat_extension_op(): the casts below fix the types of its variable arguments. Where an argument
 * is wrong, DAT_INVALID_PARAMETER names its place among those of dat_extension_op(): the handle
 * is DAT_INVALID_ARG1, the operation DAT_INVALID_ARG2. */
#ifndef _DAT_DM_EXTENSIONS_H_
#define _DAT_DM_EXTENSIONS_H_

#include "udat.h"

/* Bytes that an IA can give out, a decimal number. Absent: none. */
#define DAT_DM_ATTR_SIZE "DAT_DM_SIZE"
/* Offsets and lengths of copies and of LMRs are multiples of it: "1" or "4". */
#define DAT_DM_ATTR_UNIT "DAT_DM_UNIT"
/* "TRUE": dat_dm_map() works. */
#define DAT_DM_ATTR_MAP "DAT_DM_MAP"

/* The mem_type that dat_lmr_query() returns for an LMR of device memory. */
#define DAT_DM_MEM_TYPE ((DAT_MEM_TYPE)0x10)

typedef DAT_HANDLE DAT_DM_HANDLE;
/* What dat_get_handle_type() returns for such a handle. */
#define DAT_HANDLE_TYPE_DM ((DAT_HANDLE_TYPE)(DAT_HANDLE_TYPE_EXTENSION_BASE + 1))

/* Beyond the numbers of dat_map_extensions.h. */
typedef enum dat_dm_op {
	DAT_DM_ALLOC_OP = 0x500,
	DAT_DM_FREE_OP,
	DAT_DM_LMR_CREATE_OP,
	DAT_DM_COPY_TO_OP,
	DAT_DM_COPY_FROM_OP,
	DAT_DM_MAP_OP
} DAT_DM_OP;

/* dat_dm_alloc(DAT_IA_HANDLE ia, DAT_VLEN length, DAT_UINT32 log2_alignment, DAT_DM_HANDLE *dm)
 *
 * Allocates device memory, whose bytes are all 0, at an address that is a multiple of
 * 1 << log2_alignment. A device may round the length up, so several allocations can have less room
 * than DAT_DM_ATTR_SIZE says.
 *
 * DAT_INVALID_HANDLE		ia is no IA, or one of a process that has forked since
 * DAT_INVALID_PARAMETER	ARG3: the length is 0 or above DAT_DM_ATTR_SIZE; ARG4: the alignment
 *				is above 12; ARG5: dm is NULL
 * DAT_INSUFFICIENT_RESOURCES	the device has less memory left
 * DAT_MODEL_NOT_SUPPORTED	the IA has no device memory */
#define dat_dm_alloc(ia, length, log2_alignment, dm) \
	dat_extension_op((DAT_HANDLE)(ia), (DAT_EXTENDED_OP)DAT_DM_ALLOC_OP, (DAT_VLEN)(length), \
		(DAT_UINT32)(log2_alignment), (DAT_DM_HANDLE *)(dm))

/* dat_dm_free(DAT_DM_HANDLE dm)
 *
 * Frees device memory. A mapping of dat_dm_map() goes with it.
 *
 * DAT_INVALID_HANDLE		dm is no device memory of this process
 * DAT_INVALID_STATE		LMR_IN_USE: there is an LMR of it; nothing was freed */
#define dat_dm_free(dm) \
	dat_extension_op((DAT_HANDLE)(dm), (DAT_EXTENDED_OP)DAT_DM_FREE_OP)

/* dat_dm_lmr_create(DAT_DM_HANDLE dm, DAT_VLEN offset, DAT_VLEN length, DAT_PZ_HANDLE pz,
 *		     DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_HANDLE *lmr,
 *		     DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context)
 *
 * Registers a part of device memory. In triplets, local and remote, virtual_address counts from
 * the first byte of this part. Otherwise it is an LMR like any other: it can be used in all
 * requests, and is freed by dat_lmr_free(). dat_lmr_query() returns mem_type DAT_DM_MEM_TYPE, va_type
 * DAT_VA_TYPE_ZB, registered_address 0, and dm in region_description.for_va. lmr_context and
 * rmr_context may be NULL. From the first LMR whose addresses count from 0 on, endpoints of its
 * PZ do not send data inline (dat_dm(7)).
 *
 * DAT_INVALID_HANDLE		dm is no device memory of this process; pz is no PZ of its IA
 * DAT_INVALID_PARAMETER	ARG3: offset is outside, or no multiple of DAT_DM_ATTR_UNIT; ARG4:
 *				the same of the length, or it is 0; ARG6: privileges; ARG7: lmr
 *				is NULL
 * DAT_INSUFFICIENT_RESOURCES	the device has no more regions, or there is no memory
 * DAT_MODEL_NOT_SUPPORTED	atomics are asked for, and the IA has none */
#define dat_dm_lmr_create(dm, offset, length, pz, privileges, lmr, lmr_context, rmr_context) \
	dat_extension_op((DAT_HANDLE)(dm), (DAT_EXTENDED_OP)DAT_DM_LMR_CREATE_OP, \
		(DAT_VLEN)(offset), (DAT_VLEN)(length), (DAT_PZ_HANDLE)(pz), \
		(DAT_MEM_PRIV_FLAGS)(privileges), (DAT_LMR_HANDLE *)(lmr), \
		(DAT_LMR_CONTEXT *)(lmr_context), (DAT_RMR_CONTEXT *)(rmr_context))

/* dat_dm_copy_to(DAT_DM_HANDLE dm, DAT_VLEN offset, const void *from, DAT_VLEN length)
 *
 * Copies into device memory. When the call returns, requests that are posted afterwards, and
 * peers, read what was copied. While peers access the memory, each unit of DAT_DM_ATTR_UNIT
 * bytes is copied whole, in any order.
 *
 * DAT_INVALID_HANDLE		dm is no device memory of this process
 * DAT_INVALID_PARAMETER	ARG3: offset is outside, or no multiple of DAT_DM_ATTR_UNIT; ARG4:
 *				from is NULL; ARG5: the same of the length. Nothing was copied
 * DAT_MODEL_NOT_SUPPORTED	the device's driver cannot copy */
#define dat_dm_copy_to(dm, offset, from, length) \
	dat_extension_op((DAT_HANDLE)(dm), (DAT_EXTENDED_OP)DAT_DM_COPY_TO_OP, \
		(DAT_VLEN)(offset), (const void *)(from), (DAT_VLEN)(length))

/* dat_dm_copy_from(DAT_DM_HANDLE dm, DAT_VLEN offset, void *to, DAT_VLEN length)
 *
 * Copies out of device memory. What a request has written there is read once the request has
 * completed. Otherwise as dat_dm_copy_to(). */
#define dat_dm_copy_from(dm, offset, to, length) \
	dat_extension_op((DAT_HANDLE)(dm), (DAT_EXTENDED_OP)DAT_DM_COPY_FROM_OP, \
		(DAT_VLEN)(offset), (void *)(to), (DAT_VLEN)(length))

/* dat_dm_map(DAT_DM_HANDLE dm, DAT_PVOID *address)
 *
 * Gives the address of the first byte of the memory in this process, for use by
 * loads, stores and atomic instructions, until dat_dm_free(). The address is the same at each
 * call. A child made by fork() does not have the memory.
 *
 * DAT_INVALID_HANDLE		dm is no device memory of this process
 * DAT_INVALID_PARAMETER	ARG3: address is NULL
 * DAT_MODEL_NOT_SUPPORTED	the device cannot: there is no attribute DAT_DM_ATTR_MAP */
#define dat_dm_map(dm, address) \
	dat_extension_op((DAT_HANDLE)(dm), (DAT_EXTENDED_OP)DAT_DM_MAP_OP, (DAT_PVOID *)(address))

#endif
