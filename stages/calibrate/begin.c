/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/calibrate/begin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "base/system/file.h"
#include "base/system/processors.h"
#include "base/text/text.h"
#include "cache/key.h"
#include "model/batching.h"
#include "model/end_tokens.h"
#include "model/forward/description_text.h"
#include "model/forward/forward.h"
#include "model/forward/tensors.h"
#include "model/model.h"
#include "model/npy.h"
#include "model/skipped.h"
#include "model/special_tokens.h"
#include "model/text.h"
#include "schemas/calibration.h"
#include "stages/calibrate/layer.h"
#include "stages/calibrate/pace.h"
#include "stages/calibrate/self.h"
#include "stages/calibrate/windows.h"
#include "stages/settings/data.h"
#include "stages/work/work.h"

#define LARGEST_TEXT ((size_t)1 << 32)

struct beginning {
	const struct xfp_calibrate_options *options;
	const char *work;
	struct xfp_model model;
	struct xfp_tokens windows;
	struct xfp_text notes; /* one a line */
	struct xfp_calibration calibration;
};

static XFP_PRINTF(2, 3) void note(struct beginning *b, const char *format, ...)
{
	va_list arguments;

	if (!b->notes.stream)
		return;
	va_start(arguments, format);
	vfprintf(b->notes.stream, format, arguments);
	va_end(arguments);
	fputc('\n', b->notes.stream);
}

/* ---- tokens of a text ---------------------------------------------------------------------------- */

/* A text begins with the tokens that the tokenizer adds, or with the config's. */
static enum xfp_status add_prefix(struct beginning *b, struct xfp_token_ids *prefix, struct xfp_error *err)
{
	const char *config = xfp_weights_config(b->model.weights);
	enum xfp_status status = XFP_OK;

	if (!prefix->count && config) {
		status = xfp_special_tokens(config, xfp_weights_path(b->model.weights), "bos_token_id", prefix, err);
		prefix->count = prefix->count > 0;
	}
	if (!status && !prefix->count)
		note(b, "neither tokenizer.json nor config.json has a token that begins a text (bos_token_id)");
	return status;
}

/* Encode a file. Its SHA-256 is the name of a text that the user gives. */
static enum xfp_status encode(struct beginning *b, const char *path, struct xfp_text_ids *ids, struct xfp_error *err)
{
	struct xfp_tokenizer *tokenizer = NULL;
	char *text = NULL, hex[65];
	uint8_t digest[32];
	size_t size;
	enum xfp_status status = xfp_model_tokenizer(&b->model, &tokenizer, err);

	if (!status && !tokenizer)
		status =
			xfp_fail(err, XFP_BAD_INPUT,
				 "%s: has no tokenizer.json, which calibration by a text needs; convert the model from "
				 "a folder that has it, or give token ids",
				 xfp_weights_path(b->model.weights));
	if (status || (status = xfp_slurp_input(path, LARGEST_TEXT, &text, &size, err)))
		goto done;
	xfp_sha256(text, size, digest);
	xfp_hex(digest, sizeof digest, hex);
	b->calibration.source =
		b->options->text ? xfp_formatted(XFP_CALIBRATION_TEXT "%s", hex) : strdup(XFP_CALIBRATION_DEFAULT);
	if (!b->calibration.source)
		status = xfp_no_memory(err);
	else if (!(status = xfp_text_encode(tokenizer, text, size, ids, err)))
		status = add_prefix(b, &ids->prefix, err);
	/* Only encoders see the end of a text. */
	ids->suffix.count = b->model.description->encoder ? ids->suffix.count : 0;
	if (*ids->defects)
		note(b, "%s: %s", xfp_printable(xfp_input_name(path)).text, ids->defects);
done:
	free(text);
	xfp_tokenizer_free(tokenizer);
	return status;
}

static uint64_t wanted_tokens(const struct beginning *b)
{
	return b->options->token_count ? b->options->token_count : xfp_default_tokens(b->model.description);
}

/* Each window has tokens besides those around a text. */
static enum xfp_status check_around(const struct beginning *b, uint64_t around, struct xfp_error *err)
{
	const struct xfp_description *d = b->model.description;

	if (around < xfp_window_length(d))
		return XFP_OK;
	return xfp_fail(err, XFP_BAD_INPUT, "%s: the context of %u tokens is too short for calibration",
			xfp_weights_path(b->model.weights), (unsigned)d->context);
}

