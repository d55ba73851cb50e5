/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fail_allocation.c - one allocation of a program fails: the Nth, counted from 1.
 *
 * Preloaded into the tools that are dynamic; linked into copies of the others with the linker's --wrap, which
 * reaches all static libraries. FAIL_ALLOCATION is "PROGRAM N FILE": other programs are left alone, and so is this
 * one where N is 0. FILE gets a byte when the allocation failed, or else the count of all when the program ends.
 */
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

static void tell(const char *text, size_t size)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd >= 0) {
		if (write(fd, text, size) != (ssize_t)size)
			abort();
		close(fd);
	}
}

static int refused(void)
{
	if (!counts || __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) != fails_at)
		return 0;
	tell("x", 1);
	errno = ENOMEM;
	return 1;
}

void *OURS(malloc)(size_t size)
{
	return refused() ? NULL : REAL(malloc)(size);
}

void *OURS(calloc)(size_t count, size_t size)
{
	return refused() ? NULL : REAL(calloc)(count, size);
}

void *OURS(realloc)(void *old, size_t size)
{
	return refused() ? NULL : REAL(realloc)(old, size);
}

void *OURS(aligned_alloc)(size_t align, size_t size)
{
	return refused() ? NULL : real_aligned_alloc(align, size);
}

__attribute__((constructor)) static void begin(void)
{
	const char *given = getenv("FAIL_ALLOCATION");
	char program[64];

	counts = given && sscanf(given, "%63s %lu %511s", program, &fails_at, file) == 3 &&
		 !strcmp(program, program_invocation_short_name);
}

__attribute__((destructor)) static void end(void)
{
	char text[32];

	if (counts && !fails_at)
		tell(text, (size_t)snprintf(text, sizeof text, "%lu", asked));
}
