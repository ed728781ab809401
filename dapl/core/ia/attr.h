/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attr.h - attributes of an IA (attr.c). */
#ifndef DAPL_ATTR_H
#define DAPL_ATTR_H
#include "dapl/core/dapl.h"

struct dapl_entry;

/* Prepares ia->ia_attr, provider_attr and the named attributes from ia->attr. */
DAT_RETURN dapl_attr_prepare(struct dapl_ia *ia, const struct dapl_entry *entry);
void dapl_attr_free(struct dapl_ia *ia);
/* Checks masks and pointers, numbered as the arguments of dat_ia_query, then fills the requested
 * attributes. */
DAT_RETURN dapl_attr_fill(const struct dapl_ia *ia, DAT_IA_ATTR_MASK ia_mask,
			  DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK provider_mask,
			  DAT_PROVIDER_ATTR *provider_attr);
/* Does the same for an open IA, with its present MTU and port state. */
DAT_RETURN dapl_attr_present(struct dapl_ia *ia, DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *ia_attr,
			     DAT_PROVIDER_ATTR_MASK provider_mask,
			     DAT_PROVIDER_ATTR *provider_attr);

#endif
