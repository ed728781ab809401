/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cm_listen.c - listeners of a device: where they listen, which ports and addresses are refused, what a failure
 * undoes, and their end. "bind" and "listen" are steps on an id, "free" frees the listener. */
#include "common/address.h"
#include "dapl/verbs/cm.h"
#include "dapl/verbs/conn.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/cm_channel.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { BACKLOG = 9, FREE_PORT = 40000, ASKED_PORT = 5000 };

static struct ibv_device hardware;
static struct ibv_context context = { .device = &hardware };
static const char *bound_device;	/* the device that an address belongs to; NULL: none */
static uint8_t bound_port;		/* and its port */
static uint16_t free_port;		/* the kernel's choice, */
static int low_ports;			/* after as many that are privileged */
static struct sockaddr_storage asked_local;
static int asked_backlog;
static struct dapl_listener *made;
static uint16_t port_told;

int rdma_bind_addr(struct rdma_cm_id *of, struct sockaddr *to)
{
	struct sockaddr *here = (struct sockaddr *)&of->route.addr.src_storage;

	address_copy(&asked_local, to);
	if (try_on(of, "bind"))
		return -1;
	address_copy(&of->route.addr.src_storage, to);
	if (!address_port(to))
		address_set_port(here, low_ports-- > 0 ? 1023 : free_port);
	of->verbs = bound_device ? &context : NULL;
	of->port_num = bound_port;
	return 0;
}

int rdma_listen(struct rdma_cm_id *of, int backlog)
{
	asked_backlog = backlog;
	return try_on(of, "listen");
}

const char *ibv_get_device_name(struct ibv_device *of)
{
	assert_ptr_equal(of, &hardware);
	return bound_device;
}

EXTEND(free)

void __wrap_free(void *of)
{
	if (of && of == made)
		step("free");
	__real_free(of);
}

/* --- cases -------------------------------------------------------------------------------------------------- */

static int begin(void **state)
{
	bound_device = "dev0";
	bound_port = PORT;
	free_port = FREE_PORT;
	low_ports = asked_backlog = 0;
	made = NULL;
	return channel_begin(state);
}

static int listen_at(const char *text, uint16_t port, bool ud)
{
	struct sockaddr_storage at = { 0 };

	if (text)
		set_address((struct sockaddr *)&at, text, 1);	/* its port counts for nothing */
	port_told = port;
	return hw_cm_listen(&dev, text ? (struct sockaddr *)&at : NULL, &port_told, ud, BACKLOG, &sp, &made);
}

static void end_listener(void)
{
	*steps = 0;
	hw_cm_unlisten(made);
	steps_are("flush free");	/* in that order: a handler may have it meanwhile */
	assert_int_equal(ids, 0);
	made = NULL;
}

static void is_asked_local(const char *text, uint16_t port)
{
	struct sockaddr_storage expected = { 0 };

	set_address((struct sockaddr *)&expected, text, port);
	assert_true(address_same_host((struct sockaddr *)&asked_local, (struct sockaddr *)&expected));
	assert_int_equal(address_port((struct sockaddr *)&asked_local), port);
}

#define TEST(name) UNIT_TEST_WITH(name, begin, sides_end)

TEST(listener_hands_up_requests_to_its_port)
{
	for (int ud = 0; ud < 2; ud++) {
		channel_begin_on(state, ud ? HW_WIRE_UD : HW_WIRE_IB);
		assert_int_equal(listen_at(NULL, ASKED_PORT, ud), 0);
		assert_int_equal(ids, 1);
		*steps = 0;
		assert_int_equal(port_told, ASKED_PORT);
		assert_int_equal(asked_space, ud ? RDMA_PS_UDP : RDMA_PS_TCP);
		assert_int_equal(asked_backlog, BACKLOG);
		listen_id.context = id.context;
		request_comes();
		read_channel();
		left_is("id up:request");
		assert_int_equal(request_told.ud, ud);
		hw_conn_destroy(conn);
		ids = 1;
		end_listener();
	}
}

