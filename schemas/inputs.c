/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/system/file.h"
#include "base/text/text.h"
#include "schemas/digest.h"
#include "schemas/h5.h"

struct input_record {
	uint64_t rows, cols;
};

struct tensor_record {
	uint32_t input, expert;
};

/* A record of two members of the same type. */
static hid_t pair_type(const char *first, const char *second, hid_t member)
{
	const size_t size = H5Tget_size(member);
	hid_t type = H5Tcreate(H5T_COMPOUND, 2 * size);

	if (type < 0 || (H5Tinsert(type, first, 0, member) >= 0 && H5Tinsert(type, second, size, member) >= 0))
		return type;
	H5Tclose(type);
	return -1;
}

static hid_t input_type(void)
{
	return pair_type("rows", "cols", H5T_NATIVE_UINT64);
}

static hid_t tensor_type(void)
{
	return pair_type("input", "expert", H5T_NATIVE_UINT32);
}

static const char *values_of(const struct xfp_layer_input *input, char name[40])
{
	snprintf(name, 40, "values-%s", input->name);
	return name;
}

/* ---- windows and digests ------------------------------------------------------------------------- */

bool xfp_inputs_held_out(const struct xfp_inputs *inputs, uint64_t token)
{
	uint64_t window = token / inputs->length, windows = inputs->tokens / inputs->length;

	return windows < XFP_HELD_OUT_WINDOWS ? window == windows - 1
					      : window % XFP_HELD_OUT_WINDOWS == XFP_HELD_OUT_WINDOWS - 1;
}

enum xfp_status xfp_inputs_digest(const struct xfp_input_source *sources, uint32_t count, uint8_t digest[16],
				  struct xfp_error *err)
{
	struct xfp_digest *sum = xfp_digest_new();

	if (!sum)
		return xfp_no_memory(err);
	for (uint32_t i = 0; i < count; i++) {
		xfp_digest_update(sum, sources[i].name, strlen(sources[i].name) + 1);
		xfp_digest_update(sum, sources[i].digest, sizeof sources[i].digest);
	}
	xfp_digest_final(sum, digest);
	return XFP_OK;
}

/* ---- writing ------------------------------------------------------------------------------------- */

enum xfp_status xfp_inputs_begin(struct xfp_artifact *a, const struct xfp_inputs *inputs, struct xfp_error *err)
{
	enum xfp_status status = xfp_h5_reserve(a, "stream", H5T_NATIVE_FLOAT,
						inputs->has_stream ? inputs->tokens * inputs->hidden : 0, err);
	char name[40];

	for (uint32_t i = 0; !status && i < inputs->input_count; i++)
		status = xfp_h5_reserve(a, values_of(&inputs->input[i], name), H5T_NATIVE_UINT16,
					inputs->input[i].rows * inputs->input[i].cols, err);
	return status;
}

enum xfp_status xfp_inputs_write_stream(struct xfp_artifact *a, const struct xfp_inputs *inputs, uint64_t first,
					uint64_t tokens, const float *x, struct xfp_error *err)
{
	return xfp_h5_write_range(a, "stream", H5T_NATIVE_FLOAT, first * inputs->hidden, tokens * inputs->hidden, x,
				  err);
}

enum xfp_status xfp_inputs_write_values(struct xfp_artifact *a, const struct xfp_layer_input *input, uint64_t first,
					uint64_t rows, const uint16_t *x, struct xfp_error *err)
{
	char name[40];

	return xfp_h5_write_range(a, values_of(input, name), H5T_NATIVE_UINT16, first * input->cols, rows * input->cols,
				  x, err);
}

static enum xfp_status write_numbers(struct xfp_artifact *a, const struct xfp_inputs *inputs, struct xfp_error *err)
{
	enum xfp_status status;

