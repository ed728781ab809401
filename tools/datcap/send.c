/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send.c - see send.h. */
#include "send.h"
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "common/clock.h"
#include "default_route.h"
#include "print.h"
#include "stop.h"
#include "tools/cli.h"

enum {
	QUEUE = 1024,			/* sends without a dequeued completion, at most */
	SIGNALED = 64,			/* each n-th send has an event, also for those before it */
	SPIN_NS = 60000,		/* ns of spinning at the end of a wait: sleeps end some 50 us late */
	LATE_BUCKETS = 100000,		/* lateness is counted in steps of 100 ns, up to 10 ms */
	BUCKET_NS = 100,
	TYPE_AT = 12, TAG = 4,		/* offset of the type; bytes of a VLAN tag */
};

struct packet {
	uint64_t at;			/* ns from the first */
	size_t offset;			/* in memory */
	uint32_t length;
	uint16_t header_length, mss;	/* of a message that the device cuts; 0: a single frame */
};

struct sender {
	const struct options *o;
	struct device device;
	DAT_ETH_ATTR attr;
	struct packet *packets;
	size_t count, room;
	uint8_t *memory;
	size_t used, size;
	DAT_LMR_CONTEXT context;
	bool incomplete;		/* what was to be sent is not all in the list */
	uint64_t posted, done;		/* sends; completed sends */
	uint64_t begin_ns;		/* when the first frame was due */
	uint64_t sent, bytes, latest;	/* frames; their bytes; largest lateness in ns */
	uint32_t last_length;		/* bytes of the frame sent last */
	uint32_t late[LATE_BUCKETS];
};

/* --- the list --------------------------------------------------------------------------------- */

static void *grown(void *at, size_t bytes)
{
	void *new = realloc(at, bytes);

	if (!new)
		fail("no memory for %zu bytes", bytes);
	return new;
}

struct sender *sender_open(const struct options *o)
{
	static struct sender only;	/* reachable for a leak check when the program fails */
	struct sender *s = &only;
	const char *carrier, *route;

	s->o = o;
	device_make_up(o->interface, "eth_qdisc=bypass");
	device_open(&s->device, o->interface);
	device_capabilities(&s->device, &s->attr, &carrier);
	/* Frames that are sent there can disturb more than a test. */
	route = o->yes ? NULL : default_route_on(s->device.index, s->attr.address);
	if (route)
		fail("%s %s: --yes sends there all the same", o->interface, route);
	return s;
}

const DAT_ETH_ATTR *sender_attr(const struct sender *s)
{
	return &s->attr;
}

uint32_t sender_most(const struct sender *s, const uint8_t *frame, uint32_t length)
{
	bool tagged = length >= TYPE_AT + 2 && !memcmp(frame + TYPE_AT, "\x81\x00", 2);

	return s->attr.max_frame + (tagged ? TAG : 0);
}

void sender_mark_incomplete(struct sender *s)
{
	s->incomplete = true;
}

uint8_t *sender_add(struct sender *s, uint32_t length, uint64_t at)
{
	uint8_t *to;

	if (s->count == s->room)
		s->packets = grown(s->packets, (s->room = s->room ? 2 * s->room : 1024) * sizeof *s->packets);
	if (s->used + length > s->size)
		s->memory = grown(s->memory, s->size = 2 * (s->size + length) + (1 << 20));
	to = s->memory + s->used;
	s->packets[s->count++] = (struct packet){ .at = at, .offset = s->used, .length = length };
	s->used += length;
	return to;
}

void sender_segment(struct sender *s, uint16_t header_length, uint16_t mss)
{
	s->packets[s->count - 1].header_length = header_length;
	s->packets[s->count - 1].mss = mss;
}

/* --- sending ------------------------------------------------------------------------------ */

/* Returns the bytes of the first n frames that are sent. */
static uint64_t bytes_of(const struct sender *s, uint64_t n)
{
	uint64_t round = 0, rest = 0;

	for (size_t i = 0; i < s->count; i++) {
		round += s->packets[i].length;
		rest += i < n % s->count ? s->packets[i].length : 0;
	}
	return n / s->count * round + rest;
}

static void summary(const struct sender *s, double seconds);

/* Writes why the device does not send, as far as it can be told after the error. */
static void describe_device(const struct sender *s, char *text, size_t size)
{
	struct ifreq ifr = { .ifr_ifindex = (int)s->device.index };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (s->device.index && fd >= 0 && (ioctl(fd, SIOCGIFNAME, &ifr) || ioctl(fd, SIOCGIFFLAGS, &ifr)))
		err = errno;
	if (!s->device.index || fd < 0)
		snprintf(text, size, "the link is down, or the device is gone");
	else if (err)
		snprintf(text, size, "the device is gone (%s)", strerror(err));
	else if (!(ifr.ifr_flags & IFF_UP))
		snprintf(text, size, "the device is down (%s)", strerror(ENETDOWN));
	else if (!(ifr.ifr_flags & IFF_RUNNING))
		snprintf(text, size, "the link is down: no carrier (%s)", strerror(ENETDOWN));
	else
		snprintf(text, size, "the kernel refused it, or the link was down for a moment");
	if (fd >= 0)
		close(fd);
}

