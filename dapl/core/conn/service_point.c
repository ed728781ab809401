/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* service_point.c - service points: persistent (PSP), reserved (RSP) and common (CSP). Creating, listening
 * and freeing. Incoming requests are in sp_request.c. */
#include <dat/dat_net_port.h>
#include <errno.h>
#include <string.h>
#include "common/descriptors.h"
#include "dapl/core/base/ia_handle.h"
#include "common/local_addresses.h"
#include "dapl/core/base/qual.h"
#include "dapl/core/conn/service_point.h"
#include "dapl/core/ep/ep_qp.h"
#include "dapl/core/ep/ep_state.h"

enum { BACKLOG = 1024 };	/* backlog of the transport; DAT's own backlog is the room of the EVD */

/* An RSP's request may arrive, and close the RSP, before the device has returned the listener to
 * start_listening. Of start_listening and dapl_sp_close, the later one sees the bit of the other, and ends
 * the listeners. */
enum sp_life { SP_LISTENS = 1, SP_CLOSED = 2 };

/* --- making and ending --------------------------------------------------------------- */

static void end_listening(struct dapl_sp *sp)
{
	__atomic_store_n(&sp->listens, 0, __ATOMIC_RELEASE);
	if (sp->listener)
		dapl_device_ops.unlisten(sp->listener);
	if (sp->ud_listener)
		dapl_device_ops.unlisten(sp->ud_listener);
	sp->listener = sp->ud_listener = NULL;
}

enum { PROTOCOLS = DAT_PSP_RC_FLAG | DAT_PSP_UD_FLAG };

/* Listens for datagrams. Without the flag a failure is that of datagrams only. */
static int listen_for_datagrams(struct dapl_sp *sp, const struct sockaddr *address, uint16_t *port)
{
	int err = dapl_device_ops.listen(sp->obj.ia->dev, address, port, true, BACKLOG, sp, &sp->ud_listener);

	if (!err || sp->flags & DAT_PSP_UD_FLAG)
		return err;
	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "sp", sp, NULL, "no UD listener on %u: %s", *port, strerror(err));
	return 0;
}

static int start_listening(struct dapl_sp *sp, const struct sockaddr *address)
{
	struct dapl_ia *ia = sp->obj.ia;
	uint16_t port = dapl_qual_port(READ_ONCE(sp->qual));
	unsigned wanted = sp->flags & PROTOCOLS ? sp->flags & PROTOCOLS : PROTOCOLS;
	int err = 0;

	if (wanted & DAT_PSP_RC_FLAG)
		err = dapl_device_ops.listen(ia->dev, address, &port, false, BACKLOG, sp, &sp->listener);
	if (!err && wanted & DAT_PSP_UD_FLAG && ia->attr.ud)
		err = listen_for_datagrams(sp, address, &port);
	if (err) {
		end_listening(sp);
		return err;
	}
	if (!READ_ONCE(sp->qual))
		WRITE_ONCE(sp->qual, port);	/* relaxed: a concurrent search may see the old or the new
						 * value */
	address_set_port((struct sockaddr *)&sp->address, port);	/* of a CSP */
	__atomic_store_n(&sp->listens, (sp->listener ? SP_RC : 0) | (sp->ud_listener ? SP_UD : 0), __ATOMIC_RELEASE);
	if (__atomic_fetch_or(&sp->life, SP_LISTENS, __ATOMIC_ACQ_REL) & SP_CLOSED)
		end_listening(sp);
	return 0;
}

void dapl_sp_close(struct dapl_sp *sp)
{
	struct dapl_ep *ep = sp->ep;
	unsigned life = __atomic_fetch_or(&sp->life, SP_CLOSED, __ATOMIC_ACQ_REL);

	if (life & SP_CLOSED)
		return;
	if (life & SP_LISTENS)
		end_listening(sp);
	if (ep && !__atomic_load_n(&sp->used, __ATOMIC_ACQUIRE)) {
		dapl_mutex_lock(&ep->lock);
		ep->rsp = NULL;
		dapl_ep_step(ep, EP_DO_RELEASE, NULL);	/* SP-17 */
		dapl_mutex_unlock(&ep->lock);
	}
	if (ep)
		dapl_object_put(&ep->obj);
	dapl_unuse(&sp->evd->obj);
}

void dapl_sp_destroy(struct dapl_sp *sp)
{
	dapl_sp_close(sp);
	dapl_object_bury(&sp->obj);
}

