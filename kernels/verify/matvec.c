/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec.c - rows times vectors (matvec.h) against the reference in double, within the stated bound.
 */
#include "kernels/verify/matvec.h"
#include "kernels/verify/reference.h"

#include <math.h> /* fabs and isfinite, which are exact */
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "kernels/common/lane_index.h"
#include "kernels/common/number.h"
#include "kernels/common/scale.h"

static const char *const mode_names[] = { "f32", "f16", "bf16", "fp8", "v2", "v2a", "v2c" };

/* ---- matrices ---------------------------------------------------------------------------------------- */

static void fill_numbers(struct xfp_trial *trial, struct xfp_matvec *w, uint8_t *index)
{
	uint8_t *scales;

	for (size_t i = 0; i < w->rows * w->cols; i++) {
		float value = xfp_trial_gaussian(trial);
		uint16_t half = w->mode == XFP_MATVEC_F16 ? xfp_float_to_half(value) : xfp_float_to_bf16(value);

		if (w->mode == XFP_MATVEC_F32)
			memcpy(index + 4 * i, &value, 4);
		else if (w->mode == XFP_MATVEC_FP8)
			index[i] = xfp_float_to_e4m3(value * 60);
		else
			memcpy(index + 2 * i, &half, 2);
	}
	if (w->mode != XFP_MATVEC_FP8)
		return;
	scales = xfp_trial_buffer(trial, "scales", w->rows * 4, 1);
	for (size_t r = 0; r < w->rows; r++) {
		float scale = (float)(1 + xfp_trial_below(trial, 100)) / 64;

		memcpy(scales + 4 * r, &scale, 4);
	}
	w->code = scales;
}

static void fill_indices(struct xfp_trial *trial, const struct xfp_matvec *w, uint8_t *packed)
{
	uint8_t *index = malloc(w->cols + 1);

	for (size_t r = 0; index && r < w->rows; r++) {
		for (size_t c = 0; c < w->cols; c++)
			index[c] = (uint8_t)xfp_trial_below(trial, (size_t)1 << w->k);
		xfp_lane_index_pack(w->k, index, w->cols, packed + r * w->row_bytes);
	}
	free(index);
}

static void fill_codebooks(struct xfp_trial *trial, struct xfp_matvec *w, bool infinite)
{
	size_t entries = w->rows << w->k;
	uint8_t *code = xfp_trial_buffer(trial, "code", entries * 2, 1);

	for (size_t i = 0; i < entries; i++) {
		uint16_t half = xfp_float_to_half(xfp_trial_gaussian(trial) * 1000);

		if (infinite && i == entries / 2)
			half = 0x7c00;
		memcpy(code + 2 * i, &half, 2);
	}
	w->code = code;
}

static void fill_library(struct xfp_trial *trial, struct xfp_matvec *w)
{
	bool compact = w->mode == XFP_MATVEC_V2C;
	size_t groups = w->rows * w->row_groups;
	unsigned codebooks = compact ? 4u << xfp_trial_below(trial, 4) : 1u << xfp_trial_below(trial, 9);
	unsigned ratios = compact ? 256 / codebooks : 1;
	uint8_t *tables = xfp_trial_buffer(trial, "tables", xfp_matvec_tables_bytes(w->k), 64), *byte, *pair, *row;
	uint16_t *entry = malloc((size_t)codebooks * 2 << w->k), ratio[64] = { 0 };

	if (!entry)
		abort();
	xfp_trial_halves(trial, entry, (size_t)codebooks << w->k, 1);
	for (unsigned i = 1; i < ratios; i++)
		ratio[i] = xfp_float_to_half((float)i / 31);
	xfp_matvec_tables(w->k, codebooks, entry, compact ? ratio : NULL, tables);
	free(entry);
	byte = xfp_trial_buffer(trial, "byte", groups, 1);
	for (size_t g = 0; g < groups; g++)
		byte[g] = (uint8_t)xfp_trial_below(trial, compact ? 256 : codebooks);
	if (compact) {
		row = xfp_trial_buffer(trial, "row", w->rows, 1);
		for (size_t r = 0; r < w->rows; r++)
			row[r] = (uint8_t)(40 + xfp_trial_below(trial, 20));
		w->row = row;
	} else {
		pair = xfp_trial_buffer(trial, "pair", groups * 4, 1);
		for (size_t g = 0; g < groups; g++) {
			uint16_t two[2] = { xfp_float_to_half(xfp_trial_gaussian(trial)),
					    xfp_float_to_half(xfp_trial_gaussian(trial) / 8) };

			memcpy(pair + 4 * g, two, 4);
		}
		w->pair = pair;
	}
	w->tables = tables;
	w->byte = byte;
}

