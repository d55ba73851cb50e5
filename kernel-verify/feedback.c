/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feedback.c - the kernels of error feedback (feedback.h). Inputs of a kernel that other kernels compute are those of
 * plain C.
 */
#include <string.h>

#include "kernel-verify/kernel_verify.h"
#include "kernels/common/number.h"
#include "kernels/feedback/feedback.h"

#define BENCH_COLS 1024
#define BENCH_ROWS 256
#define MAX_COLS 400
#define MAX_ROW_COLS 160 /* of encoded rows: ten groups of 16 */

static size_t columns(struct xfp_trial *trial, size_t max)
{
	return trial->timing ? BENCH_COLS : xfp_trial_columns(trial, max);
}

/* ---- moments and factor -------------------------------------------------------------------------------------- */

/* Inputs with something in common, some of whose columns are always zero. */
static uint16_t *inputs(struct xfp_trial *trial, size_t rows, size_t cols)
{
	uint16_t *x = xfp_trial_buffer(trial, "x", rows * cols * sizeof *x, sizeof *x);

	for (size_t r = 0; r < rows; r++) {
		const float common = xfp_trial_gaussian(trial);

		for (size_t c = 0; c < cols; c++) {
			float own = (common + xfp_trial_gaussian(trial)) * (1.0f + (float)(c % 5));

			x[r * cols + c] = c % 11 == 3 ? 0 : xfp_float_to_bf16(own);
		}
	}
	return x;
}

static double *moments_of(struct xfp_trial *trial, const uint16_t *x, size_t rows, size_t cols, size_t first)
{
	const size_t panels = (cols + XFP_LANES - 1) / XFP_LANES;
	double *sum = xfp_trial_buffer(trial, "sum", xfp_triangle_values(cols) * sizeof *sum, sizeof *sum);
	float *scratch = xfp_trial_buffer(trial, "scratch", xfp_feedback_moments_scratch(cols) * sizeof *scratch, 64);

	while (xfp_trial_again(trial)) {
		memset(sum, 0, xfp_triangle_values(cols) * sizeof *sum);
		xfp_feedback_moments_add(sum, x, cols, rows, cols, 0, first, scratch);
		xfp_feedback_moments_add(sum, x, cols, rows, cols, first, panels, scratch);
	}
	return sum;
}

static void moments(struct xfp_trial *trial)
{
	size_t cols = columns(trial, MAX_COLS);
	size_t rows = trial->timing ? BENCH_ROWS : 1 + xfp_trial_random_below(trial, 300);
	size_t first = trial->timing ? 0 : xfp_trial_random_below(trial, cols / XFP_LANES + 1);
	const uint16_t *x = inputs(trial, rows, cols);

	xfp_trial_shape(trial, "%zu inputs of %zu columns, from panel %zu by itself", rows, cols, first);
	trial->weights = (double)cols * (double)rows;
	xfp_trial_seal(trial);
	xfp_kernel_encoder(trial->set);
	xfp_trial_doubles(trial, "sum", moments_of(trial, x, rows, cols, first), xfp_triangle_values(cols));
}

/* Buffers for H and its factor. */
static struct xfp_feedback new_feedback(struct xfp_trial *trial, size_t cols, unsigned group)
{
	struct xfp_feedback f = { .cols = cols, .group = group };

	f.padded = xfp_compact_groups_of(cols, group) * group;
	f.column = xfp_trial_buffer(trial, "column", f.padded * sizeof *f.column, sizeof *f.column);
	f.h = xfp_trial_buffer(trial, "h", xfp_triangle_values(f.padded) * sizeof *f.h, sizeof *f.h);
	f.factor = xfp_trial_buffer(trial, "factor", xfp_triangle_values(f.padded) * sizeof *f.factor, 64);
	f.diagonal = xfp_trial_buffer(trial, "diagonal", f.padded * sizeof *f.diagonal, sizeof *f.diagonal);
	f.pivot = xfp_trial_buffer(trial, "pivot", f.padded * sizeof *f.pivot, sizeof *f.pivot);
	return f;
}

