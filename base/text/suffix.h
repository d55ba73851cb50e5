/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suffix.h - how names end.
 */
#ifndef XFP_SUFFIX_H
#define XFP_SUFFIX_H

#include <stdbool.h>
#include <string.h>

/* Whether `text` ends with `suffix`, or is the same. */
static inline bool xfp_ends_with(const char *text, const char *suffix)
{
	size_t length = strlen(text), tail = strlen(suffix);

	return length >= tail && !strcmp(text + length - tail, suffix);
}

/* Bytes of `text` before `suffix`; 0 if `text` does not end with it, or nothing precedes it. */
static inline size_t xfp_stem(const char *text, const char *suffix)
{
	return xfp_ends_with(text, suffix) ? strlen(text) - strlen(suffix) : 0;
}

#endif
