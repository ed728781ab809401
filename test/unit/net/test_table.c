/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_table.c - the table of interfaces and addresses that is made of the kernel's answers (net/table.c). */
#include "net/table.h"
#include "test/unit/unit.h"
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>

enum { LINKS = 9, TRIES = 8 };	/* more than one growth of an array; dumps that changes may interrupt */

static struct net_table table;
static unsigned dumps;			/* of interfaces */
static int link_errors[TRIES], address_error;	/* of each dump */
static const char *address_text;
static unsigned address_flags;

/* `lladdr`: bytes of its link-layer address, which count from 0. */
static void give_link(int index, const char *name, size_t lladdr, void (*each)(struct nl_object *, void *), void *arg)
{
	struct rtnl_link *link = rtnl_link_alloc();
	uint8_t bytes[DAT_NET_LLADDR_MAX + 1];
	struct nl_addr *address;

	for (uint8_t i = 0; i < sizeof bytes; i++)
		bytes[i] = i;
	rtnl_link_set_ifindex(link, index);
	if (name)
		rtnl_link_set_name(link, name);
	rtnl_link_set_mtu(link, 1500);
	rtnl_link_set_flags(link, IFF_UP);
	if (lladdr) {
		address = nl_addr_build(AF_LLC, bytes, lladdr);
		rtnl_link_set_addr(link, address);
		nl_addr_put(address);
	}
	each((struct nl_object *)link, arg);
	rtnl_link_put(link);
}

static void give_address(const char *text, unsigned flags, void (*each)(struct nl_object *, void *), void *arg)
{
	struct rtnl_addr *to = rtnl_addr_alloc();
	struct nl_addr *address = NULL;

	if (text) {
		assert_int_equal(nl_addr_parse(text, AF_UNSPEC, &address), 0);
		assert_int_equal(rtnl_addr_set_local(to, address), 0);
		nl_addr_put(address);
	}
	rtnl_addr_set_ifindex(to, 3);
	rtnl_addr_set_scope(to, RT_SCOPE_SITE);
	rtnl_addr_set_flags(to, flags);
	each((struct nl_object *)to, arg);
	rtnl_addr_put(to);
}

REPLACE(net_dump)
int __wrap_net_dump(struct nl_sock *sock, int kind, int family, void (*each)(struct nl_object *, void *), void *arg)
{
	char name[IFNAMSIZ];

	assert_int_equal(family, AF_UNSPEC);
	if (kind == RTM_GETADDR) {
		give_address(address_text, address_flags, each, arg);
		give_address(NULL, 0, each, arg);		/* one that is no IP address */
		return address_error;
	}
	assert_int_equal(kind, RTM_GETLINK);
	for (int i = 0; i < LINKS; i++) {
		snprintf(name, sizeof name, "eth%d", i);
		give_link(i + 1, name, 0, each, arg);
	}
	return dumps < TRIES ? link_errors[dumps++] : 0;
}

static unsigned grow_left;		/* arrays that may still grow; then there is no memory */

UNIT_FAIL_REALLOC(!grow_left--)

UNIT_FIXTURE(set_up)
{
	memset(&table, 0xee, sizeof table);	/* nothing of it is read before it is filled */
	grow_left = 1000;
	dumps = 0;
	memset(link_errors, 0, sizeof link_errors);
	address_error = 0;
	address_text = "192.0.2.1/24";
	address_flags = 0;
}

