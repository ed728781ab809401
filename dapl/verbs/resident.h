/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* resident.h - keeps librdmacm loaded when the provider is unloaded (resident.c). */
#ifndef HW_RESIDENT_H
#define HW_RESIDENT_H

/* librdmacm stays loaded until the process ends. May be called again. */
void hw_keep_librdmacm(void);

#endif