static void fill_outliers(struct xfp_trial *trial, struct xfp_matvec *w)
{
	bool listed = trial->number % 8 >= 4;
	size_t size = trial->number % 4 == 1 ? 4 : 2;
	uint32_t *found = malloc((w->rows * w->cols + 1) * sizeof *found), count = 0;
	uint32_t *pointer = malloc((w->rows + 1) * sizeof *pointer);
	uint8_t *row, *column, *residual;

	if (!found || !pointer)
		abort();
	for (size_t r = 0; r < w->rows; r++) {
		pointer[r] = count;
		for (size_t c = xfp_trial_below(trial, 40); c < w->cols; c += 1 + xfp_trial_below(trial, 40))
			found[count++] = (uint32_t)c;
	}
	pointer[w->rows] = count;
	row = xfp_trial_buffer(trial, "rows of outliers", 4 * (listed ? count : w->rows + 1), 1);
	column = xfp_trial_buffer(trial, "column", count * size, 1);
	residual = xfp_trial_buffer(trial, "residual", (size_t)count * 2, 1);
	if (!listed)
		memcpy(row, pointer, 4 * (w->rows + 1));
	for (uint32_t r = 0; listed && r < w->rows; r++)
		for (uint32_t i = pointer[r]; i < pointer[r + 1]; i++)
			memcpy(row + 4 * i, &r, 4);
	for (uint32_t i = 0; i < count; i++) {
		uint16_t half = xfp_float_to_half(xfp_trial_gaussian(trial) * 4);

		memcpy(column + i * size, &found[i], size);
		memcpy(residual + 2 * i, &half, 2);
	}
	free(found);
	free(pointer);
	w->outliers = (struct xfp_outlier_rows){ .row = row,
						 .column = column,
						 .residual = residual,
						 .rows = w->rows,
						 .cols = w->cols,
						 .count = count,
						 .listed = listed,
						 .wide = size == 4 };
}

/* Some of its columns, which begin with a chunk and a group. */
static void take_columns(struct xfp_trial *trial, struct xfp_matvec *w)
{
	bool codebooks = w->mode >= XFP_MATVEC_V2;
	size_t chunk = codebooks ? xfp_chunk_columns(w->k) : 1, group = (size_t)1 << w->group;
	size_t step = chunk > group ? chunk : group, first = xfp_trial_below(trial, w->cols / step + 1) * step, last;

	if (first == w->cols)
		first -= step;
	last = first + (1 + xfp_trial_below(trial, (w->cols - first) / chunk + 1)) * chunk;
	w->index += codebooks ? first / 32 * 4 * w->k : xfp_matvec_row_bytes(w->mode, 0, first);
	if (w->byte)
		w->byte += first >> w->group;
	if (w->pair)
		w->pair = (const uint8_t *)w->pair + (first >> w->group) * 4;
	w->first_column = first;
	w->cols = (last < w->cols ? last : w->cols) - first;
}

/* ---- a trial ------------------------------------------------------------------------------------------- */

struct product {
	struct xfp_matvec w;
	struct xfp_matvec_x x;
	const float *natural; /* [M][cols], from the source, not as it was prepared */
	unsigned batch;
};

static float value_of(int dtype, const uint8_t *source, size_t i)
{
	uint16_t half;
	float value;

	if (dtype == XFP_F32) {
		memcpy(&value, source + 4 * i, 4);
		return value;
	}
	memcpy(&half, source + 2 * i, 2);
	return dtype == XFP_F16 ? xfp_half_to_float(half) : xfp_bf16_to_float(half);
}

