/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team.c - the threads of a team. Idle threads first spin, because the next matrix comes soon, then sleep.
 */
#include "runtime/team.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"

#define ALIGN 64
#define HUGE_PAGE ((size_t)2 << 20)
#define MAX_THREADS 1024
#define AWAKE 4000 /* spins before sleeping, about 100 us */

struct team_member {
	struct xfp_team *team;
	unsigned number;
	pthread_t thread;
};

struct xfp_team {
	unsigned threads;
	xfp_team_run_fn *borrowed; /* NULL if the team has its own threads */
	void *pool;
	pthread_mutex_t call; /* held by the call that uses the team */

	/* The task. The state is written last, so a thread that sees the new state also sees these. */
	void (*item)(void *context, unsigned thread, size_t i);
	void *context;
	size_t items;
	atomic_size_t next;
	atomic_uint_least64_t state; /* TASK times the task's number, OPEN flag, members at work */
	atomic_bool stop;

	pthread_mutex_t lock; /* protects sleeping */
	pthread_cond_t begun, done;
	atomic_uint asleep;          /* sleeping members */
	atomic_bool waiting;         /* the caller sleeps until the members finish */
	struct team_member *members; /* [threads - 1] */

	uint8_t *memory;
	size_t memory_bytes, shared, own;
};

/* A member may join while the task is open. After it is closed, and those who joined have left, it is done. Nobody
 * waits for a member that is asleep or not scheduled. */
#define OPEN (UINT64_C(1) << 16)
#define TASK (UINT64_C(1) << 17) /* wraps after 2^47 tasks: at a million per second, four years */
#define AT_WORK (OPEN - 1)

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

/* Return whether there is a task other than the last one, or an end. */
static bool called(struct xfp_team *team, uint64_t last)
{
	uint64_t state = atomic_load(&team->state);

	return (state & OPEN && state / TASK != last) || atomic_load_explicit(&team->stop, memory_order_relaxed);
}

static void await_call(struct xfp_team *team, uint64_t last)
{
	for (unsigned i = 0; i < AWAKE; i++) {
		if (called(team, last))
			return;
		pause_briefly();
	}
	pthread_mutex_lock(&team->lock);
	atomic_fetch_add(&team->asleep, 1);
	while (!called(team, last))
		pthread_cond_wait(&team->begun, &team->lock);
	atomic_fetch_sub(&team->asleep, 1);
	pthread_mutex_unlock(&team->lock);
}

/* Join the task. Returns false if it is closed, or this member has done it. */
static bool join(struct xfp_team *team, uint64_t *last)
{
	uint64_t state = atomic_load(&team->state);

	while (state & OPEN && state / TASK != *last)
		if (atomic_compare_exchange_weak(&team->state, &state, state + 1)) {
			*last = state / TASK;
			return true;
		}
	return false;
}

static void wake(struct xfp_team *team, pthread_cond_t *who)
{
	pthread_mutex_lock(&team->lock);
	pthread_cond_broadcast(who);
	pthread_mutex_unlock(&team->lock);
}

static void leave(struct xfp_team *team)
{
	uint64_t before = atomic_fetch_sub(&team->state, 1);

	if ((before & AT_WORK) == 1 && !(before & OPEN) && atomic_load(&team->waiting))
		wake(team, &team->done);
}

static void *work(void *argument)
{
	struct team_member *member = argument;
	struct xfp_team *team = member->team;
	uint64_t last = 0;

	for (;;) {
		await_call(team, last);
		if (atomic_load_explicit(&team->stop, memory_order_relaxed))
			return NULL;
		if (!join(team, &last))
			continue;
		do_items(team, member->number);
		leave(team);
	}
}

static bool at_work(struct xfp_team *team)
{
	return atomic_load(&team->state) & AT_WORK;
}

static void await_members(struct xfp_team *team)
{
	for (unsigned i = 0; i < AWAKE; i++) {
		if (!at_work(team))
			return;
		pause_briefly();
	}
	pthread_mutex_lock(&team->lock);
	atomic_store(&team->waiting, true);
	while (at_work(team))
		pthread_cond_wait(&team->done, &team->lock);
	atomic_store(&team->waiting, false);
	pthread_mutex_unlock(&team->lock);
}

static void do_share(void *argument, unsigned thread)
{
	do_items(argument, thread);
}

