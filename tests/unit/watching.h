/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watching.h - a watcher (schemas/ledger.h) that counts its calls.
 */
#ifndef XFP_TEST_WATCHING_H
#define XFP_TEST_WATCHING_H

#include "schemas/ledger.h"

struct counter {
	struct xfp_watcher watcher; /* must be first */
	uint64_t calls, done, more;
	uint64_t late; /* calls before more work was announced */
};

static void count_more(struct xfp_watcher *watcher, uint64_t work)
{
	struct counter *counter = (struct counter *)watcher;

	counter->more += work;
	counter->late += counter->calls;
}

static void count_done(struct xfp_watcher *watcher, uint64_t work)
{
	struct counter *counter = (struct counter *)watcher;

#pragma omp critical
	{
		counter->calls++;
		counter->done += work;
	}
}

#endif
