#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# A program with an open siw device learns of the device's removal only if rdma_cm was loaded after ib_uverbs.
#
# The kernel tells its RDMA modules of a removal in turn, the last loaded first. siw cannot take a device away from
# programs, so ib_uverbs waits until every program has closed it. If ib_uverbs comes before rdma_cm, no program gets
# RDMA_CM_EVENT_DEVICE_REMOVAL, and `rdma link delete` waits for programs that know of nothing. Verbs report nothing
# in either order: no IBV_EVENT_DEVICE_FATAL. Which order a system has depends on what its modules need: on Linux 6.1
# rdma_rxe loads ib_uverbs early, on 7.3 it does not.
#
# Seen on Linux 6.1 and 7.3.4 with rdma-core 44.0 (Debian 12):
#   rdma_cm loaded last: told of the removal
#   ib_uverbs loaded last: told of nothing in 5 s
# Exit 0: still so. 1: the behaviour has changed. 2: cannot run here: needs root, the device siw0 on siwd0, the modules
# of the running kernel, gcc, libibverbs-dev and librdmacm-dev.
# In the machine: ./bootstrap vm --kernel trixie-backports -- findings/siw-removal-module-order.sh
set -u
[ "$(id -u)" = 0 ] && [ -e /sys/class/infiniband/siw0 ] && [ -e /sys/class/net/siwd0 ] ||
    { echo "needs root and the device siw0 on siwd0"; exit 2; }
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
cat > "$dir/told.c" <<'CODE'
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	inet_pton(AF_INET, argv[1], &at.sin_addr);
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(id, (struct sockaddr *)&at) || !id->verbs || rdma_listen(id, 1)) {
		perror("listen");
		return 2;
	}
	if (system("rdma link delete siw0 &"))
		return 2;
	if (!poll(&(struct pollfd){ .fd = channel->fd, .events = POLLIN }, 1, 5000)) {
		puts("told of nothing in 5 s");
		return 0;
	}
	if (rdma_get_cm_event(channel, &event))
		return 2;
	puts(event->event == RDMA_CM_EVENT_DEVICE_REMOVAL ? "told of the removal" : rdma_event_str(event->event));
	return 0;
}
CODE
gcc -o "$dir/told" "$dir/told.c" -lrdmacm -libverbs || exit 2
address=$(ip -4 -o addr show dev siwd0 | awk '{sub("/.*", "", $4); print $4; exit}')

loaded_last() {    # MODULE OTHER: prints what a program is told
    modprobe -r rdma_ucm ib_umad rdma_cm 2>/dev/null
    modprobe -r rdma_rxe 2>/dev/null
    rdma link delete siw0 2>/dev/null
    modprobe -r ib_uverbs 2>/dev/null || { modprobe -r siw && modprobe -r ib_uverbs; } || exit 2    # 6.12: siw needs it
    modprobe "$2" && modprobe "$1" && modprobe rdma_ucm || exit 2
    grep -q "^siw " /proc/modules || modprobe siw || exit 2
    [ -e /sys/class/infiniband/siw0 ] || rdma link add siw0 type siw netdev siwd0 || exit 2
    for ((i = 0; i < 50; i++)); do
        [ -z "$(ls -A /sys/class/infiniband_verbs 2>/dev/null | grep uverbs)" ] || break
        sleep 0.1
    done
    sleep 1
    "$dir/told" "$address"
    for ((i = 0; i < 100; i++)); do    # the program has ended: the link goes
        [ -e /sys/class/infiniband/siw0 ] || break
        sleep 0.1
    done
}
rdma link delete rxe0 2>/dev/null
cm_last=$(loaded_last rdma_cm ib_uverbs) || exit 2
uverbs_last=$(loaded_last ib_uverbs rdma_cm) || exit 2
echo "rdma_cm loaded last: $cm_last"
echo "ib_uverbs loaded last: $uverbs_last"
[ "$cm_last" = "told of the removal" ] && [ "$uverbs_last" = "told of nothing in 5 s" ] || exit 1
