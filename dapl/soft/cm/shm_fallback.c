/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shm_fallback.c - reports connections that go without shared memory (shm_fallback.h). */
#include "dapl/soft/cm/shm_fallback.h"
#include "common/log.h"
#include "common/trace.h"
#include "dapl/core/base/cause.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

static struct dapl_mutex known_lock = DAPL_MUTEX_INIT(RANK_SOFT_FALLBACK);
static struct { uint64_t peer; int err; } known[FALLBACK_CAUSES];
static unsigned next;

/* True the first time that this cause is reported. */
static bool is_new(uint64_t peer, int err)
{
	bool found = false;

	dapl_mutex_lock(&known_lock);
	for (int i = 0; i < FALLBACK_CAUSES; i++)
		found |= known[i].peer == peer && known[i].err == err;
	if (!found) {
		known[next].peer = peer;
		known[next].err = err;
		next = (next + 1) % FALLBACK_CAUSES;
	}
	dapl_mutex_unlock(&known_lock);
	return !found;
}

/* What an administrator can do, or look for. `own`: the failed call was one of this process that needs no peer, such as
 * memfd_create(). "": the error says it all. */
static const char *hint(int err, bool own)
{
	switch (err) {
	case EMFILE:
		return "raise the limit of descriptors, ulimit -n";
	case ENFILE:
		return "raise the system's limit of open files, sysctl fs.file-max";
	case EFBIG:
		return "raise the limit of file sizes, ulimit -f";
	case ETOOMANYREFS:
		return "too many descriptors are on their way through sockets; raise the limit, ulimit -n";
	case EPERM: case EACCES:
		return own ? "a seccomp filter or a security module denies memfd_create or eventfd to this process" :
			     "the peer process belongs to another user";
	case ENOSYS:
		return "this kernel has no memfd_create, or a seccomp filter denies it";
	case EAFNOSUPPORT:
		return "AF_UNIX sockets are denied to this process: by RestrictAddressFamilies= of its service, or "
		       "a seccomp filter";
	case ECONNREFUSED: case ENOENT:
		return "the peer process is in another container, or has ended";
	case EAGAIN:
		return "the backlog of the peer process stayed full";
	case ETIMEDOUT:
		return "the peer process did not answer";
	case ENODATA:
		return "the peer process shared none and may have printed why";
	case ECONNRESET: case EPIPE:	/* it closed the socket before it read the request */
		return "the peer process had no room for the request";
	case EPROTO:
		return "the peer process sent something else";
	case ENOMEM: case ENOBUFS: case ENOSPC:
		return "see the limits of memory";
	default:
		return "";
	}
}

static unsigned long long limit_of(int resource)
{
	struct rlimit limit = { 0 };

	getrlimit(resource, &limit);
	return limit.rlim_cur;
}

static const char *limit_text(int err, char text[48])
{
	*text = '\0';
	if (err == EMFILE)
		snprintf(text, 48, "the limit is %llu; ", limit_of(RLIMIT_NOFILE));
	if (err == EFBIG)
		snprintf(text, 48, "the limit is %llu; ", limit_of(RLIMIT_FSIZE));
	return text;
}

void shm_fallback_report(const struct dapl_conn *conn, uint64_t peer, int err)
{
	const char *ia = conn->dev->identity.name;
	char remote[DIAG_ADDRESS], limit[48];
	const char *what = hint(err, !peer);
	int saved = errno;

	if (!err)
		return;
	soft_trace(TRC_LVL_DETAIL, "conn", conn, "no shared memory: %s", strerror(err));
	dapl_cause_address(&conn->remote, remote);
	if (is_new(peer, err))
		log_report(REPORT_NO_SHARED_MEMORY,
			   LOG_FIELDS(.ia = ia, .kind = "conn", .object = conn, .peer = remote, .err = err),
			   "%s: data of the connection with %s goes over TCP, which is slower: "
			   "no shared memory: %s%s%s%s%s", ia, remote, strerror(err), *what ? " (" : "",
			   limit_text(err, limit), what, *what ? ")" : "");
	errno = saved;
}
