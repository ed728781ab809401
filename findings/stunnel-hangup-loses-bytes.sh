#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# stunnel 5.68 loses the last bytes of a server that closes its connection after the client has ended its direction.
#
# Both directions have ended then, and poll() reports POLLHUP while bytes of the server wait in the socket. stunnel closes
# the socket without reading them if its buffer for the client is full at that moment: when the client reads slowly. It is
# so over plain TCP, and over the carriers of libdatsock, where the moment may come more often. Clients that end their
# direction after the answer lose nothing.
#
# Seen with stunnel4 3:5.68-2+deb12u1 (Debian 12), 16 MiB through an echo server:
#   16674198 of 16777216 bytes
# Exit 0: still so. 1: the behaviour has changed (not seen in 20 tries). 2: cannot run here.
set -u
dir=$(mktemp -d) || exit 2
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; rm -rf "$dir"' EXIT
cd "$dir" && mkdir -p archives/partial root && : > none || exit 2
chmod 755 .
# stunnel, and the programs at its two ends, from the packages of Debian 12
apt-get -qq -y -o Dir::State::status="$dir/none" -o Dir::Cache::archives="$dir/archives" -o APT::Sandbox::User=root \
    --no-install-recommends --download-only install stunnel4=3:5.68-2+deb12u1 socat=1.7.4.4-2 openssl=3.0.22-1~deb12u2 > apt.log 2>&1 ||
    { tail -3 apt.log; echo "needs the packages of Debian 12"; exit 2; }
for deb in archives/*.deb; do dpkg -x "$deb" root || exit 2; done
libraries=$(echo root/usr/lib/*-linux-gnu):$(echo root/lib/*-linux-gnu)
run() { OPENSSL_CONF=/dev/null exec timeout 300 "$(echo root/lib64/ld-linux-x86-64.so.2)" --library-path "$libraries" root/usr/bin/"$@"; }
size=16777216 port=$((20000 + $$ % 10000))
head -c $size /dev/urandom > "$dir/big"
(run openssl req -x509 -newkey rsa:2048 -nodes -keyout "$dir/key" -out "$dir/cert" -subj /CN=localhost -days 2 2> /dev/null)
cat > "$dir/conf" << C
foreground = yes
pid =
cert = $dir/cert
key = $dir/key
[echo]
accept = 127.0.0.1:$port
connect = 127.0.0.1:$((port + 1))
C
run socat -t 60 "TCP-LISTEN:$((port + 1)),bind=127.0.0.1,fork,reuseaddr" EXEC:cat & pids+=($!)
run stunnel4 "$dir/conf" 2> /dev/null & pids+=($!)
sleep 1
read_slowly() {
    for _ in 1 2 3 4 5 6 7 8; do dd bs=64k count=4 iflag=fullblock status=none; sleep 0.05; done
    sleep 1
    cat
}
for _ in $(seq 20); do
    got=$(run socat -t 60 - "OPENSSL:127.0.0.1:$port,verify=0" < "$dir/big" 2> /dev/null | read_slowly | wc -c)
    [ "$got" -gt 0 ] || { echo "no connection"; exit 2; }
    [ "$got" = $size ] || { echo "$got of $size bytes"; exit 0; }
done
echo "all bytes have come, 20 times"
exit 1
