/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* share.c - words in shared memory that count the holders of a connection. See share.h. */
#include "sock/share.h"
#include <stddef.h>
#include <sys/mman.h>

#define SPOILED (1u << 31)

enum { WORDS = 1 << 16 }; /* connections with holders in several processes, at most; pages are used as they are */

/* Made once, by the first process that forks; its descendants have the same. A word of 0 is free for each of them. */
static uint32_t *words;
static unsigned last; /* where this process found a free one */

static uint32_t *take_word(void)
{
	if (!words) {
		void *p = mmap(NULL, WORDS * sizeof *words, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return NULL;
		words = p;
	}
	for (unsigned i = 0; i < WORDS; i++) {
		uint32_t none = 0;

		last = (last + 1) % WORDS;
		if (__atomic_compare_exchange_n(&words[last], &none, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return &words[last];
	}
	return NULL;
}

bool share_fork(uint32_t **word)
{
	if (!*word)
		*word = take_word();
	if (!*word)
		return false;
	__atomic_add_fetch(*word, 1, __ATOMIC_SEQ_CST);
	return true;
}

void share_leave(uint32_t **word)
{
	uint32_t *w = *word;

	*word = NULL;
	/* The last of the holders of a spoiled word frees it. */
	if (w && __atomic_sub_fetch(w, 1, __ATOMIC_SEQ_CST) == SPOILED)
		__atomic_store_n(w, 0, __ATOMIC_SEQ_CST);
}

void share_spoil(uint32_t *word)
{
	if (word)
		__atomic_fetch_or(word, SPOILED, __ATOMIC_SEQ_CST);
}

bool share_is_sole(const uint32_t *word)
{
	return !word || __atomic_load_n(word, __ATOMIC_SEQ_CST) == 1;
}
