/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss.h - how well a model foretells the tokens of its sequences.
 */
#ifndef XFP_LOSS_H
#define XFP_LOSS_H

#include "model/forward/forward.h"

struct xfp_loss {
	uint64_t predicted; /* tokens: all but the first of each sequence */
	double mean;        /* of -log of the probability that each was given; in nats */
	double perplexity;  /* e to that power */
};

/* Everything: embeds, goes through all layers, and takes the output head by parts of the vocabulary, so that no more
 * than some of its logits are ever there. XFP_BAD_INPUT where activations stop being finite numbers, with the number of
 * the layer. `layers_done` (NULL: nobody) is told after each layer. */
enum xfp_status xfp_forward_loss(const struct xfp_forward *forward, const uint32_t *ids,
				 void (*layers_done)(void *context, uint32_t layers), void *context,
				 struct xfp_loss *loss, struct xfp_error *err);

#endif
