/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.c - the device over libibverbs and librdmacm: opening, closing, asynchronous events, and the table
 * of its operations. address.c finds the address of an entry, probe.c what the device can do. */
#include "acceptor.h"
#include "cm.h"
#include "conn.h"
#include "hw.h"
#include "address.h"
#include "dm.h"
#include "eth.h"
#include "eth_attr.h"
#include "flush.h"
#include "initiator.h"
#include "mcast.h"
#include "objects.h"
#include "probe.h"
#include "segments.h"
#include "tap.h"
#include "common/container_of.h"
#include "common/log.h"
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int set_private(int fd)
{
	return fcntl(fd, F_SETFL, O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC) ? errno : 0;
}

static void async_ready(struct dapl_watch *watch)
{
	struct dapl_device *dev = container_of(watch, struct dapl_device, async_watch);
	struct ibv_async_event event;

	while (ibv_get_async_event(dev->verbs, &event) == 0) {
		if (event.event_type == IBV_EVENT_COMM_EST)
			hw_cm_notify(dev, event.element.qp);
		dapl_up_async(dev->ia, &event);
		ibv_ack_async_event(&event);
	}
	if (errno != EAGAIN && errno != EINTR)	/* the device was removed: the descriptor stays readable */
		dapl_watch_stop(watch);
}

/* Returns whether the id is bound to an RDMA device, the one that the entry names if it names one. */
static bool is_meant(const struct hw_places *places, const struct rdma_cm_id *id)
{
	if (!id->verbs)
		return false;
	return !places->device[0] || (strcmp(places->device, ibv_get_device_name(id->verbs->device)) == 0 &&
				      places->port == id->port_num);
}

static void report_call(const char *printable, const char *call, int err)
{
	log_report(REPORT_OPEN_FAILED, LOG_FIELDS(.err = err), "\"%s\": %s: %s", printable, call, strerror(err));
}

static void report_absence(const struct hw_places *places, const char *printable)
{
	char text[64] = "";

	if (places->device[0])
		log_report(REPORT_NO_ADDRESS, NULL,
			   "\"%s\": no network device with an IP address belongs to port "
			   "%u of RDMA device %s", printable, places->port, places->device);
	else
		log_report(REPORT_NO_DEVICE, NULL, "\"%s\": %s (%s) has no RDMA device", printable,
			   places->place[0].netdev,
			   hw_address_text((struct sockaddr *)&places->place[0].address, text,
					   sizeof(text)));
}

/* Binds an rdma_cm_id to the first place that has an RDMA device. If the entry names a device, only that
 * device and port will do. */
static int bind_first_place(struct dapl_device *dev, struct hw_places *places, const char *printable,
			    struct rdma_cm_id **bound)
{
	int failed = 0;		/* an error of rdma_bind_addr() other than "this address has no RDMA device" */

	for (unsigned i = 0; i < places->n; i++) {
		struct sockaddr *a = (struct sockaddr *)&places->place[i].address;
		struct rdma_cm_id *id;

		if (rdma_create_id(dev->channel, &id, NULL, RDMA_PS_TCP)) {
			int err = errno;

			report_call(printable, "rdma_create_id", err);
			return err;
		}
		if (rdma_bind_addr(id, a)) {
			if (errno != ENODEV && errno != EADDRNOTAVAIL)
				failed = errno;
		} else if (is_meant(places, id)) {
			address_copy(&dev->attr.address, a);
			snprintf(dev->attr.netdev, sizeof(dev->attr.netdev), "%s",
				 places->place[i].netdev);
			dev->attr.netdev_index = (int)if_nametoindex(dev->attr.netdev);
			*bound = id;
			return 0;
		}
		rdma_destroy_id(id);
	}
	if (failed)
		report_call(printable, "rdma_bind_addr", failed);
	else
		report_absence(places, printable);
	return failed ? failed : ENODEV;
}

static void close_verbs(struct dapl_device *dev)
{
	hw_eth_close(dev);
	if (dev->siw_filler)
		ibv_destroy_cq(dev->siw_filler);
	hw_flush_release(dev->verbs);
	hw_segments_release(dev->verbs);
	ibv_close_device(dev->verbs);
}

