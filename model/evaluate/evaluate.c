/* SPDX-License-Identifier: Apache-2.0 */
#include "model/evaluate/evaluate.h"

#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/clock.h"
#include "base/system/file.h"
#include "model/evaluate/batching.h"
#include "model/evaluate/embeddings.h"
#include "model/evaluate/layers.h"
#include "model/evaluate/single.h"
#include "model/evaluate/state.h"
#include "model/evaluate/text.h"
#include "model/evaluate/texts.h"
#include "model/npy.h"
#include "model/skipped.h"
#include "model/tokenizer/defects.h"
#include "runtime/team.h"

#define DEFAULT_LENGTH 512

static enum xfp_status open_model(const struct xfp_evaluation *e, const char *name, struct xfp_evaluated *model,
				  struct xfp_error *err)
{
	enum xfp_status status = xfp_model_open(name, &model->model, err);
	char *skipped = NULL;

	if (status || (model == &e->evaluated && (status = xfp_skipped_note(&model->model, &skipped, err))))
		return status;
	if (skipped)
		xfp_evaluation_warn(e, "%s", skipped);
	free(skipped);
	/* Reading weights layer by layer does not check the CRC-32 of an archive's members. */
	if (xfp_weights_has_crcs(model->model.weights))
		xfp_evaluation_warn(e, "%s: the CRC-32 of its members is not checked here; xfp convert checks it",
				    xfp_printable(name).text);
	/* One token at a time needs the pages again and again. */
	if (!e->request.single || model != &e->evaluated)
		xfp_weights_release_pages(model->model.weights);
	return XFP_OK;
}

/* Check everything that must be equal for activations to be comparable. */
static enum xfp_status check_same(const struct xfp_evaluation *e, struct xfp_error *err)
{
	const struct xfp_description *a = e->evaluated.model.description, *b = e->source.model.description;
	const struct {
		const char *what;
		uint32_t evaluated, source;
	} numbers[] = {
		{ "num_hidden_layers", a->layers, b->layers },
		{ "vocab_size", a->vocabulary, b->vocabulary },
		{ "hidden_size", a->hidden, b->hidden },
		{ "num_attention_heads", a->heads, b->heads },
		{ "num_key_value_heads", a->kv_heads, b->kv_heads },
		{ "head_dim", a->head_dim, b->head_dim },
		{ "intermediate_size", a->intermediate, b->intermediate },
		{ "num_experts", a->experts, b->experts },
		{ "num_experts_per_tok", a->experts_per_token, b->experts_per_token },
		{ "moe_intermediate_size", a->expert_intermediate, b->expert_intermediate },
		{ "max_position_embeddings", a->encoder ? a->context : 0, b->encoder ? b->context : 0 },
	};

	if (strcmp(a->family, b->family))
		return xfp_fail(err, XFP_BAD_INPUT, "%s cannot be the source of %s: model types differ (%s, %s)",
				e->source.model.name, e->evaluated.model.name, b->family, a->family);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		if (numbers[i].evaluated != numbers[i].source)
			return xfp_fail(err, XFP_BAD_INPUT, "%s cannot be the source of %s: %s differs (%u, %u)",
					e->source.model.name, e->evaluated.model.name, numbers[i].what,
					(unsigned)numbers[i].source, (unsigned)numbers[i].evaluated);
	}
	return XFP_OK;
}

/* The model is compared with the source that it was quantized from; swapped, the wrong one is measured. */
static void warn_if_swapped(const struct xfp_evaluation *e)
{
	struct xfp_printable evaluated = xfp_printable(e->evaluated.model.name),
			     source = xfp_printable(e->source.model.name);

	if (xfp_weights_is_bundle(e->source.model.weights) && !xfp_weights_is_bundle(e->evaluated.model.weights))
		xfp_evaluation_warn(
			e,
			"--source %s: is a bundle and %s a checkpoint, so they look swapped; to evaluate the bundle: "
			"xfp eval --source %s %s",
			source.text, evaluated.text, evaluated.text, source.text);
}

