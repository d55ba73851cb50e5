/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer.c - one layer: read the residual stream after the layer before, compute, store inputs and stream.
 *
 * Layers are computed one after the other, each with all threads that graph.mk passes as --threads (without it, one for
 * each processor). Units of earlier layers that are fitted meanwhile share the processors.
 */
#include "stages/calibrate/layer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/sha256.h"
#include "base/system/processors.h"
#include "cache/key.h"
#include "model/batching.h"
#include "model/forward/description_text.h"
#include "model/forward/memory.h"
#include "model/model.h"
#include "runtime/team.h"
#include "schemas/calibration.h"
#include "schemas/inputs.h"
#include "stages/calibrate/capture.h"
#include "stages/calibrate/options.h"
#include "stages/quantize/rows.h"
#include "stages/quantize/tensor_digest.h"

#define MEMORY ((uint64_t)2 << 30) /* of a portion */

struct layer_run {
	struct xfp_job *job;
	const struct xfp_calibrate_options *options;
	uint32_t layer;
	struct xfp_calibration calibration;
	struct xfp_layer_sources sources;
	char previous_key[33]; /* "" for the first layer */
	struct xfp_artifact previous;
	struct xfp_inputs previous_inputs;
	struct xfp_model model;
	struct xfp_team *team;
	struct xfp_forward *forward;
};

static bool is_head(const struct layer_run *run)
{
	return run->layer == run->calibration.layers;
}

static uint64_t tokens_of(const struct layer_run *run)
{
	return run->calibration.windows * run->calibration.length;
}

/* ---- what the layer depends on ------------------------------------------------------------------- */

static enum xfp_status read_calibration(struct layer_run *run, struct xfp_error *err)
{
	const struct xfp_calibration *c = &run->calibration;
	bool found;
	enum xfp_status status = xfp_calibration_read(run->job->work, &run->calibration, &found, err);

	if (status)
		return status;
	if (!found)
		return xfp_fail(err, XFP_DAMAGED,
				"%s/" XFP_CALIBRATION_FILE " is missing; run xfp-calibrate --begin first",
				run->job->work);
	if (run->layer > c->layers)
		return xfp_fail(err, XFP_USAGE, "the model has %u layers; the last step is l%06u", (unsigned)c->layers,
				(unsigned)c->layers);
	return XFP_OK;
}

static enum xfp_status list_sources(struct layer_run *run, struct xfp_error *err)
{
	enum xfp_status status =
		xfp_layer_sources_list(&run->sources, &run->calibration, run->job->ledger, run->layer, err);

	if (!status && !run->sources.count)
		status = xfp_fail(err, XFP_BAD_INPUT, "the ledger has no tensor of the layer; run xfp convert again");
	return status;
}

/* Digest all tensors; with `again`, compare instead. */
static enum xfp_status digest_sources(struct layer_run *run, bool again, struct xfp_error *err)
{
	const struct xfp_ledger *ledger = run->job->ledger;
	enum xfp_status status = XFP_OK;
	uint8_t digest[16];

	for (uint32_t i = 0; !status && i < run->sources.count; i++) {
		if ((status = xfp_tensor_digest(ledger, run->sources.tensor[i], digest, err)))
			break;
		if (again && memcmp(digest, run->sources.source[i].digest, sizeof digest)) {
			const struct xfp_rows rows = {
				.path = ledger->files[ledger->tensors[run->sources.tensor[i]].file].path,
				.tensor = run->sources.source[i].name
			};

			return xfp_rows_changed(&rows, err);
		}
		memcpy(run->sources.source[i].digest, digest, sizeof digest);
	}
	return status;
}

static enum xfp_status find_previous(struct layer_run *run, struct xfp_error *err)
{
	uint32_t before = XFP_LAYER | (run->layer - 1);
	enum xfp_status status;