	(void)((status = xfp_h5_write_u64(a, "layer", inputs->layer, err)) ||
	       (status = xfp_h5_write_u64(a, "hidden", inputs->hidden, err)) ||
	       (status = xfp_h5_write_u64(a, "tokens", inputs->tokens, err)) ||
	       (status = xfp_h5_write_u64(a, "length", inputs->length, err)) ||
	       (status = xfp_h5_write_u64(a, "experts_per_token", inputs->experts_per_token, err)) ||
	       (status = xfp_h5_write_u64(a, "inputs", inputs->input_count, err)) ||
	       (status = xfp_h5_write_u64(a, "tensors", inputs->tensor_count, err)) ||
	       (status = xfp_h5_write(a, "experts", H5T_NATIVE_UINT32, inputs->tokens * inputs->experts_per_token,
				      inputs->experts, err)));
	return status;
}

/* Write a dataset of names, after those of inputs if `inputs` is not NULL. */
static enum xfp_status write_names(struct xfp_artifact *a, const char *dataset, const struct xfp_inputs *inputs,
				   bool sources, struct xfp_error *err)
{
	struct xfp_text text;
	enum xfp_status status;

	if (xfp_text_begin(&text)) {
		for (uint32_t i = 0; !sources && i < inputs->input_count; i++)
			fprintf(text.stream, "%s\n", inputs->input[i].name);
		for (uint32_t i = 0; !sources && i < inputs->tensor_count; i++)
			fprintf(text.stream, "%s\n", inputs->tensors[i].name);
		for (uint32_t i = 0; sources && i < inputs->source_count; i++)
			fprintf(text.stream, "%s\n", inputs->sources[i].name);
	}
	status = xfp_text_end(&text) ? xfp_h5_write(a, dataset, H5T_NATIVE_UINT8, text.size, text.bytes, err)
				     : xfp_no_memory_for(err, a->path);
	free(text.bytes);
	return status;
}

static enum xfp_status write_records(struct xfp_artifact *a, const char *name, hid_t type, uint64_t count,
				     const void *records, struct xfp_error *err)
{
	enum xfp_status status = type < 0 || !records ? xfp_no_memory_for(err, a->path)
						      : xfp_h5_write(a, name, type, count, records, err);

	if (type >= 0)
		H5Tclose(type);
	return status;
}

enum xfp_status xfp_inputs_end(struct xfp_artifact *a, const struct xfp_inputs *inputs, struct xfp_error *err)
{
	struct input_record input[XFP_MAX_INPUTS];
	struct tensor_record *tensors = calloc(inputs->tensor_count + (size_t)1, sizeof *tensors);
	uint8_t(*digests)[16] = calloc(inputs->source_count + (size_t)1, sizeof *digests);
	enum xfp_status status;

	for (uint32_t i = 0; i < inputs->input_count; i++)
		input[i] = (struct input_record){ inputs->input[i].rows, inputs->input[i].cols };
	for (uint32_t i = 0; tensors && i < inputs->tensor_count; i++)
		tensors[i] = (struct tensor_record){ inputs->tensors[i].input, inputs->tensors[i].expert };
	for (uint32_t i = 0; digests && i < inputs->source_count; i++)
		memcpy(digests[i], inputs->sources[i].digest, 16);
	status = digests ? XFP_OK : xfp_no_memory_for(err, a->path);
	if (!status)
		(void)((status = write_numbers(a, inputs, err)) ||
		       (status = write_names(a, "names", inputs, false, err)) ||
		       (status = write_records(a, "input", input_type(), inputs->input_count, input, err)) ||
		       (status = write_records(a, "tensor", tensor_type(), inputs->tensor_count, tensors, err)) ||
		       (status = write_names(a, "read", inputs, true, err)) ||
		       (status = xfp_h5_write(a, "digest", H5T_NATIVE_UINT8, inputs->source_count * (uint64_t)16,
					      digests, err)));
	free(tensors);
	free(digests);
	return status;
}

/* ---- reading ------------------------------------------------------------------------------------- */

/* Read a dataset of names, each followed by a newline, into a new string at `text`; replace newlines by NULs, and count
 * them. An empty name is damage, and so is a NUL. */
