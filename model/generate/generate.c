/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences run through the model in slots; when one ends, the next prompt takes its slot.
 */
#include "model/generate/generate.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/system/clock.h"
#include "base/system/file.h"
#include "base/text/size.h"
#include "model/end_tokens.h"
#include "model/forward/memory.h"
#include "model/forward/step.h"
#include "model/generate/memory_bandwidth.h"
#include "model/generate/text.h"
#include "model/skipped.h"
#include "runtime/team.h"

#define BLOCK 512                    /* prompt tokens in one step */
#define CACHED ((uint64_t)128 << 20) /* weights of fewer bytes may be in CPU caches: no measure of memory */

struct generator {
	struct xfp_generation *g;
	struct xfp_forward *forward;
	struct xfp_kv_cache *cache;
	size_t *slot; /* index of its text; g->count: empty */
	size_t next;  /* index of the next prompt to start */
	float *logits;
	struct xfp_token_candidate *candidates;
	struct xfp_segment *segments;
	uint32_t *ids;
	size_t segment_count;
};

static bool stopped(struct xfp_generation *g)
{
	g->interrupted = g->interrupted || g->callbacks.stop(g->callbacks.context);
	return g->interrupted;
}

/* For xfp_tokenizer_watch. */
static bool encoding_continues(void *generation)
{
	return !stopped(generation);
}

/* For xfp_weights_watch: between the matrices that a step reads. */
static bool reading_continues(void *generation, uint64_t numbers)
{
	(void)numbers;
	return !stopped(generation);
}

/* ---- sizes -------------------------------------------------------------------------------------- */

static enum xfp_status encode_all(struct xfp_generation *g, size_t *longest, struct xfp_error *err)
{
	for (size_t i = 0; i < g->count; i++) {
		struct xfp_generated_text *w = &g->texts[i];
		enum xfp_status status =
			xfp_tokenizer_encode(g->tokenizer, w->prompt, w->prompt_size, true, &w->ids, err);

		if (status)
			return status;
		if (!w->ids.count)
			return xfp_fail(err, XFP_BAD_INPUT, "prompt %zu has no tokens to continue from", i + 1);
		w->prompt_count = w->ids.count;
		if (w->ids.count > *longest)
			*longest = w->ids.count;
	}
	return XFP_OK;
}

static enum xfp_status set_context(struct xfp_generation *g, struct xfp_error *err)
{
	uint32_t model = g->model.description->context;
	size_t longest = 0;
	enum xfp_status status = encode_all(g, &longest, err);

	if (status)
		return status;
	g->context = g->request.context;
	if (g->context > model)
		return xfp_fail(err, XFP_BAD_INPUT, "--context %u: the model's context is %u tokens",
				(unsigned)g->context, (unsigned)model);
	if (!g->context)
		g->context =
			longest + g->request.max_tokens < model ? (uint32_t)(longest + g->request.max_tokens) : model;
	for (size_t i = 0; i < g->count; i++) {
		if (g->texts[i].prompt_count > g->context)
			return xfp_fail(err, XFP_BAD_INPUT, "prompt %zu has %zu tokens, and %s context is %u%s", i + 1,
					g->texts[i].prompt_count, g->context == model ? "the model's" : "the",
					(unsigned)g->context,
					g->context == model ? "; shorten it" : "; shorten it, or raise --context");
	}
	return XFP_OK;
}

/* KV cache, activations of a block and the memory of layers for them, logits, and tables of positions. */
static uint64_t memory_needed(const struct xfp_generation *g, unsigned threads)
{
	const struct xfp_description *d = g->model.description;
	const struct xfp_forward_batch batch = { XFP_FAST, BLOCK > g->parallel ? BLOCK : g->parallel, g->context,
						 threads };
	const uint64_t parts[] = { g->cache,
				   xfp_forward_bytes(d, &batch),
				   xfp_forward_table_bytes(d, g->context),
				   (uint64_t)batch.tokens * d->hidden * sizeof(float),
				   (uint64_t)g->parallel * d->vocabulary * sizeof(float),
				   (uint64_t)d->vocabulary * sizeof(struct xfp_token_candidate) };
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		sum = xfp_add_sat(sum, parts[i]);
	return sum;
}

