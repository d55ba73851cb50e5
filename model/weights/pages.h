/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.h - advice to the system on the pages of a mapped file.
 */
#ifndef XFP_WEIGHTS_PAGES_H
#define XFP_WEIGHTS_PAGES_H

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Advise on whole pages, including those that the bytes share with their neighbours. */
static inline void xfp_pages_advise(const void *data, uint64_t bytes, int advice)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)data / page * page;
	uintptr_t end = ((uintptr_t)data + bytes + page - 1) / page * page;

	if (data && bytes)
		madvise((void *)first, end - first, advice);
}

/* Unmap the pages. They stay in the page cache as long as there is room, and are mapped again on access. */
static inline void xfp_pages_release(const void *data, uint64_t bytes)
{
	xfp_pages_advise(data, bytes, MADV_DONTNEED);
}

/* Read the pages into the page cache in the background. */
static inline void xfp_pages_prefetch(const void *data, uint64_t bytes)
{
	xfp_pages_advise(data, bytes, MADV_WILLNEED);
}

#endif
