/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_attr.c - what an IA says about raw Ethernet endpoints, which devices have them, and the counter of frames
 * that found no receive. The network interface and /sys are replaced here. */
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include "common/interface.h"
#include "dapl/verbs/eth_attr.h"
#include "dapl/verbs/eth_cq.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/eth_objects.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
enum { INDEX = 9 };			/* of the network device */
#define ALWAYS (ETH_CAP_TAKE | ETH_CAP_JOIN)

static const uint8_t address[6] = { 0x02, 1, 2, 3, 4, 5 };
static int mtu, requests;
static unsigned short link_type = ARPHRD_ETHER;
static unsigned long refused_request;
static const char *counter;		/* what the file has; NULL: there is none */
static char path_asked[256];
static int files;			/* open */
static bool no_memory;
static const struct hw_eth_device *forgotten;
static int forgets;

/* --- in place of the kernel, libc and eth_cq.c -------------------------------------------------------------------- */

int interface_request_index(int index, unsigned long request, struct ifreq *ifr)
{
	assert_int_equal(index, INDEX);
	requests++;
	if (request == refused_request)
		return ENODEV;
	if (request == SIOCGIFMTU)
		ifr->ifr_mtu = mtu;
	else
		ifr->ifr_hwaddr.sa_family = link_type;
	if (request == SIOCGIFHWADDR)
		memcpy(ifr->ifr_hwaddr.sa_data, address, sizeof address);
	return 0;
}

bool interface_type_is_ethernet(int type) { return type == ARPHRD_ETHER; }

void interface_queues(int index, uint32_t *rx, uint32_t *tx)
{
	assert_int_equal(index, INDEX);
	*rx = 8;
	*tx = 7;
}

/* What fopen() is with files of 64 bits. */
REPLACE(fopen64)
FILE *__wrap_fopen64(const char *path, const char *mode)
{
	FILE *file;

	assert_string_equal(mode, "re");
	snprintf(path_asked, sizeof path_asked, "%s", path);
	if (!counter)
		return NULL;
	file = tmpfile();
	assert_non_null(file);
	fputs(counter, file);
	rewind(file);
	files++;
	return file;
}

EXTEND(fclose)
int __wrap_fclose(FILE *file)
{
	files--;
	return __real_fclose(file);
}

UNIT_FAIL_CALLOC(no_memory)

REPLACE(hw_eth_cq_forget)
void __wrap_hw_eth_cq_forget(struct hw_eth_device *of)
{
	forgotten = of;
	forgets++;
}

UNIT_FIXTURE(begin)
{
	objects_begin(state);
	dev.eth = &eth;
	dev.attr.netdev_index = INDEX;
	eth.probed = true;		/* its result is what a case sets */
	mtu = 1500;
	requests = files = forgets = 0;
	refused_request = 0;
	counter = NULL;
	no_memory = false;
	forgotten = NULL;
}

static struct dapl_eth_attr query(void)
{
	struct dapl_eth_attr attr;

	memset(&attr, 0xee, sizeof attr);
	assert_int_equal(hw_eth_query(&dev, &attr), 0);
	return attr;
}

#define TEST(name) UNIT_TEST_WITH(name, begin, objects_end)

/* --- the attributes --------------------------------------------------------------------------------------------- */

TEST(device_without_raw_qps_has_no_attributes)
{
	struct dapl_eth_attr attr;

	dev.eth = NULL;
	assert_int_equal(hw_eth_query(&dev, &attr), EOPNOTSUPP);
	assert_int_equal(requests, 0);
}

TEST(each_finding_is_a_capability)
{
	static const struct { size_t found; uint64_t cap; } cases[] = {
		{ offsetof(struct hw_eth_caps, copy), ETH_CAP_COPY },
		{ offsetof(struct hw_eth_caps, sniffer), ETH_CAP_EGRESS },
		{ offsetof(struct hw_eth_caps, partial), ETH_CAP_PARTIAL_MASK },
		{ offsetof(struct hw_eth_caps, inner), ETH_CAP_INNER },
		{ offsetof(struct hw_eth_caps, vxlan), ETH_CAP_TUNNEL },
		{ offsetof(struct hw_eth_caps, checksums), ETH_CAP_RX_CSUM | ETH_CAP_TX_CSUM },
		{ offsetof(struct hw_eth_caps, fcs), ETH_CAP_FCS },
		{ offsetof(struct hw_eth_caps, tags), 0 },
		{ offsetof(struct hw_eth_caps, work_queues), 0 },
	};

	assert_int_equal(query().caps, ALWAYS);
	for (size_t i = 0; i < COUNT(cases); i++) {
		eth.caps = (struct hw_eth_caps){ .max_tso = 0 };
		*(bool *)((char *)&eth.caps + cases[i].found) = true;
		assert_int_equal(query().caps, ALWAYS | cases[i].cap);
	}
}

TEST(each_limit_is_a_capability)
{
	eth.caps.max_tso = 65536;
	assert_int_equal(query().caps, ALWAYS | ETH_CAP_TSO);
	eth.caps = (struct hw_eth_caps){ .rate_max = 10 };
	assert_int_equal(query().caps, ALWAYS | ETH_CAP_PACE);
	eth.caps = (struct hw_eth_caps){ .moderate_frames = 10 };
	assert_int_equal(query().caps, ALWAYS | ETH_CAP_MODERATE);
	eth.caps = (struct hw_eth_caps){ .hash_fields = IBV_RX_HASH_SRC_IPV4 };
	assert_int_equal(query().caps, ALWAYS | ETH_CAP_RSS);
}

