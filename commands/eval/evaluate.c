/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What there is to evaluate, and the course of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "checkpoints/hub.h"
#include "commands/eval/eval.h"

#define USUAL_LENGTH 512

/* Reading weights layer by layer does not compare members of an archive with their CRC-32. */
static void warn_unchecked(const struct xfp_eval_model *model)
{
	if (xfp_weights_has_crcs(model->weights))
		fprintf(stderr, "xfp eval: %s: the CRC-32 of its members is not checked here; xfp convert checks it\n",
			model->given);
}

static enum xfp_status open_model(struct xfp_eval_model *model, struct xfp_error *err)
{
	enum xfp_status status;

	if ((status = xfp_model_find(model->given, &model->found, err)) ||
	    (status = xfp_weights_open(model->found, &model->weights, err)))
		return status;
	warn_unchecked(model);
	xfp_weights_let_go(model->weights);
	return xfp_description_read(xfp_weights_config(model->weights), model->given, &model->description, err);
}

/* Everything that decides which activations can be compared. */
static enum xfp_status check_same(const struct xfp_eval *e, struct xfp_error *err)
{
	const struct xfp_description *a = e->judged.description, *b = e->source.description;
	const struct {
		const char *what;
		uint32_t judged, source;
	} numbers[] = {
		{ "layers", a->layers, b->layers },
		{ "vocabulary", a->vocabulary, b->vocabulary },
		{ "hidden_size", a->hidden, b->hidden },
		{ "num_attention_heads", a->heads, b->heads },
		{ "num_key_value_heads", a->kv_heads, b->kv_heads },
		{ "head_dim", a->head_dim, b->head_dim },
		{ "intermediate_size", a->intermediate, b->intermediate },
		{ "experts", a->experts, b->experts },
		{ "experts a token", a->chosen, b->chosen },
		{ "intermediate size of experts", a->expert_intermediate, b->expert_intermediate },
	};

	if (strcmp(a->family, b->family))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: is no source of %s: it is a %s, and that a %s",
				e->source.given, e->judged.given, b->family, a->family);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		if (numbers[i].judged != numbers[i].source)
			return xfp_fail(err, XFP_BAD_INPUT, "%s: is no source of %s: %s %u, and not %u",
					e->source.given, e->judged.given, numbers[i].what, (unsigned)numbers[i].source,
					(unsigned)numbers[i].judged);
	}
	return XFP_OK;
}

/* A bundle is compared with the checkpoint that it was made of; the other way round measures the wrong one. */
static void warn_if_swapped(const struct xfp_eval *e)
{
	struct xfp_printable judged = xfp_printable(e->judged.given), source = xfp_printable(e->source.given);

	if (xfp_weights_is_bundle(e->source.weights) && !xfp_weights_is_bundle(e->judged.weights))
		fprintf(stderr,
			"xfp eval: --source %s: is a bundle and %s a checkpoint, so they look swapped; to evaluate the "
			"bundle: xfp eval --source %s %s\n",
			source.text, judged.text, judged.text, source.text);
}

static enum xfp_status check_ids(const struct xfp_eval *e, struct xfp_error *err)
{
	uint32_t vocabulary = e->judged.description->vocabulary;

	for (size_t t = 0; t < xfp_eval_tokens(e); t++) {
		if (e->tokens.ids[t] >= vocabulary)
			return xfp_fail(err, XFP_BAD_INPUT,
					"%s: token %zu of sequence %zu is %u, and the model's vocabulary has %u",
					xfp_input_name(e->tokens_path ? e->tokens_path : e->text_path),
					t % e->tokens.length, t / e->tokens.length, (unsigned)e->tokens.ids[t],
					(unsigned)vocabulary);
	}
	return XFP_OK;
}

static enum xfp_status get_tokens(struct xfp_eval *e, struct xfp_error *err)
{
	uint32_t context = e->judged.description->context;
	size_t length = e->length ? e->length : context < USUAL_LENGTH ? context : USUAL_LENGTH;

