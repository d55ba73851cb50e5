/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs - write the inputs of a layer, the calibration and the parameter into a work folder and a cache, or print the
 * outputs that a fit measured, for tests/calibrated_fit.py.
 *
 *     inputs write WORK CACHE CASE
 *     inputs outputs WORK CACHE UNIT
 *
 * CASE is a struct header; for each input its name, rows, columns and values; experts; for each tensor its name, its
 * input and its expert.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/key.h"
#include "cache/store.h"
#include "schemas/calibration.h"
#include "schemas/fit.h"
#include "schemas/inputs.h"
#include "stages/work/work.h"

#define NAME 96

struct header {
	uint64_t tokens, length;
	uint32_t layer, layers, hidden, experts_per_token, inputs, tensors;
};

static FILE *file;

static void check(enum xfp_status status, const struct xfp_error *err)
{
	if (!status)
		return;
	fprintf(stderr, "inputs: %s\n", err->text);
	exit((int)status);
}

static void *get(size_t bytes)
{
	void *buffer = calloc(bytes + 1, 1);

	if (!buffer || (bytes && fread(buffer, bytes, 1, file) != 1))
		abort();
	return buffer;
}

static uint64_t number(size_t bytes)
{
	uint64_t value = 0, *read = get(bytes);

	memcpy(&value, read, bytes);
	free(read);
	return value;
}

static void write_values(struct xfp_artifact *a, const struct xfp_layer_input *input, uint16_t *values)
{
	struct xfp_error err;

	check(xfp_inputs_write_values(a, input, 0, input->rows, values, &err), &err);
	free(values);
}

static void write_inputs(const struct xfp_store *store, const struct header *h, char key[33])
{
	struct xfp_inputs in = { .layer = h->layer,
				 .hidden = h->hidden,
				 .experts_per_token = h->experts_per_token,
				 .tokens = h->tokens,
				 .length = h->length,
				 .input_count = h->inputs,
				 .tensor_count = h->tensors };
	struct xfp_input_tensor *tensors;
	struct xfp_pending pending = { 0 };
	struct xfp_artifact a = { 0 };
	struct xfp_error err = { 0 };
	uint16_t *values[XFP_MAX_INPUTS];

	for (uint32_t i = 0; i < h->inputs; i++) {
		char *name = get(XFP_INPUT_NAME);

		memcpy(in.input[i].name, name, XFP_INPUT_NAME);
		free(name);
		in.input[i].rows = number(8);
		in.input[i].cols = number(8);
		values[i] = get(in.input[i].rows * in.input[i].cols * sizeof *values[i]);
	}
	in.experts = get(h->tokens * h->experts_per_token * sizeof *in.experts);
	tensors = calloc(h->tensors + (size_t)1, sizeof *tensors);
	if (!tensors)
		abort();
	for (uint32_t i = 0; i < h->tensors; i++) {
		tensors[i].name = get(NAME);
		tensors[i].input = (uint32_t)number(4);
		tensors[i].expert = (uint32_t)number(4);
	}
	in.tensors = tensors;
	xfp_key_of_text("inputs of a test", key);
	check(xfp_store_begin(store, key, &pending, &err), &err);
	check(xfp_artifact_create(pending.path, &a, &err), &err);
	check(xfp_inputs_begin(&a, &in, &err), &err);
	for (uint32_t i = 0; i < h->inputs; i++)
		write_values(&a, &in.input[i], values[i]);
	check(xfp_inputs_end(&a, &in, &err), &err);
	check(xfp_artifact_finish(&a,
				  &(struct xfp_artifact_label){ .kind = XFP_INPUTS_KIND,
								.version = XFP_INPUTS_VERSION,
								.key = key,
								.key_text = "inputs of a test",
								.unit = "" },
				  &err),
	      &err);
	check(xfp_pending_publish(&pending, false, &err), &err);
	for (uint32_t i = 0; i < h->tensors; i++)
		free((void *)tensors[i].name);
	free(tensors);
	free(in.experts);
}

static void write_calibration(const char *work, const struct header *h)
{
	uint32_t id = 0;
	struct xfp_calibration calibration = { .source = "test",
					       .model = "",
					       .body = "model.",
					       .head = "",
					       .notes = "",
					       .layers = h->layers,
					       .hidden = h->hidden,
					       .windows = 1,
					       .length = 1,
					       .ids = &id };
	struct xfp_parameters parameters;
	struct xfp_error err = { 0 };

	memset(calibration.description, '0', sizeof calibration.description - 1);
	memset(calibration.identity, '0', sizeof calibration.identity - 1);
	check(xfp_calibration_write(work, &calibration, &err), &err);
	check(xfp_work_parameters(work, &parameters, &err), &err);
	memcpy(parameters.calibration.sha256, calibration.sha256, sizeof calibration.sha256);
	parameters.calibration.tokens = h->tokens;
	strcpy(parameters.calibration.source, "test");
	check(xfp_work_write_parameters(work, &parameters, &err), &err);
	xfp_parameters_free(&parameters);
}

static void print_outputs(const struct xfp_store *store, const char *work, uint32_t unit)
{
	struct xfp_artifact a = { 0 };
	struct xfp_error err = { 0 };
	struct xfp_fit fit;
	char key[33], *path;

	check(xfp_stamp_find(work, unit, XFP_STAMP_LIBRARY, key, &err), &err);
	path = xfp_store_path(store, key);
	check(xfp_artifact_open(path, XFP_FIT_KIND, XFP_FIT_VERSION, key, &a, &err), &err);
	check(xfp_fit_read(&a, &fit, &err), &err);
	for (uint32_t i = 0; i < fit.candidate_count; i++)
		printf("%s %u %u %u %.17g %.17g %.17g %.17g\n", xfp_mode_name((enum xfp_mode)fit.candidates[i].mode),
		       fit.candidates[i].group, fit.candidates[i].k, fit.unreached, fit.outputs[i].median,
		       fit.outputs[i].p5, fit.outputs[i].error, fit.candidates[i].error);
	xfp_artifact_close(&a);
	free(path);
}

int main(int argc, char **argv)
{
	struct xfp_store store = { 0 };
	struct xfp_error err = { 0 };
	struct header *h;
	uint32_t unit;
	char key[33];

	if (argc != 5)
		return 2;
	check(xfp_store_open(argv[3], &store, &err), &err);
	if (!strcmp(argv[1], "outputs") && xfp_unit_parse(argv[4], &unit)) {
		print_outputs(&store, argv[2], unit);
	} else if (!strcmp(argv[1], "write") && (file = fopen(argv[4], "rb"))) {
		h = get(sizeof *h);
		write_inputs(&store, h, key);
		write_calibration(argv[2], h);
		check(xfp_stamp_write(argv[2], XFP_LAYER | h->layer, XFP_STAMP_INPUTS, key, &err), &err);
		free(h);
		fclose(file);
	} else {
		return 2;
	}
	xfp_store_close(&store);
	return 0;
}
