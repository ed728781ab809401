#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# libpcap ends reading at a pcapng packet that is longer than the snapshot length of its interface; the same packet in a
# pcap file is cut to that length, and reading goes on.
#
# A program that captures under a snapshot length and puts a VLAN tag back into the frame writes such packets. tshark
# reads both files, and the whole packet.
#
# Seen with tcpdump 4.99.3-1 and libpcap0.8 1.10.3-1 (Debian 12), a packet of 68 bytes under a snapshot length of 64:
#   pcapng: tcpdump: pcap_loop: invalid packet capture length 68, bigger than snaplen of 64
#   pcap: the packet, exit status 0
# Exit 0: still so. 1: the behaviour has changed. 2: cannot run here.
set -u
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2
chmod 755 . && apt-get -q download tcpdump=4.99.3-1 libpcap0.8=1.10.3-1 > apt.log 2>&1 || { tail -3 apt.log; echo "needs the packages of Debian 12"; exit 2; }
for deb in *.deb; do dpkg -x "$deb" root || exit 2; done
python3 - <<'P' || exit 2
import struct

def block(kind, body):
    return struct.pack('<II', kind, 12 + len(body)) + body + struct.pack('<I', 12 + len(body))

frame = bytes(range(68))
open('long.pcapng', 'wb').write(block(0x0a0d0d0a, struct.pack('<IHHq', 0x1a2b3c4d, 1, 0, -1)) +
                                block(1, struct.pack('<HHI', 1, 0, 64)) +
                                block(6, struct.pack('<IIIII', 0, 0, 0, 68, 68) + frame))
open('long.pcap', 'wb').write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 64, 1) +
                              struct.pack('<IIII', 0, 0, 68, 68) + frame)
P
read_by_tcpdump() { LD_LIBRARY_PATH=$(echo root/usr/lib/*-linux-gnu) timeout 20 root/usr/bin/tcpdump -nr "$1" 2>&1; }
read_by_tcpdump long.pcap > pcap.txt || { tail -1 pcap.txt; echo "the pcap file is not read"; exit 1; }
if read_by_tcpdump long.pcapng > pcapng.txt; then echo "the pcapng file is read now"; exit 1; fi
grep -F 'invalid packet capture length 68' pcapng.txt || { tail -1 pcapng.txt; echo "another error than before"; exit 1; }
