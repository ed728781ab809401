/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* disturbed.c - what the system does to a process with live endpoints: fork, exec and exit of children, stop
 * and continue, many signals, a step of the clock. Data and events stay whole, and no wait ends before its
 * time. How late waits end, and what an idle process uses, is printed. */
#include "traffic.h"
#include "test/own_network.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static _Atomic(bool) enough;

/* Mappings that the two endpoints of a session may add at any time: each maps the window of its peer when it first
 * copies through the kernel. */
#define WINDOWS 2

static void exchange(struct session *s, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!session_exchange(s, i))
			fail("seed %u: exchange %u ended at %s", soak_seed, i, s->step);
}

/* --- fork, exec, exit -------------------------------------------------------------------------- */

static _Noreturn void child(struct session *s, unsigned form)
{
	switch (form) {
	case 0: _exit(0);
	case 1: exit(0);
	case 2: execlp("true", "true", (char *)NULL); _exit(1);
	case 3: OK(session_close(s)); exit(0);
	case 4: kill(getpid(), SIGKILL);
	}
	_exit(1);
}

static void *exchange_all_the_time(void *s)
{
	while (!enough)
		exchange(s, 10);
	return NULL;
}

static void children_come_and_go_beside_live_endpoints(void)
{
	unsigned rounds = soak_rounds(40), forms[5] = { 0 };
	uint64_t random = soak_stream(1);
	struct session *s = session_opened();
	struct soak_held held;
	pthread_t thread;

	if (SANITIZED)
		skip("a sanitizer's allocator may be locked in the child");
	exchange(s, 50);
	pthread_create(&thread, NULL, exchange_all_the_time, s);
	usleep(10000);
	held = soak_hold();
	held.mappings += WINDOWS;
	for (unsigned i = 0; i < rounds; i++) {
		unsigned form = soak_below(&random, 5);
		int status;
		pid_t pid = fork();

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			child(s, form);
		}
		EXPECT(waitpid(pid, &status, 0) == pid);
		if (status && !(form == 4 && WIFSIGNALED(status)))
			fail("seed %u, round %u: a child of form %u ends with status 0x%x",
			     soak_seed, i, form, status);
		forms[form]++;
	}
	soak_expect_held(&held, "after all children", NULL);
	enough = true;
	pthread_join(thread, NULL);
	OK(session_close(s));
	free(s);
	soak_figure("%u children beside traffic: %u _exit, %u exit, %u exec, %u close and exit, %u "
		    "killed",
		    rounds, forms[0], forms[1], forms[2], forms[3], forms[4]);
}

/* --- stop and continue -------------------------------------------------------------------------- */

static struct board {
	volatile struct traffic_target at[2];
	volatile DAT_CONN_QUAL qual;
	volatile bool ready[2], stop, stopped[2];
	volatile uint64_t dtos[2];
} *board;

static void until_both(volatile const bool *flags)
{
	double begin = life_now();

	while (!flags[0] || !flags[1]) {
		if (life_now() - begin > MOMENT / 1e6 * SLOWER)
			fail("seed %u: the other side is not there", soak_seed);
		usleep(500);
	}
}

static void connect_sides(struct traffic *t, int me, DAT_EVD_HANDLE cr)
{
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_IA_ATTR attr;
	DAT_EVENT event;

	if (me == 0) {
		OK(dat_psp_create_any(t->ia, &qual, cr, DAT_PSP_CONSUMER_FLAG, &psp));
		board->qual = qual;
	}
	board->at[me] = t->mine;
	board->ready[me] = true;
	until_both(board->ready);
	if (me == 0) {
		OK(await(cr, DAT_CONNECTION_REQUEST_EVENT, MOMENT * SLOWER, &event));
		OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, t->ep, 0, NULL));
	} else {
		OK(dat_ia_query(t->ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
		OK(dat_ep_connect(t->ep, attr.ia_address_ptr, board->qual, MOMENT * SLOWER, 0, NULL,
				  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	}
	while (!t->established && !t->terminal)
		traffic_take(t);
	t->peer = &board->at[!me];
}

/* The connection must not break: no DTO completes with an error before the end. */
static _Noreturn void one_side(int me)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, cr;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	struct traffic t;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	OK(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &async, &ia));
	OK(dat_pz_create(ia, &pz));
	OK(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &cr));
	traffic_begin(&t, ia, pz, 10 + (unsigned)me);
	connect_sides(&t, me, cr);
	while (!board->stop) {
		traffic_step(&t);
		if (t.terminal || t.flushed)
			fail("seed %u, side %d: event 0x%x, %llu DTOs with an error", soak_seed, me,
			     t.terminal, (unsigned long long)t.flushed);
		board->dtos[me] = t.completed;
	}
	board->stopped[me] = true;
	until_both(board->stopped);
	dat_ep_disconnect(t.ep, DAT_CLOSE_ABRUPT_FLAG);
	while (!t.terminal)
		traffic_take(&t);
	traffic_end(&t);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	exit(0);
}

