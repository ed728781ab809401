#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# A copy that tshark -w makes of a pcapng file lacks the statistics of the interface, with the number of frames lost.
#
# The statistics block at the end of a capture tells how many frames the system dropped (isb_osdrop). The copy has no
# such block, and tshark does not say so. The losses before a frame (epb_dropcount) are kept.
#
# Seen with tshark 4.0.17-0+deb12u3 (Debian 12), lines of the original and of the copy with a number of drops:
#   original: Drop Count: 77, Number of Dropped Packets by OS: 77; copy: Drop Count: 77
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

def block(kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack('<II', kind, len(body) + 12) + body + struct.pack('<I', len(body) + 12)

def count(code, value):
    return struct.pack('<HHQ', code, 8, value) + bytes(4)

frame = bytes.fromhex('020000000002020000000001') + b'\x88\xb5' + bytes(46)
with open('original.pcapng', 'wb') as file:
    file.write(block(0x0a0d0d0a, struct.pack('<IHHq', 0x1a2b3c4d, 1, 0, -1)) + block(1, struct.pack('<HHI', 1, 0, 0)) +
               block(6, struct.pack('<IIIII', 0, 0, 1, len(frame), len(frame)) + frame + count(4, 77)) +
               block(5, struct.pack('<III', 0, 0, 1) + count(7, 77)))
P
tshark -r original.pcapng -w copy.pcapng || { tail -2 tshark.err; exit 2; }
for file in original copy; do
    tshark -X 'read_format:MIME Files Format' -r $file.pcapng -V > $file.txt || { tail -2 tshark.err; exit 2; }
    echo "$file: $(grep -E '^ +(Drop Count|Number of Dropped Packets by OS): ' $file.txt | sort -u | tr -s ' ' | tr '\n' ',')"
done
grep -q 'Number of Dropped Packets by OS: 77' original.txt || { echo "the original has no statistics"; exit 2; }
grep -q 'Drop Count: 77' copy.txt || { echo "the copy lacks epb_dropcount"; exit 1; }
! grep -q 'Number of Dropped Packets by OS' copy.txt || { echo "the copy has the statistics"; exit 1; }
