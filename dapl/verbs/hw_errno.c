/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hw_errno.c - the error of a call of libibverbs or librdmacm, as an errno value. */
#include <errno.h>
#include "hw_errno.h"

int hw_null_errno(void)
{
	return errno ? errno : EIO;
}

int hw_errno(int rc)
{
	if (rc == -1)
		return hw_null_errno();
	return rc < 0 ? -rc : rc;
}
