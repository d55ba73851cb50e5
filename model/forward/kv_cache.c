/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/kv_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "model/forward/rope.h"

/* Sizes of one sequence in a layer. */
static struct xfp_kv_cache_layer layer_sizes(const struct xfp_description *d, uint32_t layer, size_t context)
{
	const struct xfp_delta *delta = &d->delta;
	uint32_t window = d->layer[layer].window;

	if (d->layer[layer].delta)
		return (struct xfp_kv_cache_layer){
			.inputs_size = xfp_mul_sat(delta->kernel - 1, xfp_delta_channels(delta)),
			.state_size = xfp_mul_sat(xfp_mul_sat(delta->value_heads, delta->key_dim), delta->value_dim)
		};
	return (struct xfp_kv_cache_layer){ .capacity = window && window < context ? window : context };
}

/* Floats of the keys, or of the values, of all sequences; `size` is that of one. */
static uint64_t floats_of(const struct xfp_description *d, const struct xfp_kv_cache_layer *layer, size_t sequences,
			  uint32_t size)
{
	return xfp_mul_sat(xfp_mul_sat(layer->capacity, sequences), (uint64_t)d->kv_heads * size);
}

uint64_t xfp_kv_cache_bytes(const struct xfp_description *description, size_t sequences, size_t context)
{
	uint64_t floats = 0, doubles = 0;

	for (uint32_t i = 0; i < description->layers; i++) {
		struct xfp_kv_cache_layer layer = layer_sizes(description, i, context);

		floats = xfp_add_sat(floats, floats_of(description, &layer, sequences, description->head_dim));
		floats = xfp_add_sat(floats, floats_of(description, &layer, sequences, description->value_dim));
		floats = xfp_add_sat(floats, xfp_mul_sat(sequences, layer.inputs_size));
		doubles = xfp_add_sat(doubles, xfp_mul_sat(sequences, layer.state_size));
	}
	return xfp_add_sat(xfp_mul_sat(floats, sizeof(float)), xfp_mul_sat(doubles, sizeof(double)));
}

/* NULL if out of memory. */
static void *zeros(uint64_t count, size_t size)
{
	return xfp_mul_sat(count, size) <= PTRDIFF_MAX ? calloc(count, size) : NULL;
}

/* A part of size 0 is NULL. */
static bool open_layer(const struct xfp_kv_cache *cache, struct xfp_kv_cache_layer *layer)
{
	const struct xfp_description *d = cache->description;
	uint64_t keys = floats_of(d, layer, cache->sequences, d->head_dim);
	uint64_t values = floats_of(d, layer, cache->sequences, d->value_dim);
	uint64_t inputs = xfp_mul_sat(cache->sequences, layer->inputs_size);
	uint64_t state = xfp_mul_sat(cache->sequences, layer->state_size);

	return (!keys || ((layer->keys = zeros(keys, sizeof *layer->keys)) &&
			  (layer->values = zeros(values, sizeof *layer->values)))) &&
	       (!inputs || (layer->inputs = zeros(inputs, sizeof *layer->inputs))) &&
	       (!state || (layer->state = zeros(state, sizeof *layer->state)));
}

enum xfp_status xfp_kv_cache_open(const struct xfp_description *description, size_t sequences, size_t context,
				  struct xfp_kv_cache **out, struct xfp_error *err)
{
	struct xfp_kv_cache *cache;

	*out = NULL;
	if (context > description->context)
		return xfp_fail(err, XFP_BAD_INPUT, "a context of %zu tokens is longer than the model's, which is %u",
				context, (unsigned)description->context);
	if (!(cache = calloc(1, sizeof *cache)))
		return xfp_no_memory(err);
	*cache = (struct xfp_kv_cache){ .description = description, .sequences = sequences, .context = context };
	cache->count = calloc(sequences ? sequences : 1, sizeof *cache->count);
	cache->length = calloc(sequences ? sequences : 1, sizeof *cache->length);
	cache->layer = calloc(description->layers, sizeof *cache->layer);
	if (!cache->count || !cache->length || !cache->layer)
		goto no_memory;
	for (uint32_t i = 0; i < description->layers; i++) {
		cache->layer[i] = layer_sizes(description, i, context);
		if (!open_layer(cache, &cache->layer[i]))
			goto no_memory;
	}
	*out = cache;
	return XFP_OK;
no_memory:
	xfp_kv_cache_close(cache);
	return xfp_no_memory(err);
}

void xfp_kv_cache_close(struct xfp_kv_cache *cache)
{
	if (!cache)
		return;
	for (uint32_t i = 0; cache->layer && i < cache->description->layers; i++) {
		free(cache->layer[i].keys);
		free(cache->layer[i].values);
		free(cache->layer[i].inputs);
		free(cache->layer[i].state);
	}
	free(cache->layer);
	free(cache->count);
	free(cache->length);
	free(cache);
}

bool xfp_kv_cache_is_stale(const struct xfp_kv_cache *cache, size_t sequence, size_t length)
{
	const struct xfp_description *d = cache->description;

	for (uint32_t i = 0; cache->count[sequence] && i < d->ropes; i++) {
		if (xfp_rope_is_long(&d->rope[i], length) != xfp_rope_is_long(&d->rope[i], cache->length[sequence]))
			return true;
	}
	return false;
}

/* Keys and values need no reset: only those of `count` positions are read. */
void xfp_kv_cache_reset(struct xfp_kv_cache *cache, size_t sequence)
{
	cache->count[sequence] = 0;
	for (uint32_t i = 0; i < cache->description->layers; i++) {
		struct xfp_kv_cache_layer *layer = &cache->layer[i];

		if (layer->inputs)
			memset(layer->inputs + sequence * layer->inputs_size, 0,
			       layer->inputs_size * sizeof *layer->inputs);
		if (layer->state)
			memset(layer->state + sequence * layer->state_size, 0,
			       layer->state_size * sizeof *layer->state);
	}
}