/* Stops are short or long. A long one exceeds the timeouts of the revocation and of the service thread. */
static void stop_and_continue(const pid_t *pids, unsigned rounds)
{
	uint64_t random = soak_stream(3);

	for (unsigned i = 0; i < rounds; i++) {
		pid_t pid = pids[soak_below(&random, 2)];

		usleep(soak_below(&random, 3000));
		kill(pid, SIGSTOP);
		usleep(soak_below(&random, i % 32 == 31 ? 200000 : 4000));
		kill(pid, SIGCONT);
	}
}

static void stops(const char *name)
{
	unsigned rounds = soak_rounds(100);
	pid_t pids[2];

	own_network();
	board = soak_shared(sizeof *board);
	for (int me = 0; me < 2; me++)
		if (!(pids[me] = fork()))
			one_side(me);
	until_both(board->ready);
	stop_and_continue(pids, rounds);
	board->stop = true;
	for (int me = 0; me < 2; me++) {
		int status;

		EXPECT(waitpid(pids[me], &status, 0) == pids[me]);
		if (status)
			fail("seed %u: side %d ends with status 0x%x", soak_seed, me, status);
	}
	soak_figure("%s: stopped and continued %u times, %llu DTOs", name, rounds,
		    (unsigned long long)(board->dtos[0] + board->dtos[1]));
}

static void stopped_processes_lose_nothing(void)
{
	stops("shared memory");
}

static void stopped_processes_lose_nothing_over_tcp(void)
{
	setenv("DAPL_SOFT_SHM", "0", 1);
	stops("TCP");
}

/* --- signals, clock --------------------------------------------------------------------------------- */

static volatile uint64_t signals;
static unsigned interrupted; /* calls */

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void *send_signals(void *main_thread)
{
	while (!enough) {
		pthread_kill(*(pthread_t *)main_thread, SIGUSR1);
		usleep(50);
	}
	return NULL;
}

/* A wait that is interrupted goes on for the rest of its time. */
static DAT_RETURN wait_out(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_EVENT *event)
{
	double end = life_now() + timeout * 1e-6;
	DAT_TIMEOUT left = timeout;
	DAT_RETURN ret;
	DAT_COUNT n;

	while (DAT_GET_TYPE(ret = dat_evd_wait(evd, left, 1, event, &n)) == DAT_INTERRUPTED_CALL) {
		double rest = end - life_now();

		interrupted++;
		left = rest > 0 ? (DAT_TIMEOUT)(rest * 1e6) : 0;
	}
	return ret;
}

/* Waits by a system call, which signals interrupt, too. Returns by how many seconds it ended late. */
static double sleep_out(double seconds)
{
	double until = life_now() + seconds, left = seconds;

	while (left > 0) {
		struct timespec time = { .tv_sec = (time_t)left,
			.tv_nsec = (long)((left - (double)(time_t)left) * 1e9) };

		ppoll(NULL, 0, &time, NULL);
		left = until - life_now();
	}
	return -left;
}

struct late {
	double wait, ppoll;	/* seconds, of the latest of each */
};

/* Waits on an EVD without events, each followed by a system call that waits as long: its lateness is that of
 * the machine. */
static struct late wait_often(DAT_EVD_HANDLE evd, unsigned n)
{
	uint64_t random = soak_stream(4);
	struct late latest = { 0, 0 };

	for (unsigned i = 0; i < n; i++) {
		DAT_TIMEOUT timeout = soak_below(&random, 20000);
		double begin = life_now(), late;
		DAT_EVENT event;
		DAT_RETURN ret = wait_out(evd, timeout, &event);

		late = life_now() - begin - timeout * 1e-6;
		if (DAT_GET_TYPE(ret) != DAT_TIMEOUT_EXPIRED)
			fail("seed %u: a wait gives %s", soak_seed, life_return(ret));
		if (late < -2e-6) /* the rest of an interrupted wait is cut to microseconds */
			fail("seed %u: a wait of %u us ends %.0f us early", soak_seed, timeout,
			     -late * 1e6);
		latest.wait = late > latest.wait ? late : latest.wait;
		late = sleep_out(timeout * 1e-6);
		latest.ppoll = late > latest.ppoll ? late : latest.ppoll;
	}
	return latest;
}

static DAT_EVD_HANDLE software_evd(struct session *s)
{
	DAT_EVD_HANDLE evd;

	OK(dat_evd_create(s->ia, 64, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd));
	return evd;
}

