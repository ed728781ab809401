/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mapped.c - memory of a peer that the consumer maps (dat_map_extensions.h): stores reach the peer, which
 * memory can be mapped, how long a mapping lasts, and what wrong arguments return. Both ends are in one
 * process, with mappings of their own; test_rmem_map.c has two processes. */
#include "life.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <dat/dat_map_extensions.h>

enum { PAGE = 4096, SIZE = 4 * PAGE };
#define FILE_NAME "life-mapped"

/* --- what is offered ---------------------------------------------------------------------------- */

/* A session, and memory of its side b that processes can share. */
struct offer {
	struct session s;
	int fd;
	char *memory;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_TRIPLET rmr;
};

static void share(struct offer *o)
{
	o->fd = memfd_create(FILE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	EXPECT(o->fd >= 0 && !ftruncate(o->fd, SIZE) && !fcntl(o->fd, F_ADD_SEALS, F_SEAL_SHRINK));
	o->memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, o->fd, 0);
	EXPECT(o->memory != MAP_FAILED);
}

/* From `at` on, one page. */
static void offer_page(struct offer *o, char *at, int privileges)
{
	static char name[DAT_LMR_COOKIE_SIZE] = "life";
	DAT_REGION_DESCRIPTION region = { .for_shared_memory = { at, &name } };
	DAT_LMR_CONTEXT local;

	OK(dat_lmr_create(o->s.ia, DAT_MEM_TYPE_SHARED_VIRTUAL, region, PAGE, o->s.b.pz,
			  (DAT_MEM_PRIV_FLAGS)privileges, DAT_VA_TYPE_VA, &o->lmr, &local,
			  &o->rmr.rmr_context, NULL, NULL));
	o->rmr.virtual_address = (uintptr_t)at;
	o->rmr.segment_length = PAGE;
}

/* The second page of the four. */
static struct offer *new_offer(void)
{
	struct offer *o = calloc(1, sizeof *o);

	if (!life_on_soft())
		skip("this provider maps nothing");
	OK(session_open(&o->s, MOMENT));
	share(o);
	offer_page(o, o->memory + PAGE, DAT_MEM_PRIV_ALL_FLAG);
	return o;
}

static void end_offer(struct offer *o)
{
	if (o->s.ia)
		OK(session_close(&o->s));
	munmap(o->memory, SIZE);
	close(o->fd);
	free(o);
}

/* Returns the number of mappings of the file in this process. */
static int mappings(void)
{
	FILE *list = fopen("/proc/self/maps", "re");
	char line[1000];
	int n = 0;

	EXPECT(list);
	while (fgets(line, sizeof line, list))
		n += strstr(line, FILE_NAME) != NULL;
	fclose(list);
	return n;
}

static char *map(const struct offer *o)
{
	DAT_PVOID at = NULL;

	OK(dat_map_rmr(o->s.a.ep, &o->rmr, &at));
	return at;
}

/* --- what it is for -------------------------------------------------------------------------------- */

static void what_is_stored_is_the_peers(void)
{
	struct offer *o = new_offer();
	char *at = map(o);

	EXPECT(at != o->memory + PAGE);
	memset(at, 0x5a, PAGE);
	for (int i = 0; i < SIZE; i++)
		EXPECT(o->memory[i] == (i / PAGE == 1 ? 0x5a : 0));
	o->memory[PAGE + 7] = 3;
	EXPECT(at[7] == 3);
	EXPECT(__atomic_fetch_add((int64_t *)at + 1, 2, __ATOMIC_SEQ_CST) == 0x5a5a5a5a5a5a5a5a);
	EXPECT(((int64_t *)(o->memory + PAGE))[1] == 0x5a5a5a5a5a5a5a5c);
	EXPECT(session_exchange(&o->s, 1));
	end_offer(o);
}

