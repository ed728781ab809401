# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
dist_check_SCRIPTS += test/lint/symbols test/lint/symbols-libdat2
TESTS += test/lint/symbols-libdat2
