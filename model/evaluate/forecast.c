/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers differ: the first ones of many mixtures of experts are dense, and read a few per cent of the weights.
 */
#include "model/evaluate/forecast.h"

#include "model/forward/tensors.h"

#define READ 64 /* products that take as long as reading a weight as f32 */

/* Work in products: of weights with the vectors of all tokens, and of reading `read` weights for each batch. */
static double work(const struct xfp_evaluation *e, double products, double read)
{
	size_t batches = (e->tokens.sequences + e->batching.sequences - 1) / e->batching.sequences;

	return products * (double)xfp_evaluation_tokens(e) + READ * read * (double)batches;
}

static double layer_work(const struct xfp_evaluation *e, uint32_t layer)
{
	const struct xfp_description *d = e->evaluated.model.description;
	const struct xfp_layer_shape shape = xfp_layer_shape(d, layer);

	return work(e, (double)xfp_layer_products(d, &shape),
		    (double)xfp_layer_reads(d, &shape, e->batching.sequences * e->tokens.length));
}

double xfp_evaluation_remaining(const struct xfp_evaluation *e)
{
	const struct xfp_description *d = e->evaluated.model.description;
	const double head = (double)d->hidden * d->vocabulary;
	double rest = work(e, head, head);

	for (uint32_t i = e->progress.done; i < d->layers; i++)
		rest += layer_work(e, i);
	return e->progress.layer_seconds * rest / layer_work(e, e->progress.done - 1);
}
