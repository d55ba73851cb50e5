/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.h - select the next token by its logits.
 */
#ifndef XFP_SAMPLE_H
#define XFP_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

/* Probabilities are those of logits / temperature. First the top_k most probable tokens are kept (of equal ones, the
 * lower ids); of these, then, the fewest whose probabilities sum to at least top_p of their total. */
struct xfp_sampling {
	double temperature; /* 0: always the largest logit (of equal ones, the lowest id) */
	uint32_t top_k;     /* 0: all */
	double top_p;       /* 1: all */
	uint64_t seed;
};

/* A candidate token; as many as the vocabulary has. */
struct xfp_token_candidate {
	double weight; /* proportional to the probability */
	uint32_t id;
};

/* A random number in [0, 1). It depends only on the three arguments: sequences that are generated together do not
 * influence one another, and neither does their order. */
double xfp_random_uniform(uint64_t seed, uint64_t sequence, uint64_t position);

/* Select a token. Logits must be finite. The same logits give the same token on any machine. */
uint32_t xfp_sample(const struct xfp_sampling *sampling, uint64_t sequence, uint64_t position, const float *logits,
		    uint32_t vocabulary, struct xfp_token_candidate *candidates);

#endif
