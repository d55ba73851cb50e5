/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss.h - how well a model foretells the tokens of its sequences, and how far it is from what another one expects.
 */
#ifndef XFP_LOSS_H
#define XFP_LOSS_H

#include "model/forward/forward.h"

/* Of one token, but for the last of a sequence, what is expected of the next one. */
struct xfp_token_loss {
	double nats; /* -log of the probability that was given to the token that came */
	/* Where there is a source: */
	double source_nats;
	double divergence; /* Kullback-Leibler, of this model's expectation from the source's; in nats, not below 0 */
	bool agrees;       /* the same token has the largest logit; of equal ones the lower number counts */
};

/* Activations after the last layer, x[token][hidden], which are normed in place; forward->tokens of them. */
struct xfp_last_activations {
	const struct xfp_forward *forward;
	float *x;
};

/* Takes the output head by parts of the vocabulary, so that no more than `logits_bytes` of each model's logits are ever
 * there, but at least some. Logits are taken up in the order of the vocabulary, in double, so that results do not
 * depend on the parts:
 *
 *     m = largest so far     s = sum e^(l - m)     c = sum e^(l - m) (l - k)
 *
 * with the sums multiplied by e^(old m - m) wherever a larger one comes; k are this model's logits where l are the
 * source's, which c is of. With m + log s of each, the divergence is c / s - (m + log s) + (m' + log s').
 *
 * `source` NULL: there is none; otherwise of the same tokens and the same vocabulary. losses[tokens] has no meaning
 * for the last token of a sequence. XFP_BAD_INPUT where logits are no finite numbers. */
enum xfp_status xfp_token_losses(const struct xfp_last_activations *model, const struct xfp_last_activations *source,
				 const uint32_t *ids, size_t logits_bytes, struct xfp_token_loss *losses,
				 struct xfp_error *err);

/* All sequences of `length` tokens together. */
struct xfp_loss {
	uint64_t predicted; /* tokens: all but the first of each sequence */
	double mean;        /* nats */
	double perplexity;  /* e to that power */
	double source_mean, source_perplexity;
	double divergence, divergence_99, divergence_most; /* mean; what 99 of 100 do not exceed; the largest */
	double agreement;                                  /* share of tokens */
};
enum xfp_status xfp_loss_of(const struct xfp_token_loss *losses, size_t sequences, size_t length, struct xfp_loss *loss,
			    struct xfp_error *err);

#endif
