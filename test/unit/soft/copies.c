/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* copies.c - see copies.h. */
#include "dapl/soft/shm/revoke.h"
#include "test/unit/soft/copies.h"
#include <errno.h>
#include <string.h>

void (*meanwhile)(void);
unsigned meanwhile_at, copies;
bool copies_refused, copies_cut;
struct iovec stored[8];
unsigned stores;

static bool copy_refused(void)
{
	copies++;
	if (meanwhile && copies == meanwhile_at)
		call_in_thread(meanwhile);
	errno = EPERM;
	return copies_refused;
}

EXTEND(process_vm_writev)
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n,
				 const struct iovec *there, unsigned long m, unsigned long flags)
{
	return copy_refused() ? -1 : __real_process_vm_writev(pid, here, n, there, m, flags);
}

EXTEND(access_copy)
ssize_t __wrap_access_copy(pid_t pid, const struct iovec *source, const struct iovec *there, int n)
{
	if (copy_refused())
		return -1;
	for (int i = 0; i < n && stores < sizeof stored / sizeof *stored; i++)
		stored[stores++] = there[i];
	return copies_cut ? 1 : __real_access_copy(pid, source, there, n);
}

EXTEND(process_vm_readv)
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n,
				const struct iovec *there, unsigned long m, unsigned long flags)
{
	if (copy_refused())
		return -1;
	return copies_cut ? 1 : __real_process_vm_readv(pid, here, n, there, m, flags);
}

void open_sleeper(void)
{
	if (!cma_works())
		skip();
	open_two(0);
	meanwhile = NULL;
	copies = meanwhile_at = stores = 0;
	copies_refused = copies_cut = false;
	wait_asleep(&ends[0]);
}

void deregister(void)
{
	OK(ops->dereg_mr(ends[1].mr));
	memset(ends[1].buf, 0x55, HALF);
}

void register_anew(void)
{
	OK(ops->reg_mr(ends[1].pd, ends[1].buf, BUFFER, IBV_ACCESS_LOCAL_WRITE, NULL,
		       &ends[1].mr));
}
