/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dispose.c - see dispose.h. */
#include "tools/sock/dispose.h"
#include <pthread.h>
#include <unistd.h>

enum {
	USERS = 64,		/* with descriptors that are being closed */
	ROOM = 64,		/* descriptors of a user; a close() that does not wait takes microseconds */
	STACK = 128 << 10,	/* bytes; the threads call close() only */
};

struct user {
	uid_t uid;
	bool used;		/* its thread exists */
	int queue[ROOM];
	unsigned count, first;
};

static struct user users[USERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *run(void *arg)
{
	struct user *u = arg;

	pthread_mutex_lock(&lock);
	while (u->count) {
		int fd = u->queue[u->first];

		pthread_mutex_unlock(&lock);
		close(fd);
		pthread_mutex_lock(&lock);
		/* It counts until it is closed. */
		u->first = (u->first + 1) % ROOM;
		u->count--;
	}
	u->used = false;
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Lock held. Returns the user's entry, or a free one; NULL: there is none. */
static struct user *find(uid_t uid)
{
	struct user *free_one = NULL;

	for (int i = 0; i < USERS; i++)
		if (users[i].used && users[i].uid == uid)
			return &users[i];
		else if (!users[i].used && !free_one)
			free_one = &users[i];
	return free_one;
}

bool dispose_has_room(uid_t uid)
{
	struct user *u;
	bool room;

	pthread_mutex_lock(&lock);
	u = find(uid);
	room = u && (!u->used || u->count < ROOM);
	pthread_mutex_unlock(&lock);
	return room;
}

/* Returns false if there is no thread. */
static bool start(struct user *u)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	err = pthread_create(&thread, &attr, run, u);
	pthread_attr_destroy(&attr);
	return !err;
}

void dispose_take(int fd, uid_t uid)
{
	struct user *u;
	bool taken = false;

	pthread_mutex_lock(&lock);
	u = find(uid);
	if (u && !u->used) {
		u->uid = uid;
		u->count = u->first = 0;
		u->used = start(u);
	}
	if (u && u->used && u->count < ROOM) {
		u->queue[(u->first + u->count++) % ROOM] = fd;
		taken = true;
	}
	pthread_mutex_unlock(&lock);
	if (!taken)
		close(fd);	/* there is no thread for it */
}
