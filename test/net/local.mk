# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The network under the software device: what is on it, and what it does to us.
dist_check_SCRIPTS += test/net/tshark
TESTS += test/net/tshark
