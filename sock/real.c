/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* real.c - finds the functions of libc behind the interposed ones. A function that this libc lacks stays NULL: a
 * program that runs with this libc does not call it. */
#include "sock/real.h"
#include <dlfcn.h>

struct real real_functions;
bool real_ready;

/* Constructors of other libraries call interposed functions before this library's own has run. Two threads that come
 * here at a time store the same. */
void real_init(void)
{
#define X(type, name, args) *(void **)&real_functions.name = dlsym(RTLD_NEXT, #name);
	REAL_FUNCTIONS(X)
#undef X
	__atomic_store_n(&real_ready, true, __ATOMIC_RELEASE);
}
