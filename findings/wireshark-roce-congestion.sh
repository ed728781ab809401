#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Wireshark calls RoCEv2's congestion notifications (CNP) unknown, though its table of opcodes has a CNP.
#
# A CNP has the opcode 0x81 (annex A17 of the InfiniBand specification), as devices send it. The table has 0x80.
#
# Seen with tshark 4.0.17-0+deb12u3 (Debian 12), details of packets with the opcodes 0x80 and 0x81:
#   Opcode: CNP (128); Opcode: Unknown (129)
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
tshark() {
    HOME=$dir WIRESHARK_DATA_DIR=$dir/root/usr/share/wireshark timeout 60 \
        "$(echo root/lib64/ld-linux-x86-64.so.2)" --library-path "$libraries" root/usr/bin/tshark "$@" 2> tshark.err
}
python3 - <<'P' || exit 2
import struct

def frame(opcode):
    """RoCEv2: a BTH with a backward congestion notification, 16 bytes that are 0, ICRC."""
    body = struct.pack('>BBHII', opcode, 0x40, 0xffff, 1 << 30 | 0x11, 0) + bytes(16) + bytes(4)
    udp = struct.pack('>HHHH', 49152, 4791, 8 + len(body), 0) + body
    head = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 20 + len(udp), 1, 0x4000, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    total = sum(struct.unpack('>10H', head))
    total = (total & 0xffff) + (total >> 16)
    head = head[:10] + struct.pack('>H', ~(total + (total >> 16)) & 0xffff) + head[12:]
    return bytes.fromhex('020000000002020000000001') + b'\x08\x00' + head + udp

with open('notifications.pcap', 'wb') as file:
    file.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
    for number, opcode in enumerate((0x80, 0x81)):
        kept = frame(opcode)
        file.write(struct.pack('<IIII', number, 0, len(kept), len(kept)) + kept)
P
tshark -r notifications.pcap -V > details.txt || { tail -2 tshark.err; exit 2; }
grep 'Opcode: ' details.txt
grep -q 'Opcode: CNP (128)' details.txt || { echo "the opcode 0x80 is shown in another way than before"; exit 1; }
grep -q 'Opcode: Unknown (129)' details.txt || { echo "the opcode 0x81 is shown in another way than before"; exit 1; }