TEST(iwarp_listener_has_the_type_of_service_of_its_connections)
{
	static const struct { enum hw_wire wire; int setting, asked; } cases[] = {
		{ HW_WIRE_IWARP, -1, -1 }, { HW_WIRE_IWARP, 0, 0 }, { HW_WIRE_IWARP, 0xb8, 0xb8 },
		{ HW_WIRE_IB, 0xb8, -1 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		channel_begin_on(state, cases[i].wire);
		dapl_settings.tos = cases[i].setting;
		assert_int_equal(listen_at(NULL, ASKED_PORT, false), 0);	/* the kernel knows no option */
		assert_int_equal(asked_tos, cases[i].asked);
		end_listener();
	}
}

TEST(listener_is_at_the_device_or_where_it_was_asked_to_be)
{
	static const struct { const char *asked, *is; } cases[] = {
		{ NULL, "10.0.0.1" }, { "0.0.0.0", "10.0.0.1" }, { "::", "10.0.0.1" }, { "10.0.0.9", "10.0.0.9" },
		{ "2001:db8::9", "2001:db8::9" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(listen_at(cases[i].asked, ASKED_PORT, false), 0);
		is_asked_local(cases[i].is, ASKED_PORT);
		end_listener();
	}
	assert_int_equal(address_port((struct sockaddr *)&dev.attr.address), 0);
}

/* The kernel chooses privileged ports, too, which a peer might not connect to. */
TEST(chosen_port_is_not_privileged)
{
	low_ports = 2;
	assert_int_equal(listen_at(NULL, 0, false), 0);
	assert_int_equal(ids, 1);	/* those of the other ports are gone */
	assert_int_equal(port_told, FREE_PORT);
	end_listener();
	free_port = 1024;
	assert_int_equal(listen_at(NULL, 0, false), 0);
	assert_int_equal(port_told, 1024);
	end_listener();
	assert_int_equal(listen_at(NULL, 1023, false), 0);	/* was asked for */
	assert_int_equal(port_told, 1023);
	end_listener();
	low_ports = 1000;
	assert_int_equal(listen_at(NULL, 0, false), EADDRNOTAVAIL);
	assert_int_equal(port_told, 0);
	assert_int_equal(ids, 0);
	assert_null(made);
}

TEST(listener_that_cannot_be_is_refused)
{
	struct sockaddr_storage local = { .ss_family = AF_UNIX };

	assert_int_equal(hw_cm_listen(&dev, (struct sockaddr *)&local, &port_told, false, BACKLOG, &sp, &made),
			 EAFNOSUPPORT);
	dev.attr.ud = false;
	assert_int_equal(listen_at(NULL, ASKED_PORT, true), EOPNOTSUPP);
	no_memory = true;
	assert_int_equal(listen_at(NULL, ASKED_PORT, false), ENOMEM);
	left_is("");
	assert_null(made);
}

TEST(failed_listen_leaves_nothing)
{
	static const struct { const char *word; int refusal, err; const char *at; } cases[] = {
		{ "id", EMFILE, EMFILE, NULL }, { "bind", EADDRINUSE, EADDRINUSE, NULL },
		{ "listen", EADDRINUSE, EADDRINUSE, NULL }, { "bind", ENODEV, ENODEV, NULL },
		{ "bind", ENODEV, ENODEV, "0.0.0.0" },
		{ "bind", ENODEV, EADDRNOTAVAIL, "10.0.0.9" },	/* no device has that address */
		{ "bind", EACCES, EACCES, "10.0.0.9" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		begin(state);
		failing = cases[i].word;
		refusal = cases[i].refusal;
		assert_int_equal(listen_at(cases[i].at, ASKED_PORT, false), cases[i].err);
		assert_int_equal(ids, 0);
		assert_int_equal(port_told, ASKED_PORT);
		assert_null(made);
	}
}

TEST(address_of_another_device_is_not_available)
{
	static const struct { const char *device; uint8_t port; } cases[] = {
		{ NULL, PORT }, { "dev1", PORT }, { "dev0", PORT + 1 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		begin(state);
		bound_device = cases[i].device;
		bound_port = cases[i].port;
		assert_int_equal(listen_at("10.0.0.9", ASKED_PORT, false), EADDRNOTAVAIL);
		assert_int_equal(ids, 0);
		assert_null(made);
	}
}

/* The service thread had read the event before the id was destroyed. */
static void request_comes_late(void)
{
	during_flush = NULL;
	listen_id.context = &made->target;
	request_comes();
	read_channel();
}

TEST(request_during_the_end_of_its_listener_is_refused)
{
	assert_int_equal(listen_at(NULL, ASKED_PORT, false), 0);
	*steps = 0;
	during_flush = request_comes_late;
	hw_cm_unlisten(made);
	steps_are("flush refuse free");
	assert_null(dev.conns);
}

UNIT_MAIN(NULL, NULL)
