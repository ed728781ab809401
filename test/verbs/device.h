/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.h - replaces operations of each RDMA device that is opened, as its driver would set them (device.c). A
 * library to be preloaded is made of it and of the two functions that say what is replaced. */
#ifndef VERBS_FAKE_DEVICE_H
#define VERBS_FAKE_DEVICE_H
#include <infiniband/verbs.h>

/* The function of this name that the program would have without the library. */
#define REAL(name) ((__typeof__(name) *)fake_find_real(#name))
void *fake_find_real(const char *name);

/* The library's own. Once for each open device: */
void fake_replace(struct ibv_context *context, struct verbs_context *verbs);
/* Adds to the answer of the device's query. */
void fake_describe(struct ibv_device_attr_ex *attr);

#endif
