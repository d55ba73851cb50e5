/* SPDX-License-Identifier: Apache-2.0 */
/*
 * factor.c - H = R R^T, a Cholesky factorization from the last column to the first.
 *
 * Some panels of columns are finished at a time. Their products with all columns after them are subtracted first, some
 * of these columns at a time, so that all operands stay in the cache.
 */
#include <math.h> /* sqrt */
#include <string.h>

#include "kernels/feedback/feedback_set.h"

#define LANES ((size_t)XFP_LANES)
#define BLOCK (LANES * LANES)
#define PANELS 4  /* finished at a time */
#define STEPS 256 /* columns whose products are subtracted at a time */

size_t xfp_feedback_scratch(size_t padded)
{
	return PANELS * LANES * (padded + STEPS) + LANES * STEPS;
}

struct factoring {
	const struct xfp_feedback_set *set;
	struct xfp_feedback *f;
	size_t low, top; /* panels that are being finished */
	double *sums;    /* [PANELS][panels] blocks */
	double *rows;    /* [PANELS][STEPS][16] elements of these panels' rows of R, negated */
	double *wide;    /* [STEPS][16] elements of another panel's rows */
};

static float *block_of(const struct factoring *w, size_t i, size_t j)
{
	return w->f->factor + xfp_triangle_at(w->f->padded, i * LANES, j * LANES);
}

static double *sums_of(const struct factoring *w, size_t i, size_t j)
{
	return w->sums + ((i - w->low) * (w->f->padded / LANES) + j) * BLOCK;
}

/* Subtract products with columns [first, end), of whole panels, from all blocks of rows [from, to). */
static void subtract(const struct factoring *w, size_t from, size_t to, size_t first, size_t end)
{
	const size_t steps = end - first;

	for (size_t i = from; i < to; i++) {
		double *rows = w->rows + (i - w->low) * STEPS * LANES;

		w->set->widen(block_of(w, first / LANES, i), steps * LANES, rows);
		for (size_t m = 0; m < steps * LANES; m++)
			rows[m] = -rows[m];
	}
	for (size_t j = 0; j < to; j++) {
		const float *b = block_of(w, first / LANES, j);
		const float *next = j + 1 < to ? block_of(w, first / LANES, j + 1) : NULL;
		const size_t last = (steps - 1) * LANES;

		w->set->widen(b, steps * LANES, w->wide);
		for (size_t i = from > j ? from : j; i < to; i++)
			w->set->multiply(steps, w->rows + (i - w->low) * STEPS * LANES + last, w->wide + last,
					 -(ptrdiff_t)LANES, sums_of(w, i, j), next);
	}
}

/* Finish the block on the diagonal of panel i. Returns the place of a pivot that is not above zero, or SIZE_MAX. */
static size_t finish_diagonal(const struct factoring *w, size_t i)
{
	const double *sum = sums_of(w, i, i);
	float *to = block_of(w, i, i), *pivot = w->f->pivot + i * LANES;

	memset(to, 0, BLOCK * sizeof *to);
	for (size_t c = LANES; c-- > 0;) {
		for (size_t j = c + 1; j-- > 0;) {
			double s = sum[c * LANES + j];

			for (size_t m = LANES; --m > c;)
				s -= (double)to[m * LANES + c] * to[m * LANES + j];
			if (j < c) {
				to[c * LANES + j] = (float)(s / pivot[c]);
				continue;
			}
			if (!(s > 0))
				return i * LANES + c;
			pivot[c] = to[c * LANES + c] = (float)sqrt(s);
		}
	}
	return SIZE_MAX;
}

/* Finish panels [low, top). */
static size_t finish(struct factoring *w)
{
	const size_t end = w->f->padded;

	for (size_t i = w->low; i < w->top; i++)
		for (size_t j = 0; j <= i; j++)
			w->set->widen(w->f->h + xfp_triangle_at(end, i * LANES, j * LANES), BLOCK, sums_of(w, i, j));
	for (size_t last = end; last > w->top * LANES;) {
		const size_t first = last - w->top * LANES < STEPS ? w->top * LANES : last - STEPS;

		subtract(w, w->low, w->top, first, last);
		last = first;
	}
	for (size_t i = w->top; i-- > w->low;) {
		const size_t bad = finish_diagonal(w, i);

		if (bad != SIZE_MAX)
			return bad;
		for (size_t j = 0; j < i; j++)
			w->set->solve(sums_of(w, i, j), block_of(w, i, i), w->f->pivot + i * LANES, block_of(w, i, j));
		subtract(w, w->low, i, i * LANES, (i + 1) * LANES);
	}
	return SIZE_MAX;
}

bool xfp_feedback_factor(struct xfp_feedback *f, double *scratch, size_t *column)
{
	struct factoring w = { .set = xfp_feedback_set(), .f = f, .sums = scratch };

	w.rows = scratch + PANELS * LANES * f->padded;
	w.wide = w.rows + PANELS * LANES * STEPS;
	for (w.top = f->padded / LANES; w.top; w.top = w.low) {
		size_t bad;

		w.low = w.top < PANELS ? 0 : w.top - PANELS;
		bad = finish(&w);
		if (bad != SIZE_MAX) {
			*column = f->column[bad];
			return false;
		}
	}
	return true;
}

void xfp_feedback_divide(struct xfp_feedback *f)
{
	for (size_t c = 0; c < f->padded; c++)
		for (size_t j = 0; j < (c / LANES + 1) * LANES; j++)
			f->factor[xfp_triangle_at(f->padded, c, j)] /= f->pivot[c];
}