static const struct net_address *read_address(const char *text, unsigned flags)
{
	address_text = text;
	address_flags = flags;
	assert_int_equal(net_table_read(&table, NULL), 0);
	assert_int_equal(table.address_count, 1);
	return &table.addresses[0];
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

/* --- reading --------------------------------------------------------------------------------------- */

/* A dump that a change interrupts may have an interface twice, or not at all. */
TEST(interrupted_dump_is_made_again_from_the_start)
{
	link_errors[0] = link_errors[1] = EINTR;
	assert_int_equal(net_table_read(&table, NULL), 0);
	assert_int_equal(dumps, 3);
	assert_int_equal(table.link_count, LINKS);
	assert_int_equal(table.address_count, 1);
	net_table_free(&table);
}

TEST(shortage_in_an_interrupted_dump_is_forgotten)
{
	link_errors[0] = EINTR;
	grow_left = 0;			/* for the first dump */
	assert_int_equal(net_table_read(&table, NULL), 0);
	assert_int_equal(dumps, 2);
	assert_int_equal(table.link_count, LINKS);
	net_table_free(&table);
}

TEST(dump_is_given_up_after_eight_interruptions)
{
	for (int i = 0; i < TRIES; i++)
		link_errors[i] = EINTR;
	assert_int_equal(net_table_read(&table, NULL), EINTR);
	assert_int_equal(dumps, TRIES);
	net_table_free(&table);
}

TEST(other_errors_end_the_reading)
{
	link_errors[0] = EPERM;
	assert_int_equal(net_table_read(&table, NULL), EPERM);
	assert_int_equal(dumps, 1);
	net_table_free(&table);
	set_up(NULL);
	address_error = ENOBUFS;
	assert_int_equal(net_table_read(&table, NULL), ENOBUFS);
	net_table_free(&table);
}

TEST(shortage_of_memory_is_returned)
{
	for (unsigned i = 0; i < 6; i++) {	/* nine interfaces take five, one address the sixth */
		grow_left = i;
		assert_int_equal(net_table_read(&table, NULL), ENOMEM);
		net_table_free(&table);
	}
}

/* --- addresses -------------------------------------------------------------------------------------- */

TEST(address_has_its_prefix_scope_and_interface)
{
	const struct net_address *address = read_address("192.0.2.1/24", 0);

	assert_int_equal(address->address.ss_family, AF_INET);
	assert_int_equal(((const struct sockaddr_in *)&address->address)->sin_addr.s_addr, inet_addr("192.0.2.1"));
	assert_int_equal(address->prefix, 24);
	assert_int_equal(address->scope, RT_SCOPE_SITE);
	assert_int_equal(address->index, 3);
	assert_true(address->usable);
	assert_false(address->deprecated);
	net_table_free(&table);
}

TEST(duplicate_and_tentative_addresses_are_no_sources)
{
	static const struct { unsigned flags; bool usable, deprecated; } rows[] = {
		{ 0, true, false }, { IFA_F_PERMANENT, true, false }, { IFA_F_DADFAILED, false, false },
		{ IFA_F_TENTATIVE, false, false }, { IFA_F_TENTATIVE | IFA_F_OPTIMISTIC, true, false },
		{ IFA_F_OPTIMISTIC, true, false },
		{ IFA_F_TENTATIVE | IFA_F_OPTIMISTIC | IFA_F_DADFAILED, false, false },
		{ IFA_F_DEPRECATED, true, true },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct net_address *address = read_address("2001:db8::1/64", rows[i].flags);

		assert_int_equal(address->usable, rows[i].usable);
		assert_int_equal(address->deprecated, rows[i].deprecated);
		net_table_free(&table);
	}
}

TEST(only_link_local_addresses_have_a_scope_id)
{
	const struct net_address *address = read_address("fe80::1/64", 0);

	assert_int_equal(((const struct sockaddr_in6 *)&address->address)->sin6_scope_id, 3);
	net_table_free(&table);
	address = read_address("2001:db8::1/64", 0);
	assert_int_equal(((const struct sockaddr_in6 *)&address->address)->sin6_scope_id, 0);
	net_table_free(&table);
}

/* --- interfaces --------------------------------------------------------------------------------------- */

static struct net_link filled;

static void fill(struct nl_object *object, void *arg)
{
	memset(&filled, 0xee, sizeof filled);
	net_link_fill(&filled, (struct rtnl_link *)object);
}

TEST(interface_has_its_link_layer_address)
{
	give_link(7, "ib0", DAT_NET_LLADDR_MAX, fill, NULL);
	assert_int_equal(filled.index, 7);
	assert_string_equal(filled.name, "ib0");
	assert_int_equal(filled.mtu, 1500);
	assert_int_equal(filled.flags, IFF_UP);
	assert_int_equal(filled.length, 20);
	for (int i = 0; i < 20; i++)
		assert_int_equal(filled.lladdr[i], i);
}

TEST(interface_without_name_and_address_is_filled)
{
	give_link(7, NULL, 0, fill, NULL);
	assert_string_equal(filled.name, "");
	assert_int_equal(filled.length, 0);
}

/* One that has no room is none: half of it would be another address. */
TEST(link_layer_address_that_is_too_long_is_left_out)
{
	give_link(7, "x", DAT_NET_LLADDR_MAX + 1, fill, NULL);
	assert_int_equal(filled.length, 0);
}

TEST(interfaces_are_found_by_index_and_by_whole_name)
{
	struct net_link links[] = { { .index = 4, .name = "eth0" }, { .index = 2, .name = "eth0.1" } };
	const struct net_table two = { .links = links, .link_count = 2 };

	assert_ptr_equal(net_link_by_index(&two, 4), &links[0]);
	assert_ptr_equal(net_link_by_index(&two, 2), &links[1]);
	assert_null(net_link_by_index(&two, 1));
	assert_ptr_equal(net_link_by_name(&two, "eth0.1"), &links[1]);
	assert_ptr_equal(net_link_by_name(&two, "eth0"), &links[0]);
	assert_null(net_link_by_name(&two, "eth"));
	assert_null(net_link_by_name(&two, "lo"));
}

TEST(interface_is_up_with_a_carrier_only)
{
	static const struct {
		unsigned flags;
		bool up;
	} rows[] = { { IFF_UP | IFF_RUNNING, true }, { IFF_UP, false }, { IFF_RUNNING, false }, { 0, false } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(net_link_is_up(&(struct net_link){ .flags = rows[i].flags | IFF_LOOPBACK }),
				 rows[i].up);
}

UNIT_MAIN(NULL, NULL)
