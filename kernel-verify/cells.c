/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cells.c - encoder kernels on counted rows: counts, prefix sums, initial codebooks and rounds of a fit (encode.h,
 * lloyd.h).
 */
#include <string.h>

#include "kernel-verify/kernel_verify.h"
#include "kernels/encode/lloyd.h"

/* Scaled weights, a few of them zero, of similar or widely different magnitudes. */
static float *weights(struct xfp_trial *trial, size_t cols, float *largest)
{
	float *x = xfp_trial_row(trial, "x", cols);

	*largest = 0x1p-20f;
	for (size_t c = 0; c < cols; c++) {
		uint64_t any = xfp_trial_random(trial);

		x[c] = xfp_trial_gaussian(trial) * 2000;
		if (any % 8 == 0)
			x[c] = (float)(int32_t)(any >> 40) * 0x1p-20f;
		if (any % 8 == 1)
			x[c] = (float)((int32_t)(any >> 60) - 8) * 512;
		*largest = x[c] > *largest ? x[c] : -x[c] > *largest ? -x[c] : *largest;
	}
	return x;
}

/* A row as xfp_lloyd_load initializes it: the values of cells, and where they begin. */
static struct xfp_cells *begin(struct xfp_trial *trial, const char *name, const struct xfp_lloyd_row *row,
			       float largest)
{
	struct xfp_cells *cells = xfp_trial_buffer(trial, name, sizeof *cells, sizeof(double));
	uint32_t bits;

	memcpy(&bits, &largest, sizeof bits);
	*cells = row->cells;
	cells->base = ((int32_t)(bits >> 23 & 255) - 14) * (1 << XFP_CELL_BITS) - 1;
	return cells;
}

static struct xfp_lloyd_row *empty_row(struct xfp_trial *trial)
{
	struct xfp_lloyd_row *row = xfp_trial_buffer(trial, "row", sizeof *row, sizeof(double));

	xfp_lloyd_init(row);
	return row;
}

static void count(struct xfp_trial *trial)
{
	const struct xfp_codebook_encoder *encoder = xfp_kernel_encoder(trial->set)->codebooks;
	size_t cols = xfp_trial_columns(trial, 1500);
	float largest, *x = weights(trial, cols, &largest);
	struct xfp_lloyd_row *row = empty_row(trial);
	struct xfp_cells *cells;

	xfp_trial_shape(trial, "%zu columns", cols);
	trial->weights = (double)cols;
	xfp_trial_seal(trial);
	cells = begin(trial, "cells", row, largest);
	while (xfp_trial_again(trial))
		encoder->count(cells, x, cols);
	xfp_trial_record(trial, "count", 'i', cells->count, XFP_CELLS);
}

/* Counted by plain C, so that only the kernel under test can be wrong. */
static struct xfp_cells *counted(struct xfp_trial *trial, size_t cols)
{
	const struct xfp_codebook_encoder *plain = xfp_encoder_plain.codebooks;
	float largest, *x = weights(trial, cols, &largest);
	struct xfp_cells *cells = begin(trial, "counted", empty_row(trial), largest);

	plain->count(cells, x, cols);
	cells->count[(XFP_CELL_CENTRE & 255) * XFP_LANES + XFP_CELL_CENTRE / 256] -= (int32_t)(xfp_padded(cols) - cols);
	return cells;
}

static void accumulate(struct xfp_trial *trial)
{
	const struct xfp_codebook_encoder *encoder = xfp_kernel_encoder(trial->set)->codebooks;
	size_t cols = xfp_trial_columns(trial, 1500);
	struct xfp_cells *before = counted(trial, cols), *cells;

	xfp_trial_shape(trial, "%zu columns", cols);
	trial->weights = (double)cols;
	xfp_trial_seal(trial);
	cells = xfp_trial_buffer(trial, "cells", sizeof *cells, sizeof(double));
	while (xfp_trial_again(trial)) {
		*cells = *before;
		encoder->accumulate(cells);
	}
	xfp_trial_record(trial, "count", 'i', cells->count, XFP_CELLS);
	xfp_trial_doubles(trial, "sum", cells->sum, XFP_CELLS);
	xfp_trial_record(trial, "before", 'i', cells->before, XFP_LANES + 1);
	xfp_trial_doubles(trial, "sum_before", cells->sum_before, XFP_LANES + 1);
}