static void make_vectors(struct xfp_trial *trial, struct product *p, int dtype, bool balanced, bool infinite)
{
	size_t cols = p->w.cols, size = dtype == XFP_F32 ? 4 : 2, stride = cols + xfp_trial_below(trial, 3);
	size_t elements = (p->batch - 1) * stride + cols;
	unsigned k = p->w.mode >= XFP_MATVEC_V2 ? p->w.k : 0;
	uint8_t *source = xfp_trial_buffer(trial, "source", elements * size, 1);
	float *down = xfp_trial_buffer(trial, "down", cols * sizeof *down, sizeof *down);
	float *natural = xfp_trial_buffer(trial, "natural", p->batch * cols * sizeof *natural, sizeof *natural);
	void *buffer = xfp_trial_buffer(trial, "prepared", xfp_matvec_x_bytes(k, cols, p->batch), 64);

	for (size_t i = 0; i < elements; i++) {
		/* What one block of columns is worth may be far from what the next is. */
		float value = xfp_trial_gaussian(trial) * (i / 200 % 3 ? 1 : 0.01f);
		uint16_t half = dtype == XFP_F16 ? xfp_float_to_half(value) : xfp_float_to_bf16(value);

		if (infinite && i == elements / 2) {
			value = __builtin_inff();
			half = dtype == XFP_F16 ? 0x7c00 : 0x7f80;
		}
		memcpy(source + i * size, dtype == XFP_F32 ? (void *)&value : (void *)&half, size);
	}
	for (size_t c = 0; c < cols; c++)
		down[c] = xfp_balance_down((uint8_t)xfp_trial_below(trial, 9));
	for (size_t m = 0; m < p->batch; m++)
		for (size_t c = 0; c < cols; c++)
			natural[m * cols + c] = value_of(dtype, source, m * stride + c) * (balanced ? down[c] : 1);
	xfp_matvec_x_init(&p->x, k, cols, p->batch, dtype, source, stride, balanced ? down : NULL, buffer);
	p->natural = natural;
}

/* Rows [0, rows) of every vector, `times` added up. */
static void judge(struct xfp_trial *trial, const struct product *p, const struct xfp_matvec_bound *bound,
		  const float *y, size_t stride, unsigned times)
{
	for (size_t i = 0; i < p->batch * p->w.rows; i++) {
		size_t m = i / p->w.rows, r = i % p->w.rows;
		const float *natural = p->natural + m * p->w.cols;
		float got = y[m * stride + r];
		double expected, magnitude, most, off;

		if (!xfp_matvec_reference(&p->w, r, natural, &expected, &magnitude)) {
			xfp_trial_fail(trial, "the reference refuses row %zu", r);
			return;
		}
		expected *= times;
		if (!isfinite(expected) || !isfinite(magnitude)) {
			if (isfinite(got))
				xfp_trial_fail(trial, "row %zu of vector %zu is %g, not %g", r, m, (double)got,
					       expected);
			continue;
		}
		if (!xfp_matvec_bound_holds(&p->w, r))
			continue;
		most = times * xfp_matvec_bound(bound, trial->set, &p->w, r, natural, magnitude) + 1e-30;
		off = fabs((double)got - expected);
		if (!(off <= most)) {
			xfp_trial_fail(trial, "row %zu of vector %zu is %.9g, not %.9g: %.3g off, where %.3g is stated",
				       r, m, (double)got, expected, off, most);
			return;
		}
	}
}

static void multiply(struct xfp_trial *trial, const struct product *p, const struct xfp_matvec_bound *bound)
{
	size_t rows = p->w.rows, cut = xfp_trial_below(trial, rows + 1), gap = xfp_trial_below(trial, 3),
	       stride = rows + gap;
	size_t elements = (p->batch - 1) * stride + rows;
	float *y = xfp_trial_buffer(trial, "y", elements * sizeof *y, sizeof *y);
	bool good = xfp_kernel_rows(trial->set, &p->w, &p->x, 0, cut, false, y, stride) &&
		    xfp_kernel_rows(trial->set, &p->w, &p->x, cut, rows - cut, false, y + cut, stride);

	if (!good) {
		xfp_trial_fail(trial, "outliers are refused");
		return;
	}
	judge(trial, p, bound, y, stride, 1);
	if (!xfp_kernel_rows(trial->set, &p->w, &p->x, 0, rows, true, y, stride))
		xfp_trial_fail(trial, "outliers are refused");
	judge(trial, p, bound, y, stride, 2);
	for (size_t m = 0; m + 1 < p->batch; m++)
		for (size_t r = rows; r < stride; r++) {
			uint32_t bits, fresh;

			memcpy(&bits, y + m * stride + r, sizeof bits);
			memset(&fresh, trial->fresh, sizeof fresh);
			if (bits != fresh)
				xfp_trial_fail(trial, "what lies between two vectors' rows was written");
		}
}