static void block_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void *post_numbers(void *evd)
{
	uintptr_t number = 0;

	block_signal();
	while (!enough) {
		DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

		event.event_data.software_event_data.pointer = (DAT_PVOID)(number + 1);
		if (dat_evd_post_se(evd, &event) == DAT_SUCCESS)
			number++;
		usleep(200);
	}
	return NULL;
}

/* No event is lost or doubled by a call that a signal interrupts. */
static void take_numbers(DAT_EVD_HANDLE evd, unsigned n)
{
	for (uintptr_t i = 1; i <= n; i++) {
		DAT_EVENT event;

		OK(wait_out(evd, MOMENT, &event));
		if ((uintptr_t)event.event_data.software_event_data.pointer != i)
			fail("seed %u: event %p comes, expected number %u", soak_seed,
			     event.event_data.software_event_data.pointer, (unsigned)i);
	}
}

static void waits_end_in_time_in_a_storm_of_signals(void)
{
	struct sigaction action = { .sa_handler = count_signal }; /* without SA_RESTART */
	pthread_t sender, poster, main_thread = pthread_self();
	unsigned rounds = soak_rounds(60);
	struct session *s = session_opened();
	DAT_EVD_HANDLE evd = software_evd(s);
	struct late latest;

	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&poster, NULL, post_numbers, evd);
	pthread_create(&sender, NULL, send_signals, &main_thread);
	latest = wait_often(s->a.recv, rounds);
	take_numbers(evd, 10 * rounds);
	enough = true;
	pthread_join(sender, NULL);
	pthread_join(poster, NULL);
	exchange(s, rounds);
	OK(session_close(s));
	free(s);
	EXPECT(interrupted > 0);
	soak_figure("%u waits and %u events during %llu signals, %u calls interrupted; the latest "
		    "wait is %.1f ms late, the latest ppoll() %.1f ms",
		    rounds, 10 * rounds, (unsigned long long)signals, interrupted, latest.wait * 1e3,
		    latest.ppoll * 1e3);
}

static void *step_clock(void *arg)
{
	int sign = 1;

	(void)arg;
	while (!enough) {
		struct timespec t;

		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_sec += sign * 3600;
		if (clock_settime(CLOCK_REALTIME, &t))
			fail("clock_settime: %s", strerror(errno));
		sign = -sign;
		usleep(3000);
	}
	return NULL;
}

/* The whole machine uses the clock, so it is stepped only in the machine of the test. */
static void waits_end_in_time_while_the_clock_is_stepped(void)
{
	unsigned rounds = soak_rounds(60);
	struct session *s;
	pthread_t thread;
	struct late latest;

	if (!getenv("SOAK_STEP_CLOCK"))
		skip("the clock is stepped in the virtual machine only (SOAK_STEP_CLOCK)");
	s = session_opened();
	pthread_create(&thread, NULL, step_clock, NULL);
	latest = wait_often(s->a.recv, rounds);
	exchange(s, rounds);
	enough = true;
	pthread_join(thread, NULL);
	OK(session_close(s));
	free(s);
	soak_figure(
		"%u waits while the clock is stepped by an hour; the latest wait is %.1f ms late, the latest "
		"ppoll() %.1f ms", rounds, latest.wait * 1e3, latest.ppoll * 1e3);
}

/* --- idle -------------------------------------------------------------------------------------------- */

static double used(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
}

static long switches(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return r.ru_nvcsw + r.ru_nivcsw;
}

/* A service thread that spins wakes thousands of times a second; one that looks for lost peers, twice. */
static void idle_process_rarely_wakes(void)
{
	double seconds = soak_seconds(1.5), begin_used;
	struct session *s = session_opened();
	long begin_switches, wakes;

	exchange(s, 100);
	usleep(300000); /* busy polling has ended */
	begin_used = used();
	begin_switches = switches();
	usleep((useconds_t)(seconds * 1e6));
	wakes = switches() - begin_switches;
	soak_figure("idle with a connection: %.3f %% of a processor, %.1f wake-ups a second",
		    100 * (used() - begin_used) / seconds, (double)wakes / seconds);
	EXPECT(wakes < 200 * seconds);
	OK(session_close(s));
	free(s);
}

static const struct life_case cases[] = {
	CASE(children_come_and_go_beside_live_endpoints),
	CASE(stopped_processes_lose_nothing),
	CASE(stopped_processes_lose_nothing_over_tcp),
	CASE(waits_end_in_time_in_a_storm_of_signals),
	CASE(waits_end_in_time_while_the_clock_is_stepped),
	CASE(idle_process_rarely_wakes),
};

int main(int argc, char **argv)
{
	return soak_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
