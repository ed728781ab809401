#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Wireshark calls a large IPv6 frame of a device with BIG TCP malformed, unless ipv6.tso_support is switched on.
#
# Linux 7.3 leaves the payload length of IPv6 at 0 when joined segments have more than 65535 bytes, as it does with the total
# length of IPv4. Up to 6.18 a header with the jumbo payload option told the length, and Wireshark reads that. Of its
# two preferences for a length of 0, ip.tso_support is on and ipv6.tso_support is off. tcpdump shows "[|tcp]".
#
# Seen with tshark 4.0.17-0+deb12u3 (Debian 12), frames of 1514 and 95262 bytes to port 5001, TCP payload by tcp.len:
#   default: 1440 -; ipv6.tso_support:TRUE: 1440 95188
# Exit 0: still so. 1: the behaviour has changed. 2: cannot run here.
set -u
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
cd "$dir" && mkdir -p archives/partial root && : > none || exit 2
chmod 755 .
# tshark and all that it needs, from the packages of Debian 12
apt-get -qq -y -o Dir::State::status="$dir/none" -o Dir::Cache::archives="$dir/archives" -o APT::Sandbox::User=root \
    --no-install-recommends --download-only install tshark=4.0.17-0+deb12u3 > apt.log 2>&1 ||
    { tail -3 apt.log; echo "needs the packages of Debian 12"; exit 2; }
for deb in archives/*.deb; do dpkg -x "$deb" root || exit 2; done
libraries=$(echo root/usr/lib/*-linux-gnu):$(echo root/lib/*-linux-gnu)
lengths() {    # OPTIONS...: prints the length of the TCP payload of each frame, or -
    HOME=$dir WIRESHARK_DATA_DIR=$dir/root/usr/share/wireshark timeout 60 \
        "$(echo root/lib64/ld-linux-x86-64.so.2)" --library-path "$libraries" root/usr/bin/tshark "$@" -r big.pcap \
        -T fields -e tcp.len 2> tshark.err | sed 's/^$/-/' | paste -sd' '
}
python3 - <<'P' || exit 2
import struct

def frame(size):    # the first 128 bytes of a frame with TCP data, which has `size` bytes
    payload = size - 54 if size - 54 <= 65535 else 0
    ends = bytes.fromhex('fd01') + bytes(13) + b'\1' + bytes.fromhex('fd01') + bytes(13) + b'\2'
    ip = struct.pack('>IHBB', 6 << 28, payload, 6, 64) + ends
    tcp = struct.pack('>HHIIBBHHH', 40000, 5001, 1, 1, 0x50, 0x10, 62, 0, 0)
    kept = (bytes(12) + b'\x86\xdd' + ip + tcp + bytes(128))[:128]
    return struct.pack('<IIII', 0, 0, len(kept), size) + kept

open('big.pcap', 'wb').write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 128, 1) + frame(1514) + frame(95262))
P
seen="default: $(lengths); ipv6.tso_support:TRUE: $(lengths -o ipv6.tso_support:TRUE)"
echo "$seen"
[ "$seen" = "default: 1440 -; ipv6.tso_support:TRUE: 1440 95188" ] || { cat tshark.err; echo "other lengths than before"; exit 1; }
