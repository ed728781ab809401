# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
EXTRA_DIST += test/stock/suite test/stock/run test/stock/check test/stock/dat.conf
