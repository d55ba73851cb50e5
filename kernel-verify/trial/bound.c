/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel-verify/trial/bound.h"

#include <math.h> /* fabsf, fmax and isfinite, which are exact */
#include <string.h>

#include "kernels/common/number.h"
#include "kernels/common/round.h"
#include "kernels/common/scale.h"
#include "kernels/multiply/matvec_tables.h"

#define BLOCK 256  /* columns per step; a multiple of the chunks of every k */
#define NARROW 127 /* the largest 8-bit entry */

void xfp_matvec_bound_init(struct xfp_matvec_bound *bound, const struct xfp_matvec *w)
{
	*bound = (struct xfp_matvec_bound){ 0 };
	if (w->mode != XFP_MATVEC_V2A && w->mode != XFP_MATVEC_V2C)
		return;
	for (size_t i = 0; i < (size_t)XFP_TABLES_ALL << w->k; i++) {
		float value = fabsf(xfp_tables_entry(w->tables)[i]);

		if (value > bound->largest) /* not for the NaN of an absent codebook */
			bound->largest = value;
	}
}

static float half_at(const void *from, size_t number)
{
	uint16_t half;

	memcpy(&half, (const uint8_t *)from + number * 2, sizeof half);
	return xfp_half_to_float(half);
}

bool xfp_matvec_bound_holds(const struct xfp_matvec *w, size_t row)
{
	bool finite = true;

	for (size_t j = 0; w->mode == XFP_MATVEC_V2 && j < (size_t)1 << w->k; j++)
		finite &= isfinite(half_at(w->code, (row << w->k) + j)) != 0;
	return finite;
}

/* Upper bound of |w| in columns [first, end) of a row: the largest entry of the library times the groups' scales. */
static double largest_weight(const struct xfp_matvec_bound *bound, const struct xfp_matvec *w, size_t row, size_t first,
			     size_t end)
{
	double max = 0, scale = 0;

	if (w->mode == XFP_MATVEC_V2) {
		for (size_t j = 0; j < (size_t)1 << w->k; j++)
			max = fmax(max, fabsf(half_at(w->code, (row << w->k) + j)));
		return max;
	}
	if (w->mode == XFP_MATVEC_V2C)
		return (double)bound->largest * (0x1p14f * xfp_balance_down(w->row[row]));
	for (size_t g = first >> w->group; g <= (end - 1) >> w->group; g++)
		scale = fmax(scale, fabsf(half_at(w->pair, 2 * (row * w->row_groups + g))));
	return bound->largest * scale;
}

double xfp_matvec_bound(const struct xfp_matvec_bound *bound, enum xfp_kernel_set set, const struct xfp_matvec *w,
			size_t row, const float *natural, double magnitude)
{
	double floats = ((double)w->cols / 16 + 32) * 0x1p-24 * magnitude, bytes = 0;
	size_t whole = w->cols / (2 * BLOCK) * (2 * BLOCK);

	if (!(XFP_INTEGER_SETS >> set & 1) || w->mode < XFP_MATVEC_V2)
		return floats;
	/* The blocks of columns after the last whole chunk depend on k; here they are one block. */
	for (size_t first = 0, end; first < w->cols; first = end) {
		double max = XFP_X_SMALLEST;

		end = first < whole ? first + BLOCK : w->cols;
		for (size_t c = first; c < end; c++)
			max = fmax(max, fabsf(natural[c]));
		bytes += (double)(end - first) * largest_weight(bound, w, row, first, end) * max * 0x1p-14;
	}
	return floats + bytes * w->unit;
}

bool xfp_matvec_is_narrow(enum xfp_kernel_set set, const struct xfp_matvec *w, const struct xfp_matvec_x *x)
{
	if (set != XFP_SET_VBMI || w->mode < XFP_MATVEC_V2A || !x->bytes_fit || x->tile > 2)
		return false;
	return (w->mode == XFP_MATVEC_V2C ? w->group >= 5 : w->group == 7 && x->groups) &&
	       xfp_tables_head(w->tables)->narrow_fit;
}

void xfp_matvec_round_entries(const struct xfp_matvec_bound *bound, unsigned k, void *tables)
{
	float *entry = (float *)(void *)((uint8_t *)tables + sizeof(struct xfp_tables_head));
	double step = (double)bound->largest / NARROW;

	for (size_t i = 0; step > 0 && i < (size_t)XFP_TABLES_ALL << k; i++)
		if (isfinite(entry[i])) /* not the NaN of an absent codebook */
			entry[i] = (float)(step * (double)xfp_round_even(entry[i] / step));
}

double xfp_matvec_bound_of_rounding(const struct xfp_matvec_bound *bound, const struct xfp_matvec *w, size_t row,
				    const float *natural)
{
	double sum = 0;

	for (size_t c = 0; c < w->cols; c++)
		sum += fabs((double)natural[c]);
	return largest_weight(bound, w, row, 0, w->cols) / (2 * NARROW) * sum * w->unit;
}
