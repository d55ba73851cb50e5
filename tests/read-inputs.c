/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read-inputs - write the contents of an artifact of inputs (schemas/inputs.h), or of a work folder's calibration.h5
 * (schemas/calibration.h), to files, for tests/inputs_file.py.
 *
 *     read-inputs FILE FOLDER
 *     read-inputs WORK FOLDER
 *
 * Prints the tables; FOLDER gets NAME.values of each input, stream and experts, or ids: arrays of numbers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/system/file.h"
#include "schemas/calibration.h"
#include "schemas/inputs.h"

static void check(enum xfp_status status, const struct xfp_error *err)
{
	if (!status)
		return;
	fprintf(stderr, "read-inputs: %s\n", err->text);
	exit(status);
}

static void put(const char *folder, const char *name, const char *suffix, const void *data, size_t size)
{
	struct xfp_error err = { 0 };
	char *path = xfp_formatted("%s/%s%s", folder, name, suffix);

	check(path ? xfp_write_file(path, data, size, false, &err) : xfp_no_memory(&err), &err);
	free(path);
}

static void put_values(const char *folder, const struct xfp_artifact *a, const struct xfp_inputs *in, uint32_t i)
{
	const struct xfp_layer_input *input = &in->input[i];
	uint16_t *values = calloc(input->rows * input->cols, sizeof *values);
	uint64_t *rows = calloc(input->rows, sizeof *rows);
	struct xfp_error err = { 0 };

	if (!values || !rows)
		abort();
	for (uint64_t r = 0; r < input->rows; r++)
		rows[r] = r;
	check(xfp_inputs_values(a, in, i, rows, input->rows, values, &err), &err);
	put(folder, input->name, ".values", values, input->rows * input->cols * sizeof *values);
	free(values);
	free(rows);
}

static void print_tables(const struct xfp_inputs *in)
{
	char hex[33];

	printf("layer %" PRIu32 "\nhidden %" PRIu32 "\ntokens %" PRIu64 "\nlength %" PRIu64 "\n", in->layer, in->hidden,
	       in->tokens, in->length);
	printf("experts_per_token %" PRIu32 "\nhas_stream %d\n", in->experts_per_token, in->has_stream);
	for (uint32_t i = 0; i < in->input_count; i++)
		printf("input %s %" PRIu64 " %" PRIu64 "\n", in->input[i].name, in->input[i].rows, in->input[i].cols);
	for (uint32_t i = 0; i < in->tensor_count; i++)
		printf("tensor %s %s %" PRIu32 "\n", in->tensors[i].name, in->input[in->tensors[i].input].name,
		       in->tensors[i].expert);
	for (uint32_t i = 0; i < in->source_count; i++) {
		xfp_hex(in->sources[i].digest, 16, hex);
		printf("source %s %s\n", in->sources[i].name, hex);
	}
}

static int read_calibration(const char *work, const char *folder)
{
	struct xfp_error err = { 0 };
	struct xfp_calibration c;
	bool found;

	check(xfp_calibration_read(work, &c, &found, &err), &err);
	if (!found)
		return 1;
	printf("windows %" PRIu64 "\nlength %" PRIu64 "\nsource %s\nsha256 %s\n", c.windows, c.length, c.source,
	       c.sha256);
	put(folder, "ids", "", c.ids, c.windows * c.length * sizeof *c.ids);
	xfp_calibration_free(&c);
	return 0;
}

int main(int argc, char **argv)
{
	struct xfp_artifact a = { 0 };
	struct xfp_inputs in = { 0 };
	struct xfp_error err = { 0 };
	struct stat st;

	if (argc != 3)
		return 2;
	if (!stat(argv[1], &st) && S_ISDIR(st.st_mode))
		return read_calibration(argv[1], argv[2]);
	check(xfp_artifact_open(argv[1], XFP_INPUTS_KIND, XFP_INPUTS_VERSION, NULL, &a, &err), &err);
	check(xfp_inputs_read(&a, &in, &err), &err);
	print_tables(&in);
	for (uint32_t i = 0; i < in.input_count; i++)
		put_values(argv[2], &a, &in, i);
	if (in.has_stream) {
		float *stream = calloc(in.tokens * in.hidden, sizeof *stream);

		if (!stream)
			abort();
		check(xfp_inputs_stream(&a, &in, 0, in.tokens, stream, &err), &err);
		put(argv[2], "stream", "", stream, in.tokens * in.hidden * sizeof *stream);
		free(stream);
	}
	put(argv[2], "experts", "", in.experts ? (const void *)in.experts : "",
	    in.tokens * in.experts_per_token * sizeof *in.experts);
	xfp_inputs_free(&in);
	xfp_artifact_close(&a);
	return 0;
}