/* Prepare H from random inputs, a balance and, half the time, moments of a stack. */
static struct xfp_feedback prepared(struct xfp_trial *trial, size_t cols, unsigned group)
{
	const size_t panels = (cols + XFP_LANES - 1) / XFP_LANES, rows = 1 + xfp_trial_random_below(trial, 64);
	const uint16_t *x = inputs(trial, rows, cols);
	struct xfp_feedback f = new_feedback(trial, cols, group);
	double *sum = xfp_trial_buffer(trial, "sum", xfp_triangle_values(cols) * sizeof *sum, sizeof *sum);
	float *own = xfp_trial_buffer(trial, "own", xfp_triangle_values(cols) * sizeof *own, sizeof *own);
	float *scratch = xfp_trial_buffer(trial, "scratch", xfp_feedback_moments_scratch(cols) * sizeof *scratch, 64);
	uint8_t *balance = xfp_trial_buffer(trial, "balance", cols, 1);
	struct xfp_feedback_source source = { .own = own, .inputs = rows, .cols = cols, .balance = balance };

	for (size_t c = 0; c < cols; c++)
		balance[c] = (uint8_t)xfp_trial_random_below(trial, 6);
	xfp_kernel_encoder(XFP_SET_PLAIN);
	memset(sum, 0, xfp_triangle_values(cols) * sizeof *sum);
	xfp_feedback_moments_add(sum, x, cols, rows, cols, 0, panels, scratch);
	xfp_feedback_moments_mean(sum, xfp_triangle_values(cols), rows, own);
	source.stack = trial->number % 2 ? own : NULL;
	xfp_feedback_prepare(&f, &source, 0.125f);
	return f;
}

static unsigned group_of(struct xfp_trial *trial)
{
	return trial->timing ? 32 : 16u << xfp_trial_random_below(trial, 3);
}

