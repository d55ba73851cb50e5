/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All sequences go through a layer of the model, and of its source, then through the next.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "checkpoints/hub.h"
#include "commands/eval/eval.h"

#define USUAL_LENGTH 512
#define LOGITS_BYTES ((size_t)64 << 20) /* of a model's logits that are there at a time */

/* What goes through a layer together: activations of the model, those that its layer makes of the source's, and the
 * source's; of `tokens` each. The first two are one batch, so that the model's weights are read once for both. */
struct together {
	size_t first, sequences, tokens;
	size_t size; /* numbers of each of them */
	float *judged, *alone, *source;
};

static bool has_source(const struct xfp_eval *e)
{
	return e->source.given;
}

static enum xfp_status check_finite(const struct xfp_eval_model *model, const float *x, size_t count, int64_t layer,
				    struct xfp_error *err)
{
	const char *path = xfp_weights_path(model->weights);

	while (count && isfinite(*x))
		count--, x++;
	if (!count)
		return XFP_OK;
	if (layer < 0)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: the word embedding has numbers that are not finite", path);
	return xfp_fail(err, XFP_BAD_INPUT,
			"%s: layer %u is the first that makes numbers that are not finite; verify the weights", path,
			(unsigned)layer);
}

/* To a sum over tokens: |x - source|^2 / |source|^2, each in the order of elements. Where the source has nothing but
 * zeros there is nothing to compare with. */
static void add_errors(const float *x, const float *source, size_t tokens, size_t width, double *sum)
{
	for (; tokens; tokens--, x += width, source += width) {
		double apart = 0, norm = 0;

		for (size_t i = 0; i < width; i++) {
			double difference = (double)x[i] - source[i];

			apart += difference * difference;
			norm += (double)source[i] * source[i];
		}
		*sum += norm > 0 ? apart / norm : 0;
	}
}

static enum xfp_status embed(struct xfp_eval *e, const struct xfp_eval_model *model, const struct together *part,
			     float *x, struct xfp_error *err)
{
	struct xfp_forward forward = xfp_forward_some(model->forward, part->sequences);
	size_t first = part->first * forward.length;
	enum xfp_status status = xfp_forward_embed(&forward, e->tokens.ids + first, x, err);

	if (!status && !(status = check_finite(model, x, part->size, -1, err)))
		status = xfp_stream_write(model->stream, first, part->tokens, x, err);
	return status;
}

static enum xfp_status embed_part(struct xfp_eval *e, const struct together *part, struct xfp_error *err)
{
	enum xfp_status status = embed(e, &e->judged, part, part->judged, err);

	if (!status && has_source(e) && !(status = embed(e, &e->source, part, part->source, err)))
		add_errors(part->judged, part->source, part->tokens, e->judged.description->hidden, &e->embedding);
	return status;
}

static enum xfp_status layer_of_source(struct xfp_eval *e, uint32_t layer, const struct together *part,
				       struct xfp_error *err)
{
	struct xfp_forward forward = xfp_forward_some(e->source.forward, part->sequences);
	size_t first = part->first * forward.length;
	enum xfp_status status;

	if ((status = xfp_stream_read(e->source.stream, first, part->tokens, part->source, err)))
		return status;
	memcpy(part->alone, part->source, part->size * sizeof *part->alone);
	if ((status = xfp_forward_layer(&forward, layer, part->source, err)) ||
	    (status = check_finite(&e->source, part->source, part->size, layer, err)))
		return status;
	return xfp_stream_write(e->source.stream, first, part->tokens, part->source, err);
}

static enum xfp_status layer_of_part(struct xfp_eval *e, uint32_t layer, const struct together *part,
				     struct xfp_error *err)
{
	size_t copies = has_source(e) ? 2 : 1, width = e->judged.description->hidden;
	struct xfp_forward forward = xfp_forward_some(e->judged.forward, copies * part->sequences);
	size_t first = part->first * forward.length;
	enum xfp_status status = has_source(e) ? layer_of_source(e, layer, part, err) : XFP_OK;

	if (status || (status = xfp_stream_read(e->judged.stream, first, part->tokens, part->judged, err)) ||
	    (status = xfp_forward_layer(&forward, layer, part->judged, err)) ||
	    (status = check_finite(&e->judged, part->judged, copies * part->size, layer, err)) ||
	    (status = xfp_stream_write(e->judged.stream, first, part->tokens, part->judged, err)))
		return status;
	if (has_source(e)) {
		add_errors(part->judged, part->source, part->tokens, width, &e->layers[layer].stream);
		add_errors(part->alone, part->source, part->tokens, width, &e->layers[layer].alone);
	}
	return XFP_OK;
}

