/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/forward/parts.h"

static bool all_finite(const float *x, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!isfinite(x[i]))
			return false;
	}
	return true;
}

static enum xfp_status through_layers(const struct xfp_forward *forward, const uint32_t *ids, float *x,
				      struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	size_t size = forward->tokens * d->hidden;
	enum xfp_status status = xfp_forward_embed(forward, ids, x, err);

	if (!status && !all_finite(x, size))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: the word embedding is not finite; verify the weights",
				xfp_weights_path(forward->weights));
	for (uint32_t layer = 0; !status && layer < d->layers; layer++) {
		if (!(status = xfp_forward_layer(forward, layer, x, err)) && !all_finite(x, size))
			return xfp_fail(err, XFP_BAD_INPUT,
					"%s: activations after layer %u are not finite; verify the weights",
					xfp_weights_path(forward->weights), (unsigned)layer);
	}
	return status;
}

/* Logits of the last token of each segment: their activations move to the beginning of x. */
static enum xfp_status finish(struct xfp_forward *forward, float *x, float *logits, struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	size_t tokens = forward->tokens, count = forward->segment_count;
	enum xfp_status status;

	for (size_t i = 0; i < count; i++)
		memmove(x + i * d->hidden,
			x + (forward->segments[i].first + forward->segments[i].count - 1) * d->hidden,
			d->hidden * sizeof *x);
	forward->tokens = count;
	if (!(status = xfp_forward_norm(forward, x, err)))
		status = xfp_forward_logits(forward, x, 0, d->vocabulary, logits, err);
	forward->tokens = tokens;
	if (!status && !all_finite(logits, count * d->vocabulary))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: logits are not finite; verify the weights",
				xfp_weights_path(forward->weights));
	return status;
}

enum xfp_status xfp_forward_step(struct xfp_forward *forward, const struct xfp_segment *segments, size_t count,
				 const uint32_t *ids, float *logits, struct xfp_error *err)
{
	enum xfp_status status = xfp_forward_begin(forward, segments, count, err);
	float *x = NULL;

	if (!status && !(x = xfp_floats(forward->tokens, forward->description->hidden)))
		status = xfp_no_memory(err);
	if (!status && !(status = through_layers(forward, ids, x, err)) && !(status = finish(forward, x, logits, err)))
		xfp_forward_commit(forward);
	free(x);
	return status;
}