static enum xfp_status cut_text(struct beginning *b, const char *path, struct xfp_error *err)
{
	const struct xfp_description *d = b->model.description;
	uint64_t length = xfp_window_length(d);
	uint64_t wanted = wanted_tokens(b);
	struct xfp_text_ids text = { .defects = "" };
	enum xfp_status status = encode(b, path, &text, err);

	if (!status && !(status = check_around(b, text.prefix.count + text.suffix.count, err)))
		status = xfp_windows_of_text(&text, length, wanted, &b->windows, err);
	if (!status && b->windows.sequences < xfp_divide_up(wanted, length))
		note(b, "%s: has %zu tokens, fewer than the %" PRIu64 " wanted; all whole windows are used",
		     xfp_printable(xfp_input_name(path)).text, text.ids.count, wanted);
	xfp_text_ids_free(&text);
	return status;
}

static enum xfp_status default_text(struct beginning *b, struct xfp_error *err)
{
	char *folder = NULL, *path = NULL;
	enum xfp_status status = xfp_data_folder(XFP_PIPELINES, &folder, err);

	if (!status && !(path = xfp_formatted("%s/calibration/" XFP_CALIBRATION_DEFAULT ".txt", folder)))
		status = xfp_no_memory(err);
	if (!status)
		status = cut_text(b, path, err);
	free(folder);
	free(path);
	return status;
}

/* ---- tokens -------------------------------------------------------------------------------------- */

static enum xfp_status given_tokens(struct beginning *b, struct xfp_error *err)
{
	const struct xfp_description *d = b->model.description;
	enum xfp_status status = xfp_tokens_read(b->options->tokens, &b->windows, err);

	if (!status && b->windows.length > d->context)
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s: windows of %zu tokens are longer than the model's context of %u",
				  xfp_input_name(b->options->tokens), b->windows.length, (unsigned)d->context);
	if (!status && b->options->token_count)
		xfp_windows_select(&b->windows, b->options->token_count);
	if (!status && !(b->calibration.source = strdup(XFP_CALIBRATION_TOKENS)))
		status = xfp_no_memory(err);
	return status;
}

/* ---- text that the model generates --------------------------------------------------------------- */

/* Add all that the tokens depend on, besides the model's files, to the identity. */
static void identify_request(struct xfp_calibration *c, const struct xfp_self_request *request)
{
	const struct xfp_token_ids *prefix = &request->prefix, *ends = &request->ends;
	const uint64_t numbers[] = { XFP_ALGORITHM_INPUTS, XFP_SELF_SEED, request->windows,
				     request->length,      prefix->count, ends->count };
	struct xfp_sha256 sha;
	uint8_t digest[32];

	xfp_sha256_init(&sha);
	xfp_sha256_update(&sha, c->identity, sizeof c->identity);
	xfp_sha256_update(&sha, numbers, sizeof numbers);
	if (prefix->count)
		xfp_sha256_update(&sha, prefix->id, prefix->count * sizeof *prefix->id);
	if (ends->count)
		xfp_sha256_update(&sha, ends->id, ends->count * sizeof *ends->id);
	xfp_sha256_final(&sha, digest);
	xfp_hex(digest, sizeof digest, c->identity);
}

/* Use the tokens of an earlier run if nothing that they depend on has changed. */
static bool reuse(struct beginning *b, size_t windows, size_t length)
{
	struct xfp_calibration old;
	bool found, same;

	if (xfp_calibration_read(b->work, &old, &found, NULL) || !found)
		return false;
	same = !strcmp(old.source, XFP_CALIBRATION_SELF) && !strcmp(old.identity, b->calibration.identity) &&
	       old.windows == windows && old.length == length;
	if (same) {
		b->windows = (struct xfp_tokens){ .sequences = windows, .length = length, .ids = old.ids };
		old.ids = NULL;
	}
	xfp_calibration_free(&old);
	return same;
}

/* A tokenizer is not needed. */
static enum xfp_status find_prefix(struct beginning *b, struct xfp_token_ids *prefix, struct xfp_error *err)
{
	struct xfp_token_ids suffix = { 0 };
	struct xfp_tokenizer *tokenizer = NULL;
	enum xfp_status status = xfp_model_tokenizer(&b->model, &tokenizer, err);

