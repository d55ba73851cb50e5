/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c - test encoder kernels on rows of weights (encode.h): loading, scaling, sums.
 */
#include <string.h>

#include "base/dtype.h"
#include "kernel-verify/kernel_verify.h"
#include "kernels/common/number.h"

static const char *const dtype_names[] = { "f64", "f32", "f16", "bf16" };

static size_t size_of(int dtype)
{
	return dtype == XFP_F64 ? 8 : dtype == XFP_F32 ? 4 : 2;
}

/* Values that a checkpoint may contain: zeros of both signs, subnormals, infinities, NaNs. `tame`: finite only. */
static void *source_rows(struct xfp_trial *trial, int dtype, size_t count, bool tame)
{
	uint8_t *source = xfp_trial_buffer(trial, "source", count * size_of(dtype), size_of(dtype));

	for (size_t i = 0; i < count; i++) {
		float narrow = xfp_trial_gaussian(trial);
		uint64_t any = xfp_trial_random(trial);
		double wide = (double)narrow * (1 + (double)(any >> 40) * 0x1p-50);
		uint16_t half;

		if (any % 16 == 0)
			wide = narrow = (any >> 8) % 2 ? 0 : -0.0f;
		if (any % 16 == 1 && !tame)
			wide *= 1e-300;
		half = dtype == XFP_F16 ? xfp_float_to_half(narrow) : xfp_float_to_bf16(narrow);
		if (any % 64 == 2 && !tame)
			half = (uint16_t)(any >> 32);
		memcpy(source + i * size_of(dtype),
		       dtype == XFP_F64   ? (const void *)&wide
		       : dtype == XFP_F32 ? (const void *)&narrow
					  : (const void *)&half,
		       size_of(dtype));
	}
	return source;
}

static void column_scan(struct xfp_trial *trial)
{
	const struct xfp_row_encoder *encoder = xfp_kernel_encoder(trial->set)->rows;
	size_t cols = xfp_trial_columns(trial, 1500), rows = 1 + xfp_trial_random_below(trial, 5), found = 0;
	int dtype = trial->op->kind;
	void *source = source_rows(trial, dtype, rows * cols, trial->number % 2);
	float *before = xfp_trial_buffer(trial, "largest before", cols * sizeof *before, sizeof *before), *largest;
	double *square;
	int64_t nonfinite;

	xfp_trial_shape(trial, "%zu rows of %zu", rows, cols);
	trial->weights = (double)(rows * cols);
	for (size_t c = 0; c < cols; c++)
		before[c] = (float)xfp_trial_random_below(trial, 4);
	xfp_trial_seal(trial);
	square = xfp_trial_buffer(trial, "square", cols * sizeof *square, sizeof *square);
	largest = xfp_trial_buffer(trial, "largest", cols * sizeof *largest, sizeof *largest);
	memcpy(largest, before, cols * sizeof *largest);
	while (xfp_trial_again(trial))
		found = encoder->column_scan(dtype, source, rows, cols, square, largest);
	nonfinite = (int64_t)found;
	xfp_trial_record(trial, "nonfinite", 'l', &nonfinite, 1);
	xfp_trial_doubles(trial, "square", square, cols);
	xfp_trial_floats(trial, "largest", largest, cols);
}

static void load(struct xfp_trial *trial)
{
	const struct xfp_row_encoder *encoder = xfp_kernel_encoder(trial->set)->rows;
	size_t cols = xfp_trial_columns(trial, 1500);
	int dtype = trial->op->kind;
	void *source = source_rows(trial, dtype, cols, false);
	float *w;

	xfp_trial_shape(trial, "%zu columns", cols);
	trial->weights = (double)cols;
	xfp_trial_seal(trial);
	w = xfp_trial_buffer(trial, "w", xfp_padded(cols) * sizeof *w, sizeof *w);
	while (xfp_trial_again(trial))
		encoder->load(dtype, source, cols, w);
	xfp_trial_floats(trial, "w", w, xfp_padded(cols));
}