void xfp_team_run(struct xfp_team *team, size_t items, void (*item)(void *context, unsigned thread, size_t i),
		  void *context)
{
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
	atomic_store(&team->state, (atomic_load(&team->state) / TASK + 1) * TASK + OPEN);
	if (atomic_load(&team->asleep))
		wake(team, &team->begun);
	do_items(team, 0);
	atomic_fetch_and(&team->state, ~OPEN);
	await_members(team);
}

/* ---- memory -------------------------------------------------------------------------------------- */

/* Large memory is in huge pages if the system allows it: products of many vectors are up to a tenth faster. */
static void *allocate(size_t bytes)
{
	size_t align = bytes < 2 * HUGE_PAGE ? ALIGN : HUGE_PAGE;
	void *memory = aligned_alloc(align, xfp_align(bytes, align));

#ifdef MADV_HUGEPAGE
	if (memory && align == HUGE_PAGE)
		madvise(memory, bytes, MADV_HUGEPAGE); /* may fail */
#endif
	return memory;
}

enum xfp_status xfp_team_enter(struct xfp_team *team, size_t shared, size_t own, struct xfp_error *err)
{
	size_t bytes;

	if (shared > SIZE_MAX / 4 || own > SIZE_MAX / 4 / team->threads)
		return xfp_no_memory(err);
	shared = xfp_align(shared, ALIGN);
	own = xfp_align(own, ALIGN);
	bytes = shared + own * team->threads;
	pthread_mutex_lock(&team->call);
	if (bytes > team->memory_bytes) {
		free(team->memory);
		team->memory_bytes = 0;
		if (!(team->memory = allocate(bytes))) {
			pthread_mutex_unlock(&team->call);
			return xfp_no_memory(err);
		}
		team->memory_bytes = bytes;
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
	return team->memory;
}

void *xfp_team_own(const struct xfp_team *team, unsigned thread)
{
	return team->memory + team->shared + team->own * thread;
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

/* Stop the first `started` members. */
static void stop_members(struct xfp_team *team, unsigned started)
{
	atomic_store(&team->stop, true);
	wake(team, &team->begun);
	for (unsigned i = 0; i < started; i++)
		pthread_join(team->members[i].thread, NULL);
	pthread_cond_destroy(&team->done);
	pthread_cond_destroy(&team->begun);
	pthread_mutex_destroy(&team->lock);
	pthread_mutex_destroy(&team->call);
	free(team->members);
	free(team->memory);
	free(team);
}

static unsigned processors(void)
{
	cpu_set_t set;
	long count = sched_getaffinity(0, sizeof set, &set) ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);

	return count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : (unsigned)count;
}

/* Block signals in members: signals belong to the threads that the program knows. */
static int start_member(struct team_member *member)
{
	sigset_t all, before;
	int errnum;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errnum = pthread_create(&member->thread, NULL, work, member);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return errnum;
}

enum xfp_status xfp_team_start(unsigned threads, struct xfp_team **out, struct xfp_error *err)
{
	struct xfp_team *team;

	*out = NULL;
	if (threads > MAX_THREADS)
		return xfp_fail(err, XFP_USAGE, "a team of %u threads is too large; the limit is %u", threads,
				MAX_THREADS);
	if (!threads)
		threads = processors();
	if (!(team = make(threads)))
		return xfp_no_memory(err);
	if (!(team->members = calloc(threads, sizeof *team->members))) {
		stop_members(team, 0);
		return xfp_no_memory(err);
	}
	for (unsigned i = 0; i + 1 < threads; i++) {
		struct team_member *member = &team->members[i];
		int errnum;

		*member = (struct team_member){ .team = team, .number = i + 1 };
		if ((errnum = start_member(member))) {
			stop_members(team, i);
			return xfp_fail_errno(err, errnum, "cannot start thread %u of %u", i + 2, threads);
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
	if (!run || !threads || threads > MAX_THREADS)
		return xfp_fail(err, XFP_USAGE, "cannot create a team of %u threads%s: the limit is %u", threads,
				run ? "" : " without a function to run them", MAX_THREADS);
	if (!(team = make(threads)))
		return xfp_no_memory(err);
	team->borrowed = run;
	team->pool = pool;
	*out = team;
	return XFP_OK;
}

void xfp_team_end(struct xfp_team *team)
{
	if (team)
		stop_members(team, team->borrowed || !team->members ? 0 : team->threads - 1);
}
