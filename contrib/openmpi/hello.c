/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hello.c - the private data of a connection request and its answer (hello.h). */
#include "hello.h"
#include <string.h>

struct udapl_hello udapl_hello_own(const mca_btl_udapl_module_t *m)
{
	return (struct udapl_hello){
		.magic = htonl(UDAPL_MAGIC),
		.jobid = htonl(OPAL_PROC_MY_NAME.jobid),
		.vpid = htonl(OPAL_PROC_MY_NAME.vpid),
		.qualifier = htonl(m->address.qualifier),
		.message_size = htonl(m->message_size),
		.credits = htonl(mca_btl_udapl_component.credits),
	};
}

bool udapl_hello_parse(const mca_btl_udapl_module_t *m, const void *data, DAT_COUNT size,
		       struct udapl_hello *h)
{
	if (!data || size < (DAT_COUNT)sizeof *h)
		return false;
	memcpy(h, data, sizeof *h);
	h->magic = ntohl(h->magic);
	h->jobid = ntohl(h->jobid);
	h->vpid = ntohl(h->vpid);
	h->qualifier = ntohl(h->qualifier);
	h->message_size = ntohl(h->message_size);
	h->credits = ntohl(h->credits);
	return h->magic == UDAPL_MAGIC && h->message_size == m->message_size;
}
