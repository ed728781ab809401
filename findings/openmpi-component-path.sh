#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# mpirun of Open MPI 5.0 makes its processes look for Open MPI's components in the directory of PMIx.
#
# mpirun sets OMPI_MCA_mca_base_component_path for each process to the component directory of PMIx, unless the variable
# is set already or --mca gives it. An environment variable counts more than a file, so a path in
# ~/.openmpi/mca-params.conf has no effect, nor have components in ~/.openmpi/components or in Open MPI's own
# directory. ompi_info, which mpirun does not start, shows such a component.
#
# Seen with openmpi-bin 5.0.7-1, libpmix2t64 5.0.7-1 (Debian 13), "mca_base_component_path = /components" in the file,
# mpirun -np 1 env:
#   OMPI_MCA_mca_base_component_path=/usr/lib/x86_64-linux-gnu/pmix2/lib/pmix
# Exit 0: still so. 1: the behaviour has changed. 2: cannot run here: needs root.
set -u
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 2; }
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
cd "$dir" && chmod 755 . && mkdir -p archives/partial lists/partial root || exit 2
: > none
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | head -1)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" > sources.list
apt() {
    apt-get -qq -y -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null -o APT::Sandbox::User=root \
        -o Dir::State::lists="$dir/lists" -o Dir::State::status="$dir/none" -o Dir::Cache="$dir" \
        -o Dir::Cache::archives="$dir/archives" --no-install-recommends "$@" >> apt.log 2>&1
}
apt update && apt --download-only install openmpi-bin=5.0.7-1 libpmix2t64=5.0.7-1 dash coreutils iproute2 ||
    { tail -3 apt.log; echo "needs the packages of Debian 13"; exit 2; }
# A root of its own: unpacked as one stream, since /lib is a link there.
mkdir root/usr && mkdir root/usr/{bin,sbin,lib,lib64} && ln -s usr/{bin,sbin,lib,lib64} root/ || exit 2
for deb in archives/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C root || exit 2; done
mkdir -p root/{proc,sys,dev,tmp,components} root/root/.openmpi
echo 'root:x:0:0:root:/root:/bin/sh' > root/etc/passwd
echo "mca_base_component_path = /components" > root/root/.openmpi/mca-params.conf
# In namespaces of their own, so that all ends with the shell.
run() {    # VARIABLES COMMAND
    timeout 60 unshare --mount --pid --net --fork --kill-child bash -c '
        cd root && mount --bind . . && cd "$PWD" && mount -t proc proc proc && mount --rbind /sys sys && mount --rbind /dev dev || exit 2
        exec chroot . /usr/bin/env -i PATH=/usr/bin:/usr/sbin HOME=/root OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
            $0 sh -c "ip link set lo up; $1"' "$@" < /dev/null 2> err.txt
}
run '' 'ompi_info --level 9 --param mca base' > info.txt || { tail -3 err.txt; exit 2; }
grep -q 'mca_base_component_path.*"/components"' info.txt || { echo "ompi_info does not read the file"; exit 2; }
run OMPI_MCA_mca_base_component_path=/components 'mpirun.openmpi -np 1 env' > set.txt
grep -qx OMPI_MCA_mca_base_component_path=/components set.txt || { tail -3 err.txt; echo "the variable is not passed on"; exit 2; }
run '' 'mpirun.openmpi -np 1 env' > file.txt
grep '^OMPI_MCA_mca_base_component_path=.*/pmix$' file.txt ||
    { grep component_path file.txt; echo "the processes have another path than before"; exit 1; }
