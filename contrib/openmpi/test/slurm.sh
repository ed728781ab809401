# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# slurm.sh - Slurm on nodes in network namespaces, and MPI programs in its allocations. Sourced by check after
# lib.sh, once with_namespaces has made the nodes. Everything that Slurm writes is in $work/slurm.

slurm_daemons=()
# auth/slurm needs no daemon of its own, as munge does.
has_slurm() {
    command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v salloc >/dev/null || { echo "SKIP no slurmctld, slurmd or salloc"; return 77; }
    compgen -G '/usr/lib*/*/slurm*/auth_slurm.so' >/dev/null || compgen -G '/usr/lib*/slurm/auth_slurm.so' >/dev/null ||
        { echo "SKIP no plugin auth/slurm, which Slurm has since 23.11"; return 77; }
}
slurm_conf() {    # NODES
    local i
    cat <<CONF
ClusterName=check
SlurmctldHost=node1(10.76.0.1)
AuthType=auth/slurm
CredType=cred/slurm
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation=$work/slurm/ctld
SlurmdSpoolDir=$work/slurm/%n
SlurmctldPidFile=$work/slurm/ctld.pid
SlurmdPidFile=$work/slurm/%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
    for ((i = 1; i <= $1; i++)); do echo "NodeName=node$i NodeAddr=10.76.0.$i CPUs=8"; done
}
slurm_daemon() {    # NODE COMMAND...: in the namespaces of this node
    local node=$1 run=(); shift
    [ "$node" = 1 ] || run=("$here/in-namespace" "10.76.0.$node" exec)
    env -u BTL_UDAPL_CHECK "${run[@]}" "$@" > "$work/slurm/$1-$node.log" 2>&1 &
    slurm_daemons+=($!)
}
with_slurm() {    # NODES
    local i idle
    rm -rf "$work/slurm"; mkdir -p "$work/slurm/ctld" || return
    export SLURM_CONF=$work/slurm/slurm.conf
    slurm_conf "$1" > "$SLURM_CONF"
    echo CgroupPlugin=disabled > "$work/slurm/cgroup.conf"
    (umask 077; head -c 1024 /dev/urandom > "$work/slurm/slurm.key")
    slurm_daemon 1 slurmctld -D
    for ((i = 1; i <= $1; i++)); do slurm_daemon "$i" slurmd -D -N "node$i"; done
    for ((i = 0; i < 200; i++)); do
        idle=$(sinfo --noheader --Node --states idle 2>/dev/null | wc -l)
        [ "$idle" != "$1" ] || return 0
        sleep 0.1
    done
    echo "$idle of $1 nodes are idle"; tail -n 5 "$work"/slurm/*.log
    return 1
}
without_slurm() { [ ${#slurm_daemons[@]} = 0 ] || { kill "${slurm_daemons[@]}"; wait "${slurm_daemons[@]}"; } 2>/dev/null; }

# Two ranks on each node, started by mpirun in an allocation. srun does without mpirun, but processes of Open
# MPI 5.0.7 that srun starts crash in MPI_Init now and then, over btl tcp too.
over_slurm() (    # NODES
    local out rc
    has_slurm || return
    trap without_slurm EXIT
    with_slurm "$1" || return
    export OMPI_MCA_pml=ob1 OMPI_MCA_btl=udapl,self
    unset PRTE_MCA_plm_ssh_agent
    out=$(timeout -k 5 60 salloc --quiet -N "$1" --ntasks-per-node 2 mpirun -x DAT_OVERRIDE \
        "$work/exchange" alltoall 300001 2>&1); rc=$?
    echo "$out"
    [ $rc = 0 ] && [ "$(tail -n 1 <<< "$out")" = passed ] && return
    tail -n 5 "$work"/slurm/*.log
    return 1
)
