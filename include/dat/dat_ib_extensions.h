/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_ib_extensions.h - the InfiniBand extension, version 2.0.9: atomics, RDMA write with
 * immediate data, unreliable datagrams, counters, collectives, open-query.
 *
 * An IA with this extension has DAT_EXTENSION_IB in its attributes; the single features
 * are provider-specific named attributes. Everything goes through dat_extension_op(): the
 * casts in the macros below are part of the ABI, they fix the types of its variable
 * arguments. Each call returns DAT_SUCCESS or a value whose type, DAT_GET_TYPE(value), is in
 * its list. DAT_INVALID_PARAMETER names an argument by its place in the macro: the first is
 * DAT_INVALID_ARG1. A call that fails changes nothing. */
#ifndef _DAT_IB_EXTENSIONS_H_
#define _DAT_IB_EXTENSIONS_H_

#include <netinet/in.h>
#include "udat.h"

/* 2.0.1 atomics, write with immediate	2.0.6 collectives
 * 2.0.2 UD				2.0.7 more IA counters, start and stop
 * 2.0.3 counters			2.0.8 open-query and close-query
 * 2.0.4 UD reject event		2.0.9 UD CM free and AH free
 * 2.0.5 UD error events */
#define DAT_IB_EXTENSION_VERSION 209	/* ABI-22 */

struct ibv_ah;	/* <infiniband/verbs.h>; needed by programs that look inside */

