/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control.c - see control.h. */
#include "test/unit/softeth/control.h"
#include "test/unit/unit.h"

void control_add(struct msghdr *message, size_t *used, int level, int type, const void *data, size_t size)
{
	struct cmsghdr *c = (struct cmsghdr *)((char *)message->msg_control + *used);

	assert_true(*used + CMSG_SPACE(size) <= message->msg_controllen);
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(c), data, size);
	*used += CMSG_SPACE(size);
}
