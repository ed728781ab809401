/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.c - DAT connections to peer processes. See link.h.
 *
 * Flow: an end sends at most WINDOW messages that the peer has not counted as taken in a message of its own, so that a
 * receive is always posted. The last RESERVE of them are for messages that only count. A send whose completion was
 * taken tells that all requests before it are complete.
 *
 * Silence: an adapter may not notice that the peer is gone, or notice it late. So while a stream waits for the peer,
 * link_watch() asks a silent one for a sign of life, which is a message that only counts. */
#include "sock/link.h"
#include <dat/dat_messages.h>
#include <dat/udat.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/address.h"
#include "common/clock.h"
#include "common/device_lost.h"
#include "common/lock.h"
#include "common/sock_service.h"
#include "sock/conn.h"
#include "sock/real.h"
#include "sock/service.h"
#include "sock/settings.h"

enum {
	WINDOW = 256,                /* messages to the peer that it has not counted */
	RESERVE = 8,                 /* of these, for counts alone */
	RECEIVES = WINDOW + RESERVE, /* posted */
	BUFFER = LINK_MESSAGE + LINK_INLINE, /* bytes; a multiple of a cache line */
	SENDS = 512,                 /* buffers of messages, which are free when their sends are complete */
	LARGEST_WRITE = 1 << 20,     /* bytes; a ring has less. rxe of Linux 6.1 writes at most 8 MiB */
	REQUESTS = 1024,             /* sends and RDMA writes that are not complete */
	TAKE = 16,                   /* messages that one call of link_take() takes, at most */
	REAP = 64,                   /* messages between two looks at completions */
	EVENTS = 64,                 /* of connections and requests, in their EVDs */
	CONNECT_US = 10000000,
	IAS = 8, /* adapters that a process uses, at most */
	IDLE_MS = 2,   /* a link that is lent is taken back when no thread has looked for messages so long */
	SLEEP_MS = 20, /* a thread that sleeps in link_take() for longer has been interrupted by a signal handler */
	END_MS = 1000, /* the end of the process waits for the service thread so long */
	SILENT_S = 4, /* a peer that is asked each second has lost 3 answers, or is stopped */
	WATCH_GAP_S = 3, /* without a look nothing is known of the peer */
};

#define DAT_FUNCTIONS(X) \
	X(dat_ia_openv) X(dat_ia_query) X(dat_pz_create) X(dat_cno_fd_create) X(dat_cno_trigger) X(dat_evd_create) \
	X(dat_cno_create) X(dat_cno_wait) X(dat_cno_free) \
	X(dat_evd_dequeue) X(dat_evd_free) X(dat_psp_create_any) X(dat_cr_query) X(dat_cr_accept) X(dat_cr_reject) \
	X(dat_ep_create) X(dat_ep_free) X(dat_ep_connect) X(dat_ep_disconnect) X(dat_ep_post_send) \
	X(dat_evd_modify_cno) X(dat_ia_close) X(dat_strerror) X(dats_set_message_handler) X(dat_ep_post_recv) \
	X(dat_ep_post_rdma_write) X(dat_lmr_create) X(dat_lmr_free)

static struct {
#define X(name) __typeof__(name) *name;
	DAT_FUNCTIONS(X)
#undef X
} dat;

/* Of one process, shared by its links. It is closed when its device fails or is removed, and the next use opens it
 * again; else the end of the process closes it. */
struct adapter {
	char name[DAT_NAME_MAX_LENGTH];
	DAT_IA_HANDLE ia;    /* DAT_HANDLE_NULL: closed */
	bool lost;           /* it is to be closed */
	unsigned generation; /* how often it was opened */
	DAT_PZ_HANDLE pz;
	DAT_CNO_HANDLE cno;
	DAT_FD fd;
	DAT_EVD_HANDLE connects, requests_in, async; /* connection events; connection requests; errors of the IA */
	DAT_PSP_HANDLE psp;
	struct sockaddr_storage address;
	uint64_t qualifier;
};

struct link {
	struct adapter *adapter;
	struct sockaddr_storage peer;
	uint64_t qualifier;
	bool asker, up, ended; /* up, ended: atomic, written by the service thread */
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE received, requests;
	struct buffers *buffers;
	struct link_memory memory;
	uint64_t heard;                 /* atomic: messages received */
	uint64_t heard_before;          /* as of the last link_watch() */
	uint64_t quiet_since, watched_at; /* monotonic ns */

	struct dapl_mutex lock; /* guards what follows, and posting */
	bool broken;
	bool refused;            /* link_write() found no room */
	unsigned open;           /* messages sent that the peer has not counted */
	unsigned taken;          /* messages received that this end has not counted */
	uint64_t sends, reaped;  /* messages posted, and complete */
	uint64_t posted, done;   /* requests */
	struct link_message *queue; /* that wait for the window, in their order */
	size_t queue_first, queue_count, queue_room;
	unsigned streams; /* atomic: link_hold() less link_release() */