static enum xfp_status check_memory(struct xfp_generation *g, unsigned threads, struct xfp_error *err)
{
	char needed[32], cached[32], given[32];

	g->parallel = g->request.parallel < g->count ? g->request.parallel : (uint32_t)g->count;
	g->cache = xfp_kv_cache_bytes(g->model.description, g->parallel, g->context);
	g->memory = memory_needed(g, threads);
	if (g->request.memory && g->memory > g->request.memory)
		return xfp_fail(err, XFP_FAILED,
				"a context of %u token%s, for %u sequence%s at a time, needs %s of memory besides the "
				"weights, %s of it for the KV cache; --memory allows %s: allow more, or lower "
				"--context or --parallel",
				(unsigned)g->context, g->context == 1 ? "" : "s", (unsigned)g->parallel,
				g->parallel == 1 ? "" : "s", xfp_size_text(g->memory, g->request.memory_binary, needed),
				xfp_size_text(g->cache, g->request.memory_binary, cached),
				xfp_size_text(g->request.memory, g->request.memory_binary, given));
	return XFP_OK;
}

/* ---- steps -------------------------------------------------------------------------------------- */

static void add_segment(struct generator *m, size_t slot, size_t max)
{
	const struct xfp_generated_text *w = &m->g->texts[m->slot[slot]];
	size_t used = 0, count = w->ids.count - w->done;

	for (size_t i = 0; i < m->segment_count; i++)
		used += m->segments[i].count;
	if (count > max - used)
		count = max - used;
	if (!count)
		return;
	memcpy(m->ids + used, w->ids.id + w->done, count * sizeof *m->ids);
	m->segments[m->segment_count++] =
		(struct xfp_segment){ .sequence = slot, .count = count, .length = w->ids.count };
}

/* Texts that grow beyond longrope's original context: all their tokens run through the model again, with the other
 * factors. */
static void restart_stale(struct generator *m)
{
	for (size_t s = 0; s < m->g->parallel; s++) {
		struct xfp_generated_text *w = m->slot[s] < m->g->count ? &m->g->texts[m->slot[s]] : NULL;

		if (w && xfp_kv_cache_is_stale(m->cache, s, w->ids.count)) {
			xfp_kv_cache_reset(m->cache, s);
			w->done = 0;
		}
	}
}

/* Whether tokens other than the last generated one have yet to run through the model. */
static bool is_prefill(const struct xfp_generated_text *w)
{
	return w->done < w->prompt_count || w->ids.count - w->done > 1;
}

/* Prompts have priority; without any, each sequence runs one token. Returns whether the segments are of prompts. */
static bool choose_segments(struct generator *m)
{
	const struct xfp_generation *g = m->g;

	m->segment_count = 0;
	restart_stale(m);
	for (size_t s = 0; s < g->parallel; s++) {
		if (m->slot[s] < g->count && is_prefill(&g->texts[m->slot[s]]))
			add_segment(m, s, BLOCK);
	}
	if (m->segment_count)
		return true;
	for (size_t s = 0; s < g->parallel; s++) {
		if (m->slot[s] < g->count)
			add_segment(m, s, SIZE_MAX);
	}
	return false;
}

static void show(const struct generator *m, struct xfp_generated_text *w)
{
	if (!m->g->callbacks.text(m->g->callbacks.context, w))
		m->g->output_failed = true;
}

static enum xfp_status end_text(struct generator *m, size_t slot, enum xfp_text_end end, struct xfp_error *err)
{
	struct xfp_generated_text *w = &m->g->texts[m->slot[slot]];
	enum xfp_status status;

	if (w->end == XFP_END_NONE)
		w->end = end;
	status = xfp_generated_text_end(m->g, w, err);
	show(m, w);
	m->slot[slot] = m->g->count;
	return status;
}