/* Returns false if the handle names no live service point of that kind. */
static bool free_sp(DAT_HANDLE handle, enum dapl_kind kind)
{
	DAPL_ENTERED struct dapl_sp *sp = dapl_object_enter(handle, kind);

	if (!sp || !dapl_object_kill(&sp->obj))
		return false;
	dapl_object_wait_calls(&sp->obj, 1);
	if (kind != DAPL_CSP)
		dapl_count(sp->obj.ia, kind == DAPL_PSP ? DCNT_IA_PSP_FREE : DCNT_IA_RSP_FREE);
	dapl_sp_destroy(sp);
	return true;
}

static struct dapl_sp *new_sp(struct dapl_ia *ia, enum dapl_kind kind, DAT_CONN_QUAL qual,
			      struct dapl_evd *evd, DAT_PSP_FLAGS flags)
{
	struct dapl_sp *sp = dapl_object_new(kind, sizeof *sp, ia, NULL);

	if (!sp)
		return NULL;
	WRITE_ONCE(sp->qual, qual);
	sp->evd = evd;
	sp->flags = flags;
	if (!dapl_use(&evd->obj)) {
		dapl_object_put(&sp->obj);
		return NULL;
	}
	return sp;
}

/* Reports why the device does not listen, if that can be mended outside the program. `address`: NULL for that of the
 * IA. */
static void report_failure(const struct dapl_ia *ia, const struct sockaddr *address, unsigned port, int err)
{
	const char *name = ia->ia_attr.adapter_name, *why;
	char text[INET6_ADDRSTRLEN];

	if (!address)
		address = (const struct sockaddr *)&ia->attr.address;
	report_no_descriptors(name, err, "listening");
	if (err == EACCES && port && port < IPPORT_RESERVED)
		log_report(REPORT_NO_CAPABILITY, LOG_FIELDS(.ia = name, .err = err), "%s: listening at port %u: ports "
			   "below %u need CAP_NET_BIND_SERVICE: take a larger one", name, port,
			   IPPORT_RESERVED);
	else if (err == EADDRNOTAVAIL && address_host(address, text) && (why = local_address_why(address)))
		log_report(REPORT_NO_ADDRESS, LOG_FIELDS(.ia = name, .err = err), "%s: listening: %s %s", name, text,
			   why);
}

/* Publishes the service point before it listens, because the event of the first request names its handle.
 * Another thread may then free it before this function returns, so the service point stays entered after
 * success. */
static DAT_RETURN publish(struct dapl_sp *sp, const struct sockaddr *address)
{
	unsigned port = address ? address_port(address) : dapl_qual_port(READ_ONCE(sp->qual));
	int err;

	dapl_object_enter_own(&sp->obj);
	dapl_object_publish(&sp->obj);
	err = start_listening(sp, address);
	if (!err) {
		dapl_count(sp->obj.ia, DCNT_IA_CM_LISTEN);
		return DAT_SUCCESS;
	}
	report_failure(sp->obj.ia, address, port, err);
	if (dapl_object_kill(&sp->obj)) {
		dapl_object_wait_calls(&sp->obj, 1);
		dapl_sp_destroy(sp);
	}
	dapl_object_leave(&sp->obj);
	return dapl_status(err, DAT_RESOURCE_DEVICE);
}

/* True if the EVD, which is entered or NULL, is one of this IA for connection requests. SP-3. */
static bool is_cr_evd(const struct dapl_ia *ia, const struct dapl_evd *evd)
{
	return evd && evd->obj.ia == ia && (evd->flags & DAT_EVD_CR_FLAG);
}

/* Returns the service point entered in *made. SP-4. */
static DAT_RETURN create_psp(struct dapl_ia *ia, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd_handle,
			     DAT_PSP_FLAGS flags, struct dapl_sp **made)
{
	DAPL_ENTERED struct dapl_evd *evd = dapl_evd_enter(evd_handle);
	struct dapl_sp *sp;
	DAT_RETURN ret;

	if (!is_cr_evd(ia, evd))
		return BAD_HANDLE(EVD_CR);
	if (flags & ~(DAT_PSP_PROVIDER_FLAG | PROTOCOLS))
		return BAD_PARAM(4);
	if (flags & DAT_PSP_UD_FLAG && !ia->attr.ud)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (!(sp = new_sp(ia, DAPL_PSP, qual, evd, flags)))
		return NO_RESOURCE(MEMORY);
	if ((ret = publish(sp, NULL)))
		return ret;
	*made = sp;
	return DAT_SUCCESS;
}