#ifdef __cplusplus
extern "C" {
#endif

/* --- named attributes -------------------------------------------------------- */

#define DAT_IB_ATTR_COUNTERS      "DAT_COUNTERS"
#define DAT_IB_ATTR_FETCH_AND_ADD "DAT_IB_FETCH_AND_ADD"
#define DAT_IB_ATTR_CMP_AND_SWAP  "DAT_IB_CMP_AND_SWAP"
#define DAT_IB_ATTR_IMMED_DATA    "DAT_IB_IMMED_DATA"
#define DAT_IB_ATTR_UD            "DAT_IB_UD"

#define DAT_IB_COLL_SET_CLOCK     "DAT_COLL_SET_CLOCK"
#define DAT_IB_COLL_READ_CLOCK    "DAT_COLL_READ_CLOCK"
#define DAT_IB_COLL_BROADCAST     "DAT_COLL_BROADCAST"
#define DAT_IB_COLL_BARRIER       "DAT_COLL_BARRIER"
#define DAT_IB_COLL_SCATTER       "DAT_COLL_SCATTER"
#define DAT_IB_COLL_SCATTERV      "DAT_COLL_SCATTERV"
#define DAT_IB_COLL_GATHER        "DAT_COLL_GATHER"
#define DAT_IB_COLL_GATHERV       "DAT_COLL_GATHERV"
#define DAT_IB_COLL_ALLGATHER     "DAT_COLL_ALLGATHER"
#define DAT_IB_COLL_ALLGATHERV    "DAT_COLL_ALLGATHERV"
#define DAT_IB_COLL_ALLTOALL      "DAT_COLL_ALLTOALL"
#define DAT_IB_COLL_ALLTOALLV     "DAT_COLL_ALLTOALLV"
#define DAT_IB_COLL_REDUCE        "DAT_COLL_REDUCE"
#define DAT_IB_COLL_ALLREDUCE     "DAT_COLL_ALLREDUCE"
#define DAT_IB_COLL_REDUCE_SCATTER "DAT_COLL_REDUCE_SCATTER"
#define DAT_IB_COLL_SCAN          "DAT_COLL_SCAN"

/* --- extended ranges --------------------------------------------------------- */

typedef enum dat_ib_event_number {
	DAT_IB_DTO_EVENT = DAT_IB_EXTENSION_RANGE_BASE,
	DAT_IB_UD_CONNECTION_REQUEST_EVENT,
	DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED,
	DAT_IB_UD_CONNECTION_REJECT_EVENT,
	DAT_IB_UD_CONNECTION_ERROR_EVENT,
	DAT_IB_COLLECTIVE_EVENT
} DAT_IB_EVENT_NUMBER;

/* In DAT_DTO_COMPLETION_EVENT_DATA.operation. */
typedef enum dat_ib_dtos {
	DAT_IB_DTO_RDMA_WRITE_IMMED = DAT_DTO_EXTENSION_BASE,
	DAT_IB_DTO_RECV_IMMED,
	DAT_IB_DTO_FETCH_ADD,
	DAT_IB_DTO_CMP_SWAP,
	DAT_IB_DTO_RECV_MSG_IMMED,
	DAT_IB_DTO_SEND_UD,
	DAT_IB_DTO_RECV_UD,
	DAT_IB_DTO_RECV_UD_IMMED,
	DAT_IB_DTO_COLLECTIVES
} DAT_IB_DTOS;

typedef enum dat_ib_handle_type {
	DAT_IB_HANDLE_TYPE_EXT = DAT_HANDLE_TYPE_EXTENSION_BASE,
	DAT_IB_HANDLE_TYPE_COLLECTIVE
} DAT_IB_HANDLE_TYPE;

typedef enum dat_ib_evd_extension_flags {
	DAT_IB_EVD_EXTENSION_FLAG = DAT_EVD_EXTENSION_BASE
} DAT_IB_EVD_EXTENSION_FLAGS;

/* Both sides of an atomic: on top of the ordinary privileges. */
typedef enum dat_ib_mem_priv_flags {
	DAT_IB_MEM_PRIV_REMOTE_ATOMIC = DAT_MEM_PRIV_EXTENSION_BASE
} DAT_IB_MEM_PRIV_FLAGS;

typedef enum dat_ib_service_type {
	DAT_IB_SERVICE_TYPE_UD = DAT_SERVICE_TYPE_EXTENSION_BASE
} DAT_IB_SERVICE_TYPE;

/* The second differs in the subtype only. */
typedef enum dat_ib_return {
	DAT_IB_ERR = DAT_EXTENSION_BASE,
	DAT_IB_COLLECTIVE_ERR
} DAT_IB_RETURN;

typedef enum dat_ib_op {
	DAT_IB_FETCH_AND_ADD_OP = 0,
	DAT_IB_CMP_AND_SWAP_OP,
	DAT_IB_RDMA_WRITE_IMMED_OP,
	DAT_IB_UD_SEND_OP,
	DAT_IB_QUERY_COUNTERS_OP,
	DAT_IB_PRINT_COUNTERS_OP,
	/* collectives */
	DAT_IB_COLLECTIVE_CREATE_MEMBER_OP,
	DAT_IB_COLLECTIVE_FREE_MEMBER_OP,
	DAT_IB_COLLECTIVE_CREATE_GROUP_OP,
	DAT_IB_COLLECTIVE_FREE_GROUP_OP,
	DAT_IB_COLLECTIVE_SET_CLOCK_OP,
	DAT_IB_COLLECTIVE_READ_CLOCK_OP,
	DAT_IB_COLLECTIVE_SCATTER_OP,
	DAT_IB_COLLECTIVE_SCATTERV_OP,
	DAT_IB_COLLECTIVE_GATHER_OP,
	DAT_IB_COLLECTIVE_GATHERV_OP,
	DAT_IB_COLLECTIVE_ALLGATHER_OP,
	DAT_IB_COLLECTIVE_ALLGATHERV_OP,
	DAT_IB_COLLECTIVE_ALLTOALL_OP,
	DAT_IB_COLLECTIVE_ALLTOALLV_OP,
	DAT_IB_COLLECTIVE_REDUCE_OP,
	DAT_IB_COLLECTIVE_ALLREDUCE_OP,
	DAT_IB_COLLECTIVE_REDUCE_SCATTER_OP,
	DAT_IB_COLLECTIVE_SCAN_OP,
	DAT_IB_COLLECTIVE_BROADCAST_OP,
	DAT_IB_COLLECTIVE_BARRIER_OP,
	/* counters and UD again */
	DAT_IB_START_COUNTERS_OP,
	DAT_IB_STOP_COUNTERS_OP,
	DAT_IB_UD_CM_FREE_OP,
	DAT_IB_UD_AH_FREE_OP,
	/* done by the registry */
	DAT_IB_OPEN_QUERY_OP = DAT_OPEN_EXTENSION_BASE,
	DAT_IB_CLOSE_QUERY_OP = DAT_CLOSE_EXTENSION_BASE
} DAT_IB_OP;

/* --- events ------------------------------------------------------------------ */

/* Types of the events of the extension. */
typedef enum dat_ib_ext_type {
	DAT_IB_FETCH_AND_ADD = 0,
	DAT_IB_CMP_AND_SWAP,
	DAT_IB_RDMA_WRITE_IMMED,
	/* at the target, which learns the data */
	DAT_IB_RDMA_WRITE_IMMED_DATA,
	DAT_IB_RECV_IMMED_DATA,
	DAT_IB_UD_CONNECT_REQUEST,
	/* event data has an address handle */
	DAT_IB_UD_REMOTE_AH,
	DAT_IB_UD_PASSIVE_REMOTE_AH,
	DAT_IB_UD_SEND,
	DAT_IB_UD_RECV,
	DAT_IB_UD_CONNECT_REJECT,
	DAT_IB_UD_CONNECT_ERROR,
	DAT_IB_COLLECTIVE_CREATE_STATUS,
	DAT_IB_COLLECTIVE_CREATE_DATA,
	DAT_IB_COLLECTIVE_CLOCK_SET_STATUS,
	DAT_IB_COLLECTIVE_SCATTER_STATUS,
	DAT_IB_COLLECTIVE_SCATTERV_STATUS,
	DAT_IB_COLLECTIVE_GATHER_STATUS,
	DAT_IB_COLLECTIVE_GATHERV_STATUS,
	DAT_IB_COLLECTIVE_ALLGATHER_STATUS,
	DAT_IB_COLLECTIVE_ALLGATHERV_STATUS,
	DAT_IB_COLLECTIVE_ALLTOALL_STATUS,
	DAT_IB_COLLECTIVE_ALLTOALLV_STATUS,
	DAT_IB_COLLECTIVE_REDUCE_STATUS,
	DAT_IB_COLLECTIVE_ALLREDUCE_STATUS,
	DAT_IB_COLLECTIVE_REDUCE_SCATTER_STATUS,
	DAT_IB_COLLECTIVE_SCAN_STATUS,
	DAT_IB_COLLECTIVE_BROADCAST_STATUS,
	DAT_IB_COLLECTIVE_BARRIER_STATUS
} DAT_IB_EXT_TYPE;

typedef enum dat_ib_status {
	DAT_OP_SUCCESS = DAT_SUCCESS,
	DAT_IB_OP_ERR,
	DAT_IB_COLL_COMP_ERR
} DAT_IB_STATUS;

/* How to reach a UD peer. Belongs to the endpoint until dat_ib_ud_ah_free(). */
typedef struct dat_ib_addr_handle {
	struct ibv_ah *ah;
	DAT_UINT32 qpn;
	DAT_SOCK_ADDR6 ia_addr;
} DAT_IB_ADDR_HANDLE;

typedef struct dat_ib_immed_data {
	DAT_UINT32 data;	/* host byte order, at both ends */
} DAT_IB_IMMED_DATA;

typedef DAT_HANDLE DAT_IB_COLLECTIVE_HANDLE;

typedef struct dat_ib_collective_event_data {
	DAT_HANDLE handle;
	DAT_CONTEXT context;
} DAT_IB_COLLECTIVE_EVENT_DATA;

/* What DAT_EVENT.event_extension_data holds when the event number is of this extension. ABI-21. */
typedef struct dat_ib_extension_event_data {
	DAT_IB_EXT_TYPE type;
	DAT_IB_STATUS status;
	union {
		DAT_IB_IMMED_DATA immed;
	} val;
	union {
		DAT_IB_ADDR_HANDLE remote_ah;
		DAT_IB_COLLECTIVE_EVENT_DATA coll;
	};
	DAT_CONTEXT context;	/* names the connection to dat_ib_ud_cm_free() */
} DAT_IB_EXTENSION_EVENT_DATA;

/* --- counters ---------------------------------------------------------------- */

/* Index into the counters of an IA, EP or EVD. *_ALL_COUNTERS is their number; as index
 * it means all of them. */
typedef enum dat_ia_counters {
	/* calls */
	DCNT_IA_PZ_CREATE = 0,
	DCNT_IA_PZ_FREE,
	DCNT_IA_LMR_CREATE,
	DCNT_IA_LMR_FREE,
	DCNT_IA_RMR_CREATE,
	DCNT_IA_RMR_FREE,
	DCNT_IA_PSP_CREATE,
	DCNT_IA_PSP_CREATE_ANY,
	DCNT_IA_PSP_FREE,
	DCNT_IA_RSP_CREATE,
	DCNT_IA_RSP_FREE,
	DCNT_IA_EVD_CREATE,
	DCNT_IA_EVD_FREE,
	DCNT_IA_EP_CREATE,
	DCNT_IA_EP_FREE,
	DCNT_IA_SRQ_CREATE,
	DCNT_IA_SRQ_FREE,
	DCNT_IA_SP_CR,
	DCNT_IA_SP_CR_ACCEPTED,
	DCNT_IA_SP_CR_REJECTED,
	/* memory and device events */
	DCNT_IA_MEM_ALLOC,
	DCNT_IA_MEM_ALLOC_DATA,
	DCNT_IA_MEM_FREE,
	DCNT_IA_ASYNC_ERROR,
	DCNT_IA_ASYNC_QP_ERROR,
	DCNT_IA_ASYNC_CQ_ERROR,
	/* DCNT_IA_CM: connection management */
	DCNT_IA_CM_LISTEN,
	DCNT_IA_CM_REQ_TX,
	DCNT_IA_CM_REQ_RX,
	DCNT_IA_CM_REP_TX,
	DCNT_IA_CM_REP_RX,
	DCNT_IA_CM_RTU_TX,
	DCNT_IA_CM_RTU_RX,
	DCNT_IA_CM_USER_REJ_TX,
	DCNT_IA_CM_USER_REJ_RX,
	DCNT_IA_CM_ACTIVE_EST,
	DCNT_IA_CM_PASSIVE_EST,
	DCNT_IA_CM_AH_REQ_TX,
	DCNT_IA_CM_AH_REQ_RX,
	DCNT_IA_CM_AH_RESOLVED,
	DCNT_IA_CM_DREQ_TX,
	DCNT_IA_CM_DREQ_RX,
	DCNT_IA_CM_DREP_TX,
	DCNT_IA_CM_DREP_RX,
	DCNT_IA_CM_MRA_TX,
	DCNT_IA_CM_MRA_RX,
	DCNT_IA_CM_REQ_FULLQ_POLL,
	/* and what went wrong there */
	DCNT_IA_CM_ERR,
	DCNT_IA_CM_ERR_REQ_FULLQ,
	DCNT_IA_CM_ERR_REQ_DUP,
	DCNT_IA_CM_ERR_REQ_RETRY,
	DCNT_IA_CM_ERR_REP_DUP,
	DCNT_IA_CM_ERR_REP_RETRY,
	DCNT_IA_CM_ERR_RTU_DUP,
	DCNT_IA_CM_ERR_RTU_RETRY,
	DCNT_IA_CM_ERR_REFUSED,
	DCNT_IA_CM_ERR_RESET,
	DCNT_IA_CM_ERR_TIMEOUT,
	DCNT_IA_CM_ERR_REJ_TX,
	DCNT_IA_CM_ERR_REJ_RX,
	DCNT_IA_CM_ERR_DREQ_DUP,
	DCNT_IA_CM_ERR_DREQ_RETRY,
	DCNT_IA_CM_ERR_DREP_DUP,
	DCNT_IA_CM_ERR_DREP_RETRY,
	DCNT_IA_CM_ERR_MRA_DUP,
	DCNT_IA_CM_ERR_MRA_RETRY,
	DCNT_IA_CM_ERR_UNEXPECTED,
	/* DCNT_IA_LNK: the port */
	DCNT_IA_LNK_ERR_RCV,
	DCNT_IA_LNK_ERR_RCV_REM_PHYS,
	DCNT_IA_LNK_ERR_RCV_CONSTRAINT,
	DCNT_IA_LNK_ERR_XMT_DISCARDS,
	DCNT_IA_LNK_ERR_XMT_CONTRAINT,
	DCNT_IA_LNK_ERR_INTEGRITY,
	DCNT_IA_LNK_ERR_EXC_BUF_OVERRUN,
	DCNT_IA_LNK_WARN_RCV_SW_RELAY,
	DCNT_IA_LNK_WARN_XMT_WAIT,
	/* DCNT_IA_DIAG: the device */
	DCNT_IA_DIAG_ERR_RQ_RAE,
	DCNT_IA_DIAG_ERR_RQ_OOS,
	DCNT_IA_DIAG_ERR_RQ_RIRE,
	DCNT_IA_DIAG_ERR_RQ_UDSDPRD,
	DCNT_IA_DIAG_ERR_SQ_RAE,
	DCNT_IA_DIAG_ERR_SQ_OOS,
	DCNT_IA_DIAG_ERR_SQ_RIRE,
	DCNT_IA_DIAG_ERR_SQ_RREE,
	DCNT_IA_DIAG_ERR_SQ_TREE,
	DCNT_IA_ALL_COUNTERS
} DAT_IA_COUNTERS;

typedef enum dat_ep_counters {
	DCNT_EP_CONNECT = 0,
	DCNT_EP_DISCONNECT,
	DCNT_EP_POST_SEND,
	DCNT_EP_POST_SEND_DATA,
	DCNT_EP_POST_SEND_UD,
	DCNT_EP_POST_SEND_UD_DATA,
	DCNT_EP_POST_RECV,
	DCNT_EP_POST_RECV_DATA,
	DCNT_EP_POST_WRITE,
	DCNT_EP_POST_WRITE_DATA,
	DCNT_EP_POST_WRITE_IMM,
	DCNT_EP_POST_WRITE_IMM_DATA,
	DCNT_EP_POST_READ,
	DCNT_EP_POST_READ_DATA,
	DCNT_EP_POST_CMP_SWAP,
	DCNT_EP_POST_FETCH_ADD,
	DCNT_EP_RECV,
	DCNT_EP_RECV_DATA,
	DCNT_EP_RECV_UD,
	DCNT_EP_RECV_UD_DATA,
	DCNT_EP_RECV_IMM,
	DCNT_EP_RECV_IMM_DATA,
	DCNT_EP_RECV_RDMA_IMM,
	DCNT_EP_RECV_RDMA_IMM_DATA,
	DCNT_EP_ALL_COUNTERS
} DAT_EP_COUNTERS;

typedef enum dat_evd_counters {
	DCNT_EVD_WAIT = 0,
	DCNT_EVD_WAIT_BLOCKED,
	DCNT_EVD_WAIT_NOTIFY,
	DCNT_EVD_DEQUEUE,
	DCNT_EVD_DEQUEUE_FOUND,
	DCNT_EVD_DEQUEUE_NOT_FOUND,
	DCNT_EVD_DEQUEUE_POLL,
	DCNT_EVD_DEQUEUE_POLL_FOUND,
	DCNT_EVD_CONN_CALLBACK,
	DCNT_EVD_DTO_CALLBACK,
	DCNT_EVD_ALL_COUNTERS
} DAT_EVD_COUNTERS;

typedef enum dat_ia_counter_type {
	DCNT_IA_CM,
	DCNT_IA_LNK,
	DCNT_IA_DIAG
} DAT_IA_COUNTER_TYPE;

/* --- collectives ------------------------------------------------------------- */

typedef enum dat_ib_collective_data_type {
	DAT_IB_COLLECTIVE_TYPE_INT8 = 0,
	DAT_IB_COLLECTIVE_TYPE_UINT8,
	DAT_IB_COLLECTIVE_TYPE_INT16,
	DAT_IB_COLLECTIVE_TYPE_UINT16,
	DAT_IB_COLLECTIVE_TYPE_INT32,
	DAT_IB_COLLECTIVE_TYPE_UINT32,
	DAT_IB_COLLECTIVE_TYPE_INT64,
	DAT_IB_COLLECTIVE_TYPE_UINT64,
	DAT_IB_COLLECTIVE_TYPE_FLOAT,
	DAT_IB_COLLECTIVE_TYPE_DOUBLE,
	DAT_IB_COLLECTIVE_TYPE_LONG_DOUBLE,
	DAT_IB_COLLECTIVE_TYPE_SHORT_INT,
	DAT_IB_COLLECTIVE_TYPE_2INT,
	DAT_IB_COLLECTIVE_TYPE_FLOAT_INT,
	DAT_IB_COLLECTIVE_TYPE_LONG_INT,
	DAT_IB_COLLECTIVE_TYPE_DOUBLE_INT
} DAT_IB_COLLECTIVE_DATA_TYPE;

typedef enum dat_ib_collective_reduce_data_op {
	DAT_IB_COLLECTIVE_REDUCE_OP_MAX = 0,
	DAT_IB_COLLECTIVE_REDUCE_OP_MIN,
	DAT_IB_COLLECTIVE_REDUCE_OP_SUM,
	DAT_IB_COLLECTIVE_REDUCE_OP_PROD,
	DAT_IB_COLLECTIVE_REDUCE_OP_LAND,
	DAT_IB_COLLECTIVE_REDUCE_OP_BAND,
	DAT_IB_COLLECTIVE_REDUCE_OP_LOR,
	DAT_IB_COLLECTIVE_REDUCE_OP_BOR,
	DAT_IB_COLLECTIVE_REDUCE_OP_LXOR,
	DAT_IB_COLLECTIVE_REDUCE_OP_BXOR,
	DAT_IB_COLLECTIVE_REDUCE_OP_MAXLOC,
	DAT_IB_COLLECTIVE_REDUCE_OP_MINLOC
} DAT_IB_COLLECTIVE_REDUCE_DATA_OP;

typedef unsigned int DAT_IB_COLLECTIVE_RANK;
typedef unsigned int DAT_IB_COLLECTIVE_ID;
typedef void *DAT_IB_COLLECTIVE_MEMBER;

/* The arrays are the consumer's. */
typedef struct dat_ib_collective_group {
	int local_size;
	int local_rank;
	int *local_ranks;
	int external_size;
	int external_rank;
	int *external_ranks;
	int *intranode_table;
	int *internode_table;
	int is_comm_world;
} DAT_IB_COLLECTIVE_GROUP;

/* --- words for errors -------------------------------------------------------- */

/* dat_strerror()'s major message, for return types of the extension too. */
static inline DAT_RETURN DAT_API
dat_strerror_extension(IN DAT_IB_RETURN value, OUT const char **message)
{
	const char *minor_message;
	DAT_UINT32 number = (DAT_UINT32)value & ~DAT_CLASS_ERROR;

	if (number == (DAT_UINT32)DAT_IB_COLLECTIVE_ERR)
		*message = "DAT_IB_COLLECTIVE_ERR";
	else if (DAT_GET_TYPE(number) == (DAT_UINT32)DAT_IB_ERR)
		*message = "DAT_IB_ERR";
	else
		return dat_strerror((DAT_RETURN)value, message, &minor_message);
	return DAT_SUCCESS;
}

/* The status of an extension event as text; a blank for success, as in earlier versions. */
static inline DAT_RETURN DAT_API
dat_strerror_ext_status(IN DAT_IB_STATUS value, OUT const char **message)
{
	switch (value) {
	case DAT_OP_SUCCESS:
		*message = " ";
		return DAT_SUCCESS;
	case DAT_IB_OP_ERR:
		*message = "DAT_IB_OP_ERR";
		return DAT_SUCCESS;
	case DAT_IB_COLL_COMP_ERR:
		*message = "DAT_IB_COLL_COMP_ERR";
		return DAT_SUCCESS;
	}
	*message = "unknown extension status";
	return DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG1;
}

/* --- operations: atomics and immediate data ---------------------------------- */

/* Common to the posts below. `lbuf` and `rbuf` are copied; the memory that they name belongs to
 * the transfer until its completion: a DAT_IB_DTO_EVENT on the request EVD, which needs
 * DAT_IB_EVD_EXTENSION_FLAG. `cookie` and `flags` are as in dat_ep_post_send(). All return
 *
 * DAT_INVALID_HANDLE		ep is no endpoint
 * DAT_INVALID_PARAMETER	a segment or an address is NULL, there are too many segments, a flag
 *				is unknown, or ep has the wrong service type
 * DAT_INVALID_STATE		ep is not connected
 * DAT_INSUFFICIENT_RESOURCES	the request queue is full
 * DAT_LENGTH_ERROR		see each call
 * DAT_NOT_IMPLEMENTED		the IA has no atomics, or no immediate data */

/* dat_ib_post_fetch_and_add(DAT_EP_HANDLE ep, DAT_UINT64 add_val, DAT_LMR_TRIPLET *lbuf,
 *		DAT_DTO_COOKIE cookie, DAT_RMR_TRIPLET *rbuf, DAT_COMPLETION_FLAGS flags)
 *
 * Adds `add_val` to an 8-byte word of the peer, at an address that is a multiple of 8. `lbuf`, one
 * segment of 8 bytes, gets the value from before. Values are in host byte order. The word's region
 * has the rights to read and write and DAT_IB_MEM_PRIV_REMOTE_ATOMIC. Atomic with regard to other
 * such operations through the same IA of the peer.
 *
 * DAT_LENGTH_ERROR		lbuf is not of 8 bytes, or rbuf has fewer */
#define dat_ib_post_fetch_and_add(ep, add_val, lbuf, cookie, rbuf, flgs) \
	dat_extension_op((DAT_HANDLE)(ep), DAT_IB_FETCH_AND_ADD_OP, (DAT_UINT64)(add_val), \
		(DAT_LMR_TRIPLET *)(lbuf), (cookie), (DAT_RMR_TRIPLET *)(rbuf), \
		(DAT_COMPLETION_FLAGS)(flgs))

/* dat_ib_post_cmp_and_swap(DAT_EP_HANDLE ep, DAT_UINT64 cmp_val, DAT_UINT64 swap_val,
 *		DAT_LMR_TRIPLET *lbuf, DAT_DTO_COOKIE cookie, DAT_RMR_TRIPLET *rbuf,
 *		DAT_COMPLETION_FLAGS flags)
 *
 * Replaces the word by `swap_val` if it equals `cmp_val`. In either case `lbuf` gets the value from
 * before. Segments, rights and errors are those of dat_ib_post_fetch_and_add(). */
#define dat_ib_post_cmp_and_swap(ep, cmp_val, swap_val, lbuf, cookie, rbuf, flgs) \
	dat_extension_op((DAT_HANDLE)(ep), DAT_IB_CMP_AND_SWAP_OP, (DAT_UINT64)(cmp_val), \
		(DAT_UINT64)(swap_val), (DAT_LMR_TRIPLET *)(lbuf), (cookie), \
		(DAT_RMR_TRIPLET *)(rbuf), (DAT_COMPLETION_FLAGS)(flgs))

/* dat_ib_post_rdma_write_immed(DAT_EP_HANDLE ep, DAT_COUNT size, DAT_LMR_TRIPLET *lbuf,
 *		DAT_DTO_COOKIE cookie, DAT_RMR_TRIPLET *rbuf, DAT_UINT32 idata,
 *		DAT_COMPLETION_FLAGS flags)
 *
 * Writes the `size` segments of `lbuf` to `rbuf`, then completes one receive of the peer, whose
 * buffer is not touched: a DAT_IB_DTO_EVENT of the type DAT_IB_RDMA_WRITE_IMMED_DATA with the
 * length of the write and `idata`, the same number at both ends. The EVD of that receive needs
 * DAT_IB_EVD_EXTENSION_FLAG, too.
 *
 * DAT_LENGTH_ERROR		the target is shorter than the data */
#define dat_ib_post_rdma_write_immed(ep, size, lbuf, cookie, rbuf, idata, flgs) \
	dat_extension_op((DAT_HANDLE)(ep), DAT_IB_RDMA_WRITE_IMMED_OP, (DAT_COUNT)(size), \
		(DAT_LMR_TRIPLET *)(lbuf), (cookie), (DAT_RMR_TRIPLET *)(rbuf), \
		(DAT_UINT32)(idata), (DAT_COMPLETION_FLAGS)(flgs))

/* --- operations: UD ---------------------------------------------------------- */

/* dat_ib_post_send_ud(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET *lbuf,
 *		DAT_IB_ADDR_HANDLE *ah_ptr, DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
 *
 * Sends one datagram, of at most the MTU in bytes, to the peer of an address handle. That comes
 * with DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED. A datagram may be lost. It is received behind 40
 * bytes of routing header, which its length includes, so receive buffers have 40 bytes more. The
 * errors are those of the posts above, and DAT_INVALID_PARAMETER for an address handle that is not
 * of `ep`.
 *
 * DAT_LENGTH_ERROR		the datagram is longer than the MTU that was last seen */
#define dat_ib_post_send_ud(ep, segments, lbuf, ah_ptr, cookie, flgs) \
	dat_extension_op((DAT_HANDLE)(ep), DAT_IB_UD_SEND_OP, (DAT_COUNT)(segments), \
		(DAT_LMR_TRIPLET *)(lbuf), (DAT_IB_ADDR_HANDLE *)(ah_ptr), (cookie), \
		(DAT_COMPLETION_FLAGS)(flgs))

/* dat_ep_post_recv() by another name: arguments and errors are the same. */
#define dat_ib_post_recv_ud dat_ep_post_recv

/* dat_ib_ud_cm_free(DAT_EP_HANDLE ep, DAT_CONTEXT cm)
 *
 * Frees the connection that gave an address handle, once handle and private data are copied. `cm`
 * is `context` of the event's extension data. The address handle stays valid. dat_ep_free() frees
 * connections that are left.
 *
 * DAT_INVALID_HANDLE		ep is no endpoint
 * DAT_INVALID_PARAMETER	ep is not one for datagrams, or has no such connection */
#define dat_ib_ud_cm_free(ep, cm) \
	dat_extension_op((DAT_HANDLE)(ep), DAT_IB_UD_CM_FREE_OP, \
		__extension__ (DAT_CONTEXT)(cm))

/* dat_ib_ud_ah_free(DAT_EP_HANDLE ep, DAT_IB_ADDR_HANDLE *ah)
 *
 * Frees an address handle, after the last send to it has completed, and sets ah->ah to NULL. It
 * belongs to the endpoint until then; dat_ep_free() frees those that are left.
 *
 * DAT_INVALID_HANDLE		ep is no endpoint
 * DAT_INVALID_PARAMETER	ep is not one for datagrams, or ah is NULL or not of ep */
#define dat_ib_ud_ah_free(ep, ah) \
	dat_extension_op((DAT_HANDLE)(ep), DAT_IB_UD_AH_FREE_OP, \
		(DAT_IB_ADDR_HANDLE *)(ah))

/* --- operations: counters ---------------------------------------------------- */

/* dat_ib_query_counters(DAT_HANDLE dat_handle, int cntr, DAT_UINT64 *p_cntrs_out, int reset)
 *
 * Reads one counter, or all if `cntr` is DCNT_IA_, DCNT_EP_ or DCNT_EVD_ALL_COUNTERS, which is also
 * the number of values that p_cntrs_out has room for then. The handle, of an IA, EP or EVD, selects
 * the enumeration. Names with DATA count bytes, others events. With `reset` not 0 what was read is
 * set to 0.
 *
 * DAT_INVALID_HANDLE		dat_handle names no object
 * DAT_INVALID_PARAMETER	the object has no counters, there is no such counter, or p_cntrs_out
 *				is NULL
 * DAT_NOT_IMPLEMENTED		the provider lacks DAT_IB_ATTR_COUNTERS */
#define dat_ib_query_counters(dat_handle, cntr, p_cntrs_out, reset) \
	dat_extension_op((DAT_HANDLE)(dat_handle), DAT_IB_QUERY_COUNTERS_OP, (int)(cntr), \
		(DAT_UINT64 *)(p_cntrs_out), (int)(reset))

/* dat_ib_print_counters(DAT_HANDLE dat_handle, int cntr, int reset)
 *
 * Prints one counter, or all that are not 0, where the library's messages go. Arguments and errors
 * are those of dat_ib_query_counters(). */
#define dat_ib_print_counters(dat_handle, cntr, reset) \
	dat_extension_op((DAT_HANDLE)(dat_handle), DAT_IB_PRINT_COUNTERS_OP, (int)(cntr), \
		(int)(reset))

/* dat_ib_start_counter(DAT_HANDLE dat_handle, DAT_IA_COUNTER_TYPE type)
 * dat_ib_stop_counter(DAT_HANDLE dat_handle, DAT_IA_COUNTER_TYPE type)
 *
 * Starts or stops a group of counters of an IA. Counters of the port and of the device
 * (DCNT_IA_LNK, DCNT_IA_DIAG) grow while their group runs; one that the device lacks stays 0.
 *
 * DAT_INVALID_HANDLE		dat_handle names no object
 * DAT_INVALID_PARAMETER	dat_handle is no IA, or there is no such group
 * DAT_NOT_IMPLEMENTED		the provider lacks DAT_IB_ATTR_COUNTERS */
#define dat_ib_start_counter(dat_handle, type) \
	dat_extension_op((DAT_HANDLE)(dat_handle), DAT_IB_START_COUNTERS_OP, \
		(DAT_IA_COUNTER_TYPE)(type))

#define dat_ib_stop_counter(dat_handle, type) \
	dat_extension_op((DAT_HANDLE)(dat_handle), DAT_IB_STOP_COUNTERS_OP, \
		(DAT_IA_COUNTER_TYPE)(type))

/* Old names. */
#define DAT_ATTR_COUNTERS     DAT_IB_ATTR_COUNTERS
#define DAT_QUERY_COUNTERS_OP DAT_IB_QUERY_COUNTERS_OP
#define DAT_PRINT_COUNTERS_OP DAT_IB_PRINT_COUNTERS_OP
#define dat_query_counters    dat_ib_query_counters
#define dat_print_counters    dat_ib_print_counters

/* --- operations: attributes without opening ---------------------------------- */

/* dat_ib_open_query(DAT_NAME_PTR name, DAT_IA_HANDLE *ia_handle, DAT_IA_ATTR_MASK ia_mask,
 *		DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK prov_mask,
 *		DAT_PROVIDER_ATTR *prov_attr)
 *
 * Loads the provider of an entry of dat.conf and gives what dat_ia_query() would, without an open
 * IA. *ia_handle is for dat_ib_close_query() only. Texts in the attributes are valid until that
 * call.
 *
 * DAT_PROVIDER_NOT_FOUND	no entry has this name
 * DAT_INVALID_PARAMETER	a pointer is NULL, or a mask has an unknown bit
 * DAT_INSUFFICIENT_RESOURCES	no memory or no descriptor
 * DAT_NOT_IMPLEMENTED		the provider cannot
 * another value		as of dat_ia_openv() */
#define dat_ib_open_query(name, ia_handle, ia_mask, ia_attr, prov_mask, prov_attr) \
	dat_extension_op((DAT_HANDLE)NULL, DAT_IB_OPEN_QUERY_OP, (DAT_NAME_PTR)(name), \
		(DAT_HANDLE *)(ia_handle), (DAT_IA_ATTR_MASK)(ia_mask), (DAT_IA_ATTR *)(ia_attr), \
		(DAT_PROVIDER_ATTR_MASK)(prov_mask), (DAT_PROVIDER_ATTR *)(prov_attr))

/* dat_ib_close_query(DAT_IA_HANDLE ia_handle)
 *
 * Ends a query, and frees what its attributes point to.
 *
 * DAT_INVALID_HANDLE		the handle is not of dat_ib_open_query(), or was closed */
#define dat_ib_close_query(ia_handle) \
	dat_extension_op((DAT_HANDLE)(ia_handle), DAT_IB_CLOSE_QUERY_OP)

/* --- operations: collectives ------------------------------------------------- */

/* The providers of this project have no collectives: each call below returns DAT_NOT_IMPLEMENTED,
 * and no IA has an attribute DAT_IB_COLL_*. The macros are for programs that offer them to another
 * provider. What follows is the meaning that the extension gives them.
 *
 * Sizes and displacements are bytes. Ranks are positions in `members`. Operations are asynchronous:
 * each completes with a DAT_IB_COLLECTIVE_EVENT on the EVD of the group, which has `user_context`,
 * unless `flags` suppress it. Buffers and arrays belong to the operation until then. A NULL buffer
 * at the root stands for data in place. */

/* dat_ib_collective_create_member(DAT_IA_HANDLE ia_handle, void *progress_func,
 *		DAT_IB_COLLECTIVE_MEMBER *member, DAT_UINT32 *member_size)
 *
 * Makes a member: *member points to its address, of *member_size bytes. Members exchange these
 * outside of DAT. progress_func, a function of the program, is passed on to the provider. The
 * caller frees the member with dat_ib_collective_free_member(). */
#define dat_ib_collective_create_member(ia_handle, progress_func, member, member_size) \
	dat_extension_op((DAT_HANDLE)(ia_handle), DAT_IB_COLLECTIVE_CREATE_MEMBER_OP, \
		__extension__ (void *)(progress_func), (DAT_IB_COLLECTIVE_MEMBER *)(member), \
		(DAT_UINT32 *)(member_size))

/* dat_ib_collective_free_member(DAT_IA_HANDLE ia_handle, DAT_IB_COLLECTIVE_MEMBER member)
 *
 * Frees a member that dat_ib_collective_create_member() made. */
#define dat_ib_collective_free_member(ia_handle, member) \
	dat_extension_op((DAT_HANDLE)(ia_handle), DAT_IB_COLLECTIVE_FREE_MEMBER_OP, \
		(DAT_IB_COLLECTIVE_MEMBER)(member))

/* dat_ib_collective_create_group(DAT_IB_COLLECTIVE_MEMBER *members, DAT_COUNT group_size,
 *		DAT_IB_COLLECTIVE_RANK self, DAT_IB_COLLECTIVE_ID group_id,
 *		DAT_IB_COLLECTIVE_GROUP *group_info, DAT_EVD_HANDLE evd, DAT_PZ_HANDLE pd,
 *		DAT_CONTEXT user_context)
 *
 * Makes a group of the `group_size` members, in the order of their ranks; `self` is the caller's.
 * All members call it with one `group_id`. The handle comes with an event on `evd`, of the type
 * DAT_IB_COLLECTIVE_CREATE_DATA. */
#define dat_ib_collective_create_group(members, group_size, self, group_id, group_info, \
	evd, pd, user_context) \
	dat_extension_op((DAT_HANDLE)(evd), DAT_IB_COLLECTIVE_CREATE_GROUP_OP, \
		(DAT_IB_COLLECTIVE_MEMBER *)(members), (DAT_COUNT)(group_size), \
		(DAT_IB_COLLECTIVE_RANK)(self), (DAT_IB_COLLECTIVE_ID)(group_id), \
		(DAT_IB_COLLECTIVE_GROUP *)(group_info), (DAT_PZ_HANDLE)(pd), \
		__extension__ (DAT_CONTEXT)(user_context))

