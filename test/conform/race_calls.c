/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* race_calls.c - calls that several threads may make at the same time (MT). */
#include "race.h"

static void create_everything(void *arg __attribute__((unused)), int me)
{
	for (int i = 0; i < 5; i++) {
		DAT_PZ_HANDLE pz = a_pz();
		DAT_CNO_HANDLE cno = a_cno();
		DAT_EVD_HANDLE evd = an_evd_of(8, cno, DAT_EVD_CR_FLAG);
		struct region region = a_region(pz, 4096, LOCAL_RIGHTS);
		struct end end = AN_END(.pz = pz);
		struct listener listener = a_listener_on(ia(), evd, DAT_PSP_CONSUMER_FLAG);
		struct reservation r = a_reservation(end.ep);
		DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };
		DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
		DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;

		if (ia_attr()->max_rmrs && dat_rmr_create(pz, &rmr) == DAT_SUCCESS)
			OK(dat_rmr_free(rmr));
		if (ia_attr()->max_srqs && dat_srq_create(ia(), pz, &srq_attr, &srq) == DAT_SUCCESS)
			OK(dat_srq_free(srq));
		if (me % 2)
			continue;	/* the close takes care of the rest */
		OK(dat_rsp_free(r.rsp));
		OK(dat_psp_free(listener.psp));
		OK(dat_ep_free(end.ep));
		OK(dat_lmr_free(end.mem.lmr));
		OK(dat_lmr_free(region.lmr));
		OK(dat_pz_free(pz));
		OK(dat_evd_free(evd));
		OK(dat_cno_free(cno));
	}
}

TEST("MT-1", objects_are_created_by_many_threads)
{
	ia();
	crew(8, create_everything, NULL);
}

static struct zoo shared_zoo;

static void query_everything(void *arg __attribute__((unused)), int me)
{
	for (int i = 0; i < 50; i++) {
		DAT_IA_ATTR attr;
		DAT_PROVIDER_ATTR provider;
		DAT_PZ_PARAM pz;
		DAT_PSP_PARAM psp;
		DAT_RSP_PARAM rsp;
		DAT_COUNT n;
		DAT_PROVIDER_INFO info[4], *list[4] = { &info[0], &info[1], &info[2], &info[3] };
		const char *major, *minor;

		OK(dat_ia_query(ia(), NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &provider));
		EQUAL(attr.max_eps, ia_attr()->max_eps);
		OK(dat_pz_query(shared_zoo.pz, DAT_PZ_FIELD_ALL, &pz));
		OK(dat_psp_query(shared_zoo.psp, DAT_PSP_FIELD_ALL, &psp));
		OK(dat_rsp_query(shared_zoo.rsp, DAT_RSP_FIELD_ALL, &rsp));
		HOLDS(cr_param(shared_zoo.cr).remote_ia_address_ptr != NULL);
		OK(dat_ep_get_status(shared_zoo.ep, NULL, NULL, NULL));
		if (dat_registry_list_providers(4, &n, list) == DAT_SUCCESS)
			HOLDS(n >= 1);
		OK(dat_strerror(DAT_CLASS_ERROR | DAT_INVALID_STATE | (47 + me), &major, &minor));
	}
}

TEST("MT-2", objects_are_queried_by_many_threads)
{
	shared_zoo = a_zoo();
	crew(8, query_everything, NULL);
}

static void post_on_one(void *arg, int me)
{
	struct many *m = arg;
	DAT_EVENT event;

	for (int i = 0; i < 250;) {
		DAT_RETURN ret = dat_ep_post_rdma_write(m->p.a.ep, 1, SEGMENT(&m->p.a.mem, me * 64, 64),
							COOKIE(me * 250 + i), TARGET(&m->p.b.mem, me * 64, 64),
							DAT_COMPLETION_DEFAULT_FLAG);
		if (ret == DAT_SUCCESS)
			i++;
		else
			FAILS(ret, DAT_INSUFFICIENT_RESOURCES);
		while (dat_evd_dequeue(m->p.a.request, &event) == DAT_SUCCESS) {
			EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
			EQUAL(m->seen[event.event_data.dto_completion_event_data.user_cookie.as_64]++, 0);
			m->taken++;
		}
	}
}