/* Sample the next token of a segment's sequence, unless the rest of its prompt has yet to run. */
static enum xfp_status sample_token(struct generator *m, size_t i, struct xfp_error *err)
{
	struct xfp_generation *g = m->g;
	const struct xfp_segment *segment = &m->segments[i];
	size_t number = m->slot[segment->sequence];
	struct xfp_generated_text *w = &g->texts[number];
	const float *logits = m->logits + i * g->model.description->vocabulary;
	enum xfp_status status;

	w->done += segment->count;
	if (w->done < w->ids.count)
		return XFP_OK;
	if ((status = xfp_generated_text_add(g, w,
					     xfp_sample(&g->request.sampling, number, w->ids.count, logits,
							g->model.description->vocabulary, m->candidates),
					     err)))
		return status;
	if (w->end)
		return end_text(m, segment->sequence, w->end, err);
	show(m, w);
	if (w->ids.count - w->prompt_count >= g->request.max_tokens)
		return end_text(m, segment->sequence, XFP_END_LENGTH, err);
	if (w->done >= g->context)
		return end_text(m, segment->sequence, XFP_END_CONTEXT, err);
	return XFP_OK;
}

static void note_step(struct xfp_generation *g, bool prompts, size_t tokens, double seconds, uint64_t bytes)
{
	if (prompts) {
		g->prompt_tokens += tokens;
		g->prompt_seconds += seconds;
	} else {
		g->tokens += tokens;
		g->seconds += seconds;
		g->steps++;
		g->bytes += bytes;
	}
}

static enum xfp_status step(struct generator *m, bool prompts, struct xfp_error *err)
{
	struct xfp_generation *g = m->g;
	uint64_t before = xfp_weights_bytes(g->model.weights);
	double began = xfp_now();
	enum xfp_status status = xfp_forward_step(m->forward, m->segments, m->segment_count, m->ids, m->logits, err);

	/* The step is discarded: texts end as they were before it. */
	if (status && m->g->interrupted)
		return XFP_OK;
	for (size_t i = 0; !status && i < m->segment_count; i++)
		status = sample_token(m, i, err);
	if (!status)
		note_step(g, prompts, m->forward->tokens, xfp_now() - began,
			  xfp_weights_bytes(g->model.weights) - before);
	return status;
}

static enum xfp_status fill_slots(struct generator *m, bool *any, struct xfp_error *err)
{
	struct xfp_generation *g = m->g;
	enum xfp_status status;

	*any = false;
	for (size_t s = 0; s < g->parallel; s++) {
		if (m->slot[s] == g->count && m->next < g->count) {
			if ((status = xfp_generated_text_begin(g, &g->texts[m->next], err)))
				return status;
			xfp_kv_cache_reset(m->cache, s);
			m->slot[s] = m->next++;
		}
		*any = *any || m->slot[s] < g->count;
	}
	return XFP_OK;
}

static enum xfp_status all_steps(struct generator *m, struct xfp_error *err)
{
	struct xfp_generation *g = m->g;
	enum xfp_status status;
	bool any;

	while (!(status = fill_slots(m, &any, err)) && any && !g->output_failed) {
		if (stopped(g)) {
			for (size_t s = 0; !status && s < g->parallel; s++) {
				if (m->slot[s] < g->count)
					status = end_text(m, s, XFP_END_INTERRUPTED, err);
			}
			break;
		}
		bool prompts = choose_segments(m);

		if ((status = step(m, prompts, err)))
			break;
	}
	return status;
}

static enum xfp_status allocate(struct generator *m, struct xfp_error *err)
{
	const struct xfp_generation *g = m->g;
	size_t vocabulary = g->model.description->vocabulary, ids = BLOCK > g->parallel ? BLOCK : g->parallel;