	if (e->tokens_path)
		return xfp_tokens_read(e->tokens_path, &e->tokens, err);
	if (length > context)
		return xfp_fail(err, XFP_BAD_INPUT, "--length %zu: is longer than the model's context of %u", length,
				(unsigned)context);
	return xfp_tokens_of_text(e->text_path, e->judged.weights, e->source.weights, length, &e->tokens, err);
}

static enum xfp_status begin(const struct xfp_eval *e, struct xfp_eval_model *model, struct xfp_error *err)
{
	size_t copies = model == &e->judged && xfp_eval_has_source(e) ? 2 : 1;
	enum xfp_status status = xfp_forward_open(model->description, model->weights, e->team,
						  copies * e->tokens.sequences, e->tokens.length, &model->forward, err);

	if (!status)
		model->forward->form = e->fast ? XFP_FAST : XFP_REPRODUCIBLE;
	return status;
}

static enum xfp_status open_streams(struct xfp_eval *e, struct xfp_error *err)
{
	size_t tokens = xfp_eval_tokens(e), width = e->judged.description->hidden;
	enum xfp_status status = xfp_stream_open(tokens, width, !e->room.spilled, &e->judged.stream, err);

	if (!status && xfp_eval_has_source(e))
		status = xfp_stream_open(tokens, width, !e->room.spilled, &e->source.stream, err);
	return status;
}

static void end(struct xfp_eval_model *model)
{
	xfp_stream_close(model->stream);
	xfp_forward_close(model->forward);
}

static enum xfp_status sum_up(struct xfp_eval *e, const struct xfp_foretold *foretold, struct xfp_error *err)
{
	double tokens = (double)xfp_eval_tokens(e);

	e->embedding /= tokens;
	for (uint32_t layer = 0; layer < e->judged.description->layers; layer++) {
		e->layers[layer].stream /= tokens;
		e->layers[layer].alone /= tokens;
	}
	return xfp_loss_of(foretold, e->tokens.sequences, e->tokens.length, &e->loss, err);
}

static enum xfp_status go_through(struct xfp_eval *e, struct xfp_error *err)
{
	struct xfp_foretold *foretold = calloc(xfp_eval_tokens(e), sizeof *foretold);
	enum xfp_status status = XFP_OK;

	e->layers = calloc(e->judged.description->layers, sizeof *e->layers);
	if (!foretold || !e->layers)
		status = xfp_no_memory(err);
	if (status || (status = open_streams(e, err)) || (status = xfp_eval_state_begin(e, err)) ||
	    (status = xfp_eval_state_take(e, err)))
		goto done;
	xfp_eval_progress_begin(e);
	status = xfp_eval_layers(e, foretold, err);
	xfp_eval_progress_end(e);
	if (!status && !(status = sum_up(e, foretold, err)))
		xfp_eval_state_remove(e);
done:
	free(foretold);
	return status;
}

enum xfp_status xfp_eval_open(struct xfp_eval *e, struct xfp_error *err)
{
	enum xfp_status status;

	if (!(status = open_model(&e->judged, err)) && xfp_eval_has_source(e) &&
	    !(status = open_model(&e->source, err)))
		status = check_same(e, err);
	if (!status && xfp_eval_has_source(e))
		warn_if_swapped(e);
	if (!status && !(status = get_tokens(e, err)))
		status = check_ids(e, err);
	return status;
}

enum xfp_status xfp_evaluate(struct xfp_eval *e, struct xfp_error *err)
{
	enum xfp_status status;

	if ((status = xfp_team_start(e->threads, &e->team, err)) || (status = begin(e, &e->judged, err)) ||
	    (xfp_eval_has_source(e) && (status = begin(e, &e->source, err))) || (status = xfp_eval_find_room(e, err)))
		goto done;
	status = go_through(e, err);
done:
	end(&e->judged);
	end(&e->source);
	xfp_team_end(e->team);
	return status;
}