static enum xfp_status read_names(struct xfp_artifact *a, const char *dataset, char **text, uint64_t *count,
				  struct xfp_error *err)
{
	uint64_t size;
	enum xfp_status status = xfp_h5_count(a, dataset, &size, err);

	*count = 0;
	if (status)
		return status;
	if (size >= PTRDIFF_MAX || !(*text = malloc(size + 1)))
		return xfp_no_memory_for(err, a->path);
	(*text)[size] = 0;
	if ((status = xfp_h5_read(a, dataset, H5T_NATIVE_UINT8, size, *text, err)))
		return status;
	if (strlen(*text) != size || (size && (*text)[size - 1] != '\n') || **text == '\n' || strstr(*text, "\n\n"))
		return xfp_h5_damaged(a, err, "impossible names in \"%s\"", dataset);
	for (char *c = *text; *c; c++) {
		if (*c == '\n') {
			*c = 0;
			++*count;
		}
	}
	return XFP_OK;
}

static enum xfp_status read_records(struct xfp_artifact *a, const char *name, hid_t type, uint64_t count, void *records,
				    struct xfp_error *err)
{
	enum xfp_status status = type < 0 || !records ? xfp_no_memory_for(err, a->path)
						      : xfp_h5_read(a, name, type, count, records, err);

	if (type >= 0)
		H5Tclose(type);
	return status;
}

/* Return the name at *at, and move on to the next. */
static const char *next_name(const char **at)
{
	const char *name = *at;

	*at += strlen(name) + 1;
	return name;
}

static bool input_is_possible(const struct xfp_inputs *in, uint32_t i)
{
	const struct xfp_layer_input *input = &in->input[i];
	uint64_t rows = in->tokens, values;

	for (uint32_t k = 0; k < i; k++)
		if (!strcmp(in->input[k].name, input->name))
			return false;
	return strspn(input->name, "abcdefghijklmnopqrstuvwxyz-") == strlen(input->name) && input->cols &&
	       (input->rows == rows ||
		(in->experts_per_token && xfp_mul(rows, in->experts_per_token, &rows) && input->rows == rows)) &&
	       xfp_mul(input->rows, input->cols, &values);
}

static enum xfp_status read_inputs(struct xfp_artifact *a, struct xfp_inputs *in, const char **names,
				   struct xfp_error *err)
{
	struct input_record record[XFP_MAX_INPUTS];
	enum xfp_status status = read_records(a, "input", input_type(), in->input_count, record, err);

	for (uint32_t i = 0; !status && i < in->input_count; i++) {
		const char *name = next_name(names);
		char dataset[40];
		uint64_t bytes;

		in->input[i] = (struct xfp_layer_input){ .rows = record[i].rows, .cols = record[i].cols };
		if (strlen(name) >= sizeof in->input[i].name)
			return xfp_h5_damaged(a, err, "impossible input");
		strcpy(in->input[i].name, name);
		if (!input_is_possible(in, i))
			return xfp_h5_damaged(a, err, "impossible input");
		status = xfp_h5_extent(a, values_of(&in->input[i], dataset), &in->offset[i], &bytes, err);
		if (!status && bytes / sizeof(uint16_t) != in->input[i].rows * in->input[i].cols)
			status = xfp_h5_damaged(a, err, "\"%s\" has another size", dataset);
		/* Its type. */
		if (!status)
			status = xfp_h5_read_range(a, dataset, H5T_NATIVE_UINT16, 0, 0, NULL, err);
	}
	return status;
}

static enum xfp_status read_tensors(struct xfp_artifact *a, struct xfp_inputs *in, const char *names,
				    struct xfp_error *err)
{
	struct tensor_record *records = calloc(in->tensor_count + (size_t)1, sizeof *records);
	enum xfp_status status = read_records(a, "tensor", tensor_type(), in->tensor_count, records, err);

