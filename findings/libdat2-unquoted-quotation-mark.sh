#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# In an unquoted field of dat.conf the OpenFabrics registry keeps a backslash and the quotation mark behind it, but not
# at the beginning of the field.
#
# Inside quotes \" is a quotation mark. In an unquoted field a quotation mark ends the field, a\"b is one field of four
# characters (the backslash stays), and \"lo is two fields: the first character of a field never protects the second.
#
# Seen with libdapl2 2.1.10.1.f1e05b7a-3+b1 (Debian 12), DAT_DBG_TYPE=0xffff, the seventh field:
#   a\"b: ia_params a\"b     \"lo: corrupt dat.conf entry field: EOR, EOF
# Exit 0: still so. 1: the behaviour has changed. 2: cannot run here.
set -u
version=2.1.10.1.f1e05b7a-3+b1
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2
chmod 755 . && apt-get -q download libdapl2=$version libdapl-dev=$version > apt.log 2>&1 || { tail -3 apt.log; echo "needs the packages of Debian 12"; exit 2; }
for deb in *.deb; do dpkg -x "$deb" root || exit 2; done
cat > list.c <<'C'
#include <dat2/udat.h>
int main(void)
{
	DAT_PROVIDER_INFO info, *list = &info;
	DAT_COUNT n;

	return dat_registry_list_providers(1, &n, &list) != DAT_SUCCESS;
}
C
libraries=$(echo root/usr/lib/*-linux-gnu)
gcc -w -Iroot/usr/include list.c -o list "$libraries/libdat2.so.2" 2> gcc.log || { tail -3 gcc.log; exit 2; }
said() {    # FIELD: what the registry prints of an entry with it
    echo "one u2.0 nonthreadsafe default libnone.so.2 none.2.0 $1 \"\"" > dat.conf
    DAT_DBG_TYPE=0xffff DAT_DBG_DEST=1 DAT_OVERRIDE=$PWD/dat.conf LD_LIBRARY_PATH=$libraries timeout 20 ./list
}
said 'a\"b' | grep -xF ' ia_params a\"b' || { echo "a\\\"b is another field than before"; exit 1; }
said '\"lo' | grep -F 'corrupt dat.conf entry field' || { echo "\\\"lo is accepted now"; exit 1; }
