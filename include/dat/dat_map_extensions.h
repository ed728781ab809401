/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_map_extensions.h - maps memory of a peer on the same host: the program stores there by the
 * processor's own instructions, without a call into the provider. An addition of these providers;
 * the old stack has nothing like it.
 *
 * The provider-specific attribute DAT_MAP_ATTR_RMR of an IA has the value "TRUE" if the IA supports
 * this. Like all extensions it goes through dat_extension_op(): the casts below fix
 * the types of its variable arguments. */
#ifndef _DAT_MAP_EXTENSIONS_H_
#define _DAT_MAP_EXTENSIONS_H_

#include "udat.h"

#define DAT_MAP_ATTR_RMR "DAT_MAP_RMR"

/* Beyond the numbers of dat_ib_extensions.h. */
typedef enum dat_map_op {
	DAT_MAP_RMR_OP = 0x400,
	DAT_MAP_UNMAP_OP
} DAT_MAP_OP;

/* dat_map_rmr(DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET *rmr, DAT_PVOID *address)
 *
 * Maps the memory that `rmr` names, of the peer that `ep` is connected to. On success *address is
 * where its first byte is in this process; otherwise it is unchanged. For this the peer registered
 * it as DAT_MEM_TYPE_SHARED_VIRTUAL, with DAT_MEM_PRIV_REMOTE_WRITE_FLAG, and it lies in a shared
 * mapping of a memfd that is sealed against shrinking and that the peer had open then. Device
 * memory (dat_dm_extensions.h) with that right is such memory, too. Where memory cannot be
 * mapped the program uses RDMA, which it needs for peers on other hosts anyway.
 *
 * A store is visible to the peer at once: stores, loads and atomic instructions of both are ordered
 * as those of two threads are. Requests on `ep` that have completed were executed before; with
 * others there is no order. The peer is neither woken nor notified.
 *
 * The mapping is the caller's until dat_map_unmap() or dat_ep_free(). It outlives the connection,
 * the registration, and the peer: then what is stored has no effect, and does no harm to the
 * caller. So dat_lmr_free() at the peer does not wait for it, as it does for RDMA. A program that
 * offers memory for this agrees with its users when they are done, or uses the memory for nothing
 * else. A child made by fork() does not have it.
 *
 * RDMA writes and atomics to memory that peers can map have a limit of the same kind:
 * dat_lmr_free() waits one second for a peer that is within one. If the peer is stopped there for
 * longer and is continued, the memory changes after dat_lmr_free(). Memory that is registered as
 * DAT_MEM_TYPE_VIRTUAL, or by a process with DAPL_SOFT_MAP=0, is never mapped by peers.
 *
 * DAT_INVALID_HANDLE		ep is no endpoint
 * DAT_INVALID_PARAMETER	ARG2: rmr is NULL, or its length is 0; ARG3: address is NULL
 * DAT_INVALID_STATE		ep is not connected
 * DAT_PRIVILEGES_VIOLATION	the peer's region has no room for the range, or no remote write
 * DAT_MODEL_NOT_SUPPORTED	the peer is not on this host; its memory is of another kind, or
 *				unknown; ep is a datagram endpoint; DAPL_SOFT_DIRECT=0 or
 *				DAPL_SOFT_MAP=0
 * DAT_INSUFFICIENT_RESOURCES	no memory, descriptors or address space
 * DAT_NOT_IMPLEMENTED		the provider cannot map at all */
#define dat_map_rmr(ep, rmr, address) \
	dat_extension_op((DAT_HANDLE)(ep), (DAT_EXTENDED_OP)DAT_MAP_RMR_OP, \
		(const DAT_RMR_TRIPLET *)(rmr), (DAT_PVOID *)(address))

/* dat_map_unmap(DAT_EP_HANDLE ep, DAT_PVOID address)
 *
 * Ends a mapping. `address` is what dat_map_rmr() on this endpoint gave; it is not valid
 * afterwards. The state of the endpoint does not matter.
 *
 * DAT_INVALID_HANDLE		ep is no endpoint
 * DAT_INVALID_PARAMETER	nothing is mapped there
 * DAT_NOT_IMPLEMENTED		the provider cannot map at all */
#define dat_map_unmap(ep, address) \
	dat_extension_op((DAT_HANDLE)(ep), (DAT_EXTENDED_OP)DAT_MAP_UNMAP_OP, \
		(DAT_PVOID)(address))

#endif
