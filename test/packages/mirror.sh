# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# mirror.sh - where Debian's packages come from, for scripts that source it.

# Prints MIRROR, else where apt of this host gets Debian from, else nothing.
debian_mirror() {
    # shellcheck disable=SC2016    # apt's own variables
    echo "${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
        head -1)}"
}