	/* lending; see link_take() */
	DAT_CNO_HANDLE waits; /* of `received` while it is lent; made at the first time */
	bool never_lent;      /* there was no memory or no descriptor */
	bool wanted, returned; /* atomic: link_ask(), link_return() */
	bool lent;             /* atomic; written by the service thread */
	unsigned borrowers;    /* atomic: link_borrow() less link_give_back() */
	unsigned sleepers, calls; /* atomic: of link_take() */
	unsigned calls_before;    /* when the service thread saw a change, and the number */
	uint64_t calls_at;        /* monotonic ns */
	/* guarded by `receiving`: what link_take() has left to the service thread. Nothing is taken before it is
	 * done. */
	struct {
		bool any, room, message;
		const char *error;
		struct link_message m;
		unsigned char bytes[LINK_INLINE];
	} left;
	struct link *next;
};

struct buffers {
	unsigned char receive[RECEIVES][BUFFER];
	unsigned char send[SENDS][BUFFER];
};

static const struct link_user *user;
static struct adapter adapters[IAS];
static int adapter_count;
static struct link *links;
static struct link *over; /* those that have ended, while streams refer to them */
static bool ended; /* atomic: the process ends */
static bool loaded;
static void (*before_fork)(void), (*before_end)(void);
static int working; /* atomic: the service thread is in a call of DAT */
static int event_fd = -1; /* an epoll instance over the descriptors of all adapters */
static struct dapl_mutex receiving = DAPL_MUTEX_INIT(RANK_SOCK_RECEIVE); /* guards `links` and taking messages */
static unsigned pauses; /* the service thread's */
static __thread unsigned taking __attribute__((tls_model("initial-exec"))); /* calls of link_take() */

/* Of messages of the link itself: one that only counts, and one that asks for it. */
enum { TYPE_CREDITS = 0, TYPE_PING = 255 };

void link_set_user(const struct link_user *u)
{
	user = u;
}

void link_set_process(void (*fork)(void), void (*end)(void))
{
	before_fork = fork, before_end = end;
}

/* The service thread begins calls of DAT. Returns false at the end of the process. */
static bool begin_work(void)
{
	__atomic_add_fetch(&working, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&ended, __ATOMIC_SEQ_CST))
		return true;
	__atomic_sub_fetch(&working, 1, __ATOMIC_SEQ_CST);
	return false;
}

static void end_work(void)
{
	__atomic_sub_fetch(&working, 1, __ATOMIC_SEQ_CST);
}

/* A peer whose process has ended is no news for the program's standard error. */
static DAT_BOOLEAN drop_message(const DAT_MESSAGE *message)
{
	(void)message;
	return !settings.log;
}

static struct link_failure failure;

struct link_failure link_failure(void)
{
	return failure;
}

void link_failure_text(const struct link_failure *f, char *text, size_t size)
{
	const char *major = "?", *minor = "";

	if (!f->error) {
		snprintf(text, size, "%s", f->call ? f->call : "unknown");
		return;
	}
	dat.dat_strerror(f->error, &major, &minor);
	snprintf(text, size, "%s: %s %s", f->call, major, minor);
}

/* Keeps and logs what failed, if it did. Returns whether it did not. */
static bool succeeds(const char *call, DAT_RETURN error)
{
	char text[256], line[300];
	int length;

	if (error == DAT_SUCCESS)
		return true;
	failure = (struct link_failure){ call, error };
	link_failure_text(&failure, text, sizeof text);
	length = snprintf(line, sizeof line, "datsock: %s\n", text);
	if (settings.log && REAL(write)(2, line, length) < 0)
		errno = 0;
	return false;
}

/* A call that opens an adapter or a link. */
#define CALL(name, ...) succeeds(#name, dat.name(__VA_ARGS__))