static void a_part_of_a_region_can_be_mapped(void)
{
	struct offer *o = new_offer();
	char *at;

	o->rmr.virtual_address += 100;
	o->rmr.segment_length = PAGE - 100;
	at = map(o);
	strcpy(at, "here");
	EXPECT(!strcmp(o->memory + PAGE + 100, "here"));
	OK(dat_map_unmap(o->s.a.ep, at));
	end_offer(o);
}

/* --- how long --------------------------------------------------------------------------------------- */

static void until_it_is_unmapped(void)
{
	struct offer *o = new_offer();
	int before = mappings();
	char *one = map(o), *other = map(o);

	EXPECT(one != other);
	EXPECT(mappings() == before + 2);
	OK(dat_map_unmap(o->s.a.ep, one));
	*other = 4;
	EXPECT(o->memory[PAGE] == 4);
	EXPECT(dat_map_unmap(o->s.a.ep, one) ==
	       (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2));
	OK(dat_map_unmap(o->s.a.ep, other));
	EXPECT(mappings() == before);
	end_offer(o);
}

static void until_the_endpoint_is_freed(void)
{
	struct offer *o = new_offer();
	int before = mappings();

	map(o);
	map(o);
	OK(dat_ep_disconnect(o->s.a.ep, DAT_CLOSE_ABRUPT_FLAG));
	OK(await(o->s.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, MOMENT, NULL));
	EXPECT(mappings() == before + 2);
	OK(session_close(&o->s));
	EXPECT(mappings() == before);
	end_offer(o);
}

/* The connection has ended, the memory is deregistered, and the peer has unmapped it. */
static void a_mapping_outlives_what_it_was_made_from(void)
{
	struct offer *o = new_offer();
	char *at = map(o);

	OK(dat_ep_disconnect(o->s.b.ep, DAT_CLOSE_ABRUPT_FLAG));
	OK(await(o->s.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, MOMENT, NULL));
	OK(dat_lmr_free(o->lmr));
	munmap(o->memory, SIZE);
	EXPECT(!ftruncate(o->fd, 2 * SIZE) && ftruncate(o->fd, 0));	/* it can't be taken away */
	memset(at, 1, PAGE);
	OK(dat_map_unmap(o->s.a.ep, at));
	end_offer(o);
}

/* --- what may not, or can't be mapped -------------------------------------------------------------- */

static void refused(int line, const struct offer *o, const DAT_RMR_TRIPLET *rmr, DAT_RETURN type)
{
	DAT_PVOID at = &at;
	DAT_RETURN ret = dat_map_rmr(o->s.a.ep, rmr, &at);

	if (DAT_GET_TYPE(ret) != type || at != &at)
		fail("line %d: the call gives %s and %s", line, life_return(ret),
		     at == &at ? "no address" : "an address");
}
#define REFUSED(o, rmr, type) refused(__LINE__, o, rmr, type)

static void what_is_not_of_the_region(void)
{
	struct offer *o = new_offer();

	o->rmr.segment_length = PAGE + 1;
	REFUSED(o, &o->rmr, DAT_PRIVILEGES_VIOLATION);
	o->rmr.segment_length = UINT32_MAX;
	REFUSED(o, &o->rmr, DAT_PRIVILEGES_VIOLATION);
	o->rmr.segment_length = 1;
	o->rmr.virtual_address--;
	REFUSED(o, &o->rmr, DAT_PRIVILEGES_VIOLATION);
	o->rmr.virtual_address += 1 + PAGE;
	REFUSED(o, &o->rmr, DAT_PRIVILEGES_VIOLATION);
	o->rmr.virtual_address--;
	map(o);
	end_offer(o);
}

static void what_may_not_be_written(void)
{
	struct offer *o = new_offer();

	offer_page(o, o->memory, DAT_MEM_PRIV_READ_FLAG);
	REFUSED(o, &o->rmr, DAT_PRIVILEGES_VIOLATION);
	OK(dat_lmr_free(o->lmr));
	REFUSED(o, &o->rmr, DAT_MODEL_NOT_SUPPORTED);	/* not known */
	end_offer(o);
}

