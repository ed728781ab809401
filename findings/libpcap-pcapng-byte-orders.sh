#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# libpcap stops at a pcapng section whose byte order differs from that of the section before it.
#
# The pcapng format begins a section with a block that says the byte order of that section; files joined by
# concatenation have sections of several machines. tshark reads both sections. libpcap looks at the length of the
# block before it looks at the byte order: 28 becomes 0x1c000000.
#
# Seen with tcpdump 4.99.3-1 and libpcap0.8 1.10.3-1 (Debian 12), tshark 4.0:
#   tcpdump: pcap_loop: pcapng block size 469762048 > maximum 16777216
# Exit 0: still so. 1: the behaviour has changed. 2: cannot run here.
set -u
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2
chmod 755 . && apt-get -q download tcpdump=4.99.3-1 libpcap0.8=1.10.3-1 > apt.log 2>&1 || { tail -3 apt.log; echo "needs the packages of Debian 12"; exit 2; }
for deb in *.deb; do dpkg -x "$deb" root || exit 2; done
python3 - <<'P' || exit 2
import struct

def block(order, kind, body):
    return struct.pack(order + 'II', kind, 12 + len(body)) + body + struct.pack(order + 'I', 12 + len(body))

def section(order):
    frame = bytes(range(60))
    return (block(order, 0x0a0d0d0a, struct.pack(order + 'IHHq', 0x1a2b3c4d, 1, 0, -1)) +
            block(order, 1, struct.pack(order + 'HHI', 1, 0, 0)) +
            block(order, 6, struct.pack(order + 'IIIII', 0, 0, 0, 60, 60) + frame))

open('one.pcapng', 'wb').write(section('>') + section('>'))
open('two.pcapng', 'wb').write(section('<') + section('>'))
P
read_by_tcpdump() { LD_LIBRARY_PATH=$(echo root/usr/lib/*-linux-gnu) timeout 20 root/usr/bin/tcpdump -nr "$1" 2>&1; }
read_by_tcpdump one.pcapng > one.txt || { cat one.txt; echo "two sections of one byte order are not read"; exit 1; }
if read_by_tcpdump two.pcapng > two.txt; then echo "sections of two byte orders are read now"; exit 1; fi
grep -F 'block size 469762048 > maximum' two.txt || { tail -1 two.txt; echo "another error than before"; exit 1; }