/* dat_psp_create (doc/spec/calls.md 7). SP-1. */
DAT_RETURN dapl_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd,
			   DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);
	struct dapl_sp *sp;
	DAT_RETURN ret;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!qual)
		return BAD_PARAM(2);
	if (!handle)
		return BAD_PARAM(5);
	if ((ret = create_psp(ia, qual, evd, flags, &sp)))
		return ret;
	dapl_count(ia, DCNT_IA_PSP_CREATE);
	*handle = (DAT_PSP_HANDLE)sp;
	dapl_object_leave(&sp->obj);
	return DAT_SUCCESS;
}

/* dat_psp_create_any: the device chooses a port beyond the privileged ones. SP-5, 6. */
DAT_RETURN dapl_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *qual, DAT_EVD_HANDLE evd,
			       DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);
	struct dapl_sp *sp;
	DAT_RETURN ret;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!qual)
		return BAD_PARAM(2);
	if (!handle)
		return BAD_PARAM(5);
	ret = create_psp(ia, 0, evd, flags, &sp);
	if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE)
		return DAT_ERROR(DAT_CONN_QUAL_UNAVAILABLE, DAT_NO_SUBTYPE);
	if (ret != DAT_SUCCESS)
		return ret;
	dapl_count(ia, DCNT_IA_PSP_CREATE_ANY);
	*qual = READ_ONCE(sp->qual);
	*handle = (DAT_PSP_HANDLE)sp;
	dapl_object_leave(&sp->obj);
	return DAT_SUCCESS;
}

/* SP-7 */
DAT_RETURN dapl_psp_query(DAT_PSP_HANDLE handle, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param)
{
	DAPL_ENTERED struct dapl_sp *sp = dapl_object_enter(handle, DAPL_PSP);

	if (!sp)
		return BAD_HANDLE(PSP);
	if (mask & ~DAT_PSP_FIELD_ALL)
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	param->ia_handle = dapl_ia_handle(sp->obj.ia);
	param->conn_qual = READ_ONCE(sp->qual);
	param->evd_handle = (DAT_EVD_HANDLE)sp->evd;
	param->psp_flags = sp->flags;
	return DAT_SUCCESS;
}

/* SP-8, 9, 10, 11 */
DAT_RETURN dapl_psp_free(DAT_PSP_HANDLE handle)
{
	return free_sp(handle, DAPL_PSP) ? DAT_SUCCESS : BAD_HANDLE(PSP);
}

/* --- reserved ---------------------------------------------------------------------------- */

/* SP-14, 15 */
static DAT_RETURN reserve(struct dapl_sp *sp, struct dapl_ep *ep)
{
	DAT_RETURN ret = DAT_SUCCESS;

	dapl_ep_lock_settled(ep);
	if (!dapl_object_is_live(&ep->obj)) {
		ret = BAD_HANDLE(EP);
	} else if (dapl_ep_step(ep, EP_DO_RESERVE, NULL)) {
		ep->rsp = sp;
		sp->ep = ep;
		dapl_object_get(&ep->obj);
	} else {
		ret = dapl_status_bad_ep_state(ep->state);
	}
	dapl_mutex_unlock(&ep->lock);
	return ret;
}

/* dat_rsp_create (doc/spec/calls.md 7): takes one request, for one endpoint. */
DAT_RETURN dapl_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep_handle,
			   DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);
	DAPL_ENTERED struct dapl_evd *evd = NULL;
	DAPL_ENTERED struct dapl_ep *ep = NULL;
	struct dapl_sp *sp;
	DAT_RETURN ret;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!qual)
		return BAD_PARAM(2);
	if (ep_handle && (!(ep = dapl_ep_enter(ep_handle)) || ep->obj.ia != ia))
		return BAD_HANDLE(EP);
	if (!is_cr_evd(ia, evd = dapl_evd_enter(evd_handle)))
		return BAD_HANDLE(EVD_CR);
	if (!handle)
		return BAD_PARAM(5);
	if (!(sp = new_sp(ia, DAPL_RSP, qual, evd, DAT_PSP_CONSUMER_FLAG)))
		return NO_RESOURCE(MEMORY);
	if (ep && (ret = reserve(sp, ep))) {
		dapl_sp_destroy(sp);
		return ret;
	}
	*handle = (DAT_RSP_HANDLE)sp;	/* set before the request may arrive */
	if ((ret = publish(sp, NULL))) {
		*handle = DAT_HANDLE_NULL;
		return ret;
	}
	dapl_object_leave(&sp->obj);
	dapl_count(ia, DCNT_IA_RSP_CREATE);
	return DAT_SUCCESS;
}

