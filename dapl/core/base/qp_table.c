/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp_table.c - finds the endpoint of a QP number, because completions of an SRQ have only that number. */
#include "dapl/core/base/qp_table.h"

static unsigned hash(uint32_t qpn)
{
	return (qpn ^ qpn >> 8) & 255;
}

void dapl_qp_table_add(struct dapl_ep *ep)
{
	struct dapl_ia *ia = ep->obj.ia;

	dapl_spin_lock(&ia->qp_lock);
	ep->qpn_next = ia->qps[hash(ep->qpn)];
	ia->qps[hash(ep->qpn)] = ep;
	dapl_spin_unlock(&ia->qp_lock);
}

void dapl_qp_table_remove(struct dapl_ep *ep)
{
	struct dapl_ia *ia = ep->obj.ia;
	struct dapl_ep **p;

	dapl_spin_lock(&ia->qp_lock);
	for (p = &ia->qps[hash(ep->qpn)]; *p && *p != ep; p = &(*p)->qpn_next)
		;
	if (*p)
		*p = ep->qpn_next;
	dapl_spin_unlock(&ia->qp_lock);
}

struct dapl_ep *dapl_qp_table_find(struct dapl_ia *ia, uint32_t qpn)
{
	struct dapl_ep *ep;

	dapl_spin_lock(&ia->qp_lock);
	for (ep = ia->qps[hash(qpn)]; ep && ep->qpn != qpn; ep = ep->qpn_next)
		;
	dapl_spin_unlock(&ia->qp_lock);
	return ep;
}
