/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hw_errno.h - what a call of libibverbs or librdmacm has returned, as an errno value (hw_errno.c). */
#ifndef HW_ERRNO_H
#define HW_ERRNO_H

/* Verbs return 0, an errno, a negative errno (siw) or -1 and errno. Returns 0 or a positive errno; EIO if that is 0. */
int hw_errno(int rc);

#endif
