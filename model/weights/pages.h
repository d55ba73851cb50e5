/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.h - what is said to the system of the pages of a mapped file.
 */
#ifndef XFP_WEIGHTS_PAGES_H
#define XFP_WEIGHTS_PAGES_H

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whole pages, with those that the bytes share with their neighbours. */
static inline void xfp_pages_advise(const void *data, uint64_t bytes, int advice)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)data / page * page;
	uintptr_t end = ((uintptr_t)data + bytes + page - 1) / page * page;

	if (data && bytes)
		madvise((void *)first, end - first, advice);
}

/* They stay in the system's cache, as long as there is room; who needs them gets them again. */
static inline void xfp_pages_release(const void *data, uint64_t bytes)
{
	xfp_pages_advise(data, bytes, MADV_DONTNEED);
}

/* They are read into that cache meanwhile. */
static inline void xfp_pages_prefetch(const void *data, uint64_t bytes)
{
	xfp_pages_advise(data, bytes, MADV_WILLNEED);
}

#endif
