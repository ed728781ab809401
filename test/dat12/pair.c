/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pair.c - the helpers of pair.h. */
#include "pair.h"
#include <string.h>
#include <unistd.h>

void check_ok(DAT_RETURN ret, const char *file, int line, const char *call)
{
	const char *major = "?", *minor = "?";

	if (ret == DAT_SUCCESS)
		return;
	dat_strerror(ret, &major, &minor);
	fprintf(stderr, "%s:%d: %s gives %s %s (0x%x)\n", file, line, call, major, minor,
		(unsigned)ret);
	exit(1);
}

void check_fails(DAT_RETURN ret, unsigned type, unsigned subtype, const char *file, int line, const char *call)
{
	if ((ret & DAT_CLASS_ERROR) && DAT_GET_TYPE(ret) == type &&
	    DAT_GET_SUBTYPE(ret) == subtype)
		return;
	fprintf(stderr, "%s:%d: %s gives 0x%x, expected type 0x%x, subtype 0x%x\n", file, line,
		call, (unsigned)ret, type, subtype);
	exit(1);
}

static char conf[4096];
static pid_t conf_owner;

static void remove_conf(void)
{
	if (getpid() == conf_owner)
		unlink(conf);
}

static void add_entry(FILE *file, const char *name, const char *version, const char *top, const char *library)
{
	fprintf(file, "%s %s nonthreadsafe default %s/.libs/%s dapl.3.0 \"lo 0\" \"\"\n", name, version,
		top, library);
}

void use_soft_device(void)
{
	char top[3000];
	FILE *file;

	EXPECT(getcwd(top, sizeof top) != NULL);
	sprintf(conf, "%s/test/dat12/%ld.conf", top, (long)getpid());
	file = fopen(conf, "w");
	EXPECT(file != NULL);
	add_entry(file, IA_NAME, "u2.0", top, "libdaplsoft.so.2");
	add_entry(file, IA_NAME_1_2, "u1.2", top, "libdaplsoft.so.2");
	add_entry(file, IA_NAME_GOOD_1_2, "u1.2", top, "libdaplsoft.so.2");
	add_entry(file, IA_NAME_GOOD_1_2, "u2.0", top, "absent.so");
	add_entry(file, IA_NAME_GOOD_2_0, "u1.2", top, "absent.so");
	add_entry(file, IA_NAME_GOOD_2_0, "u2.0", top, "libdaplsoft.so.2");
	EXPECT(fclose(file) == 0);
	conf_owner = getpid();
	atexit(remove_conf);
	setenv("DAT_OVERRIDE", conf, 1);
}

void open_ia(const char *name, DAT_IA_HANDLE *ia, DAT_EVD_HANDLE *async)
{
	*ia = DAT_HANDLE_NULL;
	*async = DAT_HANDLE_NULL;
	OK(dat_ia_open((char *)name, 8, async, ia));
	EXPECT(*ia != DAT_HANDLE_NULL);
}

void pair_prepare(struct pair *p)
{
	DAT_REGION_DESCRIPTION region;
	DAT_IA_ATTR attr;
	int i;

	memset(p, 0, sizeof *p);
	open_ia(IA_NAME, &p->ia, &p->async);
	memset(&attr, 0, sizeof attr);
	OK(dat_ia_query(p->ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	p->address = attr.ia_address_ptr;
	EXPECT(p->address != NULL);
	OK(dat_pz_create(p->ia, &p->pz));
	OK(dat_evd_create(p->ia, 16, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &p->cr_evd));
	for (i = 0; i < 2; i++) {
		OK(dat_evd_create(p->ia, 16, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &p->conn[i]));
		OK(dat_evd_create(p->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &p->recv[i]));
		OK(dat_evd_create(p->ia, 64, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG),
				  &p->request[i]));
	}
	OK(dat_psp_create_any(p->ia, &p->qual, p->cr_evd, DAT_PSP_CONSUMER_FLAG, &p->psp));
	p->memory = calloc(1, MEMORY_BYTES);
	EXPECT(p->memory != NULL);
	region.for_va = p->memory;
	OK(dat_lmr_create(p->ia, DAT_MEM_TYPE_VIRTUAL, region, MEMORY_BYTES, p->pz, DAT_MEM_PRIV_ALL_FLAG, &p->lmr,
			  &p->lmr_context, &p->rmr_context, NULL, NULL));
}

void pair_connect(struct pair *p, const DAT_EP_ATTR *attr)
{
	DAT_EVENT event;
	int i;

	for (i = 0; i < 2; i++)
		OK(dat_ep_create(p->ia, p->pz, p->recv[i], p->request[i], p->conn[i], attr, &p->ep[i]));
	OK(dat_ep_connect(p->ep[0], p->address, p->qual, WAIT_MAX, 0, NULL, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	wait_event(p->cr_evd, DAT_CONNECTION_REQUEST_EVENT, &event);
	EXPECT(event.event_data.cr_arrival_event_data.sp_handle.psp_handle == p->psp);
	EXPECT(event.event_data.cr_arrival_event_data.conn_qual == p->qual);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, p->ep[1], 0, NULL));
	for (i = 0; i < 2; i++) {
		wait_event(p->conn[i], DAT_CONNECTION_EVENT_ESTABLISHED, &event);
		EXPECT(event.event_data.connect_event_data.ep_handle == p->ep[i]);
	}
}

void pair_close(struct pair *p)
{
	OK(dat_ia_close(p->ia, DAT_CLOSE_ABRUPT_FLAG));
	free(p->memory);
}

void wait_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EVENT *event)
{
	DAT_COUNT more;

	OK(dat_evd_wait(evd, WAIT_MAX, 1, event, &more));
	if (event->event_number != number) {
		fprintf(stderr, "event 0x%x, expected 0x%x\n", (unsigned)event->event_number,
			(unsigned)number);
		exit(1);
	}
	EXPECT(event->evd_handle == evd);
}

void wait_completion(DAT_EVD_HANDLE evd, DAT_UINT64 cookie, DAT_VLEN length)
{
	DAT_EVENT event;
	DAT_VLEN *transferred = &event.event_data.dto_completion_event_data.transfered_length;

	memset(&event, 0xff, sizeof event);
	wait_event(evd, DAT_DTO_COMPLETION_EVENT, &event);
	EXPECT(event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
	EXPECT(event.event_data.dto_completion_event_data.user_cookie.as_64 == cookie);
	EXPECT(*transferred == length);
}

void set_segment(const struct pair *p, DAT_LMR_TRIPLET *segment, size_t offset, DAT_VLEN length)
{
	segment->lmr_context = p->lmr_context;
	segment->pad = 0;
	segment->virtual_address = (DAT_VADDR)(size_t)(p->memory + offset);
	segment->segment_length = length;
}

void set_target(const struct pair *p, DAT_RMR_TRIPLET *target, size_t offset, DAT_VLEN length)
{
	target->rmr_context = p->rmr_context;
	target->pad = 0;
	target->target_address = (DAT_VADDR)(size_t)(p->memory + offset);
	target->segment_length = length;
}

DAT_DTO_COOKIE cookie_of(DAT_UINT64 value)
{
	DAT_DTO_COOKIE cookie;

	cookie.as_64 = value;
	return cookie;
}
