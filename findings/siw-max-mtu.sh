#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# siw of Linux 6.12 reports a largest MTU of 256 and an active MTU of 1024: the limit is below what is active.
#
# On Linux 6.1 both are 1024, that of a network device with an MTU of 1500. A program that takes the smaller of the two
# goes on with 256. Connections of siw do not depend on either: TCP decides. libdaplofa reports the active MTU.
#
# Seen with rdma-core 44.0 (ibverbs-utils 44.0-2, Debian 12) on Linux 6.12.117, ibv_devinfo of siw on a device with MTU 1500:
#   max_mtu: 256 (1)
#   active_mtu: 1024 (3)
# Exit 0: still so. 1: the behaviour has changed. 2: cannot run here: needs a siw device, and Linux 6.12 or later.
# In the machine: ./bootstrap vm --kernel trixie -- findings/siw-max-mtu.sh
set -u
grep -qs . /sys/class/infiniband/siw*/node_guid || { echo "needs a siw device"; exit 2; }
[ "$(printf '%s\n' 6.12 "$(uname -r)" | sort -V | head -1)" = 6.12 ] || { echo "needs Linux 6.12 or later"; exit 2; }
command -v ibv_devinfo > /dev/null || { echo "needs ibverbs-utils"; exit 2; }
device=$(basename "$(echo /sys/class/infiniband/siw* | cut -d' ' -f1)")
seen=$(ibv_devinfo -d "$device" | sed -n 's/^[[:space:]]*\(max_mtu\|active_mtu\):[[:space:]]*/\1: /p')
echo "$seen"
[ "$seen" = "$(printf '%s\n' 'max_mtu: 256 (1)' 'active_mtu: 1024 (3)')" ] || { echo "other values than before"; exit 1; }
