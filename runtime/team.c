/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team.c - a team's threads: they wait for a task awake for a moment, since the next matrix comes soon, and then
 * asleep.
 */
#include "team.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"

#define ALIGN 64
#define MOST_THREADS 1024
#define AWAKE 4000 /* looks at a number that another thread will change, some 100 us */

struct member {
	struct xfp_team *team;
	unsigned number;
	pthread_t thread;
};

struct xfp_team {
	unsigned threads;
	xfp_team_run_fn *borrowed; /* NULL: threads are its own */
	void *pool;
	pthread_mutex_t call; /* held by the one call that has the team */

	/* What has to be done. A task's number changes last, so who sees it sees the rest. */
	void (*item)(void *context, unsigned thread, size_t i);
	void *context;
	size_t items;
	atomic_size_t next;
	atomic_uint task, busy; /* members that are not done with it */
	atomic_bool stop;

	pthread_mutex_t lock; /* of sleep */
	pthread_cond_t begun, done;
	struct member *members; /* [threads - 1] */

	uint8_t *room;
	size_t room_bytes, shared, own;
};

static void pause_briefly(void)
{
#if defined __x86_64__
	__builtin_ia32_pause();
#elif defined __aarch64__
	__asm__ volatile("yield");
#endif
}

static void do_items(struct xfp_team *team, unsigned thread)
{
	size_t i;

	while ((i = atomic_fetch_add_explicit(&team->next, 1, memory_order_relaxed)) < team->items)
		team->item(team->context, thread, i);
}

/* Until the number is no longer `old`. */
static void wait_for(struct xfp_team *team, atomic_uint *number, unsigned old, pthread_cond_t *changed)
{
	for (unsigned i = 0; i < AWAKE; i++) {
		if (atomic_load_explicit(number, memory_order_acquire) != old)
			return;
		pause_briefly();
	}
	pthread_mutex_lock(&team->lock);
	while (atomic_load_explicit(number, memory_order_acquire) == old)
		pthread_cond_wait(changed, &team->lock);
	pthread_mutex_unlock(&team->lock);
}

static void *work(void *argument)
{
	struct member *member = argument;
	struct xfp_team *team = member->team;

	for (unsigned seen = 0;; seen++) {
		wait_for(team, &team->task, seen, &team->begun);
		if (atomic_load_explicit(&team->stop, memory_order_relaxed))
			return NULL;
		do_items(team, member->number);
		pthread_mutex_lock(&team->lock);
		if (atomic_fetch_sub_explicit(&team->busy, 1, memory_order_release) == 1)
			pthread_cond_signal(&team->done);
		pthread_mutex_unlock(&team->lock);
	}
}

static void announce(struct xfp_team *team)
{
	pthread_mutex_lock(&team->lock);
	atomic_fetch_add_explicit(&team->task, 1, memory_order_release);
	pthread_cond_broadcast(&team->begun);
	pthread_mutex_unlock(&team->lock);
}

static void do_share(void *argument, unsigned thread)
{
	do_items(argument, thread);
}

void xfp_team_run(struct xfp_team *team, size_t items, void (*item)(void *context, unsigned thread, size_t i),
		  void *context)
{
	unsigned left;

	team->item = item;
	team->context = context;
	team->items = items;
	atomic_store_explicit(&team->next, 0, memory_order_relaxed);
	if (items < 2 || team->threads < 2) {
		do_items(team, 0);
		return;
	}
	if (team->borrowed) {
		team->borrowed(team->pool, do_share, team, team->threads);
		return;
	}
	atomic_store_explicit(&team->busy, team->threads - 1, memory_order_relaxed);
	announce(team);
	do_items(team, 0);
	while ((left = atomic_load_explicit(&team->busy, memory_order_acquire)))
		wait_for(team, &team->busy, left, &team->done);
}

/* ---- room ---------------------------------------------------------------------------------------- */

enum xfp_status xfp_team_enter(struct xfp_team *team, size_t shared, size_t own, struct xfp_error *err)
{
	size_t bytes;

