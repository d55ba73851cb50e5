/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/encode/lloyd.h"

#include <string.h>

#include "kernels/common/number.h"
#include "kernels/common/scale.h"
#include "kernels/encode/companded.h"

#define OCTAVES 15 /* 2 * 15 * 128 cells, zero, and one for rounding up are below 4096 */

static size_t slot_of(int32_t cell)
{
	return (size_t)(cell & 255) * XFP_LANES + (size_t)cell / 256;
}

/* Return the magnitude of index a: 1.xxxxxxx times a power of two, as an integer. */
static float value_of(int32_t a)
{
	int32_t index = a - 1, parts = 1 << XFP_CELL_BITS;

	return a ? (float)((int64_t)(parts + index % parts) << (index / parts)) : 0;
}

void xfp_lloyd_init(struct xfp_lloyd_row *row)
{
	memset(row, 0, sizeof *row);
	for (int32_t cell = 0; cell < XFP_CELLS; cell++)
		row->cells.value[slot_of(cell)] =
			cell < XFP_CELL_CENTRE ? -value_of(XFP_CELL_CENTRE - cell) : value_of(cell - XFP_CELL_CENTRE);
}

static int exponent_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof bits);
	return (int)(bits >> 23 & 255) - 127;
}

void xfp_lloyd_load(struct xfp_lloyd_row *row, const float *x, float largest, size_t marked, size_t cols)
{
	const struct xfp_codebook_encoder *encoder = xfp_encoder()->codebooks;
	struct xfp_cells *cells = &row->cells;
	int lowest;

	row->count = largest > 0x1p-25f ? cols - marked : 0;
	if (!row->count)
		return;
	lowest = exponent_of(largest) - (OCTAVES - 1);
	cells->base = (lowest + 127) * (1 << XFP_CELL_BITS) - 1;
	row->unit = (double)xfp_exp2i(lowest - XFP_CELL_BITS);
	encoder->count(cells, x, cols);
	/* Exclude the zeros that replace marked weights and padding. */
	cells->count[slot_of(XFP_CELL_CENTRE)] -= (int32_t)(xfp_padded(cols) - row->count);
	encoder->accumulate(cells);
}

/* Lay out the lanes of a fit: the codebooks one after the other. */
static void lay_out(const struct xfp_lloyd_row *row, const unsigned *k, unsigned count, int start,
		    struct xfp_fit_lanes *fit)
{
	unsigned lane = 0;

	memset(fit, 0, sizeof *fit);
	for (unsigned i = 0; i < count; i++) {
		unsigned entries = 1u << k[i];

		fit->kind[lane++] = XFP_NO_ENTRY;
		for (unsigned j = 0; j < entries; j++, lane++) {
			uint64_t fraction = start == XFP_LLOYD_COMPANDED ? xfp_companded[k[i]][j]
									 : (uint64_t)(2 * j + 1) << (31 - k[i]);

			fit->kind[lane] = j + 1 == entries ? XFP_LAST_ENTRY : XFP_ENTRY;
			fit->rank[lane] = (int32_t)(fraction * row->count >> 32);
			if (start == XFP_LLOYD_MINMAX)
				fit->rank[lane] = j ? (int32_t)row->count - 1 : 0;
		}
	}
	fit->lanes = (unsigned)xfp_padded(lane);
	for (; lane < fit->lanes; lane++)
		fit->kind[lane] = XFP_NO_ENTRY;
}

/* Spread entries evenly from the minimum to the maximum, which the other entries contain. */
static void spread(const unsigned *k, unsigned count, double *c)
{
	for (unsigned i = 0; i < count; c += 1u << k[i++]) {
		unsigned entries = 1u << k[i];
		double low, high;

		c++;
		low = c[0];
		high = c[1];
		for (unsigned j = 0; j < entries; j++)
			c[j] = low + (high - low) * ((double)j / (entries - 1));
	}
}

void xfp_lloyd_fit(const struct xfp_lloyd_row *row, const unsigned *k, unsigned count, int start, unsigned rounds,
		   uint16_t *const *codebook)
{
	const struct xfp_codebook_encoder *encoder = xfp_encoder()->codebooks;
	struct xfp_fit_lanes fit;
	double *c = fit.c + XFP_LANES;

	if (!row->count) {
		for (unsigned i = 0; i < count; i++)
			memset(codebook[i], 0, sizeof **codebook << k[i]);
		return;
	}
	lay_out(row, k, count, start, &fit);
	encoder->start(&row->cells, &fit);
	if (start == XFP_LLOYD_MINMAX)
		spread(k, count, c);
	encoder->rounds(&row->cells, &fit, rounds);
	for (unsigned i = 0; i < count; c += 1u << k[i++]) {
		c++;
		for (unsigned j = 0; j < 1u << k[i]; j++)
			codebook[i][j] = xfp_double_to_half(c[j] * row->unit);
	}
}
