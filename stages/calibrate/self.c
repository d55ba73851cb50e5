/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/calibrate/self.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/text/size.h"
#include "model/batching.h"
#include "model/forward/memory.h"
#include "model/forward/step.h"
#include "model/forward/tensors.h"
#include "model/sample.h"
#include "runtime/team.h"

static const struct xfp_sampling sampling = { .temperature = 1, .top_p = 1, .seed = XFP_SELF_SEED };

struct self {
	const struct xfp_model *model;
	const struct xfp_self_request *request;
	struct xfp_team *team;
	size_t first, count; /* windows that are generated together */
	uint32_t *ids;       /* [windows][length] */
	struct xfp_kv_cache *cache;
	struct xfp_forward *forward;
	struct xfp_segment *segments;
	uint32_t *next; /* [count][most] ids of a step, consecutive */
	size_t *begun;  /* tokens of the prefix that a window has after its last text ended */
	float *logits;
	struct xfp_token_candidate *candidates;
};

/* ---- memory -------------------------------------------------------------------------------------- */

static bool add_tensor(void *context, const struct xfp_required_tensor *tensor)
{
	uint64_t *numbers = context, own = tensor->rank > 0;

	for (uint32_t i = 0; i < tensor->rank; i++)
		own = xfp_mul_sat(own, tensor->shape[i]);
	*numbers = xfp_add_sat(*numbers, own);
	return true;
}

/* Each step reads all weights: they must stay in memory, with 16 bits each. */
static enum xfp_status check_weights(const struct xfp_model *model, struct xfp_error *err)
{
	uint64_t bytes = 0, available = xfp_mul_sat(2, xfp_default_memory());
	char needed[32], has[32];

	xfp_each_tensor(model->description, xfp_find_names(model->description, model->weights), add_tensor, &bytes);
	bytes = xfp_mul_sat(2, bytes);
	if (bytes <= available)
		return XFP_OK;
	return xfp_fail(err, XFP_FAILED,
			"%s: its weights need %s of memory, %s are available, and generating text would read them from "
			"disk for each token; calibrate with a text",
			model->name, xfp_size_text_rounded_up(bytes, false, needed),
			xfp_size_text(available, false, has));
}

/* Memory for some windows: KV cache, logits, and a step. */
static uint64_t needed(void *context, uint64_t windows)
{
	const struct self *self = context;
	const struct xfp_description *d = self->model->description;
	size_t most = self->request->prefix.count + 1;
	const struct xfp_forward_batch batch = { .arithmetic = XFP_REPRODUCIBLE,
						 .positions = self->request->length,
						 .tokens = windows * most,
						 .threads = xfp_team_threads(self->team) };
	uint64_t each = d->vocabulary * sizeof(float) + most * d->hidden * sizeof(float);

	return xfp_add_sat(
		xfp_add_sat(xfp_kv_cache_bytes(d, windows, self->request->length), xfp_mul_sat(windows, each)),
		xfp_forward_bytes(d, &batch));
}

static enum xfp_status open_group(struct self *self, struct xfp_error *err)
{
	const struct xfp_description *d = self->model->description;
	enum xfp_status status = xfp_kv_cache_open(d, self->count, self->request->length, &self->cache, err);

	if (status ||
	    (status = xfp_forward_open_cached(d, self->model->weights, self->team, self->cache, &self->forward, err)))
		return status;
	self->segments = calloc(self->count, sizeof *self->segments);
	self->next = calloc(self->count * (self->request->prefix.count + 1), sizeof *self->next);
	self->begun = calloc(self->count, sizeof *self->begun);
	self->logits = calloc(self->count * d->vocabulary, sizeof *self->logits);
	self->candidates = calloc(d->vocabulary, sizeof *self->candidates);
	return self->segments && self->next && self->begun && self->logits && self->candidates ? XFP_OK
											       : xfp_no_memory(err);
}

static void close_group(struct self *self)
{
	xfp_forward_close(self->forward);
	xfp_kv_cache_close(self->cache);
	free(self->segments);
	free(self->next);
	free(self->begun);
	free(self->logits);
	free(self->candidates);
	self->forward = NULL;
	self->cache = NULL;
	self->segments = NULL;
	self->next = NULL;
	self->begun = NULL;
	self->logits = NULL;
	self->candidates = NULL;
}

