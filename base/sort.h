/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.h - sorting of what mostly is in order already.
 */
#ifndef XFP_SORT_H
#define XFP_SORT_H

#include <stddef.h>
#include <stdlib.h>

/* As qsort, which is left out where nothing is out of order: names in files mostly are sorted, and looking costs a
 * fraction of sorting. `items` may be NULL where there are none. */
static inline void xfp_sort(void *items, size_t count, size_t size, int (*compare)(const void *a, const void *b))
{
	const char *item = items;

	for (size_t i = 1; i < count; i++, item += size)
		if (compare(item, item + size) > 0) {
			qsort(items, count, size, compare);
			return;
		}
}

#endif
