/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss.h - losses of a model on its tokens, and its divergence from a source.
 */
#ifndef XFP_LOSS_H
#define XFP_LOSS_H

#include "model/forward/forward.h"

/* Loss of the prediction after one token. The last token of a sequence has none. */
struct xfp_token_loss {
	double nats; /* -log of the probability of the next token */
	/* If there is a source: */
	double source_nats;
	double divergence; /* Kullback-Leibler divergence of this model from the source, in nats, at least 0 */
	bool agrees;       /* top-1 agreement: the same token has the largest logit (of equal ones, the lower id) */
};

/* Activations after the last layer, x[token][hidden], of forward->tokens tokens. They are normalized in place. */
struct xfp_last_activations {
	const struct xfp_forward *forward;
	float *x;
	bool single; /* multiply one token at a time by the output head */
};

/* Compute losses[tokens] from the output head, by parts of the vocabulary: each model has at most `logits_bytes` of
 * logits in memory, or those of a few rows if that is too little. Logits are accumulated in the order of the
 * vocabulary, in double, so that results do not depend on the parts:
 *
 *     m = largest so far     s = sum e^(l - m)     c = sum e^(l - m) (l - k)
 *
 * Whenever m grows, the sums are multiplied by e^(old m - m). For c, l are the source's logits and k this model's. With
 * m + log s of the source and m' + log s' of this model, the divergence is c / s - (m + log s) + (m' + log s').
 *
 * `source` is NULL, or has the same tokens and the same vocabulary. The losses of the last tokens of sequences are not
 * set. XFP_BAD_INPUT if logits are not finite. */
enum xfp_status xfp_token_losses(const struct xfp_last_activations *model, const struct xfp_last_activations *source,
				 const uint32_t *ids, size_t logits_bytes, struct xfp_token_loss *losses,
				 struct xfp_error *err);

/* For qsort: ascending. */
int xfp_compare_doubles(const void *a, const void *b);

/* Summary of all sequences of `length` tokens. */
struct xfp_loss {
	uint64_t predicted; /* tokens: all but the first of each sequence */
	double mean;        /* in nats */
	double perplexity;  /* e^mean */
	double source_mean, source_perplexity;
	double divergence, divergence_99, divergence_most; /* mean; 99th percentile; maximum */
	double agreement;                                  /* share of tokens */
};
enum xfp_status xfp_loss_of(const struct xfp_token_loss *losses, size_t sequences, size_t length, struct xfp_loss *loss,
			    struct xfp_error *err);

#endif