	if (!run->layer)
		return XFP_OK;
	if ((status = xfp_stamp_find(run->job->work, before, XFP_STAMP_INPUTS, run->previous_key, err)))
		return status;
	if (*run->previous_key)
		return XFP_OK;
	xfp_stamp_remove(run->job->work, before, XFP_STAMP_INPUTS);
	return xfp_fail(err, XFP_DAMAGED, "no inputs of layer %u yet: run xfp-calibrate l%06u first",
			(unsigned)run->layer - 1, (unsigned)run->layer - 1);
}

static enum xfp_status key_of(const struct layer_run *run, struct xfp_key *key, struct xfp_error *err)
{
	uint8_t digest[16];
	const struct xfp_key_layer layer = { run->layer ? run->previous_key : NULL, run->calibration.sha256,
					     run->calibration.description, run->layer, digest };
	enum xfp_status status = xfp_inputs_digest(run->sources.source, run->sources.count, digest, err);

	return status ? status : xfp_key_inputs(&layer, key, err);
}

/* ---- opening ------------------------------------------------------------------------------------- */

static enum xfp_status refuse_previous(const struct layer_run *run, struct xfp_error *err)
{
	xfp_stamp_remove(run->job->work, XFP_LAYER | (run->layer - 1), XFP_STAMP_INPUTS);
	return xfp_fail(err, XFP_DAMAGED, "%s: is not of the layer before; run xfp-calibrate l%06u again",
			run->previous.path, (unsigned)run->layer - 1);
}

static enum xfp_status open_previous(struct layer_run *run, struct xfp_error *err)
{
	const struct xfp_inputs *in = &run->previous_inputs;
	enum xfp_status status;

	if (!run->layer)
		return XFP_OK;
	if ((status = xfp_stamped_open(&run->job->store, run->job->work, XFP_LAYER | (run->layer - 1), XFP_STAMP_INPUTS,
				       run->previous_key, &run->previous, err)) ||
	    (status = xfp_inputs_read(&run->previous, &run->previous_inputs, err)))
		return status;
	if (!in->has_stream || in->tokens != tokens_of(run) || in->length != run->calibration.length ||
	    in->hidden != run->calibration.hidden)
		return refuse_previous(run, err);
	return XFP_OK;
}

static bool count_weights(void *context, uint64_t numbers)
{
	const struct layer_run *run = context;

	xfp_watch_done(run->job->ledger->watcher, numbers);
	return true;
}

/* The model's files must be those of the ledger; reading weights checks that they stay so. */
static enum xfp_status check_files(const struct layer_run *run, struct xfp_error *err)
{
	const struct xfp_ledger *ledger = run->job->ledger;
	const char *config = xfp_weights_config(run->model.weights);
	struct xfp_sha256 model, inspected;
	uint8_t digest[2][32];
	enum xfp_status status;

	xfp_sha256_init(&model);
	xfp_sha256_init(&inspected);
	if ((status = xfp_weights_identify(run->model.weights, &model, err)))
		return status;
	xfp_sha256_update(&inspected, config, strlen(config) + 1);
	for (uint32_t i = 0; i < ledger->file_count; i++) {
		xfp_sha256_update(&inspected, ledger->files[i].name, strlen(ledger->files[i].name) + 1);
		xfp_sha256_update(&inspected, &ledger->files[i].identity, sizeof ledger->files[i].identity);
	}
	xfp_sha256_final(&model, digest[0]);
	xfp_sha256_final(&inspected, digest[1]);
	if (!memcmp(digest[0], digest[1], sizeof digest[0]))
		return XFP_OK;
	return xfp_fail(err, XFP_FAILED, "%s: changed while it was being converted; run again", run->calibration.model);
}

/* The model must be the one that xfp-calibrate --begin described. */
static enum xfp_status open_model(struct layer_run *run, struct xfp_error *err)
{
	const struct xfp_calibration *c = &run->calibration;
	enum xfp_status status = xfp_model_open(c->model, &run->model, err);
	char *text, hex[33];

	if (status)
		return status;
	if (!(text = xfp_description_text(run->model.description)))
		return xfp_no_memory(err);
	xfp_key_of_text(text, hex);
	free(text);
	if (strcmp(hex, c->description))
		return xfp_fail(err, XFP_FAILED, "%s: config.json has changed; run xfp convert again", c->model);
	if ((status = check_files(run, err)))
		return status;
	xfp_weights_watch(run->model.weights, count_weights, run);
	if ((status = xfp_team_start(run->options->threads, &run->team, err)))
		return status;
	return xfp_forward_open(run->model.description, run->model.weights, run->team, c->windows, c->length,
				&run->forward, err);
}