	m->slot = malloc(g->parallel * sizeof *m->slot);
	m->segments = malloc(g->parallel * sizeof *m->segments);
	m->ids = malloc(ids * sizeof *m->ids);
	m->logits = malloc(g->parallel * vocabulary * sizeof *m->logits);
	m->candidates = malloc(vocabulary * sizeof *m->candidates);
	if (!m->slot || !m->segments || !m->ids || !m->logits || !m->candidates)
		return xfp_no_memory(err);
	for (size_t s = 0; s < g->parallel; s++)
		m->slot[s] = g->count;
	return XFP_OK;
}

/* Measure memory bandwidth only if enough data was read for the comparison to mean something, and memory allows it. */
static bool can_compare_rate(const struct xfp_generation *g)
{
	return !g->interrupted && !g->output_failed && g->steps && g->bytes / g->steps >= CACHED &&
	       (!g->request.memory || g->request.memory - g->memory >= XFP_BANDWIDTH_BYTES);
}

/* Pass a message to the caller, and free it. NULL is ignored. */
static void warn(const struct xfp_generation *g, char *message)
{
	if (message)
		g->callbacks.warning(g->callbacks.context, message);
	free(message);
}

static enum xfp_status open_model(struct xfp_generation *g, struct xfp_error *err)
{
	char *message;
	enum xfp_status status = xfp_model_open(g->request.model, &g->model, err);

	if (status || (status = xfp_model_check_decoder(&g->model, err)) ||
	    (status = xfp_model_tokenizer(&g->model, &g->tokenizer, err)))
		return status;
	if (!g->tokenizer)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: has no tokenizer.json, which a prompt needs; convert the model from a folder "
				"that has it",
				xfp_weights_path(g->model.weights));
	if ((status = xfp_skipped_note(&g->model, &message, err)))
		return status;
	warn(g, message);
	if (!xfp_weights_has_crcs(g->model.weights))
		return XFP_OK;
	if (!(message = xfp_formatted("%s: the CRC-32 of its members is not checked here; xfp convert checks it",
				      xfp_printable(g->request.model).text)))
		return xfp_no_memory(err);
	warn(g, message);
	return XFP_OK;
}

static enum xfp_status run(struct xfp_generation *g, struct xfp_error *err)
{
	struct generator m = { .g = g };
	struct xfp_team *team = NULL;
	enum xfp_status status;

	if ((status = set_context(g, err)) ||
	    (status = xfp_forward_check(g->model.description, g->model.weights, err)) ||
	    (status = xfp_team_start(g->request.threads, &team, err)) ||
	    (status = check_memory(g, xfp_team_threads(team), err)) || (status = allocate(&m, err)) ||
	    (status = xfp_weights_check(g->model.weights, team, err)) ||
	    (status = xfp_kv_cache_open(g->model.description, g->parallel, g->context, &m.cache, err)) ||
	    (status = xfp_forward_open_cached(g->model.description, g->model.weights, team, m.cache, &m.forward, err)))
		goto done;
	m.forward->arithmetic = XFP_FAST;
	if (!(status = all_steps(&m, err)) && can_compare_rate(g))
		status = xfp_memory_bandwidth(team, &g->bandwidth, err);
done:
	xfp_forward_close(m.forward);
	xfp_kv_cache_close(m.cache);
	xfp_team_end(team);
	free(m.slot);
	free(m.segments);
	free(m.ids);
	free(m.logits);
	free(m.candidates);
	return status;
}

enum xfp_status xfp_generate(struct xfp_generation *g, struct xfp_error *err)
{
	enum xfp_status status;

	if ((status = open_model(g, err)) || (status = xfp_end_tokens_read(&g->model, &g->ends, err)))
		return status;
	xfp_tokenizer_watch(g->tokenizer, encoding_continues, g);
	xfp_weights_watch(g->model.weights, reading_continues, g);
	return run(g, err);
}

void xfp_generation_close(struct xfp_generation *g)
{
	for (size_t i = 0; i < g->count; i++)
		xfp_generated_text_free(&g->texts[i]);
	free(g->texts);
	free(g->ends.id);
	xfp_tokenizer_free(g->tokenizer);
	xfp_model_close(&g->model);
}