	in->tensors = calloc(in->tensor_count + (size_t)1, sizeof *in->tensors);
	if (!status && !in->tensors)
		status = xfp_no_memory_for(err, a->path);
	for (uint32_t i = 0; !status && i < in->tensor_count; i++) {
		struct xfp_input_tensor *tensor = &in->tensors[i];

		*tensor = (struct xfp_input_tensor){ next_name(&names), records[i].input, records[i].expert };
		if (tensor->input >= in->input_count || (i && strcmp(in->tensors[i - 1].name, tensor->name) >= 0) ||
		    (tensor->expert != XFP_NO_EXPERT && !in->experts_per_token))
			status = xfp_h5_damaged(a, err, "impossible tensor");
	}
	free(records);
	return status;
}

/* Experts of a token ascend; those that are missing follow. */
static enum xfp_status read_experts(struct xfp_artifact *a, struct xfp_inputs *in, struct xfp_error *err)
{
	uint64_t each = in->experts_per_token, count, bytes;
	enum xfp_status status = xfp_h5_count(a, "experts", &count, err);

	if (status)
		return status;
	if (!xfp_mul(in->tokens, each, &bytes) || bytes != count)
		return xfp_h5_damaged(a, err, "experts are missing");
	if (each && (!xfp_mul(count, sizeof *in->experts, &bytes) || !(in->experts = malloc(bytes))))
		return xfp_no_memory_for(err, a->path);
	status = xfp_h5_read(a, "experts", H5T_NATIVE_UINT32, count, in->experts, err);
	for (uint64_t i = 0; !status && i < count; i++) {
		uint32_t before = i % each ? in->experts[i - 1] : 0, expert = in->experts[i];

		if (expert != XFP_NO_EXPERT && i % each && expert <= before)
			status = xfp_h5_damaged(a, err, "experts do not ascend");
	}
	return status;
}

static enum xfp_status read_sources(struct xfp_artifact *a, struct xfp_inputs *in, struct xfp_error *err)
{
	uint8_t(*digests)[16] = NULL;
	uint64_t count;
	enum xfp_status status = read_names(a, "read", &in->source_names, &count, err);
	const char *names = in->source_names;

	if (status)
		return status;
	if (count > UINT32_MAX)
		return xfp_h5_damaged(a, err, "too many tensors");
	digests = calloc(count + 1, sizeof *digests);
	in->sources = calloc(count + 1, sizeof *in->sources);
	if (!digests || !in->sources)
		status = xfp_no_memory_for(err, a->path);
	else
		status = xfp_h5_read(a, "digest", H5T_NATIVE_UINT8, count * 16, digests, err);
	for (; !status && in->source_count < count; in->source_count++) {
		struct xfp_input_source *source = &in->sources[in->source_count];

		source->name = next_name(&names);
		memcpy(source->digest, digests[in->source_count], sizeof source->digest);
	}
	free(digests);
	return status;
}

static enum xfp_status read_number(struct xfp_artifact *a, const char *name, uint32_t *number, struct xfp_error *err)
{
	uint64_t value;
	enum xfp_status status = xfp_h5_read_u64(a, name, &value, err);

	if (!status && value >= UINT32_MAX)
		status = xfp_h5_damaged(a, err, "impossible %s", name);
	*number = (uint32_t)value;
	return status;
}

static enum xfp_status read_all(struct xfp_artifact *a, struct xfp_inputs *in, struct xfp_error *err)
{
	uint64_t stream, whole, names;
	enum xfp_status status;
	const char *at;

	(void)((status = read_number(a, "layer", &in->layer, err)) ||
	       (status = read_number(a, "hidden", &in->hidden, err)) ||
	       (status = xfp_h5_read_u64(a, "tokens", &in->tokens, err)) ||
	       (status = xfp_h5_read_u64(a, "length", &in->length, err)) ||
	       (status = read_number(a, "experts_per_token", &in->experts_per_token, err)) ||
	       (status = read_number(a, "inputs", &in->input_count, err)) ||
	       (status = read_number(a, "tensors", &in->tensor_count, err)) ||
	       (status = xfp_h5_count(a, "stream", &stream, err)) ||
	       (status = read_names(a, "names", &in->names, &names, err)));
	if (status)
		return status;
	in->has_stream = stream;
	if (!in->tokens || !in->length || in->tokens % in->length || !in->hidden || in->input_count > XFP_MAX_INPUTS ||
	    names != (uint64_t)in->input_count + in->tensor_count || !xfp_mul(in->tokens, in->hidden, &whole) ||
	    (stream && stream != whole))
		return xfp_h5_damaged(a, err, "impossible shape");
	at = in->names;
	(void)((status = read_inputs(a, in, &at, err)) || (status = read_tensors(a, in, at, err)) ||
	       (status = read_experts(a, in, err)) || (status = read_sources(a, in, err)));
	return status;
}

