/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* process.c - a process with open IAs forks, executes a program, or exits. A child that hangs is killed by
 * run(), which fails its case. How long anything takes is not tested. */
#include "life.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void works(struct session *s)
{
	for (unsigned i = 0; i < 50; i++)
		if (!session_exchange(s, i))
			fail("exchange %u ended at %s", i, s->step);
}

/* --- fork ------------------------------------------------------------------------------------- */

static void leave_at_once(const void *s) { (void)s; _exit(0); }
static void leave(const void *s) { (void)s; exit(0); }

static void close_and_leave(const void *arg)
{
	struct session s = *(const struct session *)arg;

	OK(session_close(&s));
}

static void use_another(const void *arg)
{
#ifdef __SANITIZE_THREAD__
	skip("the thread sanitizer knows no threads in children of processes with threads");
#endif
	(void)arg;
	whole_session();
}

static void close_and_use_another(const void *arg)
{
	close_and_leave(arg);
	use_another(NULL);
}

static void after_fork(void (*child)(const void *))
{
	struct session *s = session_opened();

	works(s);
	for (int i = 0; i < 3; i++) {
		struct child_result result = run(child, s);

		expect_quiet(&result, 0);
		works(s);
	}
	OK(session_close(s));
	free(s);
}

static void a_child_that_leaves_at_once(void) { after_fork(leave_at_once); }
static void a_child_that_exits(void) { after_fork(leave); }
static void a_child_that_closes(void) { after_fork(close_and_leave); }
static void a_child_with_an_ia_of_its_own(void) { after_fork(use_another); }
static void a_child_that_closes_and_opens(void) { after_fork(close_and_use_another); }

/* The child's copies of descriptors must not keep connections open. */
static void an_idle_child_delays_no_disconnect(void)
{
	struct session *s = session_opened();
	pid_t pid = fork();

	if (!pid) {
		sleep(6 * MOMENT / 1000000);
		_exit(0);
	}
	works(s);
	OK(dat_ep_disconnect(s->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	OK(await(s->b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, MOMENT, NULL));
	OK(session_close(s));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	free(s);
}

static bool enough;

static void *traffic(void *arg)
{
	struct session *s = arg;

	for (unsigned i = 0; !__atomic_load_n(&enough, __ATOMIC_RELAXED); i++)
		if (!session_exchange(s, i))
			fail("exchange %u ended at %s", i, s->step);
	return NULL;
}

/* The child can go on, whatever locks were held at the fork. */
static void children_forked_in_the_midst_of_traffic_go_on(void)
{
	struct session *s = session_opened();
	pthread_t thread;

	pthread_create(&thread, NULL, traffic, s);
	for (int i = 0; i < 20; i++) {
		struct child_result result = run(i & 1 ? close_and_use_another : leave, s);

		expect_quiet(&result, 0);
	}
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	OK(session_close(s));
	free(s);
}

static void *churn(void *arg)
{
	const struct session *s = arg;

	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
		struct session other = { 0 };
		DAT_PZ_HANDLE pz;

		for (int i = 0; i < 50; i++) {
			OK(dat_pz_create(s->ia, &pz));
			OK(dat_pz_free(pz));
		}
		OK(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &other.async, &other.ia));
		OK(session_close(&other));
	}
	return NULL;
}

/* A fork while other threads allocate breaks the allocators of sanitizers. */
static void needs_fork_while_others_allocate(void)
{
	if (SANITIZED)
		skip("a sanitizer's allocator may be locked in the child");
}

static void forks_while_objects_come_and_go(void)
{
	struct session *s;
	pthread_t thread;

	needs_fork_while_others_allocate();
	s = session_opened();
	pthread_create(&thread, NULL, churn, s);
	for (int i = 0; i < 60; i++) {
		struct child_result result = run(use_another, s);

		expect_quiet(&result, 0);
	}
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	OK(session_close(s));
	free(s);
}

static void *load_and_unload(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED)) {
		struct session other = { 0 };

		OK(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &other.async, &other.ia));
		OK(session_close(&other));
	}
	return NULL;
}