	if (!status && tokenizer)
		status = xfp_text_around(tokenizer, prefix, &suffix, err);
	free(suffix.id);
	xfp_tokenizer_free(tokenizer);
	return status ? status : add_prefix(b, prefix, err);
}

static enum xfp_status own_tokens(struct beginning *b, struct xfp_error *err)
{
	const struct xfp_description *d = b->model.description;
	uint64_t wanted = wanted_tokens(b);
	struct xfp_self_request request = { .length = xfp_window_length(d),
					    .memory = b->options->memory ? b->options->memory : xfp_default_memory(),
					    .threads = b->options->threads };
	enum xfp_status status = XFP_OK;

	request.windows = xfp_divide_up(wanted, request.length);
	if (!(b->calibration.source = strdup(XFP_CALIBRATION_SELF)))
		return xfp_no_memory(err);
	b->windows.length = request.length;
	(void)((status = find_prefix(b, &request.prefix, err)) ||
	       (status = check_around(b, request.prefix.count, err)) ||
	       (status = xfp_end_tokens_read(&b->model, &request.ends, err)));
	identify_request(&b->calibration, &request);
	if (!status && request.windows >= 2 && !reuse(b, request.windows, request.length))
		status = xfp_windows_of_model(&b->model, &request, &b->windows, err);
	free(request.prefix.id);
	free(request.ends.id);
	return status;
}

/* Zeros, as many as own_tokens() would generate. */
static enum xfp_status own_length(struct beginning *b, struct xfp_error *err)
{
	const struct xfp_description *d = b->model.description;
	uint64_t wanted = wanted_tokens(b);

	b->windows.length = xfp_window_length(d);
	b->windows.sequences = xfp_divide_up(wanted, b->windows.length);
	b->windows.ids = calloc(b->windows.sequences, b->windows.length * sizeof *b->windows.ids);
	b->calibration.source = strdup(XFP_CALIBRATION_SELF);
	return b->windows.ids && b->calibration.source ? XFP_OK : xfp_no_memory(err);
}

static enum xfp_status get_tokens(struct beginning *b, struct xfp_error *err)
{
	if (b->options->self_length)
		return own_length(b, err);
	if (b->options->self)
		return own_tokens(b, err);
	if (b->options->tokens)
		return given_tokens(b, err);
	return b->options->text ? cut_text(b, b->options->text, err) : default_text(b, err);
}

static enum xfp_status check_windows(const struct beginning *b, struct xfp_error *err)
{
	const struct xfp_tokens *windows = &b->windows;
	const char *path = b->options->tokens ? b->options->tokens
			   : b->options->text ? b->options->text
					      : XFP_CALIBRATION_DEFAULT;
	uint32_t vocabulary = b->model.description->vocabulary;
	uint64_t wanted = b->options->token_count;

	if (windows->sequences < 2 && wanted && xfp_divide_up(wanted, windows->length) < 2)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%" PRIu64 " tokens are fewer than two windows of %zu, one of which is held out; use a "
				"larger token count",
				wanted, windows->length);
	if (windows->sequences < 2)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: has fewer than two windows of %zu tokens, one of which is held out; use more text",
				xfp_input_name(path), windows->length);
	for (size_t t = 0; t < windows->sequences * windows->length; t++)
		if (windows->ids[t] >= vocabulary)
			return xfp_fail(err, XFP_BAD_INPUT,
					"%s: token %zu of window %zu is %u, and the model's vocabulary has %u",
					xfp_input_name(path), t % windows->length, t / windows->length,
					(unsigned)windows->ids[t], (unsigned)vocabulary);
	return XFP_OK;
}

/* ---- the model ----------------------------------------------------------------------------------- */

static enum xfp_status open_model(struct beginning *b, const char *name, struct xfp_error *err)
{
	enum xfp_status status = xfp_model_open(name, &b->model, err);
	char *skipped = NULL;

	if (!status && xfp_weights_is_bundle(b->model.weights))
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: is a bundle; calibration needs the checkpoint", name);
	if (status ||
	    ((b->options->self || b->options->self_length) && (status = xfp_model_check_decoder(&b->model, err))) ||
	    (status = xfp_skipped_note(&b->model, &skipped, err)))
		return status;
	if (skipped)
		note(b, "%s", skipped);
	free(skipped);
	return xfp_forward_check(b->model.description, b->model.weights, err);
}

