/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* carrier.c - asks this process's own control socket for its endpoints (carrier.h). */
#include "carrier.h"
#include "../control/client.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void take_carrier(const json_t *answer, char *text, size_t size)
{
	json_t *endpoint;
	size_t i;

	json_array_foreach(json_object_get(answer, "endpoints"), i, endpoint) {
		const char *carrier = json_string_value(json_object_get(endpoint, "carrier"));

		if (carrier && !*text)
			snprintf(text, size, "%s", carrier);
	}
}

void carrier_find(char *text, size_t size)
{
	size_t count;
	struct control_socket *sockets = control_find(getpid(), &count);
	char why[256];

	*text = '\0';
	for (size_t i = 0; i < count && !*text; i++) {
		json_t *answer = control_ask(&sockets[i], CONTROL_ENDPOINTS, NULL, why, sizeof why);

		take_carrier(answer, text, size);
		json_decref(answer);
	}
	free(sockets);
}