/* Lanes with k = 2 ... 6, one codebook after the other. */
static struct xfp_fit_lanes *lanes(struct xfp_trial *trial, size_t cols)
{
	struct xfp_fit_lanes *fit = xfp_trial_buffer(trial, "lanes", sizeof *fit, sizeof(double));
	unsigned lane = 0, some = 1 + (unsigned)xfp_trial_random_below(trial, 31);

	if (trial->timing)
		some = 31;
	memset(fit, 0, sizeof *fit);
	for (unsigned k = 2; k <= 6; k++) {
		if (!(some >> (k - 2) & 1))
			continue;
		fit->kind[lane++] = XFP_NO_ENTRY;
		for (unsigned j = 0; j < 1u << k; j++, lane++) {
			fit->kind[lane] = j + 1 == 1u << k ? XFP_LAST_ENTRY : XFP_ENTRY;
			fit->rank[lane] = (int32_t)((2 * j + 1) * cols >> (k + 1));
		}
	}
	fit->lanes = (unsigned)xfp_padded(lane);
	for (; lane < fit->lanes; lane++)
		fit->kind[lane] = XFP_NO_ENTRY;
	return fit;
}

static void record_entries(struct xfp_trial *trial, const struct xfp_fit_lanes *fit)
{
	double entry[XFP_FIT_LANES];
	unsigned entries = 0;

	for (unsigned i = 0; i < fit->lanes; i++)
		if (fit->kind[i] != XFP_NO_ENTRY)
			entry[entries++] = fit->c[XFP_LANES + i];
	xfp_trial_doubles(trial, "c", entry, entries);
}

static void start(struct xfp_trial *trial)
{
	const struct xfp_codebook_encoder *encoder = xfp_kernel_encoder(trial->set)->codebooks;
	size_t cols = xfp_trial_columns(trial, 1500);
	struct xfp_cells *cells = counted(trial, cols);
	struct xfp_fit_lanes *before = lanes(trial, cols), *fit;

	xfp_trial_shape(trial, "%zu columns, %u lanes", cols, before->lanes);
	trial->weights = (double)cols;
	xfp_encoder_plain.codebooks->accumulate(cells);
	xfp_trial_seal(trial);
	fit = xfp_trial_buffer(trial, "fit", sizeof *fit, sizeof(double));
	*fit = *before;
	while (xfp_trial_again(trial))
		encoder->start(cells, fit);
	record_entries(trial, fit);
}

static void rounds(struct xfp_trial *trial)
{
	const struct xfp_codebook_encoder *encoder = xfp_kernel_encoder(trial->set)->codebooks;
	size_t cols = xfp_trial_columns(trial, 1500);
	unsigned max = trial->timing ? 20 : (unsigned)xfp_trial_random_below(trial, 30);
	struct xfp_cells *cells = counted(trial, cols);
	struct xfp_fit_lanes *before = lanes(trial, cols), *fit;

	xfp_trial_shape(trial, "%zu columns, %u lanes, %u rounds", cols, before->lanes, max);
	trial->weights = (double)cols;
	xfp_encoder_plain.codebooks->accumulate(cells);
	xfp_encoder_plain.codebooks->start(cells, before);
	xfp_trial_seal(trial);
	fit = xfp_trial_buffer(trial, "fit", sizeof *fit, sizeof(double));
	while (xfp_trial_again(trial)) {
		*fit = *before;
		encoder->rounds(cells, fit, max);
	}
	record_entries(trial, fit);
}

void xfp_kernel_ops_cells(struct xfp_kernel_ops *ops)
{
	xfp_kernel_op_add(ops, "encode count", 0, 0, XFP_ENCODER_SETS, count);
	xfp_kernel_op_add(ops, "encode accumulate", 0, 0, XFP_ENCODER_SETS, accumulate);
	xfp_kernel_op_add(ops, "encode start", 0, 0, XFP_ENCODER_SETS, start);
	xfp_kernel_op_add(ops, "encode rounds", 0, 0, XFP_ENCODER_SETS, rounds);
}