static void what_is_not_shared(void)
{
	DAT_RMR_TRIPLET rmr = { .segment_length = 8 };
	struct offer *o = new_offer();

	rmr.virtual_address = (uintptr_t)o->s.b.memory;
	rmr.rmr_context = o->s.b.remote;
	REFUSED(o, &rmr, DAT_MODEL_NOT_SUPPORTED);
	rmr.rmr_context = 12345;
	REFUSED(o, &rmr, DAT_MODEL_NOT_SUPPORTED);
	end_offer(o);
}

static void where_it_is_switched_off(void)
{
	static const char *const by[] = { "DAPL_SOFT_DIRECT", "DAPL_SOFT_SHM", "DAPL_SOFT_MAP" };

	for (int i = 0; i < 3; i++) {
		struct offer *o;

		setenv(by[i], "0", 1);
		o = new_offer();
		REFUSED(o, &o->rmr, DAT_MODEL_NOT_SUPPORTED);
		end_offer(o);
		unsetenv(by[i]);
	}
}

static void wrong_arguments_are_refused(void)
{
	struct offer *o = new_offer();
	DAT_PVOID at;

	EXPECT(DAT_GET_TYPE(dat_map_rmr(o->s.ia, &o->rmr, &at)) == DAT_INVALID_HANDLE);
	EXPECT(DAT_GET_TYPE(dat_map_unmap(o->s.a.pz, NULL)) == DAT_INVALID_HANDLE);
	EXPECT(dat_map_rmr(o->s.a.ep, &o->rmr, NULL) ==
	       (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG3));
	EXPECT(dat_map_unmap(o->s.a.ep, NULL) ==
	       (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG2));
	REFUSED(o, NULL, DAT_INVALID_PARAMETER);
	o->rmr.segment_length = 0;
	REFUSED(o, &o->rmr, DAT_INVALID_PARAMETER);
	o->rmr.segment_length = 8;
	OK(dat_ep_disconnect(o->s.a.ep, DAT_CLOSE_ABRUPT_FLAG));
	OK(await(o->s.a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, MOMENT, NULL));
	REFUSED(o, &o->rmr, DAT_INVALID_STATE);
	end_offer(o);
}

/* --- which devices can do it ---------------------------------------------------------------------------------- */

static bool says_so(DAT_IA_HANDLE ia)
{
	DAT_PROVIDER_ATTR attr;

	OK(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	for (int i = 0; i < attr.num_provider_specific_attr; i++)
		if (!strcmp(attr.provider_specific_attr[i].name, DAT_MAP_ATTR_RMR))
			return !strcmp(attr.provider_specific_attr[i].value, "TRUE");
	return false;
}

static void a_provider_says_whether_it_can(void)
{
	struct session *s = malloc(sizeof *s);
	DAT_RMR_TRIPLET rmr = { .segment_length = 8 };
	DAT_PVOID at;

	OK(session_open(s, MOMENT));
	EXPECT(says_so(s->ia) == life_on_soft());
	EXPECT(DAT_GET_TYPE(dat_map_rmr(s->a.ep, &rmr, &at)) ==
	       (life_on_soft() ? DAT_MODEL_NOT_SUPPORTED : DAT_NOT_IMPLEMENTED));
	OK(session_close(s));
	free(s);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(what_is_stored_is_the_peers),
		CASE(a_part_of_a_region_can_be_mapped),
		CASE(until_it_is_unmapped),
		CASE(until_the_endpoint_is_freed),
		CASE(a_mapping_outlives_what_it_was_made_from),
		CASE(what_is_not_of_the_region),
		CASE(what_may_not_be_written),
		CASE(what_is_not_shared),
		CASE(where_it_is_switched_off),
		CASE(wrong_arguments_are_refused),
		CASE(a_provider_says_whether_it_can),
	};

	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
