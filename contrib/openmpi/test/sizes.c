/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sizes.c - tests whether structures that contain a mutex are as large here as in Open MPI's library.
 * The headers of openmpi5/ define the mutex where Open MPI does not install its own. */
#include "opal_config.h"
#include "opal/class/opal_free_list.h"
#include "opal/class/opal_hash_table.h"
#include "opal/class/opal_list.h"
#include "compat.h"
#include <stdio.h>

static int wrong;

static void compare(const char *name, size_t here, size_t there)
{
	if (here == there)
		return;
	fprintf(stderr, "%s: %zu bytes in the headers, %zu in the library\n", name, here, there);
	wrong = 1;
}
#define COMPARE(type) compare(#type, sizeof(type), OBJ_CLASS(type)->cls_sizeof)

int main(void)
{
	COMPARE(opal_mutex_t);
	COMPARE(opal_free_list_t);
	COMPARE(opal_free_list_item_t);
	COMPARE(opal_list_t);
	COMPARE(opal_hash_table_t);
	COMPARE(mca_btl_base_descriptor_t);
	if (!wrong)
		puts("passed");
	return wrong;
}
