/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attributes.h - the attributes of an open IA as JSON, under the names that the headers have. */
#ifndef TOOLS_INFO_ATTRIBUTES_H
#define TOOLS_INFO_ATTRIBUTES_H
#include <dat/udat.h>
#include <jansson.h>

json_t *attributes_of_ia(const DAT_IA_ATTR *attr);
json_t *attributes_of_provider(const DAT_PROVIDER_ATTR *attr);
/* Names and texts. Values that are no texts (functions) are left out. */
json_t *attributes_named(const DAT_NAMED_ATTR *list, DAT_COUNT count);
/* What the IA can do beyond DAT 2.0, as words such as "fetch and add" and "datagrams". */
json_t *attributes_extensions(const DAT_IA_ATTR *ia, const DAT_PROVIDER_ATTR *provider);

#endif
