/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hw_errno.c - what a call of libibverbs or librdmacm has returned, as an errno value. */
#include <errno.h>
#include "hw_errno.h"

int hw_errno(int rc)
{
	if (rc == -1)
		return errno ? errno : EIO;
	return rc < 0 ? -rc : rc;
}