TEST("MT-4", many_threads_post_on_one_ep)
{
	needs_thread_safety();
	struct many *m = lasting(sizeof(*m));

	m->p = CONNECTED_PAIR();
	crew(THREADS, post_on_one, m);
	while (m->taken < 1000) {
		DAT_EVENT event = EVENT(m->p.a.request, DAT_DTO_COMPLETION_EVENT);
		EQUAL(m->seen[event.event_data.dto_completion_event_data.user_cookie.as_64]++, 0);
		m->taken++;
	}
	WORKS(m->p.a, m->p.b);
}

static void post_or_hang_up(void *arg, int me)
{
	struct many *m = arg;

	if (me == THREADS) {
		UNTIL(m->taken > (int)chance(300), "some requests");
		hang_up(chance(2) ? &m->p.a : &m->p.b);
		return;
	}
	for (int i = 0; i < 250; i++) {
		DAT_EVENT event;
		if (dat_ep_post_rdma_write(m->p.a.ep, 1, SEGMENT(&m->p.a.mem, 0, 64), COOKIE(me * 250 + i),
					   TARGET(&m->p.b.mem, 0, 64), DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS)
			m->seen[me * 250 + i]++;
		while (dat_evd_dequeue(m->p.a.request, &event) == DAT_SUCCESS) {
			EQUAL(event.event_number, DAT_DTO_COMPLETION_EVENT);
			m->seen[event.event_data.dto_completion_event_data.user_cookie.as_64] += 10;
			m->taken++;
		}
	}
	m->taken += 1000;	/* do not let the disconnecting thread wait for nothing */
}

TEST("MT-5", a_connection_ends_under_the_posts_of_many_threads)
{
	needs_thread_safety();
	struct many *m = lasting(sizeof(*m));
	DAT_EVENT event;

	m->p = CONNECTED_PAIR();
	crew(THREADS + 1, post_or_hang_up, m);
	ENDS(m->p.a.conn);
	ENDS(m->p.b.conn);
	/* Posts a marker behind all others, as soon as there is room for it. */
	bool marked = false;
	for (uint64_t cookie = 0; cookie != 5000;) {
		if (!marked)
			marked = dat_ep_post_rdma_write(m->p.a.ep, 1, SEGMENT(&m->p.a.mem, 0, 64), COOKIE(5000),
							TARGET(&m->p.b.mem, 0, 64),
							DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS;
		event = EVENT(m->p.a.request, DAT_DTO_COMPLETION_EVENT);
		cookie = event.event_data.dto_completion_event_data.user_cookie.as_64;
		if (cookie != 5000)
			m->seen[cookie] += 10;
	}
	/* Each request was posted and has completed, or neither. */
	for (int i = 0; i < 1000; i++)
		HOLDS(m->seen[i] == 0 || m->seen[i] == 11);
}

static void wait_on_cno_forever(void *arg, int me)
{
	struct queue *q = arg;
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)77;

	if (me == THREADS) {
		/* The other threads are in their waits, or their calls come too late and fail. */
		UNTIL(q->taken == THREADS, "threads to start");
		OK(dat_ia_close(ia(), DAT_CLOSE_ABRUPT_FLAG));
		ia_is_gone();
		return;
	}
	q->taken++;
	DAT_RETURN ret = dat_cno_wait(q->cno, FOR_EVER, &evd);
	if (ret == DAT_SUCCESS)
		EQUAL(evd, DAT_HANDLE_NULL);
	else
		FAILS(ret, DAT_INVALID_HANDLE);
}

TEST("MT-6", a_close_releases_all_waiters_of_a_cno)
{
	struct queue *q = a_queue(8, a_cno());

	/* Keeps the provider loaded: a late call must find it. */
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	open_ia(&async);
	crew(THREADS + 1, wait_on_cno_forever, q);
}