/* Opens the device at the first place that works. Reports a failure: the address exists on this host. */
static int open_places(struct dapl_device *dev, struct hw_places *places, const char *printable)
{
	struct rdma_cm_id *bound = NULL;
	const char *what;	/* the call that failed; NULL: the failure was reported */
	int err;

	what = "rdma_create_event_channel";
	dev->channel = rdma_create_event_channel();
	if (!dev->channel) {
		err = errno ? errno : ENODEV;
		goto report;
	}
	what = NULL;
	err = bind_first_place(dev, places, printable, &bound);
	if (err)
		goto destroy_channel;
	what = "ibv_open_device";
	dev->verbs = ibv_open_device(bound->verbs->device);
	if (!dev->verbs) {
		err = hw_null_errno();
		goto destroy_id;
	}
	what = "fcntl";
	err = set_private(dev->verbs->async_fd);
	if (!err)
		err = set_private(dev->channel->fd);
	if (err)
		goto close_verbs;
	what = NULL;
	err = hw_probe(dev, bound);
	if (err)
		goto close_verbs;
	rdma_destroy_id(bound);
	return 0;

close_verbs:
	close_verbs(dev);
destroy_id:
	rdma_destroy_id(bound);
destroy_channel:
	rdma_destroy_event_channel(dev->channel);
report:
	if (what)
		report_call(printable, what, err);
	return err;
}

static void close_device(struct dapl_device *dev)
{
	dapl_watch_stop(&dev->async_watch);
	dapl_watch_stop(&dev->cm_watch);
	rdma_destroy_event_channel(dev->channel);
	hw_tap_close(dev);
	close_verbs(dev);
	free(dev);
}

static int hw_open(const char *params_text, void *ia, struct dapl_device **out)
{
	struct ia_params params;
	struct hw_places places;
	struct dapl_device *dev;
	char printable[80];
	const char *wrong;
	int err;

	ia_params_printable(params_text, printable, sizeof(printable));
	wrong = ia_params_read(&params, params_text);
	if (wrong) {
		log_report(REPORT_BAD_PARAMS, NULL,
			   "device \"%s\": %s; expected \"netdev 0\", \"address 0\", "
			 "\"hostname 0\" or \"ibdevice port\"", printable, wrong);
		return EINVAL;
	}
	err = hw_address_find_places(&places, &params, printable);
	if (err)
		return err;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return ENOMEM;
	dev->ia = ia;
	err = open_places(dev, &places, printable);
	if (err) {
		free(dev);
		return err;
	}
	dapl_mutex_init(&dev->lock, RANK_VERBS_DEVICE);
	err = hw_cm_start(dev);
	if (!err)
		err = dapl_watch_start(&dev->async_watch, dev->verbs->async_fd, async_ready);
	if (err) {
		log_report(REPORT_OPEN_FAILED, LOG_FIELDS(.err = err),
			   "\"%s\": cannot watch its events: %s", printable, strerror(err));
		close_device(dev);
		return err;
	}
	/* Only after a success: libibverbs loads its drivers once, and does not retry a driver for which it
	 * found no descriptor. */
	hw_keep_librdmacm();
	*out = dev;
	return 0;
}

static void hw_close(struct dapl_device *dev)
{
	hw_cm_stop(dev);
	close_device(dev);
}

static int hw_query(struct dapl_device *dev, struct dapl_device_attr *attr)
{
	*attr = dev->attr;
	hw_probe_port(dev, attr);
	return 0;
}

const struct dapl_device_ops dapl_device_ops = {
	.name = "verbs",
	.rdma_parameters = true,
	.open = hw_open,
	.close = hw_close,
	.query = hw_query,
	.alloc_pd = hw_alloc_pd,
	.dealloc_pd = hw_dealloc_pd,
	.reg_mr = hw_reg_mr,
	.dereg_mr = hw_dereg_mr,
	.alloc_dm = hw_dm_alloc,
	.eth = &hw_eth_ops,
	.free_dm = hw_dm_free,
	.reg_dm = hw_dm_reg,
	.copy_dm = hw_dm_copy,
	.alloc_mw = hw_alloc_mw,
	.dealloc_mw = hw_dealloc_mw,
	.create_channel = hw_create_channel,
	.destroy_channel = hw_destroy_channel,
	.get_cq_event = hw_get_cq_event,
	.create_cq = hw_create_cq,
	.resize_cq = hw_resize_cq,
	.destroy_cq = hw_destroy_cq,
	.create_srq = hw_create_srq,
	.modify_srq = hw_modify_srq,
	.destroy_srq = hw_destroy_srq,
	.create_qp = hw_create_qp,
	.create_delayed_qp = hw_create_delayed_qp,
	.reset_qp = hw_reset_qp,
	.error_qp = hw_error_qp,
	.destroy_qp = hw_destroy_qp,
	.destroy_ah = hw_destroy_ah,
	.join = hw_mcast_join,
	.leave = hw_mcast_leave,
	.listen = hw_cm_listen,
	.unlisten = hw_cm_unlisten,
	.connect = hw_initiator_connect,
	.accept = hw_acceptor_accept,
	.reject = hw_acceptor_reject,
	.disconnect = hw_conn_disconnect,
	.explain = hw_conn_explain,
	.release = hw_conn_release,
	.tap = hw_tap,
};
