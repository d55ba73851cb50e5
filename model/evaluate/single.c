/* SPDX-License-Identifier: Apache-2.0 */
#include "model/evaluate/single.h"

#include "base/bytes.h"
#include "model/forward/memory.h"

uint64_t xfp_single_bytes(const struct xfp_evaluation *e)
{
	const struct xfp_description *d = e->evaluated.model.description;

	return xfp_add_sat(xfp_kv_cache_bytes(d, 1, e->tokens.length), xfp_forward_table_bytes(d, e->tokens.length));
}

enum xfp_status xfp_single_open(struct xfp_evaluation *e, struct xfp_error *err)
{
	struct xfp_evaluated *model = &e->evaluated;
	enum xfp_status status = xfp_kv_cache_open(model->model.description, 1, e->tokens.length, &model->cache, err);

	if (!status)
		status = xfp_forward_open_cached(model->model.description, model->model.weights, e->team, model->cache,
						 &model->single, err);
	if (!status)
		model->single->arithmetic = XFP_FAST;
	return status;
}

void xfp_single_close(struct xfp_evaluation *e)
{
	xfp_forward_close(e->evaluated.single);
	xfp_kv_cache_close(e->evaluated.cache);
}

/* The sequence passes through one layer alone, so that other layers of the cache stay empty. */
static enum xfp_status layer_of_sequence(const struct xfp_evaluation *e, uint32_t layer, float *x,
					 struct xfp_error *err)
{
	const struct xfp_segment segment = { .count = 1, .length = e->tokens.length };
	struct xfp_forward *forward = e->evaluated.single;
	enum xfp_status status = XFP_OK;

	xfp_kv_cache_reset(forward->cache, 0);
	for (size_t t = 0; t < e->tokens.length; t++, x += forward->description->hidden) {
		if ((status = xfp_forward_begin(forward, &segment, 1, err)) ||
		    (status = xfp_forward_layer(forward, layer, x, err)))
			break;
		xfp_forward_commit(forward);
	}
	return status;
}

enum xfp_status xfp_single_layer(const struct xfp_evaluation *e, uint32_t layer, size_t sequences, float *x,
				 struct xfp_error *err)
{
	size_t size = e->tokens.length * e->evaluated.model.description->hidden;
	enum xfp_status status = XFP_OK;

	for (size_t s = 0; !status && s < sequences; s++)
		status = layer_of_sequence(e, layer, x + s * size, err);
	return status;
}
