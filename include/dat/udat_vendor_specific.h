/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udat_vendor_specific.h - the uDAPL part of dat_vendor_specific.h; empty, too. */
#ifndef _UDAT_VENDOR_SPECIFIC_H_
#define _UDAT_VENDOR_SPECIFIC_H_

#include "dat_vendor_specific.h"

#endif
