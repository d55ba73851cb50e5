/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.h - sort arrays that are usually sorted already.
 */
#ifndef XFP_SORT_H
#define XFP_SORT_H

#include <stddef.h>
#include <stdlib.h>

/* qsort, skipped if `items` is sorted already: names in files usually are, and checking costs a fraction of sorting.
 * `items` may be NULL if `count` is 0. */
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