/* Ends the program after a frame that was not sent. `number` is the last one, from 1 on, whose completion is known:
 * those before the failed one have been sent. */
static void refused(struct sender *s, uint64_t number, DAT_DTO_COMPLETION_STATUS status)
{
	const struct packet *p = &s->packets[(number - 1) % s->count];
	DAT_ETH_ATTR now = { .size = sizeof now };
	char cause[100];

	if (status == DAT_DTO_ERR_LOCAL_LENGTH && dat_eth_query(s->device.ia, &now) == DAT_SUCCESS)
		cli_warn("%s: frame %llu of %u bytes could not be sent: the MTU has become %u (%s)", s->o->interface,
			 (unsigned long long)number, p->length, now.mtu, strerror(EMSGSIZE));
	else {
		describe_device(s, cause, sizeof cause);
		cli_warn("%s: frame %llu of %u bytes could not be sent: %s", s->o->interface,
			 (unsigned long long)number, p->length, cause);
	}
	s->sent = number - 1;
	s->bytes = bytes_of(s, s->sent);
	summary(s, (double)(clock_now_ns() - s->begin_ns + 1) / 1e9);
	fail_reported();
}

static void reap(struct sender *s)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(s->device.request, &event) == DAT_SUCCESS) {
		s->done = event.event_data.dto_completion_event_data.user_cookie.as_64;
		if (event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)
			refused(s, s->done, event.event_data.dto_completion_event_data.status);
	}
}

static DAT_ETH_SEND how_to_send(const struct packet *p, bool more)
{
	return (DAT_ETH_SEND){ .flags = (more ? DAT_ETH_SEND_MORE : 0) | (p->mss ? DAT_ETH_SEND_TSO : 0),
		.mss = p->mss, .header_length = p->header_length };
}

/* `more`: another frame follows at once. */
static void send_one(struct sender *s, const struct packet *p, bool more)
{
	DAT_LMR_TRIPLET iov = { .lmr_context = s->context, .segment_length = p->length,
		.virtual_address = (uintptr_t)s->memory + p->offset };
	DAT_DTO_COOKIE cookie = { .as_64 = s->posted + 1 };
	DAT_COMPLETION_FLAGS flags = more && cookie.as_64 % SIGNALED ? DAT_COMPLETION_SUPPRESS_FLAG :
		DAT_COMPLETION_DEFAULT_FLAG;
	DAT_ETH_SEND how = how_to_send(p, more);
	DAT_RETURN ret;

	if (s->posted - s->done > QUEUE / 2)
		reap(s);
	while ((ret = dat_eth_post_send(s->device.ep, 1, &iov, cookie, &how, flags)) != DAT_SUCCESS) {
		if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
			refused(s, s->posted + 1, DAT_GET_TYPE(ret) == DAT_LENGTH_ERROR ? DAT_DTO_ERR_LOCAL_LENGTH :
				DAT_DTO_ERR_TRANSPORT);
		reap(s);	/* the device's queue is full */
		if (stop_requested)
			return;
	}
	s->posted++;
	s->sent++;
	s->bytes += p->length;
	s->last_length = p->length;
}

static void wait_until(uint64_t when, bool spin)
{
	uint64_t now = clock_now_ns();

	if (!spin && now + 2 * SPIN_NS < when) {
		struct timespec t = { .tv_sec = (time_t)((when - SPIN_NS) / 1000000000),
			.tv_nsec = (long)((when - SPIN_NS) % 1000000000) };

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	}
	while (clock_now_ns() < when && !stop_requested)
		;
}

static void send_timed(struct sender *s, const struct packet *p, uint64_t when)
{
	uint64_t late, bucket;

	wait_until(when, s->o->exact);
	late = clock_now_ns() - when;
	if (stop_requested)
		return;
	bucket = late / BUCKET_NS;
	s->late[bucket < LATE_BUCKETS ? bucket : LATE_BUCKETS - 1]++;
	s->latest = late > s->latest ? late : s->latest;
	send_one(s, p, false);
}

/* Returns when the next frame is due, in ns after the start. `begin` is the time of this round's first
 * frame. */
