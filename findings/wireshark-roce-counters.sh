#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Wireshark takes some counters that RDMA writes carry for IP or ARP packets.
#
# A heuristic (eth_over_ib) takes a payload of InfiniBand or RoCE whose first two bytes are an EtherType for an
# encapsulated packet. A little-endian counter of 64 bits is 08 00 ... at 8, the EtherType of IPv4, and 08 06 ... at 1544,
# that of ARP. With --disable-heuristic eth_over_ib each is an RDMA write.
#
# Seen with tshark 4.0.17-0+deb12u3 (Debian 12), writes of the counters 7, 8 and 1544:
#   RRoCE RC RDMA Write Only; IPv4 Bogus IPv4 version (0, must be 4); ARP [Malformed Packet]
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

def frame(data, number):
    """RoCEv2: an RDMA write of one packet."""
    bth = struct.pack('>BBHII', 0x0a, 0x40, 0xffff, 0x11, 0x80000000 | number)
    reth = struct.pack('>QII', 0x7f0000001000, 0x1234, len(data))
    body = bth + reth + data + bytes(4)
    udp = struct.pack('>HHHH', 49152, 4791, 8 + len(body), 0) + body
    head = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 20 + len(udp), 1, 0x4000, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    total = sum(struct.unpack('>10H', head))
    total = (total & 0xffff) + (total >> 16)
    head = head[:10] + struct.pack('>H', ~(total + (total >> 16)) & 0xffff) + head[12:]
    return bytes.fromhex('020000000002020000000001') + b'\x08\x00' + head + udp

def write(name, frames):
    with open(name, 'wb') as file:
        file.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for number, (kept, whole) in enumerate(frames):
            file.write(struct.pack('<IIII', number, 0, len(kept), len(whole)) + kept)

write('counters.pcap', [(frame(struct.pack('<Q', value), number),) * 2 for number, value in enumerate((7, 8, 1544))])
P
tshark -r counters.pcap > plain.txt && tshark -r counters.pcap --disable-heuristic eth_over_ib > without.txt || { tail -2 tshark.err; exit 2; }
cat plain.txt
[ "$(grep -c 'RDMA Write Only' without.txt)" = 3 ] || { cat without.txt; echo "without the heuristic: not three RDMA writes"; exit 1; }
[ "$(grep -c 'RDMA Write Only' plain.txt)" = 1 ] && grep -q 'IPv4.*Bogus' plain.txt && grep -q 'ARP.*Malformed' plain.txt ||
    { echo "the counters are shown in another way than before"; exit 1; }
