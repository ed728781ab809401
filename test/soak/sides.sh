# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# sides.sh - the two sides of test/soak/conserved as processes of two builds, for `versions` and `architectures`, which
# source it. They set `seed` and `rounds`, and print the sums of `passed` and `failed`.
# shellcheck shell=bash disable=SC2154
passed=0 failed=0

# A network of its own, where nothing but loopback can be reached: runs the calling script there, with these
# arguments, and returns if it is there already, or cannot be.
isolate() {    # ARGUMENTS
    local way
    [ -n "${SIDES_ISOLATED-}" ] || for way in "unshare -n" "unshare -rn"; do
        # shellcheck disable=SC2086    # words
        ! $way true 2>/dev/null || SIDES_ISOLATED=1 exec $way "$0" "$@"
    done
    ip link set lo up 2>/dev/null
}
side() {    # NUMBER BOARD CASE PROGRAM LIBRARIES [RUNNER]
    # shellcheck disable=SC2086    # words
    cd "$(dirname "$5")" && SOAK_SIDE=$1 SOAK_BOARD=$2 LD_LIBRARY_PATH=$5 exec timeout 300 \
        ${6-} "$4" --seed "$seed" --rounds "$rounds" "$3"
}
# A side is an array: PROGRAM LIBRARIES [RUNNER].
talk() {    # LABEL CASE NAME-OF-ACCEPTOR NAME-OF-INITIATOR
    local out board status=0 acceptor initiator
    local -n of_acceptor=$3 of_initiator=$4
    [ -n "${sides_dir-}" ] || { sides_dir=$(mktemp -d); trap 'rm -rf "$sides_dir"' EXIT; }
    out=$sides_dir/out board=$sides_dir/board
    : > "$board"
    (side 0 "$board" "$2" "${of_acceptor[@]}") > "$out" 2>&1 & acceptor=$!
    (side 1 "$board" "$2" "${of_initiator[@]}") > "$out.1" 2>&1 & initiator=$!
    wait $acceptor || status=1
    wait $initiator || status=1
    if [ $status = 0 ]; then echo "ok $1"; passed=$((passed + 1))
    else echo "FAIL $1: $(grep -hE '^(FAIL|dapl)' "$out" "$out.1" | head -3)"; failed=$((failed + 1)); fi
    rm -f "$out" "$out.1" "$board"
}
