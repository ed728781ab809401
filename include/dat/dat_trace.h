/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_trace.h - trace levels at run time, and the names of vendor attributes.
 *
 * An IA whose vendor attributes (DAT_IA_ATTR.vendor_attr) include DAT_ATTR_VENDOR_EXTENSION has the
 * two functions below. libdat2 exports its own (component DAT_TRC_DAT only); the provider's, which
 * serve both components, are not exported: the `value` of the attribute DAT_ATTR_DEBUG_QUERY or
 * DAT_ATTR_DEBUG_MODIFY is the function's address, not text, to be cast to DAT_TRCLVL_QUERY_FUNC or
 * DAT_TRCLVL_MODIFY_FUNC. They are valid while the IA is open. The interface is the one AIX has;
 * the levels are those of DAT_TRACE_LEVEL and DAPL_TRACE_LEVEL. */
#ifndef _DAT_TRACE_H_
#define _DAT_TRACE_H_

#include "dat.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Vendor attributes of an IA. The first two tell the version of this interface, "1.0". */
#define DAT_ATTR_VENDOR_EXTENSION   "vendor_extension"
#define DAT_ATTR_VENDOR_EXT_VERSION "vendor_ext_version"
#define DAT_ATTR_DEBUG_QUERY        "debug_query"
#define DAT_ATTR_DEBUG_MODIFY       "debug_modify"
#define DAT_ATTR_DEBUG_DUMP         "debug_dump"

/* "true" or "false": whether endpoints may set DAT_ATTR_DELAYED_ACK, their provider-specific
 * attribute, to "true" with dat_ep_modify(). */
#define DAT_ATTR_DELAYED_ACK_SUPPORTED "delayed_ack_supported"
#define DAT_ATTR_DELAYED_ACK           "delayed_ack"

/* A level includes the lower ones; the numbers between the names are levels too. */
#define DAT_TRC_LVL_OFF    0
#define DAT_TRC_LVL_ERROR  1
#define DAT_TRC_LVL_NORMAL 3
#define DAT_TRC_LVL_DETAIL 7
#define DAT_TRC_LVL_MAX    10

typedef enum dat_trc_component {
	DAT_TRC_DAT,	/* the registry */
	DAT_TRC_DAPL	/* the provider */
} DAT_TRC_COMPONENT;

extern DAT_RETURN DAT_API dat_trclvl_query(IN DAT_TRC_COMPONENT component,
	OUT DAT_UINT32 *level);
extern DAT_RETURN DAT_API dat_trclvl_modify(IN DAT_TRC_COMPONENT component,
	IN DAT_UINT32 level);

typedef DAT_RETURN (DAT_API *DAT_TRCLVL_QUERY_FUNC)(IN DAT_TRC_COMPONENT component,
	OUT DAT_UINT32 *level);
typedef DAT_RETURN (DAT_API *DAT_TRCLVL_MODIFY_FUNC)(IN DAT_TRC_COMPONENT component,
	IN DAT_UINT32 level);

/* The value of DAT_ATTR_DEBUG_DUMP: writes the last trace records of the provider, those of
 * all its threads in their order, a line each, to a file descriptor. A signal handler may
 * call it. An addition of these providers, which AIX does not have. */
typedef void (DAT_API *DAT_TRC_DUMP_FUNC)(IN int fd);

#ifdef __cplusplus
}
#endif

#endif
