#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# CRIU 4.1 cannot dump a process that has a TCP socket on Linux 6.16 and later, be it one that only listens.
#
# CRIU asks each socket for SO_PASSCRED and SO_PASSSEC, options of Unix sockets. Until 6.15 any socket answered; since
# 6.16 those of other families have the error EOPNOTSUPP, which CRIU does not expect. A process without TCP sockets is
# dumped and restored on the same kernel.
#
# Seen with criu 4.1.1-1 (Debian 13) on Linux 6.18.44:
#   sockets: Can't get 1:16 opt: Operation not supported
# Exit 0: still so. 1: the behaviour has changed. 2: cannot run here: needs root, and Linux 6.16 or later.
set -u
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 2; }
[ "$(printf '%s\n' 6.16 "$(uname -r)" | sort -V | head -1)" = 6.16 ] || { echo "needs Linux 6.16 or later"; exit 2; }
dir=$(mktemp -d) || exit 2
child=''
trap '[ -z "$child" ] || kill -9 $child 2>/dev/null; rm -rf "$dir"' EXIT
cd "$dir" && chmod 755 . && mkdir -p archives/partial lists/partial root images || exit 2
: > none
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | head -1)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" > sources.list
apt() {
    apt-get -qq -y -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null -o APT::Sandbox::User=root \
        -o Dir::State::lists="$dir/lists" -o Dir::State::status="$dir/none" -o Dir::Cache="$dir" \
        -o Dir::Cache::archives="$dir/archives" --no-install-recommends "$@" >> apt.log 2>&1
}
apt update && apt --download-only install criu=4.1.1-1 python3-minimal libpython3-stdlib dash coreutils util-linux iproute2 ||
    { tail -3 apt.log; echo "needs the packages of Debian 13"; exit 2; }
# A root of its own: unpacked as one stream, since /lib is a link there.
mkdir root/usr && mkdir root/usr/{bin,sbin,lib,lib64} && ln -s usr/{bin,sbin,lib,lib64} root/ || exit 2
for deb in archives/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C root || exit 2; done
mkdir -p root/{proc,dev,tmp,images} root/run
cat > root/listen.py <<'P'
import socket
import sys
import time

kept = socket.socket() if sys.argv[1] == 'tcp' else None
if kept:
    kept.bind(('127.0.0.1', 0))
    kept.listen()
time.sleep(60)
P
# In namespaces of their own, so that all ends with the shell.
dump() {    # KIND: prints what CRIU says of a process of this kind; status 0: dumped
    timeout 60 unshare --mount --pid --net --fork --kill-child bash -c '
        cd root && mount --bind . . && cd "$PWD" && mount -t proc proc proc && mount -t tmpfs tmpfs dev && mknod -m 666 dev/null c 1 3 || exit 2
        for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ "$fd" -le 2 ] || eval "exec $fd>&-"; done
        exec chroot . sh -c "/sbin/ip link set lo up 2>/dev/null
            setsid python3 /listen.py $0 < /dev/null > /tmp/out 2>&1 & sleep 3
            rm -rf /images; mkdir /images
            criu dump -t \$! -D /images -v1 --shell-job"' "$1" < /dev/null 2>&1
}
dump none > none.txt || { cat none.txt; echo "a process without sockets is not dumped"; exit 2; }
if dump tcp > tcp.txt; then echo "a process with a TCP socket is dumped now"; exit 1; fi
grep -F "Can't get 1:16 opt: Operation not supported" tcp.txt || { cat tcp.txt; echo "another error than before"; exit 1; }
