/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hw_errno.h - the error of a call of libibverbs or librdmacm, as an errno value (hw_errno.c). */
#ifndef HW_ERRNO_H
#define HW_ERRNO_H

/* Of a call that returns an int: 0, an errno, a negative errno (siw), or -1 with errno set. Returns 0 or a positive
 * errno; EIO if the call returned -1 and errno is 0. */
int hw_errno(int rc);
/* Of a call that returned NULL: errno, or EIO if errno is 0. */
int hw_null_errno(void);

#endif
