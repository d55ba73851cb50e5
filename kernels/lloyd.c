/* SPDX-License-Identifier: Apache-2.0 */
#include "lloyd.h"

#include <string.h>

#include "companded.h"
#include "number.h"
#include "scale.h"

#define ENTRIES (1u << XFP_MAX_K)
#define OCTAVES 15 /* twice 15 of 128 cells, zero, and one for what is rounded up to the next, are below 4096 */

static size_t slot_of(int32_t cell)
{
	return (size_t)(cell & 255) * XFP_LANES + (size_t)cell / 256;
}

/* The magnitude of index a: 1.xxxxxxx times a power of two, as an integer. */
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

void xfp_lloyd_load(struct xfp_lloyd_row *row, const float *x, size_t marked, size_t cols)
{
	const struct xfp_encoder *encoder = xfp_encoder();
	struct xfp_cells *cells = &row->cells;
	int lowest;
	float largest = encoder->largest(x, cols);

	row->count = largest > 0x1p-25f ? cols - marked : 0;
	if (!row->count)
		return;
	lowest = exponent_of(largest) - (OCTAVES - 1);
	cells->base = (lowest + 127) * (1 << XFP_CELL_BITS) - 1;
	row->unit = (double)xfp_exp2i(lowest - XFP_CELL_BITS);
	encoder->count(cells, x, cols);
	/* Marked weights and padding are zeros that are not there. */
	cells->count[slot_of(XFP_CELL_CENTRE)] -= (int32_t)(xfp_padded(cols) - row->count);
	encoder->accumulate(cells);
}

/* Weights in the cells below `cell`, and the sum of what they count as. */
struct below {
	int32_t count;
	double sum;
};

static struct below below(const struct xfp_cells *cells, int32_t cell)
{
	size_t slot, lane;

	if (cell <= 0)
		return (struct below){ 0, 0 };
	slot = slot_of(cell - 1);
	lane = slot % XFP_LANES;
	return (struct below){ cells->before[lane] + cells->count[slot], cells->sum_before[lane] + cells->sum[slot] };
}

/* How many cells hold numbers <= bound: a double's leading bits number the octaves and their parts. */
static int32_t cells_up_to(double bound)
{
	const int shift = 52 - XFP_CELL_BITS;
	const int64_t first = (int64_t)(1023 + XFP_CELL_BITS) << XFP_CELL_BITS; /* of the least number above zero */
	int64_t bits, above;

	memcpy(&bits, &bound, sizeof bits);
	bits &= INT64_MAX;
	if (bound >= 0) {
		above = (bits >> shift) - first + 1;
		return XFP_CELL_CENTRE + 1 + (int32_t)(above > 0 ? above : 0);
	}
	/* The numbers that are at least as far below zero: the least magnitude >= |bound|. */
	above = ((bits - 1) >> shift) - first + 2;
	return XFP_CELL_CENTRE + 1 - (int32_t)(above > 1 ? above : 1);
}

/* The number of a rank, from 0. */
static double number_of_rank(const struct xfp_cells *cells, int32_t rank)
{
	size_t lane = 0, low = 0;

	while (lane + 1 < XFP_LANES && cells->before[lane + 1] <= rank)
		lane++;
	rank -= cells->before[lane];
	for (size_t step = XFP_CELLS / XFP_LANES / 2; step; step /= 2)
		low += cells->count[(low + step - 1) * XFP_LANES + lane] <= rank ? step : 0;
	return cells->value[low * XFP_LANES + lane];
}

static void begin(const struct xfp_lloyd_row *row, unsigned k, int start, double *c)
{
	unsigned entries = 1u << k;
	double low, high;

	if (start == XFP_LLOYD_MINMAX) {
		low = number_of_rank(&row->cells, 0);
		high = number_of_rank(&row->cells, (int32_t)row->count - 1);
		for (unsigned j = 0; j < entries; j++)
			c[j] = low + (high - low) * ((double)j / (entries - 1));
		return;
	}
	for (unsigned j = 0; j < entries; j++) {
		uint64_t fraction =
			start == XFP_LLOYD_COMPANDED ? xfp_companded[k][j] : (uint64_t)(2 * j + 1) << (31 - k);

		c[j] = number_of_rank(&row->cells, (int32_t)(fraction * row->count >> 32));
	}
}

void xfp_lloyd_fit(const struct xfp_lloyd_row *row, unsigned k, int start, unsigned rounds, uint16_t *codebook)
{
	unsigned entries = 1u << k;
	int32_t edge[ENTRIES + 1];
	struct below at[ENTRIES + 1];
	double c[ENTRIES];

	if (!row->count) {
		memset(codebook, 0, entries * sizeof *codebook);
		return;
	}
	begin(row, k, start, c);
	at[0] = (struct below){ 0, 0 };
	at[entries] = (struct below){ row->cells.before[XFP_LANES], row->cells.sum_before[XFP_LANES] };
	for (unsigned round = 0; round < rounds; round++) {
		int changed = round == 0;

		for (unsigned j = 1; j < entries; j++) {
			int32_t next = cells_up_to((c[j - 1] + c[j]) * 0.5);

			changed |= next != edge[j];
			edge[j] = next;
			at[j] = below(&row->cells, next);
		}
		if (!changed)
			break;
		for (unsigned j = 0; j < entries; j++) {
			int32_t n = at[j + 1].count - at[j].count;

			c[j] = n ? (at[j + 1].sum - at[j].sum) / n : c[j];
		}
	}
	for (unsigned j = 0; j < entries; j++)
		codebook[j] = xfp_double_to_half(c[j] * row->unit);
}