static enum xfp_status foretell_part(struct xfp_eval *e, const struct together *part, struct xfp_foretold *foretold,
				     struct xfp_error *err)
{
	struct xfp_forward forward = xfp_forward_some(e->judged.forward, part->sequences), of_source;
	struct xfp_last_activations judged = { &forward, part->judged }, source = { &of_source, part->source };
	size_t first = part->first * forward.length;
	enum xfp_status status = xfp_stream_read(e->judged.stream, first, part->tokens, part->judged, err);

	if (!status && has_source(e)) {
		of_source = xfp_forward_some(e->source.forward, part->sequences);
		status = xfp_stream_read(e->source.stream, first, part->tokens, part->source, err);
	}
	if (!status)
		status = xfp_foretell(&judged, has_source(e) ? &source : NULL, e->tokens.ids + first, LOGITS_BYTES,
				      foretold + first, err);
	return status;
}

static enum xfp_status all_layers(struct xfp_eval *e, struct xfp_foretold *foretold, struct xfp_error *err)
{
	const struct xfp_description *d = e->judged.description;
	size_t length = e->tokens.length, most = e->tokens.sequences, copies = has_source(e) ? 3 : 1;
	float *x = malloc(copies * most * length * d->hidden * sizeof *x);
	enum xfp_status status = x ? XFP_OK : xfp_no_memory(err);

	/* Layer -1 is the word embedding, that behind the last the output head. */
	for (int64_t layer = -1; !status && layer <= d->layers; layer++) {
		for (size_t first = 0; !status && first < e->tokens.sequences; first += most) {
			struct together part = { .first = first,
						 .sequences = e->tokens.sequences - first,
						 .judged = x };

			if (part.sequences > most)
				part.sequences = most;
			part.tokens = part.sequences * length;
			part.size = part.tokens * d->hidden;
			part.alone = part.judged + part.size;
			part.source = part.alone + part.size;
			if (layer < 0)
				status = embed_part(e, &part, err);
			else if (layer < d->layers)
				status = layer_of_part(e, (uint32_t)layer, &part, err);
			else
				status = foretell_part(e, &part, foretold, err);
		}
	}
	free(x);
	return status;
}

/* ---- what there is ------------------------------------------------------------------------------ */

static enum xfp_status open_model(struct xfp_eval_model *model, struct xfp_error *err)
{
	enum xfp_status status;

	if ((status = xfp_model_find(model->given, &model->found, err)) ||
	    (status = xfp_weights_open(model->found, &model->weights, err)))
		return status;
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

static enum xfp_status begin(struct xfp_eval *e, struct xfp_eval_model *model, struct xfp_team *team,
			     struct xfp_error *err)
{
	size_t sequences = (model == &e->judged && has_source(e) ? 2 : 1) * e->tokens.sequences;
	enum xfp_status status = xfp_forward_open(model->description, model->weights, team, sequences, e->tokens.length,
						  &model->forward, err);

	if (!status)
		status = xfp_stream_open(e->tokens.sequences * e->tokens.length, model->description->hidden, true,
					 &model->stream, err);
	return status;
}

static void end(struct xfp_eval_model *model)
{
	xfp_stream_close(model->stream);
	xfp_forward_close(model->forward);
	model->stream = NULL;
	model->forward = NULL;
}

enum xfp_status xfp_evaluate(struct xfp_eval *e, struct xfp_error *err)
{
	struct xfp_foretold *foretold = NULL;
	struct xfp_team *team = NULL;
	enum xfp_status status;
	double began = xfp_now();
	size_t tokens;

	if ((status = open_model(&e->judged, err)) || (has_source(e) && (status = open_model(&e->source, err))) ||
	    (has_source(e) && (status = check_same(e, err))) || (status = get_tokens(e, err)) ||
	    (status = xfp_team_start(e->threads, &team, err)) || (status = begin(e, &e->judged, team, err)) ||
	    (has_source(e) && (status = begin(e, &e->source, team, err))))
		goto done;
	tokens = e->tokens.sequences * e->tokens.length;
	foretold = calloc(tokens, sizeof *foretold);
	e->layers = calloc(e->judged.description->layers, sizeof *e->layers);
	status = foretold && e->layers ? all_layers(e, foretold, err) : xfp_no_memory(err);
	if (!status)
		status = xfp_loss_of(foretold, e->tokens.sequences, e->tokens.length, &e->loss, err);
	e->embedding /= (double)tokens;
	for (uint32_t layer = 0; !status && layer < e->judged.description->layers; layer++) {
		e->layers[layer].stream /= (double)tokens;
		e->layers[layer].alone /= (double)tokens;
	}
	e->seconds = xfp_now() - began;
done:
	end(&e->judged);
	end(&e->source);
	free(foretold);
	xfp_team_end(team);
	return status;
}