static bool load(void)
{
	void *library, *before;

	if (loaded)
		return true;
	before = dlopen("libdat2.so.2", RTLD_NOW | RTLD_NOLOAD);
	library = dlopen("libdat2.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return false;
#define X(name) \
	*(void **)&dat.name = dlsym(library, #name); \
	if (!dat.name) \
		return false;
	DAT_FUNCTIONS(X)
#undef X
	/* Functions that are registered later run earlier: the libraries of DAT end after this one has stopped, and
	 * their fork handlers run after this one's. */
	atexit(before_end);
	if (!before)
		dat.dats_set_message_handler(drop_message); /* the program itself does not use DAT */
	pthread_atfork(before_fork, NULL, NULL);
	return loaded = true;
}

bool link_is_caller(const void *code)
{
	Dl_info info;
	const char *name;

	if (!loaded || !dladdr(code, &info) || !info.dli_fname)
		return false;
	name = strrchr(info.dli_fname, '/');
	name = name ? name + 1 : info.dli_fname;
	return !strncmp(name, "libdapl", 7) || !strncmp(name, "libdat2", 7) || !strncmp(name, "librdmacm", 9) ||
	       !strncmp(name, "libibverbs", 10);
}

static void close_adapter(struct adapter *a)
{
	if (a->fd >= 0)
		REAL(epoll_ctl)(event_fd, EPOLL_CTL_DEL, a->fd, NULL);
	if (a->ia)
		dat.dat_ia_close(a->ia, DAT_CLOSE_ABRUPT_FLAG);
	a->ia = DAT_HANDLE_NULL, a->fd = -1, a->lost = false;
}

/* Of an adapter that has a name and is closed. */
static bool open_adapter(struct adapter *a)
{
	struct epoll_event event = { EPOLLIN, { .ptr = a } };
	DAT_IA_ATTR attr;
	DAT_CONN_QUAL qualifier;

	a->fd = -1, a->async = DAT_HANDLE_NULL;
	if (!CALL(dat_ia_openv, a->name, 8, &a->async, &a->ia, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_TRUE)) {
		a->ia = DAT_HANDLE_NULL;
		return false;
	}
	a->generation++;
	if (!CALL(dat_ia_query, a->ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL) || !CALL(dat_pz_create, a->ia, &a->pz) ||
	    !CALL(dat_cno_fd_create, a->ia, &a->fd, &a->cno) || !CALL(dat_evd_modify_cno, a->async, a->cno) ||
	    !CALL(dat_evd_create, a->ia, EVENTS, a->cno, DAT_EVD_CONNECTION_FLAG, &a->connects) ||
	    !CALL(dat_evd_create, a->ia, EVENTS, a->cno, DAT_EVD_CR_FLAG, &a->requests_in) ||
	    !CALL(dat_psp_create_any, a->ia, &qualifier, a->requests_in, DAT_PSP_CONSUMER_FLAG, &a->psp) ||
	    REAL(epoll_ctl)(event_fd, EPOLL_CTL_ADD, a->fd, &event)) {
		close_adapter(a);
		return false;
	}
	address_copy(&a->address, (const struct sockaddr *)attr.ia_address_ptr);
	a->qualifier = qualifier;
	return true;
}

/* Returns the place of the adapter of that name, the next free one at its first use. NULL: there is none. */
static struct adapter *place_of(const char *name)
{
	struct adapter *a = adapters;

	while (a < adapters + adapter_count && strcmp(a->name, name))
		a++;
	if (a < adapters + adapter_count)
		return a;
	if (adapter_count == IAS || strlen(name) >= sizeof a->name)
		return NULL;
	*a = (struct adapter){ .fd = -1 };
	strcpy(a->name, name);
	return a;
}

/* Returns the adapter of that name, open. NULL: link_failure(). */
static struct adapter *find_adapter(const char *name)
{
	struct adapter *a;

	failure = (struct link_failure){ .call = "libdat2.so.2 cannot be loaded" };
	if (!load())
		return NULL;
	failure = (struct link_failure){ .call = "too many adapters" };
	a = place_of(name);
	if (event_fd < 0)
		event_fd = own_fd(REAL(epoll_create1)(EPOLL_CLOEXEC));
	if (!a || a->lost || event_fd < 0 || (!a->ia && !open_adapter(a)))
		return NULL;
	if (a == &adapters[adapter_count])
		adapter_count++;
	return a;
}

int link_fd(void)
{
	return event_fd;
}

int link_listen(const char *ia, struct sockaddr_storage *address, uint64_t *qualifier)
{
	struct adapter *a;

	if (!begin_work())
		return ESHUTDOWN;
	a = find_adapter(ia);
	end_work();
	if (!a)
		return EIO;
	*address = a->address;
	*qualifier = a->qualifier;
	return 0;
}

bool link_is_up(const struct link *l)
{
	return l->up;
}

bool link_is_over(const struct link *l)
{
	return l->ended || __atomic_load_n(&l->broken, __ATOMIC_RELAXED);
}

bool link_is_asker(const struct link *l)
{
	return l->asker;
}

const char *link_ia(const struct link *l)
{
	return l->adapter->name;
}

static int register_memory(struct adapter *a, void *memory, size_t size, DAT_MEM_PRIV_FLAGS privileges,
			   struct link_memory *out)
{
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_VLEN length;
	DAT_VADDR start;

	region.for_va = memory;
	if (!CALL(dat_lmr_create, a->ia, DAT_MEM_TYPE_VIRTUAL, region, size, a->pz, privileges, DAT_VA_TYPE_VA, &lmr,
		  &lmr_context, &rmr_context, &length, &start))
		return ENOMEM;
	*out = (struct link_memory){ lmr, lmr_context, rmr_context, a - adapters, a->generation };
	return 0;
}

int link_register(struct link *l, void *memory, size_t size, bool exposed, struct link_memory *out)
{
	int err;

	if (!begin_work())
		return ESHUTDOWN;
	err = register_memory(l->adapter, memory, size,
			      exposed ? DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG :
					DAT_MEM_PRIV_LOCAL_READ_FLAG,
			      out);
	end_work();
	return err;
}

void link_unregister(struct link_memory *memory)
{
	const struct adapter *a = &adapters[memory->adapter];

	/* The close of an adapter has freed what was registered on it. */
	if (memory->lmr && a->ia && a->generation == memory->generation && begin_work()) {
		dat.dat_lmr_free(memory->lmr);
		end_work();
	}
	*memory = (struct link_memory){ 0 };
}

/* Lock held, or not connected yet. */
static bool post_receive(struct link *l, unsigned i)
{
	DAT_LMR_TRIPLET to = { .lmr_context = l->memory.lmr_context,
			       .virtual_address = (uintptr_t)l->buffers->receive[i],
			       .segment_length = BUFFER };

	return CALL(dat_ep_post_recv, l->ep, 1, &to, (DAT_DTO_COOKIE){ .as_64 = i }, DAT_COMPLETION_DEFAULT_FLAG);
}

static void free_parts(struct link *l)
{
	if (l->ep)
		dat.dat_ep_free(l->ep);
	if (l->received)
		dat.dat_evd_free(l->received);
	if (l->requests)
		dat.dat_evd_free(l->requests);
	if (l->waits)
		dat.dat_cno_free(l->waits);
	link_unregister(&l->memory);
	if (l->buffers)
		munmap(l->buffers, sizeof *l->buffers);
	free(l->queue);
	l->ep = NULL, l->received = l->requests = NULL, l->waits = NULL, l->buffers = NULL, l->queue = NULL;
	l->queue_count = l->queue_room = 0;
}

/* The memory is not copied at a fork: the adapter writes to these pages. */
static void *map_shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, size, MADV_DONTFORK);
	return p;
}

