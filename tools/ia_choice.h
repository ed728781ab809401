/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia_choice.h - the interface adapter that a tool opens, if its user names an entry of dat.conf, a network device, or
 * none. */
#ifndef TOOLS_IA_CHOICE_H
#define TOOLS_IA_CHOICE_H
#include <stdbool.h>

/* Returns the name of the only configured adapter, valid until the program ends. If there are several, a usage error
 * says that `option` is missing, and lists them; without any the program fails. */
const char *only_ia(const char *option);

/* Returns whether dat.conf has an entry of this name. */
bool ia_is_configured(const char *name);
/* Makes an entry of the software device with this name and these ia_params. Such entries are the whole dat.conf of this
 * process. Call it before the registry reads its entries, at the first look for one. */
void ia_make_up(const char *name, const char *params);

/* Returns the adapter for `name`, the value of `option`; NULL: only_ia(). The name of an entry stays as it is. Of a
 * network device that has no entry of its name it is the entry "ofa-v2-NAME", which stands for RDMA on it, or else one
 * of the software device, which is made up. The result is valid as long as `name`, or until the program ends. */
const char *ia_choose(const char *option, const char *name);

#endif
