/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_vendor_specific.h - names of single vendors would come here. There are none: what
 * differs between devices is told by named attributes at run time (dat_trace.h,
 * dat_ib_extensions.h). */
#ifndef _DAT_VENDOR_SPECIFIC_H_
#define _DAT_VENDOR_SPECIFIC_H_

#endif