/* A matrix, or some columns of one; says what it is in `text`. */
static void make_matrix(struct xfp_trial *trial, struct xfp_matvec *w, bool outliers, bool infinite, char text[80])
{
	enum xfp_matvec_mode mode = (enum xfp_matvec_mode)trial->op->kind;
	bool library = mode >= XFP_MATVEC_V2A, some = trial->number % 5 == 3;
	size_t cols = xfp_trial_columns(trial, trial->number % 8 == 7 ? 9000 : 2500);
	uint8_t *index;

	/* widths that whole groups of columns fill too */
	if (trial->number % 3 == 0)
		cols = (cols + 127) / 128 * 128;
	*w = (struct xfp_matvec){
		.mode = mode,
		.k = trial->op->k,
		.group = !library            ? 0
			 : trial->number % 2 ? 7
					     : 4 + (unsigned)xfp_trial_below(trial, 7),
		.rows = 1 + xfp_trial_below(trial, 20),
		.cols = cols,
		.unit = mode >= XFP_MATVEC_V2 ? 0x1p-9 : 1,
	};
	if (mode == XFP_MATVEC_V2C && trial->number % 2)
		w->group = 5;
	xfp_matvec_whole(w);
	w->index = index = xfp_trial_buffer(trial, "index", w->rows * w->row_bytes, 1);
	if (mode < XFP_MATVEC_V2)
		fill_numbers(trial, w, index);
	else
		fill_indices(trial, w, index);
	if (mode == XFP_MATVEC_V2)
		fill_codebooks(trial, w, infinite);
	if (library)
		fill_library(trial, w);
	if (outliers)
		fill_outliers(trial, w);
	if (some)
		take_columns(trial, w);
	snprintf(text, 80, "%zu rows of %zu%s%.0u%s", w->rows, cols, library ? ", groups of " : "",
		 library ? 1u << w->group : 0, some ? ", some columns" : "");
}

static void matvec(struct xfp_trial *trial)
{
	bool odd = trial->number % 16 == 15, balanced = xfp_trial_below(trial, 2), outliers = trial->number % 2;
	int dtype = XFP_F32 + (int)(trial->number / 8 % 3);
	struct xfp_matvec_bound bound;
	struct product p = { .batch = 1 + trial->number % XFP_MAX_BATCH };
	char text[80];

	make_matrix(trial, &p.w, outliers, odd && trial->number % 32 == 15, text);
	xfp_trial_shape(trial, "%s, M = %u, %s%s%s%s", text, p.batch,
			dtype == XFP_F32   ? "f32"
			: dtype == XFP_F16 ? "f16"
					   : "bf16",
			balanced ? ", balanced" : "", outliers ? ", outliers" : "", odd ? ", infinite" : "");
	make_vectors(trial, &p, dtype, balanced, odd);
	xfp_matvec_bound_init(&bound, &p.w);
	xfp_trial_seal(trial);
	multiply(trial, &p, &bound);
}

/* A row as numbers: what the layout says, bit for bit. */
static void decode(struct xfp_trial *trial)
{
	struct xfp_matvec w;
	float *x, *expected;
	char text[80];
	size_t row;

	make_matrix(trial, &w, false, false, text);
	row = xfp_trial_below(trial, w.rows);
	xfp_trial_shape(trial, "%s", text);
	expected = malloc(w.cols * sizeof *expected + 1);
	if (!expected)
		abort();
	xfp_trial_seal(trial);
	x = xfp_trial_buffer(trial, "x", w.cols * sizeof *x, sizeof *x);
	trial->weights = (double)w.cols;
	while (xfp_trial_again(trial))
		xfp_kernel_decode(trial->set, &w, row, x);
	xfp_matvec_reference_row(&w, row, expected);
	if (memcmp(x, expected, w.cols * sizeof *x))
		xfp_trial_fail(trial, "row %zu is not what it should be", row);
	xfp_trial_floats(trial, "x", x, w.cols);
	free(expected);
}

void xfp_kernel_ops_matvec(struct xfp_kernel_ops *ops)
{
	char name[40];

	for (int mode = XFP_MATVEC_F32; mode <= XFP_MATVEC_V2C; mode++) {
		bool codebooks = mode >= XFP_MATVEC_V2;

		snprintf(name, sizeof name, codebooks ? "matvec %s k=%%u" : "matvec %s", mode_names[mode]);
		for (unsigned k = codebooks ? 2 : 0; k <= (codebooks ? 6u : 0u); k++) {
			xfp_kernel_op_add(ops, name, k, mode, XFP_MATVEC_SETS, matvec);
			ops->op[ops->count - 1].exact = false;
			ops->op[ops->count - 1].trials = 48;
		}
		snprintf(name, sizeof name, codebooks ? "decode %s k=%%u" : "decode %s", mode_names[mode]);
		for (unsigned k = codebooks ? 2 : 0; k <= (codebooks ? 6u : 0u); k++)
			xfp_kernel_op_add(ops, name, k, mode, XFP_MATVEC_SETS, decode);
	}
}