	shared = xfp_align(shared, ALIGN);
	own = xfp_align(own, ALIGN);
	if (shared > SIZE_MAX / 4 || own > SIZE_MAX / 4 / team->threads)
		return xfp_fail(err, XFP_FAILED, "out of memory");
	bytes = shared + own * team->threads;
	pthread_mutex_lock(&team->call);
	if (bytes > team->room_bytes) {
		free(team->room);
		team->room_bytes = 0;
		if (!(team->room = aligned_alloc(ALIGN, bytes))) {
			pthread_mutex_unlock(&team->call);
			return xfp_fail(err, XFP_FAILED, "out of memory");
		}
		team->room_bytes = bytes;
	}
	team->shared = shared;
	team->own = own;
	return XFP_OK;
}

void xfp_team_leave(struct xfp_team *team)
{
	pthread_mutex_unlock(&team->call);
}

void *xfp_team_shared(const struct xfp_team *team)
{
	return team->room;
}

void *xfp_team_own(const struct xfp_team *team, unsigned thread)
{
	return team->room + team->shared + team->own * thread;
}

unsigned xfp_team_threads(const struct xfp_team *team)
{
	return team->threads;
}

/* ---- making one ---------------------------------------------------------------------------------- */

static struct xfp_team *make(unsigned threads)
{
	struct xfp_team *team = calloc(1, sizeof *team);

	if (!team)
		return NULL;
	team->threads = threads;
	pthread_mutex_init(&team->call, NULL);
	pthread_mutex_init(&team->lock, NULL);
	pthread_cond_init(&team->begun, NULL);
	pthread_cond_init(&team->done, NULL);
	return team;
}

/* The first `started` members end. */
static void dissolve(struct xfp_team *team, unsigned started)
{
	atomic_store_explicit(&team->stop, true, memory_order_relaxed);
	announce(team);
	for (unsigned i = 0; i < started; i++)
		pthread_join(team->members[i].thread, NULL);
	pthread_cond_destroy(&team->done);
	pthread_cond_destroy(&team->begun);
	pthread_mutex_destroy(&team->lock);
	pthread_mutex_destroy(&team->call);
	free(team->members);
	free(team->room);
	free(team);
}

static unsigned processors(void)
{
	cpu_set_t set;
	int count = sched_getaffinity(0, sizeof set, &set) ? 0 : CPU_COUNT(&set);

	return count > 0 ? (unsigned)count : 1;
}

enum xfp_status xfp_team_start(unsigned threads, struct xfp_team **out, struct xfp_error *err)
{
	struct xfp_team *team;

	*out = NULL;
	if (threads > MOST_THREADS)
		return xfp_fail(err, XFP_USAGE, "a team of %u threads: at most %u", threads, MOST_THREADS);
	if (!threads)
		threads = processors();
	if (!(team = make(threads)))
		return xfp_fail(err, XFP_FAILED, "out of memory");
	if (!(team->members = calloc(threads, sizeof *team->members))) {
		dissolve(team, 0);
		return xfp_fail(err, XFP_FAILED, "out of memory");
	}
	for (unsigned i = 0; i + 1 < threads; i++) {
		struct member *member = &team->members[i];
		int errnum;

		*member = (struct member){ .team = team, .number = i + 1 };
		if ((errnum = pthread_create(&member->thread, NULL, work, member))) {
			dissolve(team, i);
			return xfp_fail_errno(err, errnum, "thread %u of %u", i + 2, threads);
		}
	}
	*out = team;
	return XFP_OK;
}

enum xfp_status xfp_team_borrow(unsigned threads, xfp_team_run_fn *run, void *pool, struct xfp_team **out,
				struct xfp_error *err)
{
	struct xfp_team *team;

	*out = NULL;
	if (!threads || threads > MOST_THREADS)
		return xfp_fail(err, XFP_USAGE, "a team of %u threads: 1 to %u", threads, MOST_THREADS);
	if (!(team = make(threads)))
		return xfp_fail(err, XFP_FAILED, "out of memory");
	team->borrowed = run;
	team->pool = pool;
	*out = team;
	return XFP_OK;
}

void xfp_team_end(struct xfp_team *team)
{
	if (team)
		dissolve(team, team->borrowed || !team->members ? 0 : team->threads - 1);
}