static struct link *create(struct adapter *a)
{
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = BUFFER,
		.max_rdma_size = LARGEST_WRITE,
		.qos = DAT_QOS_BEST_EFFORT,
		.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.max_recv_dtos = RECEIVES,
		.max_request_dtos = REQUESTS,
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.max_rdma_write_iov = 1,
	};
	struct link *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	dapl_mutex_init(&l->lock, RANK_SOCK_LINK);
	l->adapter = a;
	l->buffers = map_shared(sizeof *l->buffers);
	if (!l->buffers ||
	    register_memory(a, l->buffers, sizeof *l->buffers,
			    DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &l->memory) ||
	    !CALL(dat_evd_create, a->ia, RECEIVES, a->cno, DAT_EVD_DTO_FLAG, &l->received) ||
	    !CALL(dat_evd_create, a->ia, REQUESTS, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &l->requests) ||
	    !CALL(dat_ep_create, a->ia, a->pz, l->received, l->requests, a->connects, &attr, &l->ep))
		goto fail;
	for (unsigned i = 0; i < RECEIVES; i++)
		if (!post_receive(l, i))
			goto fail;
	link_pause();
	l->next = links, links = l;
	link_resume();
	return l;
fail:
	free_parts(l);
	free(l);
	return NULL;
}

static struct link *connect_to(const char *ia, const struct sockaddr *peer, uint64_t qualifier,
			       const unsigned char token[LINK_KEY])
{
	struct adapter *a = find_adapter(ia);
	unsigned char private_data[SOCK_SERVICE_PRIVATE];
	struct link *l;

	errno = EIO;
	if (!a)
		return NULL;
	for (l = links; l; l = l->next)
		if (l->asker && !l->ended && l->adapter == a && l->qualifier == qualifier &&
		    address_same_host((const struct sockaddr *)&l->peer, peer))
			return l;
	failure = (struct link_failure){ .call = "no memory" };
	l = create(a);
	errno = EIO;
	if (!l)
		return NULL;
	l->asker = true;
	l->qualifier = qualifier;
	address_copy(&l->peer, peer);
	sock_service_encode_link(private_data, token);
	if (!CALL(dat_ep_connect, l->ep, (DAT_IA_ADDRESS_PTR)&l->peer, qualifier, CONNECT_US, sizeof private_data,
		  private_data, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)) {
		l->ended = l->broken = true;
		errno = EIO;
		return NULL;
	}
	return l;
}