static void load_scaled(struct xfp_trial *trial)
{
	const struct xfp_row_encoder *encoder = xfp_kernel_encoder(trial->set)->rows;
	size_t cols = xfp_trial_columns(trial, 1500), padded = xfp_padded(cols);
	int dtype = trial->op->kind;
	bool both = trial->number % 3;
	void *source = source_rows(trial, dtype, cols, trial->number % 2);
	float *factor = xfp_trial_row(trial, "factor", cols), *w, *x;
	struct xfp_row_start start = { 0 };

	xfp_trial_shape(trial, "%zu columns%s", cols, both ? "" : ", no w");
	trial->weights = (double)cols;
	for (size_t c = 0; c < cols; c++)
		factor[c] = (float)(1 + xfp_trial_random_below(trial, 7)) / 4;
	xfp_trial_seal(trial);
	w = xfp_trial_buffer(trial, "w", padded * sizeof *w, sizeof *w);
	x = xfp_trial_buffer(trial, "x", padded * sizeof *x, sizeof *x);
	while (xfp_trial_again(trial))
		start = encoder->load_scaled(dtype, source, cols, factor, 0.5f, both ? w : NULL, x);
	if (both)
		xfp_trial_floats(trial, "w", w, padded);
	xfp_trial_floats(trial, "x", x, padded);
	xfp_trial_floats(trial, "largest", &start.largest, 1);
	xfp_trial_doubles(trial, "norm", &start.norm, 1);
}

static void scale(struct xfp_trial *trial)
{
	const struct xfp_row_encoder *encoder = xfp_kernel_encoder(trial->set)->rows;
	size_t cols = xfp_trial_columns(trial, 1500);
	float *w = xfp_trial_row(trial, "w", cols), *factor = xfp_trial_row(trial, "factor", cols), *x;

	xfp_trial_shape(trial, "%zu columns", cols);
	trial->weights = (double)cols;
	xfp_trial_gaussians(trial, w, cols, trial->number % 2 ? 1 : 0x1p-120f);
	xfp_trial_gaussians(trial, factor, cols, trial->number % 4 ? 1 : 0x1p-10f);
	xfp_trial_seal(trial);
	x = xfp_trial_buffer(trial, "x", xfp_padded(cols) * sizeof *x, sizeof *x);
	while (xfp_trial_again(trial))
		encoder->scale(w, factor, cols, x);
	xfp_trial_floats(trial, "x", x, xfp_padded(cols));
}

/* Scaled weights, some at the ends of the range, some halfway between integers. */
static float *scaled_row(struct xfp_trial *trial, const char *name, size_t cols)
{
	float *x = xfp_trial_row(trial, name, cols);

	for (size_t c = 0; c < cols; c++) {
		uint64_t any = xfp_trial_random(trial);

		x[c] = xfp_trial_gaussian(trial) * 2000;
		if (any % 8 == 0)
			x[c] = (float)(int32_t)(any >> 40) / 65536;
		if (any % 64 == 1)
			x[c] = any >> 63 ? 16384 : -16384;
	}
	return x;
}

static void survey(struct xfp_trial *trial)
{
	const struct xfp_row_encoder *encoder = xfp_kernel_encoder(trial->set)->rows;
	size_t cols = xfp_trial_columns(trial, 16384), found = 0;
	int32_t low = (int32_t)xfp_trial_random_below(trial, 4000000) - 4000000;
	int32_t high = (int32_t)xfp_trial_random_below(trial, 4000000) - (trial->number % 8 ? 0 : 2000000);
	float *x = scaled_row(trial, "x", cols);
	uint32_t *column;
	int64_t sums[3] = { 0 };

	xfp_trial_shape(trial, "%zu columns from %d to %d", cols, low, high);
	trial->weights = (double)cols;
	xfp_trial_seal(trial);
	/* zeros of the padding may be found before they are dropped */
	column = xfp_trial_buffer(trial, "column", xfp_padded(cols) * sizeof *column, sizeof *column);
	while (xfp_trial_again(trial))
		found = encoder->survey(x, cols, low, high, column, &sums[0], &sums[1]);
	sums[2] = (int64_t)found;
	xfp_trial_record(trial, "sum, square and number", 'l', sums, 3);
	xfp_trial_record(trial, "column", 'i', column, found);
}