/* dat_ib_collective_free_group(DAT_IB_COLLECTIVE_HANDLE coll_handle)
 *
 * Frees a group, whose handle is no longer valid. */
#define dat_ib_collective_free_group(coll_handle) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_FREE_GROUP_OP)

/* Sets the clock of a group, and reads it. Setting completes with an event, reading at once. */
#define dat_ib_collective_set_clock(coll_handle, clock_value, user_context) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_SET_CLOCK_OP, \
		(DAT_UINT64)(clock_value), __extension__ (DAT_CONTEXT)(user_context))

#define dat_ib_collective_read_clock(coll_handle, clock_value) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_READ_CLOCK_OP, \
		(DAT_UINT64 *)(clock_value))

/* Scatter: member i gets the i-th part of the root's `sendbuf`. `sendsize` counts all parts and is
 * a multiple of the number of members. scatterv: part i has sendsizes[i] bytes, at displs[i]. */
#define dat_ib_collective_scatter(coll_handle, sendbuf, sendsize, recvbuf, recvsize, root, \
	user_context, flags) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_SCATTER_OP, \
		(DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
		(DAT_COUNT)(recvsize), (DAT_IB_COLLECTIVE_RANK)(root), \
		__extension__ (DAT_CONTEXT)(user_context), (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_scatterv(coll_handle, sendbuf, sendsizes, displs, recvbuf, \
	recvsize, root, user_context, flags) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_SCATTERV_OP, \
		(DAT_PVOID)(sendbuf), (DAT_COUNT *)(sendsizes), (DAT_COUNT *)(displs), \
		(DAT_PVOID)(recvbuf), (DAT_COUNT)(recvsize), (DAT_IB_COLLECTIVE_RANK)(root), \
		__extension__ (DAT_CONTEXT)(user_context), (DAT_COMPLETION_FLAGS)(flags))

/* Gather: the root's `recvbuf` gets the `sendsize` bytes of each member, in the order of ranks.
 * gatherv: those of member i are recvsizes[i] bytes, and go to displs[i]. */
#define dat_ib_collective_gather(coll_handle, sendbuf, sendsize, recvbuf, recvsize, root, \
	user_context, flags) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_GATHER_OP, \
		(DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
		(DAT_COUNT)(recvsize), (DAT_IB_COLLECTIVE_RANK)(root), \
		__extension__ (DAT_CONTEXT)(user_context), (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_gatherv(coll_handle, sendbuf, sendsize, recvbufs, recvsizes, \
	displs, root, user_context, flags) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_GATHERV_OP, \
		(DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbufs), \
		(DAT_COUNT *)(recvsizes), (DAT_COUNT *)(displs), (DAT_IB_COLLECTIVE_RANK)(root), \
		__extension__ (DAT_CONTEXT)(user_context), (DAT_COMPLETION_FLAGS)(flags))

/* Allgather, allgatherv: gather, gatherv with the result at all members. */
#define dat_ib_collective_allgather(coll_handle, sendbuf, sendsize, recvbuf, recvsize, \
	user_context, flags) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_ALLGATHER_OP, \
		(DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
		(DAT_COUNT)(recvsize), __extension__ (DAT_CONTEXT)(user_context), \
		(DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_allgatherv(coll_handle, sendbuf, sendsize, recvbuf, recvsizes, \
	displs, user_context, flags) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_ALLGATHERV_OP, \
		(DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
		(DAT_COUNT *)(recvsizes), (DAT_COUNT *)(displs), \
		__extension__ (DAT_CONTEXT)(user_context), (DAT_COMPLETION_FLAGS)(flags))

/* Alltoall: member j gets the j-th part of each member's `sendbuf`, in the order of ranks.
 * alltoallv: sizes and displacements of the parts are in arrays, an entry for each member. */
#define dat_ib_collective_alltoall(coll_handle, sendbuf, sendsize, recvbuf, recvsize, \
	user_context, flags) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_ALLTOALL_OP, \
		(DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
		(DAT_COUNT)(recvsize), __extension__ (DAT_CONTEXT)(user_context), \
		(DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_alltoallv(coll_handle, sendbuf, sendsizes, senddspls, recvbuf, \
	recvsizes, recvdispls, user_context, flags) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_ALLTOALLV_OP, \
		(DAT_PVOID)(sendbuf), (DAT_COUNT *)(sendsizes), (DAT_COUNT *)(senddspls), \
		(DAT_PVOID)(recvbuf), (DAT_COUNT *)(recvsizes), (DAT_COUNT *)(recvdispls), \
		__extension__ (DAT_CONTEXT)(user_context), (DAT_COMPLETION_FLAGS)(flags))

/* Reduce: combines the members' elements of `type` by `op`; the root gets the result. allreduce:
 * all members do. reduce_scatter: member i gets the part of recvsizes[i] bytes. scan: member i gets
 * the result of the members 0 to i. MAXLOC and MINLOC need a type of a value and a rank. Floating
 * point with a logical operation is an error. */
#define dat_ib_collective_reduce(coll_handle, sendbuf, sendsize, recvbuf, recvsize, op, \
	type, root, user_context, flags) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_REDUCE_OP, \
		(DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
		(DAT_COUNT)(recvsize), (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op), \
		(DAT_IB_COLLECTIVE_DATA_TYPE)(type), (DAT_IB_COLLECTIVE_RANK)(root), \
		__extension__ (DAT_CONTEXT)(user_context), (DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_allreduce(coll_handle, sendbuf, sendsize, recvbuf, recvsize, op, \
	type, user_context, flags) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_ALLREDUCE_OP, \
		(DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
		(DAT_COUNT)(recvsize), (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op), \
		(DAT_IB_COLLECTIVE_DATA_TYPE)(type), __extension__ (DAT_CONTEXT)(user_context), \
		(DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_reduce_scatter(coll_handle, sendbuf, sendsize, recvbuf, \
	recvsizes, op, type, user_context, flags) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_REDUCE_SCATTER_OP, \
		(DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
		(DAT_COUNT *)(recvsizes), (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op), \
		(DAT_IB_COLLECTIVE_DATA_TYPE)(type), __extension__ (DAT_CONTEXT)(user_context), \
		(DAT_COMPLETION_FLAGS)(flags))

#define dat_ib_collective_scan(coll_handle, sendbuf, sendsize, recvbuf, recvsize, op, type, \
	user_context, flags) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_SCAN_OP, \
		(DAT_PVOID)(sendbuf), (DAT_COUNT)(sendsize), (DAT_PVOID)(recvbuf), \
		(DAT_COUNT)(recvsize), (DAT_IB_COLLECTIVE_REDUCE_DATA_OP)(op), \
		(DAT_IB_COLLECTIVE_DATA_TYPE)(type), __extension__ (DAT_CONTEXT)(user_context), \
		(DAT_COMPLETION_FLAGS)(flags))

/* Broadcast: the `size` bytes of the root's `buf` come to all members' `buf`. */
#define dat_ib_collective_broadcast(coll_handle, buf, size, root, user_context, flags) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_BROADCAST_OP, \
		(DAT_PVOID)(buf), (DAT_COUNT)(size), (DAT_IB_COLLECTIVE_RANK)(root), \
		__extension__ (DAT_CONTEXT)(user_context), (DAT_COMPLETION_FLAGS)(flags))

/* Barrier: completes once all members have called it. */
#define dat_ib_collective_barrier(coll_handle, user_context, flags) \
	dat_extension_op((DAT_HANDLE)(coll_handle), DAT_IB_COLLECTIVE_BARRIER_OP, \
		__extension__ (DAT_CONTEXT)(user_context), (DAT_COMPLETION_FLAGS)(flags))

#ifdef __cplusplus
}
#endif

#endif
