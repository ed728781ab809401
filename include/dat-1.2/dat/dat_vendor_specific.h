/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_vendor_specific.h - for programs that include it beside or instead of udat.h. The DAT 1.2
 * interface is whole. */
#include "udat.h"
