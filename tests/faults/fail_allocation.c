/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fail_allocation.c - make one allocation of a program fail: the Nth, counted from 1.
 *
 * Preloaded into dynamic tools; linked into copies of static ones with the linker's --wrap, which covers all static
 * libraries. FAIL_ALLOCATION is "PROGRAM N FILE"; other programs are not affected, nor is this one if N is 0. FILE
 * receives a line with the caller of the allocation that failed or, if N is 0, of each allocation.
 */
#ifdef PRELOADED
#include <dlfcn.h>
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef PRELOADED
#define OURS(name) name
#define REAL(name) __libc_##name
#else
#define OURS(name) __wrap_##name
#define REAL(name) __real_##name
#endif

void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t count, size_t size);
void *REAL(realloc)(void *old, size_t size);
void *OURS(malloc)(size_t size);
void *OURS(calloc)(size_t count, size_t size);
void *OURS(realloc)(void *old, size_t size);
void *OURS(aligned_alloc)(size_t align, size_t size);
char *OURS(strdup)(const char *text);
#ifdef PRELOADED
void *__libc_memalign(size_t align, size_t size);
#define real_aligned_alloc __libc_memalign
#else
void *__real_aligned_alloc(size_t align, size_t size);
#define real_aligned_alloc __real_aligned_alloc
#endif

static unsigned long asked, fails_at;
static int counts; /* this is the program, and main is about to run or running */
static char file[512];

/* "OFFSET FILE", the position in a file of the program; or "OFFSET" in the program that this is linked into. */
static void tell_who(const char *caller)
{
	char text[512];
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
#ifdef PRELOADED
	Dl_info info = { .dli_fname = "?" };
	int known = dladdr(caller, &info);

	snprintf(text, sizeof text, "%tx %s\n", known ? caller - (const char *)info.dli_fbase : 0, info.dli_fname);
#else
	extern const char __executable_start[];

	snprintf(text, sizeof text, "%tx\n", caller - __executable_start);
#endif
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		abort();
	close(fd);
}

static int refused(const void *caller)
{
	int refuse;

	if (!counts)
		return 0;
	refuse = __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) == fails_at;
	if (refuse || !fails_at)
		tell_who(caller);
	if (refuse)
		errno = ENOMEM;
	return refuse;
}

#define REFUSED refused(__builtin_return_address(0))

void *OURS(malloc)(size_t size)
{
	return REFUSED ? NULL : REAL(malloc)(size);
}

void *OURS(calloc)(size_t count, size_t size)
{
	return REFUSED ? NULL : REAL(calloc)(count, size);
}

void *OURS(realloc)(void *old, size_t size)
{
	return REFUSED ? NULL : REAL(realloc)(old, size);
}

void *OURS(aligned_alloc)(size_t align, size_t size)
{
	return REFUSED ? NULL : real_aligned_alloc(align, size);
}

/* Report its caller, not libc. */
char *OURS(strdup)(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = REFUSED ? NULL : REAL(malloc)(size);

	return copy ? memcpy(copy, text, size) : NULL;
}

__attribute__((constructor)) static void begin(void)
{
	const char *given = getenv("FAIL_ALLOCATION");
	char program[64];

	counts = given && sscanf(given, "%63s %lu %511s", program, &fails_at, file) == 3 &&
		 !strcmp(program, program_invocation_short_name);
}