/* ---- portions of windows ------------------------------------------------------------------------- */

struct portion {
	const struct xfp_description *description;
	uint32_t layer;
	uint64_t length;
	unsigned threads;
};

/* Memory that a portion needs. */
static uint64_t portion_bytes(void *context, uint64_t windows)
{
	const struct portion *portion = context;
	const struct xfp_description *d = portion->description;
	struct xfp_forward_batch batch = { .arithmetic = XFP_REPRODUCIBLE,
					   .positions = portion->length,
					   .tokens = xfp_mul_sat(windows, portion->length),
					   .threads = portion->threads };
	uint64_t each = d->hidden * sizeof(float);

	if (portion->layer == d->layers)
		return xfp_mul_sat(batch.tokens, each + d->hidden * sizeof(uint16_t));
	each += xfp_capture_bytes(d, portion->layer);
	return xfp_add_sat(xfp_forward_bytes(d, &batch), xfp_mul_sat(batch.tokens, each));
}

/* Windows of a portion: as many as memory allows, in portions of nearly one size. */
static uint64_t windows_per_portion(struct portion *portion, uint64_t windows, uint64_t memory)
{
	uint64_t limit = xfp_largest_batch(windows, memory ? memory : MEMORY, portion_bytes, portion);

	return xfp_divide_up(windows, xfp_divide_up(windows, limit));
}

uint64_t xfp_calibrate_layer_bytes(const struct xfp_description *description, uint64_t windows, uint64_t length,
				   unsigned threads)
{
	struct portion portion = { description, 0, length, threads };
	uint64_t max = 0;

	for (; portion.layer < description->layers; portion.layer++) {
		uint64_t bytes = portion_bytes(&portion, windows_per_portion(&portion, windows, 0));

		max = bytes > max ? bytes : max;
	}
	return max;
}

uint64_t xfp_calibrate_portions(const struct xfp_description *description, uint32_t layer, uint64_t windows,
				uint64_t length)
{
	struct portion portion = { description, layer, length, xfp_processors() };

	return xfp_divide_up(windows, windows_per_portion(&portion, windows, 0));
}

static enum xfp_status read_stream(struct layer_run *run, uint64_t first, const struct xfp_forward *view, float *x,
				   struct xfp_error *err)
{
	if (run->layer)
		return xfp_inputs_stream(&run->previous, &run->previous_inputs, first, view->tokens, x, err);
	return xfp_forward_embed(view, run->calibration.ids + first, x, err);
}

static enum xfp_status check_stream(const struct layer_run *run, const float *x, uint64_t count, struct xfp_error *err)
{
	while (count && isfinite(*x))
		count--, x++;
	return count ? xfp_fail(err, XFP_BAD_INPUT, "layer %u: activations are not finite; verify the weights",
				(unsigned)run->layer)
		     : XFP_OK;
}

/* Capture the final norm's output, which the output head multiplies. A tied head has an empty name: its
 * input is stored, but no tensor. */
static enum xfp_status capture_head(struct layer_run *run, const struct xfp_forward *view, float *x,
				    struct xfp_error *err)
{
	struct xfp_observed product = { .tensor = run->calibration.head,
					.input = XFP_INPUT_HEAD,
					.expert = XFP_NOT_AN_EXPERT,
					.count = view->tokens,
					.cols = run->calibration.hidden,
					.x = x };
	enum xfp_status status = xfp_forward_norm(view, x, err);

	return status ? status : view->observer->observe(view->observer->context, &product, err);
}

