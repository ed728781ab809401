/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_device.c - opening a device: which texts and places are refused, with what message, and what is undone when a
 * step fails; its asynchronous events, its state and its end. */
#include "dapl/verbs/conn_types.h"
#include "dapl/verbs/tap.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/device_steps.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static int opens(const char *text) { return dapl_device_ops.open(text, &ia, &dev); }

static void opened(void)
{
	assert_int_equal(opens("eth0 0"), 0);
	assert_non_null(dev);
	assert_int_equal(reports, 0);
	*steps = 0;
}

static void close_it(void)
{
	dapl_device_ops.close(dev);
	assert_true(nothing_is_left());
}

static void is_refused(const char *text, int err, enum log_id of)
{
	assert_int_equal(opens(text), err);
	assert_null(dev);
	assert_true(nothing_is_left());
	assert_int_equal(reports, 1);
	assert_int_equal(id_reported, of);
}

#define TEST(name) UNIT_TEST_WITH(name, steps_begin, steps_end)

/* --- opening ----------------------------------------------------------------------------------------------------- */

TEST(device_is_opened_at_the_address_that_is_meant)
{
	assert_int_equal(opens(" eth0 7 "), 0);
	assert_true(watches_cm && watches_async && keeps_librdmacm);
	assert_string_equal(params_told.name, "eth0");
	assert_int_equal(params_told.port, 7);
	assert_int_equal(reports, 0);
	assert_ptr_equal(dev->verbs, &context);
	assert_ptr_equal(dev->channel, &channel);
	assert_memory_equal(&dev->attr.address, &here.place[0].address, sizeof(struct sockaddr_in));
	assert_string_equal(dev->attr.netdev, "eth0");
	close_it();
}

/* Reads must not block the service thread, and a program that is executed must not get them. */
TEST(descriptors_are_private_and_do_not_block)
{
	int fds[2];

	opened();
	fds[0] = channel.fd;
	fds[1] = context.async_fd;
	for (size_t i = 0; i < COUNT(fds); i++) {
		assert_true(fcntl(fds[i], F_GETFL) & O_NONBLOCK);
		assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
	}
	close_it();
}

TEST(text_that_names_no_place_is_refused)
{
	static const char *const texts[] = { "a/b 0", "eth0 x", "eth0 0 0", "eth0 256" };

	for (size_t i = 0; i < COUNT(texts); i++) {
		steps_begin(state);
		is_refused(texts[i], EINVAL, REPORT_BAD_PARAMS);
		assert_non_null(strstr(reported, texts[i]));
		assert_non_null(strstr(reported, "expected \"netdev 0\""));
		assert_int_equal(asked, 0);
	}
	steps_begin(state);
	is_refused("eth\033[0m 0", EINVAL, REPORT_BAD_PARAMS);
	assert_non_null(strstr(reported, "\"eth?[0m 0\""));	/* goes to a terminal */
}

TEST(absent_device_is_refused_before_anything_is_made)
{
	failing = "places";
	refusal = ENODEV;
	assert_int_equal(opens("mlx5_0 1"), ENODEV);
	assert_int_equal(asked, 1);
	assert_string_equal(text_of_places, "mlx5_0 1");
	assert_int_equal(reports, 0);		/* hw_address_find_places() does */
	assert_null(dev);
	assert_true(nothing_is_left());
	steps_begin(state);
	no_memory = true;
	assert_int_equal(opens("eth0 0"), ENOMEM);
	assert_int_equal(asked, 1);
	assert_null(dev);
	assert_true(nothing_is_left());
}

