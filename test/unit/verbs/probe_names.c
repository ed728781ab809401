/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe_names.c - the facts of a device, and the names that open it. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/utsname.h>
#include "test/unit/verbs/probe.h"
#include "test/unit/verbs/probe_cases.h"

void facts(void)
{
	char text[64];

	getnameinfo((struct sockaddr *)&attr.address, sizeof(attr.address), text, sizeof(text),
		    NULL, 0, NI_NUMERICHOST);
	printf("# %s port %u on %s, %s; %s; mtu %u active %d\n", attr.device, attr.port,
	       attr.netdev, text, attr.vendor, attr.mtu, attr.port_active);
	printf("# iwarp %d atomics %d write_immediate %d send_invalidate %d ud %d windows %d %d "
	       "max_read_sge %u max_inline %u max_message %u\n", attr.iwarp, attr.atomics,
	       attr.write_immediate, attr.send_invalidate, attr.ud, attr.windows_1,
	       attr.windows_2, attr.max_read_sge, attr.max_inline, attr.max_message);
	printf("# private data %u %u %u; caps 0x%x atomic_cap %d; qp %d wr %d sge %d cq %d cqe %d "
	       "mr %d pd %d mw %d srq %d rd_atom %d init %d\n", attr.pdata_connect,
	       attr.pdata_accept, attr.pdata_reject, attr.limits.device_cap_flags,
	       attr.limits.atomic_cap, attr.limits.max_qp, attr.limits.max_qp_wr,
	       attr.limits.max_sge, attr.limits.max_cq, attr.limits.max_cqe, attr.limits.max_mr,
	       attr.limits.max_pd, attr.limits.max_mw, attr.limits.max_srq,
	       attr.limits.max_qp_rd_atom, attr.limits.max_qp_init_rd_atom);
}

/* Values of the kernel's devices that changed between 6.1 and 6.12: rxe's largest message, and siw's max_mtu, which is
 * below its active_mtu since. siw of the test machine has a network device with an MTU of 1500. */
void limits_of_the_kernel(void)
{
	struct utsname kernel;
	int major = 0, minor = 0;
	bool old, rxe = strncmp(attr.device, "rxe", 3) == 0;

	if (!rxe && strncmp(attr.device, "siw", 3))
		return;
	begin("the limits are those of the kernel");
	if (uname(&kernel) || sscanf(kernel.release, "%d.%d", &major, &minor) != 2)
		fail("the kernel's release is no number");
	old = major < 6 || (major == 6 && minor <= 1);
	if (old || major > 6 || minor >= 12)
		EXPECT(attr.max_message, rxe && old ? 8l << 20 : 2l << 30);
	if (!rxe)
		EXPECT(attr.mtu, 1024);
	end();
}

static void spelling(const char *text, int expected)
{
	struct dapl_device *d = NULL;
	double t = now();
	int err = OPS.open(text, NULL, &d);

	t = now() - t;
	printf("# open \"%.40s\": %s, %.3f ms\n", text, strerror(err), t * 1000);
	if (err != expected)
		fail("open \"%.40s\": %s, expected %s", text, strerror(err), strerror(expected));
	if (!err)
		OPS.close(d);
}

void spellings(void)
{
	char text[400], address[64];

	getnameinfo((struct sockaddr *)&attr.address, sizeof(attr.address), address,
		    sizeof(address), NULL, 0, NI_NUMERICHOST);
	begin("names of the device");
	spelling(attr.netdev, 0);
	snprintf(text, sizeof(text), "  %s \t 0 ", attr.netdev);
	spelling(text, 0);
	snprintf(text, sizeof(text), "%s %u", attr.device, attr.port);
	spelling(text, 0);
	spelling(attr.device, 0);
	snprintf(text, sizeof(text), "%s 0", address);
	spelling(text, 0);
	end();
	begin("names of absent devices");
	snprintf(text, sizeof(text), "%s 2", attr.device);
	spelling(text, ENODEV);
	spelling("eth7 0", ENODEV);
	spelling("mlx4_0 1", ENODEV);
	spelling("192.0.2.1 0", ENODEV);
	spelling("2001:db8::1 0", ENODEV);
	spelling("lo 0", ENODEV);
	spelling("127.0.0.1 0", ENODEV);
	end();
	begin("names that are no names");
	spelling("", EINVAL);
	spelling("   ", EINVAL);
	snprintf(text, sizeof(text), "%s -1", attr.netdev);
	spelling(text, EINVAL);
	snprintf(text, sizeof(text), "%s 99999999999999999999", attr.netdev);
	spelling(text, EINVAL);
	spelling("eth0 0 0", EINVAL);
	spelling("../../etc 1", EINVAL);
	spelling("\x01\xff\x7f 0", EINVAL);
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	spelling(text, EINVAL);
	end();
}