TEST(frames_are_as_long_as_the_interface_sends_them)
{
	struct dapl_eth_attr attr;

	mtu = 9000;
	attr = query();
	assert_int_equal(attr.mtu, 9000);
	assert_int_equal(attr.max_frame, 9014);
	assert_memory_equal(attr.address, address, sizeof address);
}

TEST(network_device_must_be_ethernet)
{
	struct dapl_eth_attr attr;

	link_type = ARPHRD_INFINIBAND;
	assert_int_equal(hw_eth_query(&dev, &attr), EOPNOTSUPP);
	link_type = ARPHRD_ETHER;
}

TEST(queues_are_those_of_the_network_device)
{
	struct dapl_eth_attr attr;

	attr = query();
	assert_int_equal(attr.rx_queues, 8);
	assert_int_equal(attr.tx_queues, 7);
	assert_int_equal(attr.max_rules, HW_ETH_MAX_RULES);
	assert_int_equal(attr.reserved0, 0);
	assert_int_equal(attr.size, 0);			/* core's */
}

TEST(segments_have_headers_if_there_are_any)
{
	assert_int_equal(query().max_tso_header, 0);
	eth.caps.max_tso = 65536;
	assert_int_equal(query().max_tso, 65536);
	assert_int_equal(query().max_tso_header, HW_ETH_HEADERS);
}

TEST(rates_are_in_bits_a_second)
{
	eth.caps.rate_min = 1;
	eth.caps.rate_max = 400000000;			/* kbit/s: 400 Gbit/s */
	assert_int_equal(query().rate_min, 1000);
	assert_true(query().rate_max == 400000000000ull);
}

TEST(group_is_as_large_as_its_table_up_to_a_limit)
{
	eth.caps.max_table = 128;
	assert_int_equal(query().max_table, 0);		/* there are no hashes */
	assert_int_equal(query().max_group, 0);
	eth.caps.hash_fields = IBV_RX_HASH_SRC_IPV4;
	assert_int_equal(query().max_table, 128);
	assert_int_equal(query().max_group, 128);
	eth.caps.max_table = 4096;
	assert_int_equal(query().max_table, 4096);
	assert_int_equal(query().max_group, HW_ETH_MAX_GROUP);
}

TEST(clock_is_the_devices_if_it_works)
{
	assert_int_equal(query().clock, 0);
	eth.clock.khz = 156250;
	eth.clock.mask = 0xffffffff;
	assert_int_equal(query().clock, 2);
}

TEST(interface_that_is_gone_is_an_error)
{
	static const unsigned long refused[] = { SIOCGIFMTU, SIOCGIFHWADDR };
	struct dapl_eth_attr attr;

	for (size_t i = 0; i < COUNT(refused); i++) {
		refused_request = refused[i];
		assert_int_equal(hw_eth_query(&dev, &attr), ENODEV);
	}
}

TEST(first_query_probes_the_device)
{
	eth.probed = false;
	device_attr.cq_mod_caps.max_cq_count = 77;
	assert_true(query().caps & ETH_CAP_MODERATE);
	*steps = 0;
	query();
	steps_are("");
}

TEST(drops_are_those_of_the_port)
{
	counter = "123\n";
	assert_int_equal(hw_eth_drops(&dev), 123);
	assert_string_equal(path_asked, "/sys/class/infiniband/dev0/ports/2/hw_counters/out_of_buffer");
	counter = "1311768467463790320\n";
	assert_true(hw_eth_drops(&dev) == 0x123456789abcdef0);
	assert_int_equal(files, 0);
}

TEST(drops_are_unknown_without_a_number)
{
	static const char *const texts[] = { NULL, "", "\n", "none\n" };

	for (size_t i = 0; i < COUNT(texts); i++) {
		counter = texts[i];
		assert_true(hw_eth_drops(&dev) == ~(uint64_t)0);
	}
	assert_int_equal(files, 0);
}

/* --- opening and closing ---------------------------------------------------------------------------------------- */

static void opened_has(bool raw)
{
	dev.eth = NULL;
	dev.attr.raw_ethernet = false;
	hw_eth_open(&dev);
	assert_int_equal(dev.eth != NULL, raw);
	assert_int_equal(dev.attr.raw_ethernet, raw);
	nothing_is_alive();
	if (raw)
		assert_ptr_equal(dev.eth->dev, &dev);
	hw_eth_close(&dev);
	assert_null(dev.eth);
}

TEST(device_of_iwarp_is_not_asked)
{
	dev.attr.iwarp = true;
	opened_has(false);
	steps_are("");
}

TEST(device_that_refuses_has_none_and_nothing_is_left)
{
	static const char *const words[] = { "pd", "cq", "qp" };

	device_attr.raw_packet_caps = IBV_RAW_PACKET_CAP_IP_CSUM;
	for (size_t i = 0; i < COUNT(words); i++) {
		failing = words[i];
		opened_has(false);
	}
}

TEST(process_without_the_capability_believes_the_offloads)
{
	failing = "qp";
	refusal = EPERM;
	opened_has(false);
	device_attr.raw_packet_caps = IBV_RAW_PACKET_CAP_IP_CSUM;
	opened_has(true);
}

TEST(device_that_cannot_be_remembered_has_none)
{
	no_memory = true;
	opened_has(false);
}

TEST(close_makes_the_polls_forget_the_device)
{
	const struct hw_eth_device *opened;

	hw_eth_open(&dev);
	opened = dev.eth;
	hw_eth_close(&dev);
	assert_null(dev.eth);
	assert_ptr_equal(forgotten, opened);
	hw_eth_close(&dev);
	assert_int_equal(forgets, 1);
}

UNIT_MAIN(NULL, NULL)