TEST(failed_open_leaves_nothing)
{
	static const struct { const char *word; int refusal, err; const char *says; } cases[] = {
		{ "channel", EMFILE, EMFILE, "rdma_create_event_channel" },
		{ "channel", 0, ENODEV, "rdma_create_event_channel" }, { "id", EMFILE, EMFILE, "rdma_create_id" },
		{ "bind", ENOMEM, ENOMEM, "rdma_bind_addr" }, { "verbs", EMFILE, EMFILE, "ibv_open_device" },
		{ "verbs", 0, EIO, "ibv_open_device" }, { "cm", ENOSPC, ENOSPC, "cannot watch its events" },
		{ "watch", ENOSPC, ENOSPC, "cannot watch its events" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		steps_begin(state);
		failing = cases[i].word;
		refusal = cases[i].refusal;
		is_refused("eth0 0", cases[i].err, REPORT_OPEN_FAILED);
		assert_false(keeps_librdmacm);
		assert_int_equal(err_reported, cases[i].err);
		assert_non_null(strstr(reported, "\"eth0 0\""));
		assert_non_null(strstr(reported, cases[i].says));
		assert_non_null(strstr(reported, strerror(cases[i].err)));
	}
}

TEST(descriptor_that_cannot_be_made_private_is_a_failure)
{
	int *const fds[] = { &channel.fd, &context.async_fd };

	for (size_t i = 0; i < COUNT(fds); i++) {
		steps_begin(state);
		close(*fds[i]);
		*fds[i] = -1;
		is_refused("eth0 0", EBADF, REPORT_OPEN_FAILED);
		assert_non_null(strstr(reported, "fcntl"));
	}
}

TEST(device_that_cannot_be_asked_is_not_reported_twice)
{
	for (int siw = 0; siw < 2; siw++) {
		steps_begin(state);
		has_filler = siw;
		failing = "probe";
		assert_int_equal(opens("eth0 0"), ENOBUFS);
		assert_null(dev);
		assert_true(nothing_is_left());
		assert_int_equal(reports, 0);	/* hw_probe() does */
	}
}

/* --- places ------------------------------------------------------------------------------------------------------ */

TEST(first_place_that_has_a_device_is_opened)
{
	here.n = 3;
	*hardware[0].name = '\0';
	strcpy(hardware[1].name, "dev1");
	strcpy(hardware[2].name, "dev2");
	assert_int_equal(opens("host 0"), 0);
	assert_string_equal(dev->attr.device, "dev1");
	assert_string_equal(dev->attr.netdev, "eth1");
	assert_memory_equal(&dev->attr.address, &here.place[1].address, sizeof(struct sockaddr_in));
	close_it();
}

TEST(place_without_a_device_is_refused)
{
	static const int none[] = { ENODEV, EADDRNOTAVAIL };

	*hardware[0].name = '\0';
	is_refused("eth0 0", ENODEV, REPORT_NO_DEVICE);
	assert_non_null(strstr(reported, "\"eth0 0\": eth0 (10.0.0.1) has no RDMA device"));
	for (size_t i = 0; i < COUNT(none); i++) {
		steps_begin(state);
		failing = "bind";
		refusal = none[i];
		is_refused("eth0 0", ENODEV, REPORT_NO_DEVICE);
		}
}

/* An address may belong to another device, or to another port. */
TEST(named_device_is_opened_at_an_address_of_its_port)
{
	here.n = 3;
	strcpy(here.device, "dev1");
	here.port = 2;
	ports[0] = ports[2] = 2;
	strcpy(hardware[1].name, "dev1");
	strcpy(hardware[2].name, "dev1");
	assert_int_equal(opens("dev1 2"), 0);
	assert_string_equal(dev->attr.netdev, "eth2");
	close_it();
	steps_begin(state);
	strcpy(here.device, "dev0");
	here.port = 2;
	is_refused("dev0 2", ENODEV, REPORT_NO_ADDRESS);
	assert_non_null(strstr(reported, "\"dev0 2\""));
	assert_non_null(strstr(reported, "port 2 of RDMA device dev0"));
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void come(enum ibv_event_type type)
{
	events[coming].element.qp = &qp;
	events[coming++].event_type = type;
}

TEST(events_are_handed_up_and_then_acknowledged)
{
	struct rdma_cm_id of_conn;
	struct dapl_conn conn = { .qp = &qp, .id = &of_conn, .state = CONN_ACCEPTING };

	opened();
	dapl_mutex_init(&conn.lock, RANK_VERBS_CONN);
	dev->conns = &conn;
	come(IBV_EVENT_QP_FATAL);
	come(IBV_EVENT_COMM_EST);	/* concerns the handshake, too */
	come(IBV_EVENT_PORT_ERR);
	ready(&dev->async_watch);
	steps_are("up ack up ack up ack");
	assert_int_equal(taken, 3);
	assert_ptr_equal(notified, &of_conn);
	dev->conns = NULL;
	close_it();
}

/* A device that was removed is readable for ever. */
TEST(events_are_watched_until_reading_fails)
{
	static const struct { int err; bool watched; } cases[] = {
		{ EAGAIN, true }, { EINTR, true }, { EIO, false }, { ENODEV, false },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		steps_begin(state);
		opened();
		end_of_events = cases[i].err;
		come(IBV_EVENT_DEVICE_FATAL);
		ready(&dev->async_watch);
		steps_are("up ack");
		assert_int_equal(watches_async, cases[i].watched);
		assert_true(watches_cm);
		close_it();
	}
}

TEST(query_asks_the_port_anew)
{
	struct dapl_device_attr attr;

	opened();
	dev->attr.mtu = 4096;
	assert_int_equal(dapl_device_ops.query(dev, &attr), 0);
	assert_string_equal(attr.device, "dev0");
	assert_int_equal(attr.mtu, 1024);
	assert_int_equal(dev->attr.mtu, 4096);	/* constant while the device is open */
	close_it();
}

TEST(close_ends_connections_and_watches_first)
{
	has_filler = true;
	opened();
	dapl_device_ops.tap(dev, true);
	dev->eth = ethernet = calloc(1, 4096);
	close_it();		/* the fixture sees to it that watches end before what they watch */
	assert_ptr_equal(hw_tap_poll_below(&context), context.ops.poll_cq);
}

UNIT_MAIN(NULL, NULL)