static enum xfp_status describe_model(struct beginning *b, struct xfp_error *err)
{
	const struct xfp_description *d = b->model.description;
	const struct xfp_tensor_names *names = xfp_find_names(d, b->model.weights);
	struct xfp_calibration *c = &b->calibration;
	char *text = xfp_description_text(d);
	struct xfp_sha256 sha;
	uint8_t digest[32];
	enum xfp_status status;

	if (text)
		xfp_key_of_text(text, c->description);
	free(text);
	xfp_sha256_init(&sha);
	if ((status = xfp_weights_identify(b->model.weights, &sha, err)))
		return status;
	xfp_sha256_final(&sha, digest);
	xfp_hex(digest, sizeof digest, c->identity);
	c->model = realpath(b->model.path, NULL);
	c->body = strdup(names->body);
	c->head = strdup(d->tied ? "" : names->head);
	c->layers = d->layers;
	c->hidden = d->hidden;
	c->experts_per_token = d->experts_per_token;
	return *c->description && c->model && c->body && c->head ? XFP_OK : xfp_no_memory(err);
}

/* Remove the stamps of all layers unless the old file has the same windows: they are those of other tokens. */
static void remove_stamps(const struct beginning *b)
{
	const struct xfp_calibration *c = &b->calibration;
	struct xfp_calibration old;
	bool found, same;
	uint32_t layers;

	same = !xfp_calibration_read(b->work, &old, &found, NULL) && found && old.windows == c->windows &&
	       old.length == c->length && !memcmp(old.ids, c->ids, c->windows * c->length * sizeof *c->ids);
	layers = old.layers > c->layers ? old.layers : c->layers;
	for (uint32_t layer = 0; !same && layer <= layers; layer++)
		xfp_stamp_remove(b->work, XFP_LAYER | layer, XFP_STAMP_INPUTS);
	xfp_calibration_free(&old);
}

static enum xfp_status write_calibration(struct beginning *b, const char *work, struct xfp_error *err)
{
	struct xfp_calibration *c = &b->calibration;
	enum xfp_status status = XFP_OK;

	c->windows = b->windows.sequences;
	c->length = b->windows.length;
	c->ids = b->windows.ids;
	b->windows.ids = NULL;
	c->memory = xfp_calibrate_layer_bytes(b->model.description, c->windows, c->length, xfp_processors());
	if (!xfp_text_end(&b->notes))
		status = status ? status : xfp_no_memory(err);
	c->notes = b->notes.bytes;
	b->notes = (struct xfp_text){ .stream = NULL };
	if (!status && b->options->pace) {
		c->seconds = calloc(c->layers + (size_t)1, sizeof *c->seconds);
		status = c->seconds ? xfp_calibrate_seconds(&b->model, c->windows, c->length, c->seconds,
							    &c->generating, err)
				    : xfp_no_memory(err);
		if (!b->options->self_length)
			c->generating = 0;
	}
	if (!status)
		remove_stamps(b);
	if (status || (status = xfp_calibration_write(work, c, err)))
		return status;
	printf("calibration: %" PRIu64 " windows of %" PRIu64 " tokens (%s)\n", c->windows, c->length, c->source);
	for (char *at = c->notes, *line; (line = strsep(&at, "\n")) && *line;)
		printf("note: %s\n", line);
	return XFP_OK;
}

enum xfp_status xfp_calibrate_begin(const struct xfp_calibrate_options *options, const char *work, const char *model,
				    struct xfp_error *err)
{
	struct beginning b = { .options = options, .work = work };
	enum xfp_status status;

	if (options->self + options->self_length + !!options->text + !!options->tokens > 1)
		return xfp_fail(err, XFP_USAGE, "--text, --tokens and --self contradict one another; give one of them");
	xfp_text_begin(&b.notes);
	status = open_model(&b, model, err);
	if (!status && !(status = describe_model(&b, err)) && !(status = get_tokens(&b, err)) &&
	    !(status = check_windows(&b, err)))
		status = write_calibration(&b, work, err);
	if (b.notes.stream)
		xfp_text_end(&b.notes);
	free(b.notes.bytes);
	free(b.windows.ids);
	xfp_calibration_free(&b.calibration);
	xfp_model_close(&b.model);
	return status;
}
