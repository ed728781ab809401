/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shm_fallback.c - reports connections that go without shared memory (shm_fallback.h). */
#include "dapl/soft/cm/shm_fallback.h"
#include "common/log.h"
#include "common/trace.h"
#include "dapl/core/base/cause.h"
#include "dapl/soft/obj/device.h"
#include "dapl/soft/obj/shortage.h"
#include "dapl/soft/rdmap/conn.h"
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

/* Names what an administrator can do, or look for. */
static const char *hint(int err)
{
	switch (err) {
	case EMFILE:
		return "raise the limit of descriptors, ulimit -n";
	case ENFILE:
		return "raise the system's limit of open files, sysctl fs.file-max";
	case EFBIG:
		return "raise the limit of file sizes, ulimit -f";
	case EPERM: case EACCES:
		return "the peer process belongs to another user";
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
	default:
		return "see the limits of memory";
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
	int saved = errno;

	if (!err)
		return;
	soft_trace(TRC_LVL_DETAIL, "conn", conn, "no shared memory: %s", strerror(err));
	dapl_diag_address(&conn->remote, remote);
	if (is_new(peer, err))
		log_report(REPORT_NO_SHARED_MEMORY,
			   LOG_FIELDS(.ia = ia, .kind = "conn", .object = conn, .peer = remote, .err = err),
			   "%s: data of the connection with %s goes over TCP, 30 times slower: "
			   "no shared memory: %s (%s%s)", ia, remote, strerror(err),
			   limit_text(err, limit), hint(err));
	errno = saved;
}
