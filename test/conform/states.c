/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* states.c - every call in every state of an endpoint: what it returns, and the state after it. Data on the
 * connection is not checked. */
#include "actors.h"
#include "pair.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the columns: endpoints brought into each state ----------------------------------------- */

enum column { UNCONN, RESV, PASS, TENT, ACT, COMP, CONN, DISCP, DISC, COLUMNS };

struct scene {
	struct end e;		/* the endpoint in question, */
	struct region remote;	/* where its RDMA goes */
	DAT_CR_HANDLE cr;	/* PASS and TENT: its own request */
	DAT_RSP_HANDLE rsp;	/* RESV */
};

static struct scene unconnected(void)
{
	struct scene s = { .e = AN_END() };

	s.remote = s.e.mem;
	return s;
}

static struct scene reserved(void)
{
	struct scene s = unconnected();

	s.rsp = a_reservation(s.e.ep).rsp;
	return s;
}

static struct scene passive(void)
{
	struct scene s = unconnected();
	struct reservation r = a_reservation(s.e.ep);

	dial(AN_END().ep, r.qual);
	s.cr = request_on(r.evd);
	return s;
}

static struct scene tentative(void)
{
	if (provider_attr()->ep_creator == DAT_PSP_CREATES_EP_NEVER)
		skip("ep_creator is DAT_PSP_CREATES_EP_NEVER");
	struct scene s = unconnected();
	struct listener listener = a_listener_on(ia(), an_evd(DAT_EVD_CR_FLAG), DAT_PSP_PROVIDER_FLAG);
	DAT_EP_PARAM param = { .pz_handle = s.e.pz, .recv_evd_handle = s.e.recv,
			       .request_evd_handle = s.e.request, .connect_evd_handle = s.e.conn };

