# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=sh
# usage.sh - help and usage errors of the test runners, for scripts that source it. The help of a
# script is its first comment.

usage() { sed -n '1,/SPDX/d; /^#/!q; s/^# \{0,1\}//p' "$0"; }
# usage_error TEXT: one line, exit status 2.
usage_error() { echo "${0##*/}: $* (try --help)" >&2; exit 2; }
