/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.h - the next token, of its logits.
 */
#ifndef XFP_SAMPLE_H
#define XFP_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

/* Probabilities are those of logits / temperature. First the top_k most probable tokens are kept, of equal ones those
 * of the lower number; then of these the fewest whose probabilities come to top_p of all that are left. */
struct xfp_sampling {
	double temperature; /* 0: always the largest logit, of equal ones that of the lower number */
	uint32_t top_k;     /* 0: all */
	double top_p;       /* 1: all */
	uint64_t seed;
};

/* A token and what weighs it; room for as many as the vocabulary has. */
struct xfp_weighed {
	double weight; /* the probability, but for a factor */
	uint32_t id;
};

/* A number from 0 up to, but not, 1. It depends on these three alone: sequences that go together do not change one
 * another's, and neither does the order in which they go. */
double xfp_random_of(uint64_t seed, uint64_t sequence, uint64_t position);

/* Logits are finite. The same ones give the same token on any machine. */
uint32_t xfp_sample(const struct xfp_sampling *sampling, uint64_t sequence, uint64_t position, const float *logits,
		    uint32_t vocabulary, struct xfp_weighed *candidates);

#endif