	OK(dat_ep_free(s.e.ep));
	dial(AN_END().ep, listener.qual);
	s.cr = request_on(listener.evd);
	s.e.ep = cr_param(s.cr).local_ep_handle;
	OK(dat_ep_modify(s.e.ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
			 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	return s;
}

static struct scene active(void)
{
	struct scene s = unconnected();
	struct listener listener = a_listener();

	dial(s.e.ep, listener.qual);
	request_on(listener.evd);
	return s;
}

static void call_and_stay(struct peer *self, void *arg __attribute__((unused)))
{
	struct end end = AN_END();
	DAT_CONN_QUAL qual;

	hear(self, &qual, sizeof(qual));
	dial(end.ep, qual);
	for (;;)
		pause();
}

/* The initiator is stopped before it can complete the connection. */
static struct scene completing(void)
{
	struct peer peer = a_peer(call_and_stay, NULL);
	struct scene s = unconnected();
	struct listener listener = a_listener();

	tell(&peer, &listener.qual, sizeof(listener.qual));
	DAT_CR_HANDLE cr = request_on(listener.evd);
	kill_peer(&peer, SIGSTOP);
	OK(dat_cr_accept(cr, s.e.ep, 0, NULL));
	if (state_of(s.e.ep) != DAT_EP_STATE_COMPLETION_PENDING)
		skip("an acceptance completes without the peer on this device");
	return s;
}

static struct scene connected(void)
{
	struct pair p = CONNECTED_PAIR();

	return (struct scene){ .e = p.a, .remote = p.b.mem };
}

static struct scene disconnecting(void)
{
	struct pair p = CONNECTED_PAIR();

	hold_requests(&p);
	OK(dat_ep_disconnect(p.a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	return (struct scene){ .e = p.a, .remote = p.b.mem };
}

static struct scene disconnected(void)
{
	struct pair p = CONNECTED_PAIR();

	hang_up(&p.a);
	EVENT(p.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	return (struct scene){ .e = p.a, .remote = p.b.mem };
}

static const struct {
	const char *name;
	DAT_EP_STATE state;
	DAT_RETURN_SUBTYPE sub;
	struct scene (*enter)(void);
} columns[COLUMNS] = {
	[UNCONN] = { "UNCONN", DAT_EP_STATE_UNCONNECTED, DAT_INVALID_STATE_EP_UNCONNECTED, unconnected },
	[RESV] = { "RESV", DAT_EP_STATE_RESERVED, DAT_INVALID_STATE_EP_RESERVED, reserved },
	[PASS] = { "PASS", DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, DAT_INVALID_STATE_EP_PASSCONNPENDING, passive },
	[TENT] = { "TENT", DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING, DAT_INVALID_STATE_EP_TENTCONNPENDING, tentative },
	[ACT] = { "ACT", DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, DAT_INVALID_STATE_EP_ACTCONNPENDING, active },
	[COMP] = { "COMP", DAT_EP_STATE_COMPLETION_PENDING, DAT_INVALID_STATE_EP_COMPLPENDING, completing },
	[CONN] = { "CONN", DAT_EP_STATE_CONNECTED, DAT_INVALID_STATE_EP_CONNECTED, connected },
	[DISCP] = { "DISCP", DAT_EP_STATE_DISCONNECT_PENDING, DAT_INVALID_STATE_EP_DISCPENDING, disconnecting },
	[DISC] = { "DISC", DAT_EP_STATE_DISCONNECTED, DAT_INVALID_STATE_EP_DISCONNECTED, disconnected },
};

/* --- the rows: calls ---------------------------------------------------------------------------- */

#define DEFAULT DAT_COMPLETION_DEFAULT_FLAG
#define DATA(s) 1, SEGMENT(&(s)->e.mem, 0, 64), COOKIE(7)

static DAT_RETURN ep_connect(struct scene *s)
{
	return try_dial(s->e.ep, a_listener().qual);
}

static DAT_RETURN ep_dup_connect(struct scene *s)
{
	struct end a = AN_END(), b = AN_END();
	struct listener listener = a_listener();

	dial(a.ep, listener.qual);
	OK(dat_cr_accept(request_on(listener.evd), b.ep, 0, NULL));
	EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	EVENT(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	return dat_ep_dup_connect(s->e.ep, a.ep, AMPLE_TIME, 0, NULL, DAT_QOS_BEST_EFFORT);
}

static DAT_RETURN ep_common_connect(struct scene *s)
{
	struct sockaddr_storage where;
	DAT_RETURN ret = LATE(dat_ep_common_connect)(s->e.ep, csp_address(&where, a_listener().qual),
						     AMPLE_TIME, 0, NULL);

	if (DAT_GET_TYPE(ret) == DAT_NOT_IMPLEMENTED)
		skip("dat_ep_common_connect answers %s", return_name(ret));
	return ret;
}

static DAT_RETURN ep_disconnect_graceful(struct scene *s)
{
	return dat_ep_disconnect(s->e.ep, DAT_CLOSE_GRACEFUL_FLAG);
}

static DAT_RETURN ep_disconnect_abrupt(struct scene *s)
{
	return dat_ep_disconnect(s->e.ep, DAT_CLOSE_ABRUPT_FLAG);
}

static DAT_RETURN ep_post_recv(struct scene *s)
{
	return dat_ep_post_recv(s->e.ep, DATA(s), DEFAULT);
}

static DAT_RETURN ep_post_send(struct scene *s)
{
	return dat_ep_post_send(s->e.ep, DATA(s), DEFAULT);
}

static DAT_RETURN ep_post_rdma_write(struct scene *s)
{
	return dat_ep_post_rdma_write(s->e.ep, DATA(s), TARGET(&s->remote, 0, 64), DEFAULT);
}

static DAT_RETURN ep_post_rdma_read(struct scene *s)
{
	return dat_ep_post_rdma_read(s->e.ep, DATA(s), TARGET(&s->remote, 0, 64), DEFAULT);
}

static DAT_RETURN rmr_bind(struct scene *s)
{
	DAT_RMR_HANDLE rmr;
	DAT_RMR_CONTEXT context;

	OK(dat_rmr_create(s->e.pz, &rmr));
	return dat_rmr_bind(rmr, s->e.mem.lmr, SEGMENT(&s->e.mem, 0, 4096), DAT_MEM_PRIV_REMOTE_READ_FLAG,
			    DAT_VA_TYPE_VA, s->e.ep, COOKIE(7), DEFAULT, &context);
}

static DAT_RETURN ep_reset(struct scene *s)
{
	return dat_ep_reset(s->e.ep);
}

static DAT_RETURN ep_free(struct scene *s)
{
	return dat_ep_free(s->e.ep);
}

static DAT_RETURN ep_modify_pz(struct scene *s)
{
	return dat_ep_modify(s->e.ep, DAT_EP_FIELD_PZ_HANDLE, &(DAT_EP_PARAM){ .pz_handle = a_pz() });
}

static DAT_RETURN ep_modify_evd(struct scene *s)
{
	DAT_EP_PARAM param = { .request_evd_handle = an_evd(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG) };

	return dat_ep_modify(s->e.ep, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param);
}

static DAT_RETURN ep_modify_attr(struct scene *s)
{
	DAT_EP_PARAM param = { .ep_attr.max_message_size = 4096 };

	return dat_ep_modify(s->e.ep, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &param);
}

static DAT_RETURN ep_modify_ia(struct scene *s)
{
	return dat_ep_modify(s->e.ep, DAT_EP_FIELD_IA_HANDLE, &(DAT_EP_PARAM){ .ia_handle = ia() });
}

static DAT_RETURN ep_query(struct scene *s)
{
	DAT_EP_PARAM param;
	DAT_EP_STATE state = state_of(s->e.ep);
	DAT_RETURN ret = dat_ep_query(s->e.ep, DAT_EP_FIELD_ALL, &param);

	EQUAL(param.ep_state, state);
	return ret;
}

static DAT_RETURN ep_get_status(struct scene *s)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;

	return dat_ep_get_status(s->e.ep, &state, &recv_idle, &request_idle);
}

static DAT_RETURN consumer_context(struct scene *s)
{
	DAT_CONTEXT context;
	DAT_RETURN ret = dat_set_consumer_context(s->e.ep, COOKIE(5));

	if (ret == DAT_SUCCESS)
		ret = dat_get_consumer_context(s->e.ep, &context);
	EQUAL(context.as_64, 5);
	return ret;
}

static DAT_RETURN cr_accept_other(struct scene *s)
{
	struct listener listener = a_listener();

	dial(AN_END().ep, listener.qual);
	return dat_cr_accept(request_on(listener.evd), s->e.ep, 0, NULL);
}

static DAT_RETURN cr_accept_own(struct scene *s)
{
	return dat_cr_accept(s->cr, DAT_HANDLE_NULL, 0, NULL);
}

static DAT_RETURN cr_reject_own(struct scene *s)
{
	return dat_cr_reject(s->cr, 0, NULL);
}

static DAT_RETURN rsp_create(struct scene *s)
{
	DAT_RSP_HANDLE rsp;

	return dat_rsp_create(ia(), new_qual(), s->e.ep, an_evd(DAT_EVD_CR_FLAG), &rsp);
}

static DAT_RETURN rsp_free(struct scene *s)
{
	return dat_rsp_free(s->rsp);
}

/* --- the cells: what happens ------------------------------------------------------------------------ */

enum outcome {
	NOTHING,	/* not a case */
	SAME,		/* success, the state stays */
	SUB,		/* DAT_INVALID_STATE with the state's subtype, the state stays */
	ARG2,		/* DAT_INVALID_PARAMETER(DAT_INVALID_ARG2), the state stays */
	GONE,		/* success, there is no endpoint any more */
	FLUSH,		/* success, completes flushed at once, the state stays */
	ENDED,		/* success, DISCONNECTED and the event that says so */
	TO_ACT, TO_CONN, TO_RESV, TO_UNCONN,	/* success, another state */
};

#define ALL(o) { o, o, o, o, o, o, o, o, o }
/* The columns are     UNCONN  RESV  PASS  TENT   ACT  COMP  CONN  DISCP  DISC */
#define ONLY_UNCONN(o) {   o,   SUB,  SUB,  SUB,  SUB,  SUB,  SUB,   SUB,  SUB }
#define REQUEST        { SUB,   SUB,  SUB,  SUB,  SUB,  SUB, SAME,   SUB, FLUSH }

static const struct row {
	const char *name;
	DAT_RETURN (*call)(struct scene *s);
	enum outcome outcome[COLUMNS];
} rows[] = {
	{ "connect", ep_connect, ONLY_UNCONN(TO_ACT) },
	{ "dup_connect", ep_dup_connect, ONLY_UNCONN(TO_ACT) },
	{ "common_connect", ep_common_connect, ONLY_UNCONN(TO_ACT) },
	{ "disconnect_graceful", ep_disconnect_graceful,
	  { SUB, SUB, SUB, SUB, ENDED, ENDED, ENDED, SAME, SAME } },
	{ "disconnect_abrupt", ep_disconnect_abrupt,
	  { SUB, SUB, SUB, SUB, ENDED, ENDED, ENDED, ENDED, SAME } },
	{ "post_recv", ep_post_recv,
	  { SAME, SAME, SAME, SAME, SAME, SAME, SAME, SAME, FLUSH } },
	{ "post_send", ep_post_send, REQUEST },
	{ "post_rdma_write", ep_post_rdma_write, REQUEST },
	{ "post_rdma_read", ep_post_rdma_read, REQUEST },
	{ "rmr_bind", rmr_bind, REQUEST },
	{ "reset", ep_reset,
	  { SAME, SUB, SUB, SUB, SUB, SUB, SUB, SUB, TO_UNCONN } },
	{ "free", ep_free,
	  { GONE, SUB, SUB, SUB, GONE, GONE, GONE, GONE, GONE } },
	{ "modify_pz", ep_modify_pz,
	  { SAME, SUB, SUB, SAME, SUB, SUB, SUB, SUB, SUB } },
	{ "modify_evd", ep_modify_evd,
	  { SAME, SAME, SAME, SAME, SUB, SUB, SUB, SUB, SUB } },
	{ "modify_attr", ep_modify_attr,
	  { SAME, SAME, SAME, SAME, SUB, SUB, SUB, SUB, SUB } },
	{ "modify_ia", ep_modify_ia, ALL(ARG2) },
	{ "query", ep_query, ALL(SAME) },
	{ "get_status", ep_get_status, ALL(SAME) },
	{ "consumer_context", consumer_context, ALL(SAME) },
	{ "cr_accept_other", cr_accept_other, ONLY_UNCONN(TO_CONN) },
	{ "rsp_create", rsp_create, ONLY_UNCONN(TO_RESV) },
	{ "rsp_free", rsp_free, { [RESV] = TO_UNCONN } },
	{ "cr_accept_own", cr_accept_own, { [PASS] = TO_CONN, [TENT] = TO_CONN } },
	{ "cr_reject_own", cr_reject_own, { [PASS] = TO_UNCONN, [TENT] = GONE } },
};

struct cell {
	const struct row *row;
	enum column column;
};

static void expect_flushed(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event = next_event(evd);
	bool bind = event.event_number == DAT_RMR_BIND_COMPLETION_EVENT;

	if (!bind && event.event_number != DAT_DTO_COMPLETION_EVENT)
		fail("expected a flushed completion, found %s", event_name(event.event_number));
	EQUAL(bind ? event.event_data.rmr_completion_event_data.user_cookie.as_64 :
		     event.event_data.dto_completion_event_data.user_cookie.as_64, 7);
	DAT_DTO_COMPLETION_STATUS status = bind ? event.event_data.rmr_completion_event_data.status :
						  event.event_data.dto_completion_event_data.status;
	if (status != DAT_DTO_ERR_FLUSHED)
		fail("expected DAT_DTO_ERR_FLUSHED, found %s", dto_status_name(status));
}

static void run_cell(const void *arg)
{
	const struct cell *cell = arg;
	enum outcome outcome = cell->row->outcome[cell->column];
	DAT_EP_STATE state = columns[cell->column].state;
	DAT_RETURN expected = DAT_SUCCESS;
	struct scene s;

	/* Before: siw's kernel waits 10 s for a connection that is left half open. */
	if (cell->row->call == rmr_bind)
		needs_rmr();
	s = columns[cell->column].enter();
	STATE(s.e.ep, state);
	if (outcome == SUB)
		expected = DAT_INVALID_STATE | columns[cell->column].sub;
	if (outcome == ARG2)
		expected = DAT_INVALID_PARAMETER | DAT_INVALID_ARG2;
	AT(cell->row->name);
	DAT_RETURN ret = cell->row->call(&s);
	AT(cell->row->name);
	expect_return(ret, 1, &expected);

	switch (outcome) {
	case GONE:
		FAILS(dat_ep_get_status(s.e.ep, NULL, NULL, NULL), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);
		return;
	case FLUSH:
		expect_flushed(cell->row->call == ep_post_recv ? s.e.recv : s.e.request);
		break;
	case ENDED:
		EVENT(s.e.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
		state = DAT_EP_STATE_DISCONNECTED;
		break;
	case TO_ACT:
		state = DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
		break;
	case TO_CONN:
		EVENT(s.e.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
		state = DAT_EP_STATE_CONNECTED;
		break;
	case TO_RESV:
		state = DAT_EP_STATE_RESERVED;
		break;
	case TO_UNCONN:
		state = DAT_EP_STATE_UNCONNECTED;
		break;
	default:
		break;
	}
	if (!(outcome == SAME && cell->column == CONN && cell->row->outcome[UNCONN] == SUB))
		NO_EVENT(s.e.conn);	/* a send without a receive may break the connection */
	else if (cell->row->call == ep_post_send)
		return;
	STATE(s.e.ep, state);
}

__attribute__((constructor)) static void register_cells(void)
{
	for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++)
		for (int c = 0; c < COLUMNS; c++) {
			if (rows[r].outcome[c] == NOTHING)
				continue;
			struct test *test = calloc(1, sizeof(*test));
			struct cell *cell = calloc(1, sizeof(*cell));
			char id[60], name[90];
			snprintf(id, sizeof(id), "ST-%s-%s", columns[c].name, rows[r].name);
			snprintf(name, sizeof(name), "%s_in_%s", rows[r].name, columns[c].name);
			*cell = (struct cell){ &rows[r], (enum column)c };
			*test = (struct test){ strdup(id), strdup(name), run_cell, cell, __FILE__, __LINE__ };
			test_register(test);
		}
}