/* SP-18 */
DAT_RETURN dapl_rsp_query(DAT_RSP_HANDLE handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param)
{
	DAPL_ENTERED struct dapl_sp *sp = dapl_object_enter(handle, DAPL_RSP);

	if (!sp)
		return BAD_HANDLE(RSP);
	if (mask & ~DAT_RSP_FIELD_ALL)
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	param->ia_handle = dapl_ia_handle(sp->obj.ia);
	param->conn_qual = READ_ONCE(sp->qual);
	param->evd_handle = (DAT_EVD_HANDLE)sp->evd;
	param->ep_handle = READ_ONCE(sp->used) ? DAT_HANDLE_NULL : (DAT_EP_HANDLE)sp->ep;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_rsp_free(DAT_RSP_HANDLE handle)
{
	return free_sp(handle, DAPL_RSP) ? DAT_SUCCESS : BAD_HANDLE(RSP);
}

/* --- common -------------------------------------------------------------------------------- */

static bool good_comm(const DAT_COMM *comm, const struct sockaddr *address)
{
	return (comm->domain == AF_INET || comm->domain == AF_INET6) && comm->domain == address->sa_family &&
	       comm->type == SOCK_STREAM && (comm->protocol == 0 || comm->protocol == IPPROTO_TCP);
}

/* dat_csp_create (DAT 2.0): a listener at a socket address; port 0 lets the device choose. SP-37. */
DAT_RETURN dapl_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
			   DAT_EVD_HANDLE evd_handle, DAT_CSP_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);
	const struct sockaddr *at = (const struct sockaddr *)address;
	DAPL_ENTERED struct dapl_evd *evd = NULL;
	struct dapl_sp *sp;
	DAT_RETURN ret;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!comm)
		return BAD_PARAM(2);
	if (!address)
		return BAD_PARAM(3);
	if (!is_cr_evd(ia, evd = dapl_evd_enter(evd_handle)))
		return BAD_HANDLE(EVD_CR);
	if (!handle)
		return BAD_PARAM(5);
	if (!good_comm(comm, at))
		return DAT_ERROR(DAT_COMM_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (!(sp = new_sp(ia, DAPL_CSP, 0, evd, DAT_PSP_CONSUMER_FLAG)))
		return NO_RESOURCE(MEMORY);
	sp->comm = *comm;
	address_copy(&sp->address, at);
	WRITE_ONCE(sp->qual, dapl_port_of(&sp->address));
	ret = publish(sp, (struct sockaddr *)&sp->address);
	if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE)
		return DAT_ERROR(DAT_PORT_IN_USE, DAT_NO_SUBTYPE);
	if (ret != DAT_SUCCESS)
		return ret;
	*handle = (DAT_CSP_HANDLE)sp;
	dapl_object_leave(&sp->obj);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_csp_query(DAT_CSP_HANDLE handle, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param)
{
	DAPL_ENTERED struct dapl_sp *sp = dapl_object_enter(handle, DAPL_CSP);

	if (!sp)
		return BAD_HANDLE(CSP);
	if (mask & ~DAT_CSP_FIELD_ALL)
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	param->ia_handle = dapl_ia_handle(sp->obj.ia);
	param->comm = &sp->comm;
	param->address_ptr = (DAT_IA_ADDRESS_PTR)&sp->address;
	param->evd_handle = (DAT_EVD_HANDLE)sp->evd;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_csp_free(DAT_CSP_HANDLE handle)
{
	return free_sp(handle, DAPL_CSP) ? DAT_SUCCESS : BAD_HANDLE(CSP);
}

/* --- finding ---------------------------------------------------------------------------------- */

static struct dapl_sp *find_in(struct dapl_object *list, DAT_CONN_QUAL qual)
{
	for (; list; list = list->next) {
		struct dapl_sp *sp = (struct dapl_sp *)list;

		if (READ_ONCE(sp->qual) == qual && !__atomic_load_n(&sp->used, __ATOMIC_ACQUIRE))
			return dapl_object_enter((DAT_HANDLE)sp, sp->obj.kind);
	}
	return NULL;
}

struct dapl_sp *dapl_sp_find(struct dapl_ia *ia, DAT_CONN_QUAL qual)
{
	struct dapl_sp *sp;

	dapl_mutex_lock(&ia->lock);
	if (!(sp = find_in(ia->objects[DAPL_PSP], qual)) &&
	    !(sp = find_in(ia->objects[DAPL_RSP], qual)))
		sp = find_in(ia->objects[DAPL_CSP], qual);
	dapl_mutex_unlock(&ia->lock);
	return sp;
}
