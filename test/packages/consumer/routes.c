/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* routes.c - a program outside of this tree: asks libdatnet for the interfaces of this host. */
#include <dat2/dat_net.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	struct dat_net_nic *nics;
	size_t count = 0;
	int rc = dat_net_nics(&nics, &count);

	if (rc || count == 0) {
		fprintf(stderr, "routes: %s, %zu interfaces; expected at least one\n", strerror(rc), count);
		return 1;
	}
	dat_net_free(nics);
	return 0;
}
