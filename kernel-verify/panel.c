/* SPDX-License-Identifier: Apache-2.0 */
/*
 * panel.c - test tiles of decoded rows times panels of many vectors (panel.h) against sums in double, within the bound
 * of matvec.h.
 */
#include "kernel-verify/kernel_verify.h"

#include <math.h> /* fabs, which is exact */

#include "base/dtype.h"
#include "kernels/common/number.h"
#include "kernels/multiply/panel.h"

#define MAX_ROWS 50

struct panel_trial {
	xfp_panel_fn *multiply;
	size_t rows, cols, stride;
	unsigned count, width;
	float *w; /* [rows][cols] */
	float *x; /* [count][cols] */
	float *tile, *panel, *sum;
};

static float *floats(struct xfp_trial *trial, const char *name, size_t count)
{
	return xfp_trial_buffer(trial, name, count * sizeof(float), sizeof(float));
}

/* Vectors of any type, balanced or not. */
static void make_panel(struct xfp_trial *trial, struct panel_trial *p)
{
	int dtype = XFP_F32 + (int)xfp_trial_random_below(trial, 3);
	size_t size = dtype == XFP_F32 ? 4 : 2;
	uint8_t *source = xfp_trial_buffer(trial, "source", p->count * p->cols * size, 1);
	float *down = floats(trial, "down", p->cols);
	bool balanced = xfp_trial_random_below(trial, 2);

	p->x = floats(trial, "x", p->count * p->cols);
	p->panel = floats(trial, "panel", p->cols * p->width * XFP_PANEL_LANES);
	xfp_trial_gaussians(trial, p->x, p->count * p->cols, 1);
	xfp_trial_gaussians(trial, down, p->cols, 1);
	xfp_from_float(dtype, p->x, p->count * p->cols, source);
	xfp_to_float(dtype, source, p->count * p->cols, p->x);
	for (size_t i = 0; balanced && i < p->count * p->cols; i++)
		p->x[i] *= down[i % p->cols];
	for (unsigned m = 0; m < p->count; m += XFP_PANEL_LANES) {
		const void *vector[XFP_PANEL_LANES];
		unsigned some = p->count - m < XFP_PANEL_LANES ? p->count - m : XFP_PANEL_LANES;

		for (unsigned i = 0; i < some; i++)
			vector[i] = source + (m + i) * p->cols * size;
		xfp_panel_pack(dtype, vector, some, p->cols, balanced ? down : NULL, p->panel + m, p->width);
	}
}

static void judge(struct xfp_trial *trial, const struct panel_trial *p)
{
	double unit = ((double)p->cols / 16 + 32) * 0x1p-24;

	for (size_t i = 0; i < p->rows * p->count; i++) {
		const float *w = p->w + i / p->count * p->cols, *x = p->x + i % p->count * p->cols;
		double sum = 0, magnitude = 0, off;
		float got = p->sum[i / p->count * p->stride + i % p->count];

		for (size_t c = 0; c < p->cols; c++) {
			sum += (double)w[c] * x[c];
			magnitude += fabs((double)w[c] * x[c]);
		}
		off = fabs((double)got - sum);
		if (!(off <= unit * magnitude + 1e-30)) {
			xfp_trial_fail(trial,
				       "row %zu of vector %zu is %.9g, not %.9g: the error is %.3g, the bound %.3g",
				       i / p->count, i % p->count, (double)got, sum, off, unit * magnitude);
			return;
		}
	}
}

/* One matrix, tile by tile. Rows of a tile that are no rows of the matrix are zero. */
static void multiply_tiles(const struct panel_trial *p)
{
	size_t padded = (p->rows + XFP_TILE_ROWS - 1) / XFP_TILE_ROWS * XFP_TILE_ROWS;

	for (size_t c = 0, some; c < p->cols; c += some) {
		some = p->cols - c < XFP_TILE_COLUMNS ? p->cols - c : XFP_TILE_COLUMNS;
		for (size_t i = 0; i < padded * some; i++)
			p->tile[i / some * XFP_TILE_STRIDE + i % some] =
				i / some < p->rows ? p->w[i / some * p->cols + c + i % some] : 0;
		p->multiply(p->tile, p->rows, some, xfp_panel_part(p->cols), p->panel + c * p->width * XFP_PANEL_LANES,
			    p->width, c > 0, p->sum, p->stride);
	}
}

static void panel(struct xfp_trial *trial)
{
	struct panel_trial p = { .multiply = xfp_kernel_panel(trial->set),
				 .rows = 1 + xfp_trial_random_below(trial, MAX_ROWS) };
	size_t padded = (p.rows + XFP_TILE_ROWS - 1) / XFP_TILE_ROWS * XFP_TILE_ROWS, lanes;

	p.cols = xfp_trial_columns(trial, 2500);
	p.width = 1 + trial->number % xfp_matvec_set()->panel_width;
	lanes = (size_t)p.width * XFP_PANEL_LANES;
	p.count = (unsigned)(lanes - xfp_trial_random_below(trial, XFP_PANEL_LANES));
	p.stride = lanes + xfp_trial_random_below(trial, 3);
	xfp_trial_shape(trial, "%zu rows of %zu, %u vectors", p.rows, p.cols, p.count);
	p.w = floats(trial, "w", p.rows * p.cols);
	xfp_trial_gaussians(trial, p.w, p.rows * p.cols, 1);
	make_panel(trial, &p);
	xfp_trial_seal(trial);
	p.tile = floats(trial, "tile",
			(padded - 1) * XFP_TILE_STRIDE + (p.cols < XFP_TILE_COLUMNS ? p.cols : XFP_TILE_COLUMNS));
	p.sum = floats(trial, "sum", (padded - 1) * p.stride + lanes);
	multiply_tiles(&p);
	judge(trial, &p);
	for (size_t r = 0; r + 1 < padded; r++)
		for (size_t i = r * p.stride + lanes; i < (r + 1) * p.stride; i++) {
			uint32_t bits, fresh;

			memcpy(&bits, p.sum + i, sizeof bits);
			memset(&fresh, trial->fresh, sizeof fresh);
			if (bits != fresh)
				xfp_trial_fail(trial, "memory between two rows' sums was written");
		}
}

void xfp_kernel_ops_panel(struct xfp_kernel_ops *ops)
{
	xfp_kernel_op_add(ops, "panel", 0, XFP_KIND_PANEL, XFP_PROCESSOR_SETS, panel);
	ops->op[ops->count - 1].exact = false;
	ops->op[ops->count - 1].trials = 48;
}
