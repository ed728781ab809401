/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia.c - opening, closing and asking interface adapters. What the registry alone decides
 * is in reg.c. */
#include "actors.h"
#include "pair.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

TEST("IA-1", opening_gives_an_async_evd)
{
	ia();
	HOLDS(async_evd() != DAT_HANDLE_NULL);
	HOLDS(async_evd() != DAT_EVD_ASYNC_EXISTS);
	HOLDS(async_evd() != DAT_EVD_OUT_OF_SCOPE);
}

TEST("IA-2", the_async_evd_of_an_open_is_plain)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE instance;

	OK(dat_ia_open(ia_name(), 23, &async, &instance));
	DAT_EVD_PARAM param = evd_param(async);
	HOLDS(param.evd_flags & DAT_EVD_ASYNC_FLAG);
	EQUAL(param.cno_handle, DAT_HANDLE_NULL);
	HOLDS(param.evd_qlen >= 23);
	OK(dat_ia_close(instance, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST("IA-3", an_ia_is_opened_twice)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE second = open_ia(&async);
	DAT_PZ_HANDLE pz;

	HOLDS(second != ia());
	HOLDS(async != async_evd());
	OK(dat_pz_create(second, &pz));
	OK(dat_pz_free(a_pz()));
	OK(dat_pz_free(pz));
	OK(dat_ia_close(second, DAT_CLOSE_GRACEFUL_FLAG));
	OK(dat_pz_free(a_pz()));
}

TEST("IA-4", a_second_open_shares_the_async_evd_of_the_first)
{
	DAT_EVD_HANDLE async = async_evd(), told = DAT_HANDLE_NULL;
	DAT_IA_HANDLE second = open_ia(&async);
	DAT_EVENT event;

	EQUAL(async, async_evd());
	OK(dat_ia_query(second, &told, 0, NULL, 0, NULL));
	EQUAL(told, async);
	/* The EVD was not made by this open, so its close does not free it. */
	OK(dat_ia_close(second, DAT_CLOSE_ABRUPT_FLAG));
	FAILS(dat_evd_dequeue(async, &event), DAT_QUEUE_EMPTY);
}

TEST("IA-5", an_evd_that_is_not_async_is_not_shared_by_an_open)
{
	DAT_EVD_HANDLE evd = an_evd(DAT_EVD_DTO_FLAG);
	DAT_IA_HANDLE second;

	FAILS(dat_ia_open(ia_name(), 8, &evd, &second), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EVD_ASYNC);
}

TEST("IA-6", an_open_can_do_without_an_async_evd)
{
	ia();
	DAT_EVD_HANDLE async = DAT_EVD_ASYNC_EXISTS, told = DAT_HANDLE_NULL;
	DAT_IA_HANDLE second = open_ia(&async);

	OK(dat_ia_query(second, &told, 0, NULL, 0, NULL));
	HOLDS(told == DAT_EVD_OUT_OF_SCOPE || told == DAT_EVD_ASYNC_EXISTS);
	OK(dat_ia_close(second, DAT_CLOSE_GRACEFUL_FLAG));
}

TEST("IA-7", an_async_evd_of_negative_length_is_refused)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE instance;

	FAILS(dat_ia_open(ia_name(), -1, &async, &instance), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
}

TEST("IA-8", a_graceful_close_refuses_to_destroy_objects)
{
	struct zoo zoo = a_zoo();
	DAT_HANDLE_TYPE type;

	FAILS(dat_ia_close(ia(), DAT_CLOSE_GRACEFUL_FLAG),
	      DAT_INVALID_STATE | DAT_INVALID_STATE_IA_IN_USE);
	for (int i = 0; i < ZOO_SIZE; i++) {
		if (!zoo_handle(&zoo, i))
			continue;
		OK(dat_get_handle_type(zoo_handle(&zoo, i), &type));
		EQUAL(type, zoo_type(i));
	}
	OK(post_number(zoo.evd, 1));
	EVENT(zoo.evd, DAT_SOFTWARE_EVENT);
	struct end passive = AN_END();
	OK(dat_cr_accept(zoo.cr, passive.ep, 0, NULL));
	EVENT(passive.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST("IA-9", a_graceful_close_of_an_empty_ia_succeeds)
{
	OK(dat_ia_close(ia(), DAT_CLOSE_GRACEFUL_FLAG));
	ia_is_gone();
}

static int entries(const char *directory)
{
	DIR *d = opendir(directory);
	struct dirent *entry;
	char link[300], to[200];
	int n = 0;

	if (!d)
		fail("no %s", directory);
	fprintf(stderr, "in %s:", directory);	/* seen when the test fails */
	while ((entry = readdir(d))) {
		snprintf(link, sizeof(link), "%s/%s", directory, entry->d_name);
		ssize_t length = readlink(link, to, sizeof(to));
		fprintf(stderr, " %.*s", length > 0 ? (int)length : 1, length > 0 ? to : "-");
		n++;
	}
	fprintf(stderr, "\n");
	closedir(d);
	return n;
}

TEST("IA-10", an_abrupt_close_destroys_objects_of_every_kind)
{
	int files = 0, threads = 0;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	/* After two rounds, libraries have allocated what they keep while they are loaded. */
	open_ia(&async);
	for (int i = 0; i < 5; i++) {
		a_zoo();
		CONNECTED_PAIR();
		OK(dat_ia_close(ia(), DAT_CLOSE_ABRUPT_FLAG));
		ia_is_gone();
		if (i >= 2) {
			EQUAL(entries("/proc/self/fd"), files);
			EQUAL(entries("/proc/self/task"), threads);
		}
		files = entries("/proc/self/fd");
		threads = entries("/proc/self/task");
	}
}

TEST("IA-11", an_abrupt_close_tells_the_peers_of_connected_eps)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct end here = AN_END();
	DAT_IA_HANDLE second = open_ia(&async), first = work_on(second);
	struct end there = AN_END();

	work_on(first);
	connect_ends(&there, &here);
	OK(dat_ia_close(second, DAT_CLOSE_ABRUPT_FLAG));
	ENDS(here.conn);
	STATE(here.ep, DAT_EP_STATE_DISCONNECTED);
}

TEST("IA-12", a_close_is_graceful_or_abrupt)
{
	FAILS(dat_ia_close(ia(), (DAT_CLOSE_FLAGS)2), DAT_INVALID_PARAMETER | DAT_INVALID_ARG2);
	OK(dat_pz_free(a_pz()));
}

TEST("IA-13", an_abrupt_close_releases_threads_in_cno_wait)
{
	DAT_CNO_HANDLE cno = a_cno();

	an_evd_of(8, cno, DAT_EVD_SOFTWARE_FLAG);
	struct waiter *w = waiter_on_cno(cno, DAT_TIMEOUT_INFINITE);
	OK(dat_ia_close(ia(), DAT_CLOSE_ABRUPT_FLAG));
	ia_is_gone();
	OK(released(w));
	EQUAL(w->woken_by, DAT_HANDLE_NULL);
}

TEST("IA-14", an_abrupt_close_aborts_dat_evd_wait)
{
	struct waiter *w = waiter_on_evd(an_evd(DAT_EVD_SOFTWARE_FLAG), DAT_TIMEOUT_INFINITE, 1);

	OK(dat_ia_close(ia(), DAT_CLOSE_ABRUPT_FLAG));
	ia_is_gone();
	FAILS(released(w), DAT_ABORT);
}

TEST("IA-15", the_attributes_of_an_ia_are_sane)
{
	const DAT_IA_ATTR *a = ia_attr();

	HOLDS(a->adapter_name[0] && memchr(a->adapter_name, 0, DAT_NAME_MAX_LENGTH));
	HOLDS(memchr(a->vendor_name, 0, DAT_NAME_MAX_LENGTH));
	HOLDS(a->ia_address_ptr != NULL);
	HOLDS(a->max_eps > 0);
	HOLDS(a->max_dto_per_ep > 0);
	HOLDS(a->max_rdma_read_per_ep_in > 0);
	HOLDS(a->max_rdma_read_per_ep_out > 0);
	HOLDS(a->max_evds > 0);
	HOLDS(a->max_evd_qlen > 0);
	HOLDS(a->max_iov_segments_per_dto > 0);
	HOLDS(a->max_lmrs > 0);
	HOLDS(a->max_lmr_block_size > 0);
	HOLDS(a->max_lmr_virtual_address > 0);
	HOLDS(a->max_pzs > 0);
	HOLDS(a->max_message_size > 0);
	HOLDS(a->max_rdma_size > 0);
	HOLDS(a->max_rmrs >= 0);
	HOLDS(a->max_srqs >= 0);
	HOLDS(!a->max_srqs || (a->max_ep_per_srq > 0 && a->max_recv_per_srq > 0));
	HOLDS(a->max_iov_segments_per_rdma_read > 0);
	HOLDS(a->max_iov_segments_per_rdma_write > 0);
	HOLDS(a->max_rdma_read_in >= a->max_rdma_read_per_ep_in);
	HOLDS(a->max_rdma_read_out >= a->max_rdma_read_per_ep_out);
	HOLDS(!a->num_transport_attr || a->transport_attr);
	HOLDS(!a->num_vendor_attr || a->vendor_attr);
}

TEST("IA-16", asking_for_nothing_succeeds)
{
	OK(dat_ia_query(ia(), NULL, 0, NULL, 0, NULL));
}

TEST("IA-17", attributes_want_room)
{
	FAILS(dat_ia_query(ia(), NULL, DAT_IA_FIELD_ALL, NULL, 0, NULL),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG4);
	FAILS(dat_ia_query(ia(), NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, NULL),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG6);
}

TEST("IA-18", attributes_that_do_not_exist_are_refused)
{
	DAT_IA_ATTR attr;
	DAT_PROVIDER_ATTR provider;

	FAILS(dat_ia_query(ia(), NULL, DAT_IA_FIELD_ALL + 1, &attr, 0, NULL),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG3);
	FAILS(dat_ia_query(ia(), NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL + 1, &provider),
	      DAT_INVALID_PARAMETER | DAT_INVALID_ARG5);
}

TEST("IA-19", the_address_of_an_ia_is_where_peers_connect)
{
	struct end a = AN_END(), b = AN_END();
	struct listener listener = a_listener();
	DAT_IA_ADDRESS_PTR where = ia_attr()->ia_address_ptr;

	HOLDS(where->sa_family == AF_INET || where->sa_family == AF_INET6);
	OK(dat_ep_connect(a.ep, where, listener.qual, AMPLE_TIME, 0, NULL, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	OK(dat_cr_accept(request_on(listener.evd), b.ep, 0, NULL));
	EVENT(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
}

TEST("IA-20", the_attributes_of_a_provider_are_sane)
{
	const DAT_PROVIDER_ATTR *p = provider_attr();

	HOLDS(p->provider_name[0] && memchr(p->provider_name, 0, DAT_NAME_MAX_LENGTH));
	HOLDS(p->max_private_data_size >= 48);	/* 64, or what the transport carries */
	HOLDS(p->optimal_buffer_alignment > 0);
	EQUAL(p->optimal_buffer_alignment & (p->optimal_buffer_alignment - 1), 0);
	EQUAL(256 % p->optimal_buffer_alignment, 0);
	for (int i = 0; i < 6; i++) {
		EQUAL(p->evd_stream_merging_supported[i][i], DAT_TRUE);
		for (int j = 0; j < 6; j++)
			EQUAL(p->evd_stream_merging_supported[i][j],
			      p->evd_stream_merging_supported[j][i]);
	}
	HOLDS(!p->num_provider_specific_attr || p->provider_specific_attr);
}

TEST("IA-21", the_provider_is_the_one_registered)
{
	static DAT_PROVIDER_INFO info[64];
	DAT_PROVIDER_INFO *list[64];
	DAT_COUNT n = 0;
	bool safe = false, unsafe = false;

	for (int i = 0; i < 64; i++)
		list[i] = &info[i];
	OK(dat_registry_list_providers(64, &n, list));
	for (int i = 0; i < n; i++) {
		if (strcmp(info[i].ia_name, ia_name()) || info[i].dapl_version_major != 2 ||
		    info[i].dapl_version_minor != 0)
			continue;
		safe |= info[i].is_thread_safe;
		unsafe |= !info[i].is_thread_safe;
	}
	HOLDS(safe || unsafe);
	EQUAL(provider_attr()->dapl_version_major, 2);
	EQUAL(provider_attr()->dapl_version_minor, 0);
	/* dat_ia_open() opens the entry that is not thread-safe; only without one the other. */
	EQUAL(provider_attr()->is_thread_safe, !unsafe);
}

TEST("IA-22", extensions_are_version_209_or_none)
{
	if (ia_attr()->extension_supported == DAT_EXTENSION_NONE)
		return;
	EQUAL(ia_attr()->extension_supported, DAT_EXTENSION_IB);
	EQUAL(ia_attr()->extension_version, DAT_IB_EXTENSION_VERSION);
}
