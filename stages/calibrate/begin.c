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
#include "base/text/text.h"
#include "cache/key.h"
#include "model/forward/description_text.h"
#include "model/forward/forward.h"
#include "model/forward/tensors.h"
#include "model/model.h"
#include "model/npy.h"
#include "model/special_tokens.h"
#include "model/text.h"
#include "schemas/calibration.h"
#include "stages/calibrate/windows.h"
#include "stages/settings/data.h"

#define DEFAULT_TEXT "calibration-1"
#define LARGEST_TEXT ((size_t)1 << 32)

struct beginning {
	const struct xfp_calibrate_options *options;
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
static enum xfp_status add_prefix(struct beginning *b, struct xfp_text_ids *text, struct xfp_error *err)
{
	const char *config = xfp_weights_config(b->model.weights);
	struct xfp_token_ids ids = { 0 };
	enum xfp_status status = XFP_OK;

	if (!text->prefix.count && config)
		status = xfp_special_tokens(config, xfp_weights_path(b->model.weights), "bos_token_id", &ids, err);
	if (!status && ids.count) {
		free(text->prefix.id);
		text->prefix = (struct xfp_token_ids){ .id = ids.id, .count = 1 };
		return XFP_OK;
	}
	free(ids.id);
	if (!status && !text->prefix.count)
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
	b->calibration.source = b->options->text ? xfp_formatted("text:%s", hex) : strdup(DEFAULT_TEXT);
	if (!b->calibration.source)
		status = xfp_no_memory(err);
	else if (!(status = xfp_text_encode(tokenizer, text, size, ids, err)))
		status = add_prefix(b, ids, err);
	if (*ids->defects)
		note(b, "%s: %s", xfp_printable(xfp_input_name(path)).text, ids->defects);
done:
	free(text);
	xfp_tokenizer_free(tokenizer);
	return status;
}

static enum xfp_status cut_text(struct beginning *b, const char *path, struct xfp_error *err)
{
	const struct xfp_description *d = b->model.description;
	uint64_t length = d->context < XFP_WINDOW_TOKENS ? d->context : XFP_WINDOW_TOKENS;
	uint64_t wanted = b->options->token_count ? b->options->token_count : xfp_default_tokens(d);
	struct xfp_text_ids text = { .defects = "" };
	enum xfp_status status = encode(b, path, &text, err);

	if (!status && length <= text.prefix.count)
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: the context of %u tokens is too short for calibration",
				  xfp_weights_path(b->model.weights), (unsigned)d->context);
	if (!status)
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

	if (!status && !(path = xfp_formatted("%s/calibration/" DEFAULT_TEXT ".txt", folder)))
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
	if (!status && !(b->calibration.source = strdup("tokens")))
		status = xfp_no_memory(err);
	return status;
}

static enum xfp_status get_tokens(struct beginning *b, struct xfp_error *err)
{
	if (b->options->tokens)
		return given_tokens(b, err);
	return b->options->text ? cut_text(b, b->options->text, err) : default_text(b, err);
}

static enum xfp_status check_windows(const struct beginning *b, struct xfp_error *err)
{
	const struct xfp_tokens *windows = &b->windows;
	const char *path = b->options->tokens ? b->options->tokens : b->options->text ? b->options->text : DEFAULT_TEXT;
	uint32_t vocabulary = b->model.description->vocabulary;

	if (windows->sequences < 2)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: has less than two windows of %zu tokens, one of which is held out; use more text",
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

	if (!status && xfp_weights_is_bundle(b->model.weights))
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: is a bundle; calibration needs the checkpoint", name);
	return status ? status : xfp_forward_check(b->model.description, b->model.weights, err);
}

static enum xfp_status describe_model(struct beginning *b, struct xfp_error *err)
{
	const struct xfp_description *d = b->model.description;
	const struct xfp_tensor_names *names = xfp_find_names(d, b->model.weights);
	struct xfp_calibration *c = &b->calibration;
	char *text = xfp_description_text(d);

	if (text)
		xfp_key_of_text(text, c->description);
	free(text);
	c->model = realpath(b->model.path, NULL);
	c->body = strdup(names->body);
	c->head = strdup(d->tied ? "" : names->head);
	c->layers = d->layers;
	c->hidden = d->hidden;
	c->experts_per_token = d->experts_per_token;
	return *c->description && c->model && c->body && c->head ? XFP_OK : xfp_no_memory(err);
}

static enum xfp_status write_calibration(struct beginning *b, const char *work, struct xfp_error *err)
{
	struct xfp_calibration *c = &b->calibration;
	enum xfp_status status = describe_model(b, err);

	c->windows = b->windows.sequences;
	c->length = b->windows.length;
	c->ids = b->windows.ids;
	b->windows.ids = NULL;
	if (!xfp_text_end(&b->notes))
		status = status ? status : xfp_no_memory(err);
	c->notes = b->notes.bytes;
	b->notes = (struct xfp_text){ .stream = NULL };
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
	struct beginning b = { .options = options };
	enum xfp_status status = open_model(&b, model, err);

	xfp_text_begin(&b.notes);
	if (!status && !(status = get_tokens(&b, err)) && !(status = check_windows(&b, err)))
		status = write_calibration(&b, work, err);
	if (b.notes.stream)
		xfp_text_end(&b.notes);
	free(b.notes.bytes);
	free(b.windows.ids);
	xfp_calibration_free(&b.calibration);
	xfp_model_close(&b.model);
	return status;
}
