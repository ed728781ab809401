/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cno.h - consumer notification objects (cno.c). */
#ifndef DAPL_CNO_H
#define DAPL_CNO_H
#include "dapl/core/dapl.h"

struct dapl_cno {
	struct dapl_object obj;
	int epfd;			/* epoll set of wake_fd and the channels of the EVDs */
	int wake_fd;			/* eventfd, readable while an EVD is triggered; an fd CNO gives it
					 * to the consumer */
	struct dapl_mutex mutex;		/* guards what follows */
	struct dapl_cond left;		/* a waiter has left */
	DAT_PROXY_TYPE proxy;
	DAT_OS_WAIT_PROXY_AGENT agent;
	struct dapl_evd *first, **last;	/* triggered EVDs, in order, each once */
	struct dapl_evd *attached;	/* all EVDs */
	int cqs;			/* of these with a CQ */
	int waiters;			/* read without the mutex, too */
	int sleepers;			/* of these that block, or are about to */
	bool raised;			/* wake_fd is readable */
	struct dapl_wait_spin spin;	/* used by a thread that waits alone */
	unsigned orphaned;		/* how often the last attached EVD was detached */
	bool closing;
	struct dapl_evd *agent_evd;	/* the EVD that the next call of the agent reports */
	struct dapl_task agent_task;
};
DAPL_ENTER(cno, dapl_cno, DAPL_CNO)

/* Called after the CNO was killed: threads in dat_cno_wait return with a NULL EVD, and no other begins to
 * wait. */
void dapl_cno_send_waiters_away(struct dapl_cno *cno);
/* Called when the IA closes: each waiter returns with a NULL EVD, and the agent is called with a NULL EVD.
 * Waits for the waiters. */
void dapl_cno_close(struct dapl_cno *cno);

void dapl_cno_destroy(struct dapl_cno *cno);
/* evd->change held. */
void dapl_cno_detach(struct dapl_cno *cno, struct dapl_evd *evd);
/* Lets the service thread watch the EVD's channel if the EVD's CNO has a proxy now. Returns 0 or an
 * errno; after an error the channel is watched as before. */
int dapl_cno_follow_agent(struct dapl_evd *evd);
/* Called with evd->change held. Returns 0 or an errno. EBADF: the CNO was freed. */
int dapl_cno_attach(struct dapl_cno *cno, struct dapl_evd *evd);
DAT_RETURN dapl_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
			   DAT_CNO_HANDLE *handle);
DAT_RETURN dapl_cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD *fd, DAT_CNO_HANDLE *handle);
DAT_RETURN dapl_cno_fetch(DAT_CNO_HANDLE handle, DAT_EVD_HANDLE *evd_handle);
DAT_RETURN dapl_cno_query(DAT_CNO_HANDLE handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *param);
DAT_RETURN dapl_cno_modify_agent(DAT_CNO_HANDLE handle, DAT_OS_WAIT_PROXY_AGENT agent);
DAT_RETURN dapl_cno_free(DAT_CNO_HANDLE handle);

#endif
