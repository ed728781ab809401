/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia_params.h - reads the ia_params of an entry, dat.conf's seventh field: "name port". The device decides
 * what the name stands for (interface, address, host, device). */
#ifndef COMMON_IA_PARAMS_H
#define COMMON_IA_PARAMS_H
#include <stddef.h>

struct ia_params {
	char name[256];		/* "" if the text is blank */
	unsigned port;		/* 0 if none is given */
};

/* Returns NULL, or what is wrong with `text`, for a message. */
const char *ia_params_read(struct ia_params *params, const char *text);
/* As ia_params_read(), but words may follow the port: `rest` gets them, "" if there are none. */
const char *ia_params_read_first(struct ia_params *params, const char *text, const char **rest);
/* Copies `text` for a message: '?' for what is not printable, "..." at the end if it is cut to `size`.
 * Returns `buffer`. */
const char *ia_params_printable(const char *text, char *buffer, size_t size);

#endif
