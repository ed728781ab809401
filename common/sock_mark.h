/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sock_mark.h - the socket option by which libdatsock marks TCP sockets before connect() and listen(), if its programs
 * in the kernel (tools/sock/option.c) are there. Linux has no such level, and answers ENOPROTOOPT without them. */
#ifndef COMMON_SOCK_MARK_H
#define COMMON_SOCK_MARK_H

enum {
	SOCK_MARK_LEVEL = 0xDA75,	/* also the name of the experiment in the TCP option */
	SOCK_MARK_OPTION = 1,		/* the value is not looked at */
};

#endif