static uint64_t due(const struct sender *s, const struct packet *p, double begin)
{
	if (s->o->rate > 0)
		return (uint64_t)((double)s->sent * 1e9 / s->o->rate);
	if (s->o->bit_rate > 0)
		return (uint64_t)((double)s->bytes * 8e9 / s->o->bit_rate);
	return (uint64_t)(begin + (double)p->at / s->o->speed);
}

static bool is_timed(const struct options *o)
{
	return o->rate > 0 || o->bit_rate > 0 || o->speed > 0;
}

/* Returns whether the time of --duration ends before the next frame, which is due `when` ns after the start. */
static bool is_over(const struct options *o, uint64_t start, uint64_t when)
{
	const uint64_t now = clock_now_ns() - start;

	return (double)(now > when ? now : when) >= o->duration;
}

static bool is_last(const struct sender *s, unsigned loop, size_t i)
{
	return (s->o->count && s->sent + 1 == s->o->count) || (loop + 1 == s->o->loops && i + 1 == s->count);
}

static void send_all(struct sender *s)
{
	const struct options *o = s->o;
	uint64_t start = clock_now_ns();
	double begin = 0;

	for (unsigned loop = 0; (!o->loops || loop < o->loops) && !stop_requested; loop++) {
		for (size_t i = 0; i < s->count && !stop_requested; i++) {
			const struct packet *p = &s->packets[i];
			const uint64_t when = is_timed(o) ? due(s, p, begin) : 0;

			if (o->duration > 0 && is_over(o, start, when))
				return;

			if (is_timed(o))
				send_timed(s, p, start + when);
			else
				send_one(s, p, !is_last(s, loop, i));
			if (o->count && s->sent == o->count)
				return;
		}
		if (o->speed > 0)
			begin += (double)s->packets[s->count - 1].at / o->speed;
	}
}

/* Waits for the completions of all sends, which report frames that could not be sent. */
static void finish(struct sender *s)
{
	uint64_t until = clock_now_ns() + 1000000000;

	while (s->done != s->posted && clock_now_ns() < until)
		reap(s);
}

/* --- the summary -------------------------------------------------------------------------- */

/* Returns the lateness in us that `share` of the frames do not exceed. */
static double quantile(const struct sender *s, double share)
{
	uint64_t upto = (uint64_t)((double)s->sent * share), seen = 0;
	unsigned i = 0;

	while (i < LATE_BUCKETS - 1 && (seen += s->late[i]) <= upto)
		i++;
	return i * (double)BUCKET_NS / 1e3;
}

/* Returns the frames and bits a second as text, or "" if there is no rate. If frames have times, n frames
 * take n - 1 gaps, so the rate does not include the last frame. */
static const char *rates(const struct sender *s, double seconds)
{
	static char text[80];
	bool timed = is_timed(s->o);
	uint64_t frames = s->sent - (timed && s->sent), bytes = s->bytes - (timed ? s->last_length : 0);

	if (!frames)
		return "";
	snprintf(text, sizeof text, ": %s frames/s, %.1f Mb/s", grouped((uint64_t)((double)frames / seconds + 0.5)),
		 (double)bytes * 8 / seconds / 1e6);
	return text;
}

static void summary(const struct sender *s, double seconds)
{
	double p50 = quantile(s, 0.5), p99 = quantile(s, 0.99), max = (double)s->latest / 1e3;

	if (s->o->json) {
		print("{\"device\": \"%s\", \"frames\": %llu, \"bytes\": %llu, \"seconds\": %.6f", s->o->interface,
		      (unsigned long long)s->sent, (unsigned long long)s->bytes, seconds);
		if (is_timed(s->o))
			print(", \"late_us\": {\"p50\": %.1f, \"p99\": %.1f, \"max\": %.1f}", p50, p99, max);
		if (s->incomplete)
			print(", \"incomplete\": true");
		if (stop_requested)
			print(", \"interrupted\": true");
		print("}\n");
		return;
	}
	fprintf(stderr, "%s: %s frames, %s in %.3f s%s\n", s->o->interface, grouped(s->sent), size_text(s->bytes),
		seconds, rates(s, seconds));
	if (is_timed(s->o))
		fprintf(stderr, "handed to the kernel after the time asked for: p50 %.1f us, p99 %.1f us, "
			"max %.1f us\n", p50, p99, max);
}

int sender_run(struct sender *s)
{
	bool incomplete = s->incomplete;

	device_send(&s->device, s->memory, s->used, &s->context, QUEUE);
	if (s->o->user)
		device_drop_privileges(s->o->user);
	s->begin_ns = clock_now_ns();
	send_all(s);
	finish(s);
	summary(s, (double)(clock_now_ns() - s->begin_ns + 1) / 1e9);
	device_close(&s->device);
	free(s->packets);
	free(s->memory);
	return incomplete ? STATUS_LOST : 0;
}