static size_t first_token(const struct xfp_evaluation *e, size_t sequence)
{
	return e->texts.first ? e->texts.first[sequence] : sequence * e->tokens.length;
}

static enum xfp_status check_ids(const struct xfp_evaluation *e, struct xfp_error *err)
{
	uint32_t vocabulary = e->evaluated.model.description->vocabulary;

	for (size_t s = 0, t = 0; s < e->tokens.sequences; s++) {
		for (; t < first_token(e, s + 1); t++) {
			if (e->tokens.ids[t] >= vocabulary)
				return xfp_fail(
					err, XFP_BAD_INPUT,
					"%s: token %zu of sequence %zu is %u, and the model's vocabulary has %u",
					xfp_input_name(e->request.tokens_path ? e->request.tokens_path
									      : e->request.text_path),
					t - first_token(e, s), s, (unsigned)e->tokens.ids[t], (unsigned)vocabulary);
		}
	}
	return XFP_OK;
}

static enum xfp_status get_tokens(struct xfp_evaluation *e, struct xfp_error *err)
{
	uint32_t context = e->evaluated.model.description->context;
	char defects[XFP_TEXT_DEFECTS];
	enum xfp_status status;
	size_t length = e->request.length ? e->request.length : context < DEFAULT_LENGTH ? context : DEFAULT_LENGTH;

	if (e->request.tokens_path)
		return xfp_tokens_read(e->request.tokens_path, &e->tokens, err);
	if (length > context)
		return xfp_fail(err, XFP_BAD_INPUT, "--length %zu: is longer than the model's context of %u", length,
				(unsigned)context);
	status = xfp_tokens_of_text(e->request.text_path, &e->evaluated.model,
				    xfp_evaluation_has_source(e) ? &e->source.model : NULL, length, &e->tokens, defects,
				    err);
	if (*defects)
		xfp_evaluation_warn(e, "%s: %s", xfp_printable(xfp_input_name(e->request.text_path)).text, defects);
	return status;
}

static enum xfp_status begin(const struct xfp_evaluation *e, struct xfp_evaluated *model, struct xfp_error *err)
{
	size_t copies = model == &e->evaluated && xfp_evaluation_has_source(e) ? 2 : 1;
	enum xfp_status status = xfp_forward_open(model->model.description, model->model.weights, e->team,
						  copies * e->tokens.sequences, e->tokens.length, &model->forward, err);

	if (!status)
		model->forward->arithmetic = e->request.fast ? XFP_FAST : XFP_REPRODUCIBLE;
	return status;
}

static enum xfp_status open_streams(struct xfp_evaluation *e, struct xfp_error *err)
{
	size_t tokens = xfp_evaluation_tokens(e), width = e->evaluated.model.description->hidden;
	enum xfp_status status = xfp_stream_open(tokens, width, !e->batching.spilled, &e->evaluated.stream, err);

	if (!status && xfp_evaluation_has_source(e))
		status = xfp_stream_open(tokens, width, !e->batching.spilled, &e->source.stream, err);
	return status;
}

static void end(struct xfp_evaluated *model)
{
	xfp_stream_close(model->stream);
	xfp_forward_close(model->forward);
}

static enum xfp_status sum_up(struct xfp_evaluation *e, const struct xfp_token_loss *losses, struct xfp_error *err)
{
	double tokens = (double)xfp_evaluation_tokens(e);

	e->embedding_error /= tokens;
	for (uint32_t layer = 0; layer < e->evaluated.model.description->layers; layer++) {
		e->layers[layer].stream /= tokens;
		e->layers[layer].alone /= tokens;
	}
	return xfp_loss_of(losses, e->tokens.sequences, e->tokens.length, &e->loss, err);
}

/* Options of models that predict tokens are refused for encoders, and the other way round. */
static enum xfp_status check_options(const struct xfp_evaluation *e, struct xfp_error *err)
{
	const struct xfp_evaluation_request *request = &e->request;
	const char *name = request->model, *family = e->evaluated.model.description->family;

