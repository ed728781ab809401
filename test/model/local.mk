# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Protocols that spin has gone through.
TESTS += test/model/check
dist_check_SCRIPTS += test/model/check
EXTRA_DIST += test/model/notify.pml test/model/wakeup.pml test/model/revoke.pml \
	test/model/revoke_many.pml test/model/rmem_map.pml test/model/datsock.pml test/model/datsock_remote.pml
