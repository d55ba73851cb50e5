/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.h - distinguish garbage from text: repeated 4-grams of continuations, the prompts to continue, and scores that
 * commands print. Pure functions.
 */
#ifndef XFP_WALK_JUDGE_H
#define XFP_WALK_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conversion/walk/walk.h"

#define XFP_WALK_PROMPTS 8
#define XFP_WALK_PROMPT_BYTES 160

/* What makes a bundle garbage. */
struct xfp_walk_criteria {
	double repeats;   /* the share of repeated 4-grams exceeds the source's by more than this; */
	double agreement; /* or the top-1 agreement with the source is smaller */
};

/* Count the 4-grams of a text's tokens, and those that occurred before in it; both are added to. */
void xfp_walk_count_repeats(const uint32_t *ids, size_t count, uint64_t *repeated, uint64_t *total);

/* Whether a bundle that was measured by a text is garbage. */
bool xfp_walk_is_garbage(const struct xfp_walk_criteria *criteria, const struct xfp_walk_probe *probe,
			 double source_repeats);

/* Parse "REPEATS,AGREEMENT", two decimals from 0 to 1. */
bool xfp_walk_criteria_parse(const char *text, struct xfp_walk_criteria *criteria);

/* Cut prompts from a text of `size` bytes of UTF-8, evenly spaced: each begins and ends between words, if words are not
 * too long. Returns their number, 0 for a text without any letters. */
struct xfp_walk_prompt {
	const char *text; /* borrowed */
	size_t size;
};
unsigned xfp_walk_cut_prompts(const char *text, size_t size, struct xfp_walk_prompt prompts[XFP_WALK_PROMPTS]);

/* The last word of the last line that has any, if it is a finite number: "accuracy 0.62". */
bool xfp_walk_last_number(const char *output, double *number);

#endif
