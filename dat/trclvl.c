/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* trclvl.c - the registry's trace level at run time (<dat/dat_trace.h>). Each provider has a level of its
 * own. */
#include "common/trace.h"
#include "dat/error.h"
#include "dat/registry.h"
#include <dat/dat_trace.h>

static DAT_RETURN check(DAT_TRC_COMPONENT component)
{
	if (component == DAT_TRC_DAPL)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	if (component != DAT_TRC_DAT)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	registry_start();	/* which reads DAT_TRACE_LEVEL, and must not do so later */
	return DAT_SUCCESS;
}

EXPORT DAT_RETURN dat_trclvl_query(DAT_TRC_COMPONENT component, DAT_UINT32 *level)
{
	DAT_RETURN ret = check(component);

	if (ret)
		return ret;
	if (!level)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	*level = __atomic_load_n(&trace_level, __ATOMIC_RELAXED);
	return DAT_SUCCESS;
}

EXPORT DAT_RETURN dat_trclvl_modify(DAT_TRC_COMPONENT component, DAT_UINT32 level)
{
	DAT_RETURN ret = check(component);

	if (ret)
		return ret;
	if (level > DAT_TRC_LVL_MAX)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	trace_set_level(level);
	return DAT_SUCCESS;
}
