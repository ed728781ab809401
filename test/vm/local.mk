# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
EXTRA_DIST += test/vm/vmrun test/vm/kernel test/vm/initramfs test/vm/init test/vm/guest \
	test/vm/agent test/vm/on-peer test/vm/selftest test/vm/coverage test/vm/administrator.py test/vm/suites.d \
	test/vm/sums.sh