static void largest(struct xfp_trial *trial)
{
	const struct xfp_row_encoder *encoder = xfp_kernel_encoder(trial->set)->rows;
	size_t cols = xfp_trial_columns(trial, 1500);
	float *x = scaled_row(trial, "x", cols), max = 0, should = 0;

	xfp_trial_shape(trial, "%zu columns", cols);
	trial->weights = (double)cols;
	xfp_trial_seal(trial);
	while (xfp_trial_again(trial))
		max = encoder->largest(x, cols);
	for (size_t c = 0; c < cols; c++)
		should = x[c] > should ? x[c] : -x[c] > should ? -x[c] : should;
	if (max != should)
		xfp_trial_fail(trial, "the largest is %a, not %a", (double)max, (double)should);
	xfp_trial_floats(trial, "largest", &max, 1);
}

/* Rows of any length, not padded. */
static void norm(struct xfp_trial *trial)
{
	const struct xfp_row_encoder *encoder = xfp_kernel_encoder(trial->set)->rows;
	size_t cols = xfp_trial_columns(trial, 1500);
	float *w = xfp_trial_buffer(trial, "w", cols * sizeof *w, sizeof *w);
	double sum = 0;

	xfp_trial_shape(trial, "%zu columns", cols);
	trial->weights = (double)cols;
	xfp_trial_gaussians(trial, w, cols, 1);
	xfp_trial_seal(trial);
	while (xfp_trial_again(trial))
		sum = encoder->norm(w, cols);
	xfp_trial_doubles(trial, "norm", &sum, 1);
}

static void record_sums(struct xfp_trial *trial, const struct xfp_row_sums *sums)
{
	xfp_trial_doubles(trial, "error", &sums->error, 1);
	xfp_trial_doubles(trial, "square", &sums->square, 1);
}

static void compare(struct xfp_trial *trial)
{
	const struct xfp_row_encoder *encoder = xfp_kernel_encoder(trial->set)->rows;
	size_t cols = xfp_trial_columns(trial, 1500);
	float *w = xfp_trial_buffer(trial, "w", cols * sizeof *w, sizeof *w);
	float *r = xfp_trial_buffer(trial, "r", cols * sizeof *r, sizeof *r);
	struct xfp_row_sums sums = { 0 };

	xfp_trial_shape(trial, "%zu columns", cols);
	trial->weights = (double)cols;
	xfp_trial_gaussians(trial, w, cols, 1);
	for (size_t c = 0; c < cols; c++)
		r[c] = w[c] + xfp_trial_gaussian(trial) / 16;
	xfp_trial_seal(trial);
	while (xfp_trial_again(trial))
		sums = encoder->compare(w, r, 0x1p-5f, cols);
	record_sums(trial, &sums);
}

/* An ascending codebook with edges halfway between entries, except that some edges coincide with weights and some are
 * equal. */
static void codebook(struct xfp_trial *trial, const float *x, size_t cols, float **entry, float **edge)
{
	unsigned entries = 1u << trial->op->k;
	float step = 12000.0f / (float)entries;

	*entry = xfp_trial_buffer(trial, "entry", entries * sizeof(float), sizeof(float));
	*edge = xfp_trial_buffer(trial, "edge", entries * sizeof(float), sizeof(float));
	for (unsigned j = 0; j < entries; j++)
		(*entry)[j] = ((float)j - (float)entries / 2 + (float)xfp_trial_random_below(trial, 256) / 512) * step;
	for (unsigned j = 0; j < entries; j++) {
		float own = j + 1 < entries ? ((*entry)[j] + (*entry)[j + 1]) / 2 : 0;

		if (xfp_trial_random_below(trial, 4) == 0)
			own = x[xfp_trial_random_below(trial, cols)];
		(*edge)[j] = j && own < (*edge)[j - 1] ? (*edge)[j - 1] : own;
	}
	(*edge)[entries - 1] = trial->number % 2 ? 0 : (*edge)[entries - 1]; /* has no effect */
}

static void assign(struct xfp_trial *trial)
{
	const struct xfp_codebook_encoder *encoder = xfp_kernel_encoder(trial->set)->codebooks;
	size_t cols = xfp_trial_columns(trial, 1500);
	float *x = scaled_row(trial, "x", cols), *entry, *edge, *value;
	unsigned last = (1u << trial->op->k) - 1;

	xfp_trial_shape(trial, "%zu columns", cols);
	trial->weights = (double)cols;
	codebook(trial, x, cols, &entry, &edge);
	xfp_trial_seal(trial);
	value = xfp_trial_buffer(trial, "value", xfp_padded(cols) * sizeof *value, sizeof *value);
	while (xfp_trial_again(trial))
		encoder->assign(trial->op->k, entry, edge, x, cols, value);
	for (size_t c = 0; c < cols; c++) {
		unsigned j = 0;

		while (j < last && x[c] > edge[j])
			j++;
		if (value[c] != entry[j])
			xfp_trial_fail(trial, "\"value\" [%zu] of %zu is %a, not %a", c, cols, (double)value[c],
				       (double)entry[j]);
	}
	xfp_trial_floats(trial, "value", value, cols);
}

