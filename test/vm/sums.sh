# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# sums.sh - for suites of several programs: adds up what their last lines say; and checks of a suite's own, with files in
# its directory $dir. Sourced.
# shellcheck shell=bash
passed=0 failed=0
count() {    # LABEL FILE [skips]: what it printed; does it tell what it skipped?
    local skipped=''
    [ -z "${3-}" ] || skipped='(, [0-9]+ skipped)?'
    if [[ $(tail -n 1 "$2") =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed$skipped$ ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
    else
        echo "FAIL $1: it ended without a result: $(tail -n 3 "$2")"; failed=$((failed + 1))
    fi
}
end() { echo "$passed passed, $failed failed"; [ $failed = 0 ]; }
expect() {    # NAME CONDITION...
    local name=$1; shift
    if "$@" > "$dir/expect" 2>&1; then echo "ok $name"; else echo "FAIL $name: $*: $(head -c 300 "$dir/expect")"; fi
}
becomes_true() {    # CONDITION...: after 100 tries at most, whatever the clock says
    for ((i = 0; i < 100; i++)); do
        "$@" > /dev/null 2>&1 && return
        sleep 0.1
    done
    return 1
}