enum xfp_status xfp_inputs_read(struct xfp_artifact *a, struct xfp_inputs *inputs, struct xfp_error *err)
{
	struct xfp_inputs read = { 0 };
	enum xfp_status status = read_all(a, &read, err);

	if (!status)
		status = xfp_h5_descriptor(a, &read.file, err);
	if (status)
		xfp_inputs_free(&read);
	*inputs = read;
	return status;
}

void xfp_inputs_free(struct xfp_inputs *inputs)
{
	free(inputs->experts);
	free(inputs->tensors);
	free(inputs->sources);
	free(inputs->names);
	free(inputs->source_names);
	*inputs = (struct xfp_inputs){ 0 };
}

enum xfp_status xfp_inputs_stream(struct xfp_artifact *a, const struct xfp_inputs *inputs, uint64_t first,
				  uint64_t tokens, float *x, struct xfp_error *err)
{
	return xfp_h5_read_range(a, "stream", H5T_NATIVE_FLOAT, first * inputs->hidden, tokens * inputs->hidden, x,
				 err);
}

/* ---- rows ---------------------------------------------------------------------------------------- */

static int compare_name(const void *name, const void *tensor)
{
	return strcmp(name, ((const struct xfp_input_tensor *)tensor)->name);
}

bool xfp_inputs_find(const struct xfp_inputs *inputs, const char *tensor, uint32_t matrix, struct xfp_input_rows *rows)
{
	const struct xfp_input_tensor *found =
		bsearch(tensor, inputs->tensors, inputs->tensor_count, sizeof *found, compare_name);

	if (found)
		*rows = (struct xfp_input_rows){ found->input,
						 found->expert == XFP_EXPERT_OF_STACK ? matrix : found->expert };
	return found;
}

uint64_t xfp_inputs_list(const struct xfp_inputs *inputs, const struct xfp_input_rows *rows, bool held_out,
			 uint64_t *row)
{
	bool per_token = inputs->input[rows->input].rows == inputs->tokens, all = rows->expert == XFP_NO_EXPERT;
	const uint32_t *experts = per_token && all ? NULL : inputs->experts;
	uint64_t count = 0, each = experts ? inputs->experts_per_token : 1;

	for (uint64_t t = 0; t < inputs->tokens; t++) {
		if (xfp_inputs_held_out(inputs, t) != held_out)
			continue;
		for (uint64_t i = t * each; i < (t + 1) * each; i++) {
			if (experts && (all ? experts[i] == XFP_NO_EXPERT : experts[i] != rows->expert))
				continue;
			if (row)
				row[count] = per_token ? t : i;
			count++;
		}
	}
	return count;
}

enum xfp_status xfp_inputs_values(const struct xfp_artifact *a, const struct xfp_inputs *inputs, uint32_t input,
				  const uint64_t *row, uint64_t count, uint16_t *x, struct xfp_error *err)
{
	uint64_t cols = inputs->input[input].cols, bytes = cols * sizeof *x, some;
	enum xfp_status status = XFP_OK;

	for (uint64_t i = 0; !status && i < count; i += some) {
		for (some = 1; i + some < count && row[i + some] == row[i] + some;)
			some++;
		status = xfp_pread(inputs->file, x + i * cols, some * bytes, inputs->offset[input] + row[i] * bytes,
				   a->path, err);
		status = xfp_h5_read_status(a, status, err);
	}
	return status;
}