static enum xfp_status compute_portion(struct layer_run *run, struct xfp_capture *capture, uint64_t first,
				       uint64_t windows, float *x, struct xfp_artifact *artifact, struct xfp_error *err)
{
	struct xfp_forward view = xfp_forward_view(run->forward, windows);
	uint64_t token = first * run->calibration.length;
	enum xfp_status status = read_stream(run, token, &view, x, err);

	view.observer = &capture->observer;
	xfp_capture_begin(capture, token, view.tokens);
	if (!status)
		status = is_head(run) ? capture_head(run, &view, x, err) : xfp_forward_layer(&view, run->layer, x, err);
	if (!status)
		status = check_stream(run, x, view.tokens * run->calibration.hidden, err);
	if (!status)
		status = xfp_capture_write(capture, artifact, err);
	if (!status && !is_head(run))
		status = xfp_inputs_write_stream(artifact, &capture->inputs, token, view.tokens, x, err);
	return status;
}

static enum xfp_status compute(struct layer_run *run, struct xfp_artifact *artifact, struct xfp_error *err)
{
	const struct xfp_description *d = run->model.description;
	const struct xfp_calibration *c = &run->calibration;
	struct portion portion = { d, run->layer, c->length, xfp_team_threads(run->team) };
	uint64_t per_portion = windows_per_portion(&portion, c->windows, run->options->memory), weights = 0, count;
	const struct xfp_inputs shape = { .layer = run->layer,
					  .hidden = c->hidden,
					  .tokens = tokens_of(run),
					  .length = c->length,
					  .has_stream = !is_head(run),
					  .experts_per_token = !is_head(run) && d->layer[run->layer].experts
								       ? d->experts_per_token
								       : 0,
					  .source_count = run->sources.count,
					  .sources = run->sources.source };
	struct xfp_capture capture;
	enum xfp_status status = xfp_capture_open(&capture, &shape, per_portion * c->length, err);
	float *x = malloc(per_portion * c->length * c->hidden * sizeof *x);

	for (uint32_t i = 0; i < run->sources.count; i++)
		weights += run->job->ledger->tensors[run->sources.tensor[i]].bytes * 8 /
			   xfp_dtype_bits(run->job->ledger->tensors[run->sources.tensor[i]].dtype);
	xfp_watch_more(run->job->ledger->watcher, weights * xfp_divide_up(c->windows, per_portion));
	if (!status && !x)
		status = xfp_no_memory(err);
	for (uint64_t first = 0; !status && first < c->windows; first += count) {
		count = c->windows - first < per_portion ? c->windows - first : per_portion;
		status = compute_portion(run, &capture, first, count, x, artifact, err);
	}
	if (!status)
		status = xfp_capture_end(&capture, artifact, err);
	xfp_capture_close(&capture);
	free(x);
	return status;
}

/* Weights are digested again after they were read again: only those of the key may have an effect. */
static enum xfp_status fill(void *own, struct xfp_artifact *artifact, struct xfp_error *err)
{
	struct layer_run *run = own;
	enum xfp_status status;

	(void)((status = open_previous(run, err)) || (status = open_model(run, err)) ||
	       (status = compute(run, artifact, err)) || (status = digest_sources(run, true, err)));
	return status;
}

enum xfp_status xfp_calibrate_layer(struct xfp_job *job, struct xfp_error *err)
{
	struct layer_run run = { .job = job, .options = job->own, .layer = job->number & ~XFP_LAYER };
	struct xfp_key key = { 0 };
	enum xfp_status status;

	(void)((status = read_calibration(&run, err)) || (status = list_sources(&run, err)) ||
	       (status = find_previous(&run, err)) || (status = digest_sources(&run, false, err)) ||
	       (status = key_of(&run, &key, err)) ||
	       (status = xfp_job_make(job, XFP_STAMP_INPUTS, &key, fill, &run, err)) ||
	       (status = xfp_job_stamp(job, XFP_STAMP_INPUTS, key.hex, err)));
	xfp_key_free(&key);
	xfp_artifact_close(&run.previous);
	xfp_inputs_free(&run.previous_inputs);
	xfp_forward_close(run.forward);
	xfp_team_end(run.team);
	xfp_model_close(&run.model);
	xfp_calibration_free(&run.calibration);
	xfp_layer_sources_free(&run.sources);
	return status;
}