struct link *link_connect(const char *ia, const struct sockaddr *peer, uint64_t qualifier,
			  const unsigned char token[LINK_KEY])
{
	struct link *l;

	errno = ESHUTDOWN;
	if (!begin_work())
		return NULL;
	l = connect_to(ia, peer, qualifier, token);
	end_work();
	return l;
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

/* Lock held. Takes completions of requests. A failed one is followed by the end of the connection. */
static void reap(struct link *l)
{
	DAT_EVENT event;

	while (dat.dat_evd_dequeue(l->requests, &event) == DAT_SUCCESS) {
		const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

		if (event.event_number != DAT_DTO_COMPLETION_EVENT || dto->status != DAT_DTO_SUCCESS ||
		    !dto->user_cookie.as_64)
			continue;
		l->reaped++;
		l->done = dto->user_cookie.as_64;
	}
}

/* Lock held. Whether a message with so many requests before it can be posted, of a kind that leaves `spare` of the
 * window. */
static bool has_room(struct link *l, unsigned spare, unsigned requests)
{
	if (l->broken || !l->up || __atomic_load_n(&ended, __ATOMIC_RELAXED) || l->open + spare >= WINDOW)
		return false;
	if (!(l->sends % REAP) || l->sends - l->reaped >= SENDS || l->posted - l->done + requests + 1 > REQUESTS)
		reap(l);
	return l->sends - l->reaped < SENDS && l->posted - l->done + requests + 1 <= REQUESTS;
}

/* Lock held, there is room. `m.size` bytes of a stream are in the buffer already. */
static void post_message(struct link *l, struct link_message m)
{
	unsigned char *wire = l->buffers->send[l->sends % SENDS];
	DAT_LMR_TRIPLET from = { .lmr_context = l->memory.lmr_context,
				 .virtual_address = (uintptr_t)wire,
				 .segment_length = LINK_MESSAGE + m.size };

	m.credits = l->taken;
	link_message_encode(&m, wire);
	l->posted++;
	if (dat.dat_ep_post_send(l->ep, 1, &from, (DAT_DTO_COOKIE){ .as_64 = l->posted },
				 DAT_COMPLETION_DEFAULT_FLAG)) {
		l->broken = true;
		return;
	}
	l->taken = 0;
	l->sends++, l->open++;
}

/* Lock held. */
static void flush(struct link *l)
{
	while (l->queue_count && has_room(l, RESERVE, 0)) {
		post_message(l, l->queue[l->queue_first]);
		l->queue_first = (l->queue_first + 1) % l->queue_room;
		l->queue_count--;
	}
}

/* Lock held. */
static bool enqueue(struct link *l, const struct link_message *m)
{
	if (l->queue_count == l->queue_room) {
		size_t room = l->queue_room ? 2 * l->queue_room : 64;
		struct link_message *more = malloc(room * sizeof *more);

		if (!more)
			return false;
		for (size_t i = 0; i < l->queue_count; i++)
			more[i] = l->queue[(l->queue_first + i) % l->queue_room];
		free(l->queue);
		l->queue = more, l->queue_first = 0, l->queue_room = room;
	}
	l->queue[(l->queue_first + l->queue_count++) % l->queue_room] = *m;
	return true;
}

static __thread unsigned in_call __attribute__((tls_model("initial-exec")));

bool link_is_interrupted(void)
{
	return in_call;
}

static void lock(struct link *l)
{
	in_call++;
	dapl_mutex_lock(&l->lock);
}

static void unlock(struct link *l)
{
	dapl_mutex_unlock(&l->lock);
	in_call--;
}

void link_send(struct link *l, struct link_message m)
{
	lock(l);
	if (!l->broken) {
		flush(l);
		if (!l->queue_count && has_room(l, RESERVE, 0))
			post_message(l, m);
		else if (!enqueue(l, &m))
			l->broken = true; /* no memory for what the peer must know */
	}
	unlock(l);
}

/* Lock held. Copies pieces that are short together behind the next message. Returns how many bytes; 0: they are long.
 */
static uint32_t copy_inline(struct link *l, const struct link_piece *pieces, int count)
{
	unsigned char *to = l->buffers->send[l->sends % SENDS] + LINK_MESSAGE;
	size_t total = 0;

	for (int i = 0; i < count; i++)
		total += pieces[i].length;
	if (total > LINK_INLINE)
		return 0;
	for (int i = 0; i < count; i++) {
		memcpy(to, (const void *)(uintptr_t)pieces[i].from, pieces[i].length);
		to += pieces[i].length;
	}
	return total;
}

bool link_write(struct link *l, const struct link_piece *pieces, int count, struct link_message m)
{
	bool done = false;

	lock(l);
	if (!l->broken) {
		flush(l);
		if (!l->queue_count && has_room(l, RESERVE, count)) {
			m.size = copy_inline(l, pieces, count);
			for (int i = 0; i < count && !m.size && !l->broken; i++) {
				DAT_LMR_TRIPLET from = { .lmr_context = pieces[i].lmr_context,
							 .virtual_address = pieces[i].from,
							 .segment_length = pieces[i].length };
				DAT_RMR_TRIPLET to = { .rmr_context = pieces[i].rmr_context,
						       .virtual_address = pieces[i].to,
						       .segment_length = pieces[i].length };

				l->posted++;
				if (dat.dat_ep_post_rdma_write(l->ep, 1, &from, (DAT_DTO_COOKIE){ .as_64 = 0 }, &to,
							       DAT_COMPLETION_SUPPRESS_FLAG))
					l->broken = true;
			}
			if (!l->broken)
				post_message(l, m);
			done = !l->broken;
		}
		l->refused |= !done;
	}
	unlock(l);
	return done;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static void end_link(struct link *l)
{
	if (l->ended)
		return;
	__atomic_store_n(&l->ended, true, __ATOMIC_SEQ_CST);
	dapl_mutex_lock(&l->lock);
	l->broken = true;
	dapl_mutex_unlock(&l->lock);
	dat.dat_ep_disconnect(l->ep, DAT_CLOSE_ABRUPT_FLAG);
	user->down(l);
}

static void log_end(const struct link *l, const char *why)
{
	char line[DAT_NAME_MAX_LENGTH + 256];
	int length = snprintf(line, sizeof line, "datsock: DAT connection by %s ends: %s\n", l->adapter->name, why);

	if (!l->ended && settings.log && REAL(write)(2, line, length) < 0)
		errno = 0;
}

void link_break(struct link *l, const char *what)
{
	char why[128];

	snprintf(why, sizeof why, "the peer has sent %s", what);
	log_end(l, why);
	end_link(l);
}

/* Whether the peer may still be there. Asks it if it has been silent. */
static bool peer_is_heard(struct link *l, uint64_t now)
{
	uint64_t before = l->watched_at, heard = __atomic_load_n(&l->heard, __ATOMIC_RELAXED);

	l->watched_at = now;
	if (heard != l->heard_before || now - before > WATCH_GAP_S * 1000000000ull) {
		l->heard_before = heard, l->quiet_since = now;
		return true;
	}
	if (now - l->quiet_since >= SILENT_S * 1000000000ull)
		return false;
	if (now != before)
		link_send(l, (struct link_message){ .type = TYPE_PING });
	return true;
}

bool link_watch(struct link *l, uint64_t now)
{
	bool heard;

	if (!l->up || link_is_over(l) || !begin_work())
		return true;
	heard = peer_is_heard(l, now);
	if (!heard) {
		log_end(l, "the peer does not answer");
		end_link(l);
	}
	end_work();
	return heard;
}

static struct link *link_of_ep(DAT_EP_HANDLE ep)
{
	for (struct link *l = links; l; l = l->next)
		if (l->ep == ep)
			return l;
	return NULL;
}

static void on_connection(const DAT_EVENT *event)
{
	struct link *l = link_of_ep(event->event_data.connect_event_data.ep_handle);

	if (!l)
		return;
	if (event->event_number != DAT_CONNECTION_EVENT_ESTABLISHED) {
		end_link(l);
		return;
	}
	if (l->ended)
		return;
	dapl_mutex_lock(&l->lock);
	l->up = true;
	flush(l);
	dapl_mutex_unlock(&l->lock);
	user->up(l);
}

static void on_request(struct adapter *a, const DAT_EVENT *event)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	unsigned char token[LINK_KEY];
	DAT_CR_PARAM param;
	struct link *l = NULL;

	if (dat.dat_cr_query(cr, DAT_CR_FIELD_ALL, &param) == DAT_SUCCESS && param.private_data_size > 0 &&
	    sock_service_decode_link(param.private_data, (size_t)param.private_data_size, token) && user->knows(token))
		l = create(a);
	if (!l) {
		dat.dat_cr_reject(cr, 0, NULL);
		return;
	}
	if (!CALL(dat_cr_accept, cr, l->ep, 0, NULL))
		l->ended = l->broken = true;
}

struct received {
	bool message, room; /* there is a message for the user; link_write() has room again */
	const char *error;  /* what the peer has done wrong */
	unsigned slot;
	struct link_message m;
};

/* `receiving` held. Takes a message of the link, and what it says of the window. Its buffer is still the message's. */
static struct received take_event(struct link *l, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct received got = { .slot = dto->user_cookie.as_64 };

	if (event->event_number != DAT_DTO_COMPLETION_EVENT || dto->status != DAT_DTO_SUCCESS || got.slot >= RECEIVES ||
	    l->ended)
		return got;
	if (!link_message_decode(l->buffers->receive[got.slot], dto->transfered_length, &got.m)) {
		got.error = "a message of a wrong size";
		return got;
	}
	lock(l);
	if (got.m.credits > l->open)
		got.error = "counts more messages than were sent";
	else
		__atomic_add_fetch(&l->heard, 1, __ATOMIC_RELAXED), l->open -= got.m.credits;
	unlock(l);
	got.message = !got.error && got.m.type != TYPE_CREDITS && got.m.type != TYPE_PING;
	return got;
}

/* `receiving` held. The message has been used: its buffer receives another one. */
static void renew(struct link *l, struct received *got)
{
	lock(l);
	l->taken++;
	if (!l->broken && !post_receive(l, got->slot))
		l->broken = true;
	flush(l);
	if ((got->m.type == TYPE_PING || l->taken >= WINDOW / 2) && has_room(l, 0, 0))
		post_message(l, (struct link_message){ .type = TYPE_CREDITS });
	got->room = l->refused && has_room(l, RESERVE + LINK_PIECES, LINK_PIECES);
	if (got->room)
		l->refused = false;
	unlock(l);
}

static bool is_message(const DAT_EVENT *event, const struct link *l)
{
	return event->event_number == DAT_DTO_COMPLETION_EVENT && !l->ended &&
	       event->event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS &&
	       event->event_data.dto_completion_event_data.user_cookie.as_64 < RECEIVES;
}

static void on_receive(struct link *l, const DAT_EVENT *event)
{
	struct received got;

	if (!is_message(event, l))
		return;
	got = take_event(l, event);
	if (got.error) {
		link_break(l, got.error);
		return;
	}
	/* Messages that come before the connection's event are of a connection that is there. */
	if (!l->up)
		l->up = true, user->up(l);
	if (got.message)
		user->message(l, &got.m);
	if (l->ended)
		return;
	renew(l, &got);
	if (got.room)
		user->room(l);
}

static bool has_links(const struct adapter *a)
{
	const struct link *l = links;

	while (l && l->adapter != a)
		l = l->next;
	return l;
}

/* `receiving` held. Frees what broken links had, but while threads of the program take messages. Closes adapters that
 * are lost. */
static void sweep(void)
{
	struct link **at = &links;

	while (*at) {
		struct link *l = *at;

		if (l->broken && !l->ended)
			end_link(l);
		if (l->ended && !__atomic_load_n(&l->borrowers, __ATOMIC_SEQ_CST)) {
			*at = l->next;
			dapl_mutex_lock(&l->lock);
			dapl_mutex_unlock(&l->lock);
			free_parts(l);
			l->next = over, over = l;
		} else {
			at = &l->next;
		}
	}
	for (at = &over; *at;) {
		struct link *l = *at;

		if (__atomic_load_n(&l->streams, __ATOMIC_ACQUIRE) ||
		    __atomic_load_n(&l->borrowers, __ATOMIC_SEQ_CST)) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		free(l);
	}
	for (struct adapter *a = adapters; a < adapters + adapter_count; a++)
		if (a->lost && !has_links(a))
			close_adapter(a);
}

/* --- lending ------------------------------------------------------------------------------------------------------ */

void link_pause(void)
{
	if (!pauses++)
		dapl_mutex_lock(&receiving);
}

void link_resume(void)
{
	if (!--pauses)
		dapl_mutex_unlock(&receiving);
}

void link_borrow(struct link *l)
{
	__atomic_add_fetch(&l->borrowers, 1, __ATOMIC_SEQ_CST);
}

void link_give_back(struct link *l)
{
	__atomic_sub_fetch(&l->borrowers, 1, __ATOMIC_SEQ_CST);
}

void link_ask(struct link *l)
{
	if (!l->never_lent && __atomic_load_n(&l->streams, __ATOMIC_RELAXED) == 1 &&
	    !__atomic_exchange_n(&l->wanted, true, __ATOMIC_SEQ_CST))
		service_wake();
}

void link_return(struct link *l)
{
	if (__atomic_load_n(&l->lent, __ATOMIC_ACQUIRE) && !__atomic_exchange_n(&l->returned, true, __ATOMIC_SEQ_CST))
		service_wake();
}

/* `receiving` held, by a thread of the program: the service thread goes on with the message. */
static void leave(struct link *l, const struct received *got, bool message)
{
	l->left.any = true;
	l->left.error = got->error, l->left.room |= got->room, l->left.message = message;
	if (message) {
		l->left.m = got->m;
		if (got->m.size)
			memcpy(l->left.bytes, got->m.bytes, got->m.size);
		l->left.m.bytes = l->left.bytes;
	}
	service_wake();
}

/* `receiving` held. Returns whether there was a message. */
static bool take_lent(struct link *l)
{
	struct received got;
	DAT_EVENT event;
	bool done;

	if (l->left.any || dat.dat_evd_dequeue(l->received, &event) != DAT_SUCCESS || !is_message(&event, l))
		return false;
	got = take_event(l, &event);
	if (got.error) {
		leave(l, &got, false);
		return true;
	}
	done = !got.message || user->fast(l, &got.m);
	renew(l, &got);
	if (!done || got.room)
		leave(l, &got, !done);
	return true;
}

static bool is_lent(const struct link *l)
{
	return __atomic_load_n(&l->lent, __ATOMIC_ACQUIRE) && !__atomic_load_n(&l->ended, __ATOMIC_ACQUIRE);
}

/* No lock held: a signal handler may take messages meanwhile. */
static enum link_taken sleep_lent(struct link *l, unsigned us)
{
	DAT_EVD_HANDLE triggered;
	DAT_RETURN result;

	__atomic_add_fetch(&l->sleepers, 1, __ATOMIC_SEQ_CST);
	result = is_lent(l) ? dat.dat_cno_wait(l->waits, us, &triggered) : DAT_SUCCESS;
	__atomic_sub_fetch(&l->sleepers, 1, __ATOMIC_SEQ_CST);
	if (DAT_GET_TYPE(result) == DAT_INTERRUPTED_CALL)
		return LINK_INTERRUPTED;
	return result == DAT_SUCCESS ? LINK_TAKEN : LINK_NOTHING;
}

enum link_taken link_take(struct link *l, unsigned sleep_us)
{
	enum link_taken taken = LINK_SERVED;

	if (!is_lent(l) || !begin_work())
		return LINK_SERVED;
	taking++;
	__atomic_add_fetch(&l->calls, 1, __ATOMIC_RELAXED);
	in_call++;
	if (dapl_mutex_try(&receiving)) {
		if (is_lent(l) && !l->left.any) {
			taken = LINK_NOTHING;
			for (int i = 0; i < TAKE && take_lent(l); i++)
				taken = LINK_TAKEN;
		}
		dapl_mutex_unlock(&receiving);
	}
	in_call--;
	if (taken == LINK_NOTHING && sleep_us)
		taken = sleep_lent(l, sleep_us);
	taking--;
	end_work();
	return taken;
}

/* `receiving` held. */
static void lend(struct link *l, uint64_t now)
{
	struct adapter *a = l->adapter;
	DAT_OS_WAIT_PROXY_AGENT none = DAT_OS_WAIT_PROXY_AGENT_NULL;

	if (l->never_lent || !l->up || link_is_over(l) || a->lost)
		return;
	if (!l->waits && dat.dat_cno_create(a->ia, none, &l->waits) != DAT_SUCCESS)
		l->waits = NULL;
	if (!l->waits || dat.dat_evd_modify_cno(l->received, l->waits) != DAT_SUCCESS) {
		l->never_lent = true;
		return;
	}
	l->calls_at = now;
	l->calls_before = __atomic_load_n(&l->calls, __ATOMIC_RELAXED);
	__atomic_store_n(&l->returned, false, __ATOMIC_RELAXED);
	__atomic_store_n(&l->lent, true, __ATOMIC_SEQ_CST);
}

/* `receiving` held. Threads that sleep in link_take() are woken, and messages that are there are taken. */
static void take_back(struct link *l)
{
	struct adapter *a = l->adapter;
	DAT_EVENT event;

	__atomic_store_n(&l->lent, false, __ATOMIC_SEQ_CST);
	__atomic_store_n(&l->wanted, false, __ATOMIC_SEQ_CST);
	if (dat.dat_evd_modify_cno(l->received, a->cno) != DAT_SUCCESS)
		l->broken = true;
	if (l->left.any) {
		l->left.any = false;
		if (l->left.error)
			link_break(l, l->left.error);
		else if (l->left.message)
			user->message(l, &l->left.m);
		if (l->left.room && !l->ended)
			user->room(l);
		l->left.room = l->left.message = false, l->left.error = NULL;
	}
	while (!l->ended && dat.dat_evd_dequeue(l->received, &event) == DAT_SUCCESS)
		on_receive(l, &event);
}

/* `receiving` held. Whether the program's threads go on taking messages of a link that is lent. */
static bool is_in_use(struct link *l, uint64_t now)
{
	unsigned calls = __atomic_load_n(&l->calls, __ATOMIC_RELAXED);

	if (calls != l->calls_before) {
		l->calls_before = calls, l->calls_at = now;
		return true;
	}
	if (__atomic_load_n(&l->sleepers, __ATOMIC_SEQ_CST))
		return now - l->calls_at < SLEEP_MS * 1000000ull;
	return now - l->calls_at < IDLE_MS * 1000000ull;
}

int link_run(void)
{
	bool again = false;
	uint64_t now = 0;

	if (!begin_work())
		return -1;
	link_pause();
	for (struct link *l = links, *next; l; l = next) {
		next = l->next;
		if (!now && (l->lent || l->wanted))
			now = clock_now_ns();
		if (l->lent && (l->left.any || link_is_over(l) || l->streams != 1 ||
				__atomic_load_n(&l->returned, __ATOMIC_SEQ_CST) || !is_in_use(l, now)))
			take_back(l);
		else if (!l->lent && __atomic_load_n(&l->wanted, __ATOMIC_SEQ_CST))
			lend(l, now);
		again |= l->lent || (l->ended && l->borrowers);
	}
	sweep();
	link_resume();
	end_work();
	return again ? IDLE_MS : -1;
}

void link_hold(struct link *l)
{
	__atomic_add_fetch(&l->streams, 1, __ATOMIC_RELAXED);
}

void link_release(struct link *l)
{
	__atomic_sub_fetch(&l->streams, 1, __ATOMIC_RELEASE);
}

/* The device of the adapter has failed, or was removed. Its streams go on over TCP. */
static void lose_adapter(struct adapter *a)
{
	char line[512];
	int length = snprintf(line, sizeof line, "datsock: the device of %s has failed or was removed\n", a->name);

	if (settings.log && REAL(write)(2, line, length) < 0)
		errno = 0;
	a->lost = true;
	for (struct link *l = links; l; l = l->next)
		if (l->adapter == a)
			end_link(l);
}

static void look_at(struct adapter *a)
{
	DAT_EVD_HANDLE triggered;
	DAT_EVENT event;

	while (dat.dat_cno_trigger(a->cno, &triggered) == DAT_SUCCESS && triggered)
		;
	while (dat.dat_evd_dequeue(a->requests_in, &event) == DAT_SUCCESS)
		on_request(a, &event);
	for (struct link *l = links; l; l = l->next)
		while (l->adapter == a && !l->ended && !l->lent &&
		       dat.dat_evd_dequeue(l->received, &event) == DAT_SUCCESS)
			on_receive(l, &event);
	while (dat.dat_evd_dequeue(a->connects, &event) == DAT_SUCCESS)
		on_connection(&event);
	while (!a->lost && dat.dat_evd_dequeue(a->async, &event) == DAT_SUCCESS)
		if (device_is_lost(event.event_number))
			lose_adapter(a);
}

void link_dispatch(void)
{
	struct epoll_event none[IAS];

	if (event_fd < 0 || !begin_work())
		return;
	REAL(epoll_wait)(event_fd, none, IAS, 0);
	link_pause();
	for (int i = 0; i < adapter_count; i++)
		if (adapters[i].ia)
			look_at(&adapters[i]);
	sweep();
	link_resume();
	end_work();
}

void link_end(void)
{
	/* Threads that are in a call of DAT hold a link's lock, or are the service thread. */
	__atomic_store_n(&ended, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < END_MS && !service_is_this_thread() &&
			__atomic_load_n(&working, __ATOMIC_SEQ_CST) > (int)taking; i++)
		usleep(1000);
	for (struct link *l = links; l; l = l->next) {
		dapl_mutex_lock(&l->lock);
		dapl_mutex_unlock(&l->lock);
	}
}

void link_after_fork(void)
{
	adapter_count = 0;
	links = NULL;
	event_fd = -1;
	ended = false;
	working = 0;
	pauses = 0;
	dapl_mutex_init(&receiving, RANK_SOCK_RECEIVE);
}
