/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* variables.h - the environment variables that the libraries read, for messages and tools.
 * dat.conf(5) and dapl-environment(7) explain them; test/lint/variables compares the table with the code.
 *
 * X(name, library, min, max, default, meaning): 0, 0 is a value that is no number; "" is a default that the
 * device or the path gives. */
#ifndef COMMON_VARIABLES_H
#define COMMON_VARIABLES_H

#define ENVIRONMENT_VARIABLES(X) \
	X(DAT_OVERRIDE, "libdat2", 0, 0, "", "the file to use instead of dat.conf") \
	X(DAT_TEST_ROOT, "libdat2", 0, 0, "", "a directory in front of the system's paths, for tests") \
	X(DAT_DBG_TYPE, "libdat2", 0, 0xffffffff, "1", "mask of the messages that are printed") \
	X(DAT_DBG_DEST, "libdat2", 0, 5, "0", "where messages go") \
	X(DAT_TRACE_LEVEL, "libdat2", 0, 10, "0", "level of the trace records") \
	X(DAPL_DBG_TYPE, "providers", 0, 0xffffffff, "3", "mask of the messages that are printed") \
	X(DAPL_DBG_LEVEL, "providers", 0, 0xffffffff, "0", "short form of DAPL_DBG_TYPE") \
	X(DAPL_DBG_DEST, "providers", 0, 5, "0", "where messages go") \
	X(DAPL_CONTROL, "providers", 0, 1, "1", "0: no control socket") \
	X(DAPL_TRACE_LEVEL, "providers", 0, 10, "0", "level of the trace records") \
	X(DAPL_MAX_INLINE, "providers", 0, 65536, "64", "bytes that are copied into a request") \
	X(DAPL_WR_MAX, "providers", 1, 1 << 20, "", "limit of max_dto_per_ep") \
	X(DAPL_IB_MTU, "providers", 256, 4096, "", "limit of the path MTU, bytes") \
	X(DAPL_IB_PKEY, "providers", 0, 65535, "", "P_Key") \
	X(DAPL_IB_SL, "providers", 0, 15, "0", "service level; 0: the path's") \
	X(DAPL_GLOBAL_ROUTING, "providers", 0, 1, "0", "1: UD address handles have a global route") \
	X(DAPL_HOP_LIMIT, "providers", 0, 255, "0", "hop limit of a global route; 0 leaves it") \
	X(DAPL_TCLASS, "providers", 0, 255, "", "traffic class of a global route") \
	X(DAPL_ACK_RETRY, "providers", 0, 7, "7", "retries without an acknowledgement") \
	X(DAPL_ACK_TIMER, "providers", 0, 31, "", "time to wait for an acknowledgement, 4.096 us * 2^n") \
	X(DAPL_RNR_RETRY, "providers", 0, 7, "7", "retries when the receiver is not ready") \
	X(DAPL_RNR_TIMER, "providers", 0, 31, "12", "time between them, InfiniBand's code") \
	X(DAPL_CM_ARP_TIMEOUT_MS, "providers", 1, 600000, "4000", "one attempt to resolve an address") \
	X(DAPL_CM_ARP_RETRY_COUNT, "providers", 0, 1000, "15", "further attempts") \
	X(DAPL_CM_ROUTE_TIMEOUT_MS, "providers", 1, 600000, "4000", "one attempt to resolve a route") \
	X(DAPL_CM_ROUTE_RETRY_COUNT, "providers", 0, 1000, "15", "further attempts") \
	X(DAPL_CM_TOS, "providers", 0, 255, "", "type of service of connections") \
	X(DAPL_DSCP_HIGH_THROUGHPUT, "providers", 0, 63, "10", "code point (DSCP) for high throughput") \
	X(DAPL_DSCP_LOW_LATENCY, "providers", 0, 63, "46", "code point (DSCP) for low latency") \
	X(DAPL_DSCP_ECONOMY, "providers", 0, 63, "8", "code point (DSCP) for economy") \
	X(DAPL_DSCP_PREMIUM, "providers", 0, 63, "34", "code point (DSCP) for premium traffic") \
	X(DAPL_MAX_CM_RESPONSE_TIME, "providers", 0, 31, "0", "accepted, has no effect") \
	X(DAPL_MAX_CM_RETRIES, "providers", 0, 15, "0", "accepted, has no effect") \
	X(DAPL_SOFT_CRC, "libdaplsoft", 0, 1, "0", "1: checksums, all data over TCP") \
	X(DAPL_SOFT_SHM, "libdaplsoft", 0, 1, "1", "0: all data over TCP") \
	X(DAPL_SOFT_DIRECT, "libdaplsoft", 0, 1, "1", "0: no access to the memory of a peer on this host") \
	X(DAPL_SOFT_MAP, "libdaplsoft", 0, 1, "1", "0: no mapping of a peer's shared memory") \
	X(DAPL_SOFT_DM, "libdaplsoft", 0, 1 << 30, "16384", "device memory of the software device for one IA, KiB") \
	X(DAPL_SOFT_GUARD, "libdaplsoft", 0, 1, "0", "1: check that memory is mapped before each access") \
	X(XDG_RUNTIME_DIR, "libdaplsoft", 0, 0, "", "where the socket for peers on this host lies")

#endif