static void index_row(struct xfp_trial *trial)
{
	const struct xfp_codebook_encoder *encoder = xfp_kernel_encoder(trial->set)->codebooks;
	size_t cols = xfp_trial_columns(trial, 1500);
	float *x = scaled_row(trial, "x", cols), *entry, *edge;
	unsigned last = (1u << trial->op->k) - 1;
	uint8_t *index;

	xfp_trial_shape(trial, "%zu columns", cols);
	trial->weights = (double)cols;
	codebook(trial, x, cols, &entry, &edge);
	xfp_trial_seal(trial);
	index = xfp_trial_buffer(trial, "index", xfp_padded(cols), 1);
	while (xfp_trial_again(trial))
		encoder->index(trial->op->k, edge, x, cols, index);
	for (size_t c = 0; c < cols; c++) {
		unsigned j = 0;

		while (j < last && x[c] > edge[j])
			j++;
		if (index[c] != j)
			xfp_trial_fail(trial, "\"index\" [%zu] of %zu is %u, not %u", c, cols, index[c], j);
	}
	xfp_trial_bytes(trial, "index", index, cols);
}

static void measure(struct xfp_trial *trial)
{
	const struct xfp_codebook_encoder *encoder = xfp_kernel_encoder(trial->set)->codebooks;
	size_t cols = xfp_trial_columns(trial, 1500);
	float *x = scaled_row(trial, "x", cols), *entry, *edge;
	float *down = xfp_trial_row(trial, "down", cols), *w = xfp_trial_row(trial, "w", cols);
	struct xfp_row_sums sums = { 0 };

	xfp_trial_shape(trial, "%zu columns", cols);
	trial->weights = (double)cols;
	codebook(trial, x, cols, &entry, &edge);
	for (size_t c = 0; c < cols; c++) {
		down[c] = (float)(1 + xfp_trial_random_below(trial, 7)) / 8;
		w[c] = x[c] * down[c];
	}
	xfp_trial_seal(trial);
	while (xfp_trial_again(trial))
		sums = encoder->measure(trial->op->k, entry, edge, x, down, w, cols);
	record_sums(trial, &sums);
}

void xfp_kernel_ops_rows(struct xfp_kernel_ops *ops)
{
	static const struct {
		const char *name;
		xfp_trial_fn *run;
	} by_dtype[] = { { "column_scan", column_scan }, { "load", load }, { "load_scaled", load_scaled } },
	  others[] = { { "scale", scale },
		       { "survey", survey },
		       { "largest", largest },
		       { "norm", norm },
		       { "compare", compare } },
	  by_k[] = { { "assign k=%u", assign }, { "index k=%u", index_row }, { "measure k=%u", measure } };
	char name[40];

	for (unsigned i = 0; i < sizeof by_dtype / sizeof *by_dtype; i++)
		for (int dtype = XFP_F64; dtype <= XFP_BF16; dtype++) {
			snprintf(name, sizeof name, "encode %s %s", by_dtype[i].name, dtype_names[dtype]);
			xfp_kernel_op_add(ops, name, 0, dtype, XFP_ENCODER_SETS, by_dtype[i].run);
		}
	for (unsigned i = 0; i < sizeof others / sizeof *others; i++) {
		snprintf(name, sizeof name, "encode %s", others[i].name);
		xfp_kernel_op_add(ops, name, 0, 0, XFP_ENCODER_SETS, others[i].run);
	}
	for (unsigned i = 0; i < sizeof by_k / sizeof *by_k; i++)
		for (unsigned k = 2; k <= 6; k++) {
			snprintf(name, sizeof name, "encode %s", by_k[i].name);
			xfp_kernel_op_add(ops, name, k, 0, XFP_ENCODER_SETS, by_k[i].run);
		}
}
