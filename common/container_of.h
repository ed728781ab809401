/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* container_of.h - from a member to the struct that contains it. */
#ifndef COMMON_CONTAINER_OF_H
#define COMMON_CONTAINER_OF_H
#include <stddef.h>

#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

#endif