static void forks_while_the_provider_comes_and_goes(void)
{
	pthread_t thread[2];

	needs_fork_while_others_allocate();
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, load_and_unload, NULL);
	for (int i = 0; i < 100; i++) {
		struct child_result result = run(use_another, NULL);

		expect_quiet(&result, 0);
	}
	__atomic_store_n(&enough, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

static struct session opened_beside;
static bool opens_beside;

static void *open_beside(void *unused)
{
	OK(session_open(&opened_beside, MOMENT));
	return unused;
}

/* fork() has begun, and calls none of the handlers that the library would install now. */
static void another_thread_opens(void)
{
	pthread_t thread;

	if (!opens_beside)
		return;
	opens_beside = false;
	pthread_create(&thread, NULL, open_beside, NULL);
	pthread_join(thread, NULL);
}

/* The child loses the memory of the parent's connections, which a leak check would report. */
static void count_descriptors(const void *unused)
{
	(void)unused;
	end_without_leak_check();
	printf("%d descriptors\n", open_descriptors());
}

/* Its child is like that of a later fork: the provider's connections are closed there, and its locks are free. */
static void a_fork_that_began_before_the_provider_was_loaded(void)
{
	struct child_result first, second;

	pthread_atfork(another_thread_opens, NULL, NULL);	/* called before those of libdat2 */
	opens_beside = true;
	first = run(count_descriptors, NULL);
	works(&opened_beside);
	second = run(count_descriptors, NULL);
	if (first.status || strcmp(first.text, second.text))
		fail("exit status %d; the first child has %sthe second %s", first.status, first.text, second.text);
	works(&opened_beside);
	OK(session_close(&opened_beside));
}

/* --- exec --------------------------------------------------------------------------------------- */

static void list_descriptors(const void *arg)
{
	(void)arg;
	execlp("ls", "ls", "-l", "/proc/self/fd", (char *)NULL);
	fail("ls: %s", strerror(errno));
}

static void no_descriptor_is_inherited_by_exec(void)
{
	struct session *s = session_opened();
	DAT_CNO_HANDLE cno;
	struct child_result result;

	OK(dat_cno_create(s->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	works(s);
	result = run(list_descriptors, NULL);
	/* The lines are "total 0", three descriptors, and the directory that ls reads. */
	if (result.status || result.lines != 5)
		fail("expected 0, 1, 2 and the directory, found %s", result.text);
	OK(session_close(s));
	free(s);
}

/* --- exit ----------------------------------------------------------------------------------------- */

static void no_agent(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	(void)data;
	(void)evd;
}

static void *wait_on_evd(void *evd)
{
	DAT_EVENT event;
	DAT_COUNT n;

	dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &n);
	return NULL;
}

static void *wait_on_cno(void *cno)
{
	DAT_EVD_HANDLE evd;

	dat_cno_wait(cno, DAT_TIMEOUT_INFINITE, &evd);
	return NULL;
}

static struct session *everything(void)
{
	struct session *s = session_opened();
	DAT_OS_WAIT_PROXY_AGENT agent = { .proxy_agent_func = no_agent };
	DAT_LMR_TRIPLET in = { .lmr_context = s->a.local, .segment_length = 64,
		.virtual_address = (uintptr_t)s->a.memory };
	DAT_CNO_HANDLE cno, with_agent;
	DAT_EVD_HANDLE evd, evd2;
	pthread_t thread;

	OK(dat_cno_create(s->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	OK(dat_cno_create(s->ia, agent, &with_agent));
	OK(dat_evd_create(s->ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	OK(dat_evd_create(s->ia, 8, with_agent, DAT_EVD_SOFTWARE_FLAG, &evd2));
	for (uint64_t i = 0; i < 4; i++)
		OK(dat_ep_post_recv(s->a.ep, 1, &in, (DAT_DTO_COOKIE){ .as_64 = i }, DAT_COMPLETION_DEFAULT_FLAG));
	pthread_create(&thread, NULL, wait_on_evd, s->a.recv);
	pthread_create(&thread, NULL, wait_on_evd, s->a.conn);
	pthread_create(&thread, NULL, wait_on_cno, cno);
	OK(dat_evd_post_se(evd2, &(DAT_EVENT){ .event_number = DAT_SOFTWARE_EVENT }));
	usleep(20000);
	return s;
}

static struct session *last;	/* reachable, so that a sanitizer does not report a leak */

static void exit_37(const void *arg)
{
	(void)arg;
	last = everything();
	exit(37);
}

static void *exit_38(void *arg)
{
	(void)arg;
	exit(38);
}

static void exit_in_a_thread(const void *arg)
{
	pthread_t thread;

	(void)arg;
	last = everything();
	pthread_create(&thread, NULL, exit_38, NULL);
	for (;;)
		pause();
}

static void agent_that_stays(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	(void)evd;
	__atomic_store_n((bool *)data, true, __ATOMIC_RELAXED);
	for (;;)
		pause();
}

static void agent_that_exits(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	(void)data;
	(void)evd;
	exit(40);
}

static void exit_by_agent(const void *arg)
{
	static bool there;
	DAT_OS_WAIT_PROXY_AGENT agent = { .instance_data = &there,
		.proxy_agent_func = arg ? agent_that_stays : agent_that_exits };
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;

	last = session_opened();
	OK(dat_cno_create(last->ia, agent, &cno));
	OK(dat_evd_create(last->ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	OK(dat_evd_post_se(evd, &(DAT_EVENT){ .event_number = DAT_SOFTWARE_EVENT }));
	while (!__atomic_load_n(&there, __ATOMIC_RELAXED))
		usleep(1000);
	exit(40);
}

static void exit_in_traffic(const void *arg)
{
	pthread_t thread;

	last = session_opened();
	pthread_create(&thread, NULL, traffic, last);
	usleep(10000 + *(const int *)arg * 500);
	exit(39);
}

static void exit_with_everything_open_ends_the_process(void)
{
	struct child_result result = run(exit_37, NULL);

	expect_quiet(&result, 37);
}

static void exit_in_another_thread_ends_the_process(void)
{
	struct child_result result = run(exit_in_a_thread, NULL);

	expect_quiet(&result, 38);
}

static void exit_does_not_wait_for_an_agent(void)
{
	struct child_result result = run(exit_by_agent, "");

	expect_quiet(&result, 40);
}

static void exit_in_an_agent_ends_the_process(void)
{
	struct child_result result = run(exit_by_agent, NULL);

	expect_quiet(&result, 40);
}

static void exit_in_the_midst_of_traffic_ends_the_process(void)
{
	for (int i = 0; i < 40; i++) {
		struct child_result result = run(exit_in_traffic, &i);

		expect_quiet(&result, 39);
	}
}

/* After the last IA of a provider was closed, the handles of its objects are invalid. */
static void handles_of_a_closed_ia_are_refused(void)
{
	static struct session s;
	DAT_EVENT event;
	DAT_EP_PARAM param;

	OK(session_open(&s, MOMENT));
	OK(session_close(&s));
	EXPECT(DAT_GET_TYPE(dat_lmr_free(s.a.lmr)) == DAT_INVALID_HANDLE);
	EXPECT(DAT_GET_TYPE(dat_lmr_free(s.b.lmr)) == DAT_INVALID_HANDLE);
	EXPECT(DAT_GET_TYPE(dat_ep_query(s.a.ep, DAT_EP_FIELD_ALL, &param)) == DAT_INVALID_HANDLE);
	EXPECT(DAT_GET_TYPE(dat_ep_free(s.a.ep)) == DAT_INVALID_HANDLE);
	EXPECT(DAT_GET_TYPE(dat_evd_dequeue(s.a.recv, &event)) == DAT_INVALID_HANDLE);
	EXPECT(DAT_GET_TYPE(dat_evd_free(s.async)) == DAT_INVALID_HANDLE);
	EXPECT(DAT_GET_TYPE(dat_pz_free(s.a.pz)) == DAT_INVALID_HANDLE);
	EXPECT(DAT_GET_TYPE(dat_psp_free(s.psp)) == DAT_INVALID_HANDLE);
	EXPECT(DAT_GET_TYPE(dat_ia_close(s.ia, DAT_CLOSE_ABRUPT_FLAG)) == DAT_INVALID_HANDLE);
	whole_session();	/* and the provider comes back */
}

static const struct life_case cases[] = {
	CASE(handles_of_a_closed_ia_are_refused),
	CASE(a_child_that_leaves_at_once),
	CASE(a_child_that_exits),
	CASE(a_child_that_closes),
	CASE(a_child_with_an_ia_of_its_own),
	CASE(a_child_that_closes_and_opens),
	CASE(an_idle_child_delays_no_disconnect),
	CASE(children_forked_in_the_midst_of_traffic_go_on),
	CASE(forks_while_objects_come_and_go),
	CASE(forks_while_the_provider_comes_and_goes),
	CASE(a_fork_that_began_before_the_provider_was_loaded),
	CASE(no_descriptor_is_inherited_by_exec),
	CASE(exit_with_everything_open_ends_the_process),
	CASE(exit_in_another_thread_ends_the_process),
	CASE(exit_in_an_agent_ends_the_process),
	CASE(exit_does_not_wait_for_an_agent),
	CASE(exit_in_the_midst_of_traffic_ends_the_process),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
