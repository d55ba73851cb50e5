/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suggestion.h - suggest known names for a misspelled word.
 *
 * Distance is the Damerau-Levenshtein edit distance: the number of letters that must be inserted, removed, replaced or
 * swapped with their neighbors to turn one word into the other.
 */
#ifndef XFP_SUGGESTION_H
#define XFP_SUGGESTION_H

#include <stddef.h>

/* The edit distance; for words longer than 63 letters SIZE_MAX, unless they are equal. */
size_t xfp_distance(const char *a, const char *b);

/* The first of the names nearest to `word` whose distance is at most `max`; otherwise NULL. */
const char *xfp_nearest_name(const char *word, const char *const *names, size_t count, size_t max);

/* The greatest distance at which a word still counts as misspelled: two letters, one for a short word, and a third of
 * the letters of a long word. */
size_t xfp_max_distance(const char *word);

/* "; did you mean A, B or C?", with up to three names, nearest first, or "" if no name is near. A name is near if its
 * distance is within xfp_max_distance of the word, ignoring case, or if the word is a part or an abbreviation of it:
 * "mlp" and "dns" for dense_mlp. `before` is a prefix for each name, such as "--". */
#define XFP_DID_YOU_MEAN 256
const char *xfp_did_you_mean(const char *before, const char *word, const char *const *names, size_t count,
			     char text[XFP_DID_YOU_MEAN]);

#endif
