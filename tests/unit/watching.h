/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watching.h - somebody who watches (schemas/ledger.h), and counts what there is to hear.
 */
#ifndef XFP_TEST_WATCHING_H
#define XFP_TEST_WATCHING_H

#include "schemas/ledger.h"

struct counter {
	struct xfp_watcher watcher; /* first */
	uint64_t calls, done, more;
	uint64_t late; /* calls before more was told of */
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
