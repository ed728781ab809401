/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_vendor_specific.h - the place for names of single vendors. There are none: at run time, named
 * attributes tell what differs between devices (dat_trace.h, dat_ib_extensions.h). */
#ifndef _DAT_VENDOR_SPECIFIC_H_
#define _DAT_VENDOR_SPECIFIC_H_

#endif
