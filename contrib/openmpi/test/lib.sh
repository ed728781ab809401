# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# lib.sh - for check and bench: a directory with the component, a dat.conf, and functions that run
# a program under mpirun, on this host or on two. Sourced; needs $build (the top of the build tree),
# $here (this directory) and MPICC.

: "${MPICC:=mpicc}"
work=$build/contrib/openmpi/try
mkdir -p "$work/dapl/openmpi" "$work/tmp"
ln -sf "$build/.libs/mca_btl_udapl.so" "$here/../help-mpi-btl-udapl.txt" "$work/dapl/openmpi/"
system=$(ompi_info --path pkglibdir --parsable | cut -d: -f3)
export OMPI_MCA_mca_base_component_path=$system:$work/dapl/openmpi
# Open MPI 5.0: mpirun sets this from the previous variable otherwise, and PMIx complains of our component.
# An empty value makes mpirun crash when it starts daemons on other nodes, so it is a directory without
# libraries.
export PMIX_MCA_mca_base_component_path=$work/dapl
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_orte_tmpdir_base=$work/tmp TMPDIR=$work/tmp
# Other work on this host, and more ranks than processors, must be able to run.
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
# Marks the processes that this run starts.
export BTL_UDAPL_CHECK=$$-$RANDOM

# A component built with sanitizers needs their runtime preloaded into programs built without them.
sanitised=()
runtime=$(ldd "$build/.libs/mca_btl_udapl.so" | sed -n 's/.*lib[aut]*san\.so[.0-9]* => \([^ ]*\).*/\1/p;s/.*libubsan\.so[.0-9]* => \([^ ]*\).*/\1/p' | sort -u | tr '\n' ':')
if [ -n "$runtime" ]; then
    sanitised=()
    # Open MPI's memory hooks overwrite the first bytes of functions of libc; those of the sanitizer in
    # gcc 14 are too short for that.
    ! nm -D ${runtime//:/ } | grep -q __interceptor_trampoline_ || sanitised=(--mca memory ^patcher)
    sanitised+=(-x "LD_PRELOAD=${runtime%:}" -x "ASAN_OPTIONS=detect_leaks=0:handle_segv=1:abort_on_error=0")
fi

dat_conf() {    # NAME IA_PARAMS ...: one entry each, of the software device
    export DAT_OVERRIDE=$work/dat.conf
    : > "$DAT_OVERRIDE"
    while [ $# -gt 1 ]; do
        echo "$1 u2.0 threadsafe default $build/.libs/libdaplsoft.so.2 dapl.2.0 \"$2\" \"\"" >> "$DAT_OVERRIDE"
        shift 2
    done
}
verbs_conf() {    # IA_PARAMS: one entry, "node", of kernel RDMA
    export DAT_OVERRIDE=$work/dat.conf
    echo "node u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"$1\" \"\"" > "$DAT_OVERRIDE"
}
own_processes() {    # process ids started by this run that still exist
    local p
    for p in /proc/[0-9]*; do
        [ "${p#/proc/}" != $$ ] && [ "${p#/proc/}" != "$BASHPID" ] &&
            tr '\0' '\n' 2>/dev/null < "$p/environ" | grep -qx "BTL_UDAPL_CHECK=$BTL_UDAPL_CHECK" &&
            grep -q '^State:[[:space:]]*[^Z]' "$p/status" 2>/dev/null &&
            [ "$(sed -n 's/^PPid:[[:space:]]*//p' "$p/status" 2>/dev/null)" != $$ ] && echo "${p#/proc/}"
    done
}
show_own_processes() { local all; all=$(own_processes); [ -z "$all" ] || ps -o pid,args -p "${all//$'\n'/,}"; }

# The other node of a two-node machine. test/vm/agent runs there, and this host's files have the same paths.
# Every second rank runs there.
hosts=()
with_peer() {    # ADDRESS
    hosts=(--host "$(hostname):64,$1:64" --map-by node --mca plm_rsh_agent "$here/on-host"
           -x LD_LIBRARY_PATH -x DAT_OVERRIDE)
}
# Nodes in network namespaces, each with a host name, an address and an interface eth0 of its own, joined by a
# bridge. This shell is the first node: it is in namespaces of its own already. In `holders`, a process for each other.
holders=()
with_namespaces() {    # NODES
    local i list pid
    hostname node1
    ip link add eth0 type bridge && ip address add 10.76.0.1/24 dev eth0 &&
        ip link set eth0 up || return
    list=node1:64
    rm -rf "$work/nodes"; mkdir "$work/nodes"
    for ((i = 2; i <= $1; i++)); do
        env -u BTL_UDAPL_CHECK unshare -n -u sh -c "hostname node$i; touch '$work/nodes/ready$i'; exec sleep infinity" &
        pid=$!
        holders+=($pid)
        until [ -e "$work/nodes/ready$i" ]; do kill -0 $pid || return; sleep 0.05; done
        ip link add port$i type veth peer name eth0 netns $pid && ip link set port$i master eth0 up &&
            nsenter -t $pid -n sh -c "ip link set lo up; ip address add 10.76.0.$i/24 dev eth0; ip link set eth0 up" || return
        echo $pid > "$work/nodes/10.76.0.$i"
        list+=,10.76.0.$i:64
    done
    export NODES=$work/nodes PRTE_MCA_plm_ssh_agent=$here/in-namespace
    hosts=(--host "$list" --map-by node --mca plm_rsh_agent "$here/in-namespace" -x LD_LIBRARY_PATH -x DAT_OVERRIDE)
}
without_namespaces() { [ ${#holders[@]} = 0 ] || { kill "${holders[@]}"; wait "${holders[@]}"; } 2>/dev/null; }
on_peer() {    # COMMAND-LINE, may use the functions of this file
    local line
    printf -v line 'here=%q build=%q; . %q; BTL_UDAPL_CHECK=%q; ' "$here" "$build" "$here/lib.sh" "$BTL_UDAPL_CHECK"
    "$here/../../../test/vm/on-peer" "$line$*"
}
everywhere() { "$@" && { [ ${#hosts[@]} = 0 ] || on_peer "$*"; }; }    # COMMAND WORD...

mpi() {    # RANKS SECONDS PROGRAM-OR-OPTION...
    local ranks=$1 seconds=$2; shift 2
    timeout -k 5 "$seconds" mpirun --oversubscribe -np "$ranks" ${hosts[@]+"${hosts[@]}"} \
        ${sanitised[@]+"${sanitised[@]}"} --mca pml ob1 "$@" < /dev/null
}
# -rdynamic: registered.c intercepts calls to libdat2.
compile() {    # NAME...
    local name
    for name; do
        [ ! "$work/$name" -nt "$here/$name.c" ] || [ ! "$work/$name" -nt "$here/check.h" ] || continue
        "$MPICC" -O2 -g -Wall -Wextra -Werror -pthread -rdynamic \
            -I"$here/../../../include" -o "$work/$name" "$here/$name.c" -ldl || return
    done
}