	if (!xfp_evaluation_is_encoder(e))
		return request->embeddings_path
			       ? xfp_fail(err, XFP_USAGE, "--embeddings applies to encoders, and %s is not one (%s)",
					  name, family)
			       : XFP_OK;
	if (request->state_path || request->single)
		return xfp_fail(err, XFP_USAGE, "%s does not apply to encoders, and %s is one (%s)",
				request->single ? "--single" : "--state", name, family);
	if (!request->source && !request->embeddings_path)
		return xfp_fail(
			err, XFP_USAGE,
			"%s: is an encoder (%s), which has no perplexity; compare it by --source MODEL, or write "
			"its embeddings by --embeddings FILE",
			name, family);
	return XFP_OK;
}

static bool count_weights(void *context, uint64_t numbers)
{
	struct xfp_evaluation *e = context;

	e->progress.read += numbers;
	e->callbacks.progress(e->callbacks.context, e);
	return !xfp_evaluation_stops(e);
}

static void begin_progress(struct xfp_evaluation *e)
{
	e->progress = (struct xfp_evaluation_progress){
		.started = xfp_now(), .layer_started = xfp_now(), .resumed = e->state.layers, .done = e->state.layers
	};
	e->progress.steps =
		(xfp_evaluation_is_encoder(e) ? (uint32_t)e->texts.count : e->evaluated.model.description->layers) + 1;
	xfp_weights_watch(e->evaluated.model.weights, count_weights, e);
	if (xfp_evaluation_has_source(e))
		xfp_weights_watch(e->source.model.weights, count_weights, e);
}

static enum xfp_status compute(struct xfp_evaluation *e, struct xfp_error *err)
{
	struct xfp_token_loss *losses = calloc(xfp_evaluation_tokens(e), sizeof *losses);
	enum xfp_status status = XFP_OK;

	e->layers = calloc(e->evaluated.model.description->layers, sizeof *e->layers);
	if (!losses || !e->layers)
		status = xfp_no_memory(err);
	if (status || (status = open_streams(e, err)) || (status = xfp_evaluation_state_begin(e, err)) ||
	    (status = xfp_evaluation_state_load(e, err)))
		goto done;
	begin_progress(e);
	status = xfp_evaluate_layers(e, losses, err);
	if (!status && !(status = sum_up(e, losses, err)))
		xfp_evaluation_state_remove(e);
done:
	free(losses);
	return status;
}

enum xfp_status xfp_evaluation_open(struct xfp_evaluation *e, struct xfp_error *err)
{
	enum xfp_status status;

	if (!(status = open_model(e, e->request.model, &e->evaluated, err)) && xfp_evaluation_has_source(e) &&
	    !(status = open_model(e, e->request.source, &e->source, err)))
		status = check_same(e, err);
	if (!status && xfp_evaluation_has_source(e))
		warn_if_swapped(e);
	if (status || (status = check_options(e, err)))
		return status;
	if (!(status = xfp_evaluation_is_encoder(e) ? xfp_texts_read(e, err) : get_tokens(e, err)))
		status = check_ids(e, err);
	return status;
}

enum xfp_status xfp_evaluation_run(struct xfp_evaluation *e, struct xfp_error *err)
{
	enum xfp_status status;

	if ((status = xfp_team_start(e->request.threads, &e->team, err)) || (status = begin(e, &e->evaluated, err)) ||
	    (xfp_evaluation_has_source(e) && (status = begin(e, &e->source, err))))
		goto done;
	if (xfp_evaluation_is_encoder(e)) {
		begin_progress(e);
		status = xfp_embed_texts(e, err);
		goto done;
	}
	if ((status = xfp_evaluation_batching(e, err)) || (e->request.single && (status = xfp_single_open(e, err))))
		goto done;
	status = compute(e, err);
done:
	xfp_single_close(e);
	end(&e->evaluated);
	end(&e->source);
	xfp_team_end(e->team);
	return status;
}

void xfp_evaluation_close(struct xfp_evaluation *e)
{
	xfp_model_close(&e->evaluated.model);
	xfp_model_close(&e->source.model);
	free(e->tokens.ids);
	free(e->texts.first);
	free(e->embeddings.evaluated);
	free(e->embeddings.source);
	free(e->layers);
	free(e->state.path);
}
