#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# libpcap's "tcp port N" leaves out the large frames of a TCP connection over IPv6 on a device with BIG TCP.
#
# A frame whose payload exceeds 65535 bytes has a hop-by-hop header with the jumbo payload option in front of the TCP
# header. The expression looks for TCP right behind the IPv6 header only. So a capture of a connection has its
# acknowledgements and short frames, and lacks most of its data. "ip6 protochain 6" finds both, without the port.
# Seen first with veth of Linux 6.18 after gso_max_size 200000: 85 frames with the expression, 203 without it.
#
# Seen with tcpdump 4.99.3-1 and libpcap0.8 1.10.3-1 (Debian 12), frames of 1514 and 95262 bytes to port 5001:
#   no expression: 2 frames; tcp port 5001: 1 frame; ip6 protochain 6: 2 frames
# Exit 0: still so. 1: the behaviour has changed. 2: cannot run here.
set -u
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2
chmod 755 . && apt-get -q download tcpdump=4.99.3-1 libpcap0.8=1.10.3-1 > apt.log 2>&1 || { tail -3 apt.log; echo "needs the packages of Debian 12"; exit 2; }
for deb in *.deb; do dpkg -x "$deb" root || exit 2; done
python3 - <<'P' || exit 2
import struct

def frame(size):    # the first 128 bytes of a frame with TCP data, which has `size` bytes
    jumbo = size - 54 if size - 54 > 65535 else 0
    hop = struct.pack('>BBBBI', 6, 0, 0xc2, 4, jumbo) if jumbo else b''
    ip = struct.pack('>IHBB', 6 << 28, 0 if jumbo else size - 54, 0 if jumbo else 6, 64)
    ends = bytes.fromhex('fd01') + bytes(13) + b'\1' + bytes.fromhex('fd01') + bytes(13) + b'\2'
    tcp = struct.pack('>HHIIBBHHH', 40000, 5001, 1, 1, 0x50, 0x10, 62, 0, 0)
    kept = (bytes(12) + b'\x86\xdd' + ip + ends + hop + tcp + bytes(128))[:128]
    return struct.pack('<IIII', 0, 0, len(kept), size) + kept

open('big.pcap', 'wb').write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 128, 1) + frame(1514) + frame(95262))
P
frames() {    # EXPRESSION...: prints how many frames of the file it takes
    LD_LIBRARY_PATH=$(echo root/usr/lib/*-linux-gnu) timeout 20 root/usr/bin/tcpdump -nr big.pcap "$@" 2> tcpdump.log | wc -l
}
seen="no expression: $(frames) frames; tcp port 5001: $(frames tcp port 5001) frame; ip6 protochain 6: $(frames ip6 protochain 6) frames"
echo "$seen"
[ "$seen" = "no expression: 2 frames; tcp port 5001: 1 frame; ip6 protochain 6: 2 frames" ] || { cat tcpdump.log; echo "expected 2, 1 and 2"; exit 1; }
