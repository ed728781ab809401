/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send.c - sending and its flow control.
 *
 * A message needs a free send-queue slot, and at the peer either space in the ring or a posted
 * receive: a credit. A message without them waits in endpoint->sends, until a completion or
 * credits arrive. Every message also returns credits to the peer. If no message is sent, a control
 * message returns them when half of them are unreported. It needs no credit itself
 * (UDAPL_CONTROL_RECEIVES). */
#include "send.h"
#include "conn.h"
#include "push.h"
#include "frag.h"
#include "rdma.h"
#include "ring.h"
#include "staging.h"

/* --- the interface --------------------------------------------------------------------------- */

/* Whether Open MPI needs no completion callback. */
static bool is_btl_owned(const mca_btl_base_descriptor_t *des)
{
	return (des->des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP) &&
	       !(des->des_flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK);
}

/* The payload is copied into a ring, so the fragment is complete. */
static int finish_copied(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, mca_btl_base_descriptor_t *des)
{
	bool btl_owned = des->des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;

	assert_no_lock_held();
	if ((des->des_flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK) && des->des_cbfunc)
		des->des_cbfunc(btl, e, des, OPAL_SUCCESS);
	if (btl_owned)
		udapl_free(btl, des);
	return 1;
}

/* Returns 1 if the message has been sent. The fragment then belongs to the BTL or to the caller again,
 * and the callback has run if the caller always wants it. A short message is copied, since that costs
 * less than a completion. */
int udapl_send(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e,
	       mca_btl_base_descriptor_t *des, mca_btl_base_tag_t tag)
{
	udapl_frag_t *f = (udapl_frag_t *)des;
	bool btl_owned = is_btl_owned(des);
	int rc = OPAL_SUCCESS;

	if (udapl_send_copy(e, f->header + 1, f->segment.seg_len, tag, btl_owned ? UDAPL_COPY_LIMIT : 0))
		return finish_copied(btl, e, des);
	f->endpoint = e;
	f->header->kind = UDAPL_DATA;
	f->header->tag = tag;
	f->callback = true;
	udapl_mutex_lock(&e->lock);
	if (e->state == UDAPL_FAILED) {
		rc = OPAL_ERR_UNREACH;
	} else if (e->conn && opal_list_is_empty(&e->sends) &&
		   udapl_has_room(e->conn, f->segment.seg_len)) {
		f->callback = !btl_owned;
		if (udapl_post_or_flush(e, f) && btl_owned)
			rc = 1;
	} else {
		opal_list_append(&e->sends, &f->base.super.super);
		if (e->state == UDAPL_IDLE)
			udapl_connect(e);
	}
	udapl_mutex_unlock(&e->lock);
	return rc;
}

bool udapl_pack(void *to, opal_convertor_t *conv, const void *header, size_t header_size,
		size_t payload_size)
{
	struct iovec iov = { (char *)to + header_size, payload_size };
	size_t size = payload_size;
	uint32_t count = 1;

	memcpy(to, header, header_size);
	return !payload_size ||
	       (opal_convertor_pack(conv, &iov, &count, &size) >= 0 && size == payload_size);
}

/* Sends a message that udapl_sendi() could not place in the ring. Packing advances the convertor, so
 * the message is packed only after it is known that it can be sent. */
int udapl_sendi_frag(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e, opal_convertor_t *conv,
		     const void *header, size_t header_size, size_t payload_size, uint8_t order,
		     uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **des)
{
	size_t length = header_size + payload_size;
	mca_btl_base_descriptor_t *new = udapl_alloc(btl, e, order, length,
						     flags | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
	udapl_frag_t *f = (udapl_frag_t *)new;
	int rc = OPAL_ERR_RESOURCE_BUSY;

	if (!f)
		return OPAL_ERR_OUT_OF_RESOURCE;
	udapl_mutex_lock(&e->lock);
	if (e->conn && opal_list_is_empty(&e->sends) && udapl_has_room(e->conn, length)) {
		f->header->kind = UDAPL_DATA;
		f->header->tag = tag;
		f->callback = false;
		rc = udapl_pack(f->header + 1, conv, header, header_size, payload_size)
			     ? OPAL_SUCCESS
			     : OPAL_ERROR;
		if (rc != OPAL_SUCCESS || !udapl_post_frag(e->conn, f))
			udapl_free(btl, new);	/* the broken connection is reported */
	} else if (e->state == UDAPL_IDLE) {
		udapl_connect(e);
	}
	udapl_mutex_unlock(&e->lock);
	if (rc == OPAL_ERR_RESOURCE_BUSY) {
		new->des_flags = flags;
		if (des)
			*des = new;
		else
			udapl_free(btl, new);
	}
	return rc;
}