static void factor(struct xfp_trial *trial)
{
	size_t cols = columns(trial, MAX_COLS), bad = cols;
	unsigned group = group_of(trial);
	struct xfp_feedback f = prepared(trial, cols, group);
	bool indefinite = trial->number % 9 == 5, good = true;
	float *triangle, *pivot;
	double *scratch;

	/* An element of the diagonal that no H has. */
	if (indefinite) {
		size_t at = xfp_trial_random_below(trial, f.padded);

		f.h[xfp_triangle_at(f.padded, at, at)] = -1;
	}
	xfp_trial_shape(trial, "%zu columns in groups of %u%s", cols, group, indefinite ? ", not definite" : "");
	trial->weights = (double)cols * (double)cols;
	xfp_trial_seal(trial);
	/* Results in buffers of their own, since those of H are sealed. */
	triangle = xfp_trial_buffer(trial, "r", xfp_triangle_values(f.padded) * sizeof *triangle, 64);
	pivot = xfp_trial_buffer(trial, "r diagonal", f.padded * sizeof *pivot, sizeof *pivot);
	scratch = xfp_trial_buffer(trial, "sums", xfp_feedback_scratch(f.padded) * sizeof *scratch, 64);
	f.factor = triangle;
	f.pivot = pivot;
	xfp_kernel_encoder(trial->set);
	while (xfp_trial_again(trial))
		good = xfp_feedback_factor(&f, scratch, &bad);
	if (good != !indefinite)
		xfp_trial_fail(trial, "H is %s", good ? "not refused" : "refused");
	xfp_trial_record(trial, "column", 'l', &(int64_t){ (int64_t)bad }, 1);
	if (!good)
		return;
	xfp_feedback_divide(&f);
	xfp_trial_floats(trial, "r", triangle, xfp_triangle_values(f.padded));
	xfp_trial_floats(trial, "diagonal", pivot, f.padded);
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static void sort(float *of, unsigned count)
{
	for (unsigned i = 1; i < count; i++)
		for (unsigned j = i; j && of[j - 1] > of[j]; j--) {
			const float other = of[j];

			of[j] = of[j - 1];
			of[j - 1] = other;
		}
}

static struct xfp_compact_book *make_book(struct xfp_trial *trial, unsigned group)
{
	struct xfp_compact_book *book = xfp_trial_buffer(trial, "book", sizeof *book, 64);
	const unsigned k = trial->op->k, entries = xfp_compact_entries(k), ratios = 256 / entries;
	uint16_t code[XFP_COMPACT_ENTRIES * 64 + XFP_COMPACT_RATIOS], *next = code;
	float entry[64];

	for (unsigned e = 0; e < entries; e++) {
		for (unsigned q = 0; q < 1u << k; q++)
			entry[q] = xfp_trial_gaussian(trial) / 2;
		sort(entry, 1u << k);
		for (unsigned q = 0; q < 1u << k; q++)
			*next++ = xfp_float_to_half(entry[q]);
	}
	for (unsigned r = 0; r < ratios; r++)
		*next++ = xfp_float_to_half(4 * (float)r / (float)ratios);
	memset(book, 0, sizeof *book);
	xfp_compact_open(book, k, group, entries, code);
	return book;
}

/* A batch of random rows, some of whose weights are marked. Some groups are zeros. */
static struct xfp_feedback_batch make_batch(struct xfp_trial *trial, const struct xfp_feedback *f)
{
	const size_t rows = trial->timing ? BENCH_ROWS : 1 + xfp_trial_random_below(trial, 40);
	const size_t bytes = xfp_feedback_batch_bytes(f, rows), padded = xfp_padded(f->cols);
	float *x = xfp_trial_buffer(trial, "row", padded * sizeof *x, sizeof *x);
	uint16_t *marked = xfp_trial_buffer(trial, "marked", padded / 8, sizeof *marked);
	struct xfp_feedback_batch batch;

	xfp_feedback_batch_init(&batch, f, xfp_trial_buffer(trial, "batch", bytes, 64), rows);
	for (size_t r = 0; r < rows; r++) {
		memset(x, 0, padded * sizeof *x);
		memset(marked, 0, padded / 8);
		for (size_t c = 0; c < f->cols; c++) {
			x[c] = xfp_trial_gaussian(trial) * (c / f->group % 7 == 4 ? 0 : 700);
			if (trial->number % 4 && xfp_trial_random_below(trial, 60) == 0) {
				marked[c / XFP_LANES] |= (uint16_t)(1u << c % XFP_LANES);
				x[c] *= 20;
			}
		}
		xfp_feedback_load(&batch, r, x, marked,
				  xfp_compact_row((uint8_t)(r % 5 ? 17 + xfp_trial_random_below(trial, 4) : 46)));
	}
	return batch;
}

static void record(struct xfp_trial *trial, const struct xfp_feedback_batch *batch)
{
	const size_t padded = batch->feedback->padded, values = batch->tiles * padded * XFP_LANES;

	xfp_trial_bytes(trial, "byte", batch->byte, values / batch->feedback->group);
	xfp_trial_bytes(trial, "index", batch->index, values);
	xfp_trial_floats(trial, "error", batch->error, values);
	xfp_trial_floats(trial, "target", batch->target, values);
}

/* Encode rows; with `passes`, passes over columns afterwards. */
static void encode_rows(struct xfp_trial *trial, unsigned passes)
{
	size_t cols = columns(trial, MAX_ROW_COLS), bad;
	unsigned group = group_of(trial), tried = trial->number % 3 || trial->timing ? XFP_COMPACT_TRIED : 1;
	struct xfp_feedback f = prepared(trial, cols, group);
	double *scratch = xfp_trial_buffer(trial, "sums", xfp_feedback_scratch(f.padded) * sizeof *scratch, 64);
	struct xfp_compact_book *book = make_book(trial, group);
	struct xfp_feedback_batch batch;

	if (!xfp_feedback_factor(&f, scratch, &bad))
		xfp_trial_fail(trial, "H is refused");
	xfp_feedback_divide(&f);
	xfp_trial_seal(trial);
	batch = make_batch(trial, &f);
	xfp_trial_shape(trial, "%zu rows of %zu columns in groups of %u, %u bytes tried, %u passes", batch.rows, cols,
			group, tried, passes);
	trial->weights = (double)(cols * batch.rows);
	xfp_kernel_encoder(trial->set);
	while (xfp_trial_again(trial)) {
		xfp_feedback_encode(&batch, book, tried);
		for (unsigned pass = 0; pass < passes; pass++)
			xfp_feedback_pass(&batch, book);
	}
	record(trial, &batch);
}

static void encode(struct xfp_trial *trial)
{
	encode_rows(trial, 0);
}

static void pass(struct xfp_trial *trial)
{
	encode_rows(trial, 2);
}

void xfp_kernel_ops_feedback(struct xfp_kernel_ops *ops)
{
	xfp_kernel_op_add(ops, "feedback moments", 0, 0, XFP_ENCODER_SETS, moments);
	xfp_kernel_op_add(ops, "feedback factor", 0, 0, XFP_ENCODER_SETS, factor);
	for (unsigned k = 2; k <= 6; k++) {
		xfp_kernel_op_add(ops, "feedback encode k=%u", k, 0, XFP_ENCODER_SETS, encode);
		xfp_kernel_op_add(ops, "feedback pass k=%u", k, 0, XFP_ENCODER_SETS, pass);
	}
}
