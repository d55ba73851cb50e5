/* SPDX-License-Identifier: Apache-2.0 */
/*
 * misspelt.h - which of some names a misspelt one was meant for.
 *
 * A distance is the least number of letters that have to be inserted, removed, replaced or swapped with their
 * neighbours to turn one word into the other.
 */
#ifndef XFP_MISSPELT_H
#define XFP_MISSPELT_H

#include <stddef.h>

/* For words longer than 63 letters it is SIZE_MAX, unless they are equal. */
size_t xfp_distance(const char *a, const char *b);

/* The first of the names that are nearest to `word`, if it is at most `most` away; NULL when there is none. */
const char *xfp_meant(const char *word, const char *const *names, size_t count, size_t most);

/* How far a word may be off and still be taken for one of a few commands or options: two letters, one for a short
 * word, and a third of the letters for a long one. */
size_t xfp_slip(const char *word);

/* "; did you mean A, B or C?", of up to three names, nearest first, or "" where none is near. Near are those within the
 * slip of the word, whatever its capitals, and those that it is a part or an abbreviation of: "mlp" and "dns"
 * of dense_mlp. `before` stands before each name, such as "--". */
#define XFP_DID_YOU_MEAN 256
const char *xfp_did_you_mean(const char *before, const char *word, const char *const *names, size_t count,
			     char text[XFP_DID_YOU_MEAN]);

#endif
