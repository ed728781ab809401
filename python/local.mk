# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The binding for Python. Nothing is built; packages install dat.py.
EXTRA_DIST += python/dat.py python/examples/ping_pong.py python/examples/rdma_write.py
dist_check_SCRIPTS += test/python/check
TESTS += test/python/check
