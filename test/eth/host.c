/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* host.c - see host.h. */
#include "host.h"
#include <arpa/inet.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

size_t host_frame(const struct wire *w, uint8_t *frame, const char *to, uint16_t port, uint32_t number)
{
	size_t length = wire_udp(w, frame, to, port, HOST_PAYLOAD);

	memset(frame + HOST_NUMBER, 0, HOST_PAYLOAD);
	memcpy(frame + HOST_NUMBER, &number, sizeof number);
	wire_finish_checksums(frame, 14, 40);
	return length;
}

uint32_t host_number(const uint8_t *frame)
{
	uint32_t number;

	memcpy(&number, frame + HOST_NUMBER, sizeof number);
	return number;
}

int host_socket(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at))
		fail("no UDP socket at port %u", port);
	return fd;
}

int host_next(int fd, int milliseconds)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };
	uint8_t got[HOST_NUMBER + HOST_PAYLOAD];

	if (poll(&readable, 1, milliseconds) != 1)
		return -1;
	if (recv(fd, got + HOST_NUMBER, HOST_PAYLOAD, 0) != HOST_PAYLOAD)
		fail("a datagram of another length");
	return (int)host_number(got);
}

DAT_ETH_RULE host_rule(DAT_UINT32 mode, uint16_t port)
{
	DAT_ETH_RULE rule = { .mode = mode };

	rule.key.ip_version = 4;
	rule.mask.ip_version = 255;
	rule.key.protocol = IPPROTO_UDP;
	rule.mask.protocol = 255;
	rule.key.port_dst = htons(port);
	rule.mask.port_dst = 0xffff;
	return rule;
}

static void take_and_sleep(void (*take)(void), int ready)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);	/* the case may fail */
	take();
	if (write(ready, "", 1) == 1)
		pause();
	_exit(1);
}

pid_t host_taker(void (*take)(void))
{
	int ready[2], status;
	char byte;
	pid_t child;

	if (pipe(ready))
		fail("no pipe");
	child = fork();
	if (!child)
		take_and_sleep(take, ready[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {	/* the child has said why */
		waitpid(child, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	close(ready[0]);
	return child;
}

void host_keep_net_raw_alone(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2] = { { .effective = 1 << CAP_NET_RAW, .permitted = 1 << CAP_NET_RAW } };

	if (syscall(SYS_capset, &header, sets))
		fail("capset");
}
