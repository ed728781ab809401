#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# tcpdump 4.99.3 shows nothing but "IP bad-len 0" of a large IPv4 frame of a device with BIG TCP: no address, no port.
#
# The total length of IPv4 has 16 bits. For a frame that exceeds 65535 bytes Linux 6.3 and later put 0 there, on devices
# with gso_ipv4_max_size or gro_ipv4_max_size above 65536. The file is right: tshark shows TCP with the length of the
# frame. Only the text of tcpdump lacks the connection; its expressions, such as "tcp port 5001", take the frame.
#
# Seen with tcpdump 4.99.3-1 and libpcap0.8 1.10.3-1 (Debian 12), frames of 1514 and 95594 bytes to port 5001:
#   IP 10.1.0.1.40000 > 10.1.0.2.5001: Flags [.], seq 1:1461, ack 1, win 62, length 1460
#   IP bad-len 0
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
    total = size - 14 if size - 14 <= 65535 else 0
    ip = struct.pack('>BBHHHBBHII', 0x45, 0, total, 0, 0x4000, 64, 6, 0, 0x0a010001, 0x0a010002)
    tcp = struct.pack('>HHIIBBHHH', 40000, 5001, 1, 1, 0x50, 0x10, 62, 0, 0)
    kept = (bytes(12) + b'\x08\0' + ip + tcp + bytes(128))[:128]
    return struct.pack('<IIII', 0, 0, len(kept), size) + kept

open('big.pcap', 'wb').write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 128, 1) + frame(1514) + frame(95594))
P
LD_LIBRARY_PATH=$(echo root/usr/lib/*-linux-gnu) timeout 20 root/usr/bin/tcpdump -tnr big.pcap tcp port 5001 > lines.txt 2> tcpdump.log
cat lines.txt
[ "$(wc -l < lines.txt)" = 2 ] || { cat tcpdump.log; echo "expected two frames to port 5001"; exit 1; }
grep -qxF 'IP 10.1.0.1.40000 > 10.1.0.2.5001: Flags [.], seq 1:1461, ack 1, win 62, length 1460' lines.txt || { echo "the short frame is shown in another way"; exit 1; }
tail -1 lines.txt | grep -qxF 'IP bad-len 0' || { echo "the large frame is shown in another way"; exit 1; }