/* ---- tokens -------------------------------------------------------------------------------------- */

static uint32_t *window_of(const struct self *self, size_t i)
{
	return self->ids + (self->first + i) * self->request->length;
}

static bool is_end(const struct self *self, uint32_t id)
{
	for (size_t i = 0; i < self->request->ends.count; i++)
		if (self->request->ends.id[i] == id)
			return true;
	return false;
}

/* Begin all windows; returns the number of tokens that each has. */
static size_t begin_windows(const struct self *self)
{
	const struct xfp_token_ids *prefix = &self->request->prefix;

	for (size_t i = 0; i < self->count; i++) {
		uint32_t *window = window_of(self, i);

		for (size_t t = 0; t < prefix->count; t++)
			window[t] = prefix->id[t];
		if (!prefix->count)
			window[0] = (uint32_t)(xfp_random_uniform(XFP_SELF_SEED, self->first + i, 0) *
					       self->model->description->vocabulary);
		self->begun[i] = prefix->count;
	}
	return prefix->count ? prefix->count : 1;
}

/* Choose token `at` of a window: after the end of a text, the prefix again. A token may both end a text and begin
 * one. */
static uint32_t next_token(struct self *self, size_t i, size_t at)
{
	const struct xfp_token_ids *prefix = &self->request->prefix;
	uint32_t vocabulary = self->model->description->vocabulary, id;

	if (self->begun[i] < prefix->count)
		return prefix->id[self->begun[i]++];
	id = xfp_sample(&sampling, self->first + i, at, self->logits + i * vocabulary, vocabulary, self->candidates);
	if (is_end(self, id))
		self->begun[i] = prefix->count && id == prefix->id[0];
	return id;
}

/* Run tokens [from, to) of all windows through the model. */
static enum xfp_status step(struct self *self, size_t from, size_t to, struct xfp_error *err)
{
	uint32_t *next = self->next;

	for (size_t i = 0; i < self->count; i++) {
		self->segments[i] =
			(struct xfp_segment){ .sequence = i, .count = to - from, .length = self->request->length };
		for (size_t t = from; t < to; t++)
			*next++ = window_of(self, i)[t];
	}
	return xfp_forward_step(self->forward, self->segments, self->count, self->next, self->logits, err);
}

static enum xfp_status generate_group(struct self *self, struct xfp_error *err)
{
	enum xfp_status status = open_group(self, err);
	size_t at = 0, from = 0;

	if (!status)
		at = begin_windows(self);
	for (; !status && at < self->request->length; from = at++) {
		if ((status = step(self, from, at, err)))
			break;
		for (size_t i = 0; i < self->count; i++)
			window_of(self, i)[at] = next_token(self, i, at);
	}
	close_group(self);
	return status;
}

enum xfp_status xfp_windows_of_model(const struct xfp_model *model, const struct xfp_self_request *request,
				     struct xfp_tokens *windows, struct xfp_error *err)
{
	struct self self = { .model = model, .request = request };
	size_t together;
	enum xfp_status status = check_weights(model, err);

	*windows = (struct xfp_tokens){ .sequences = request->windows, .length = request->length };
	if (status || (status = xfp_team_start(request->threads, &self.team, err)))
		return status;
	together = xfp_largest_batch(request->windows, request->memory, needed, &self);
	if (!(windows->ids = self.ids = calloc(request->windows * request->length, sizeof *self.ids)))
		status = xfp_no_memory(err);
	else
		printf("generating %zu windows of %zu tokens with the model, %zu at a time: the weights are read %zu "
		       "times\n",
		       request->windows, request->length, together,
		       (size_t)xfp_divide_up(request->windows, together) * (request->length - 1));
	fflush(stdout);
	for (; !status && self.first < request->windows; self.first += self.count) {
		self.count = request->windows - self.first < together ? request->windows - self.first : together;
		status = generate_group(&self, err);
	}
	xfp_team_end(self.team);
	return status;
}
