/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote_chores.h - what no event tells: streams over DAT that wait for a time are looked at again and again, and
 * so are links whose streams wait for the peer. */
#ifndef SOCK_REMOTE_CHORES_H
#define SOCK_REMOTE_CHORES_H

/* Any thread. A stream waits for something that no event tells. */
void remote_chores_want_tick(void);
/* Any thread. A stream may wait for the peer. */
void remote_chores_want_look(void);
/* The service thread: does what is due, and returns the time until it must be called again in ms, -1: never. */
int remote_chores_run(void);
void remote_chores_after_fork(void);

#endif
