/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/encode/optimal.h"

#include <string.h>

#include "kernels/common/number.h"

#define BLOCK 16

/* Extract the prefix counts and sums of the nonempty cells, ascending; returns their number. */
static unsigned compact(const struct xfp_cells *cells, struct xfp_optimal_buffers *buffers)
{
	unsigned n = 0;
	double count = 0, sum = 0;

	buffers->count[0] = buffers->sum[0] = 0;
	for (unsigned lane = 0; lane < XFP_LANES; lane++) {
		int32_t before = 0;

		for (unsigned i = 0; i < XFP_CELLS / XFP_LANES; i++) {
			unsigned slot = i * XFP_LANES + lane;
			int32_t here = cells->count[slot] - before;

			before = cells->count[slot];
			if (!here)
				continue;
			count += here;
			sum += here * (double)cells->value[slot];
			n++;
			buffers->count[n] = count;
			buffers->sum[n] = sum;
		}
	}
	return n;
}

/* Return the smallest a in [low, high] that maximizes F[a] + gain(a, b), and the maximum; high < b. */
static unsigned best_start(const struct xfp_optimal_buffers *buffers, const double *before, unsigned low, unsigned high,
			   unsigned b, double *most)
{
	const double *count = buffers->count, *sum = buffers->sum;
	double n = count[b], s = sum[b], top = -1;
	unsigned at = low;

	for (unsigned a = low; a <= high; a += BLOCK) {
		unsigned here = high - a + 1 < BLOCK ? high - a + 1 : BLOCK;
		double value[BLOCK], largest = -1;

		if (here == BLOCK)
			for (unsigned i = 0; i < BLOCK; i++) {
				double d = s - sum[a + i];

				value[i] = before[a + i] + d * d / (n - count[a + i]);
			}
		else
			for (unsigned i = 0; i < here; i++) {
				double d = s - sum[a + i];

				value[i] = before[a + i] + d * d / (n - count[a + i]);
			}
		for (unsigned i = 0; i < here; i++)
			largest = value[i] > largest ? value[i] : largest;
		if (largest > top) {
			unsigned i = 0;

			while (value[i] != largest)
				i++;
			top = largest;
			at = a + i;
		}
	}
	*most = top;
	return at;
}

/* Compute layer m, F[m - 1] -> F[m], for b in [first, last]. The stack contains the ranges to the right. */
static void layer(struct xfp_optimal_buffers *buffers, const double *before, double *after, uint16_t *from, unsigned m,
		  unsigned first, unsigned last)
{
	struct {
		unsigned first, last, low, high;
	} todo[16], now = { first, last, m - 1, last - 1 };
	unsigned depth = 0;

	for (;;) {
		while (now.first <= now.last) {
			unsigned b = now.first + (now.last - now.first) / 2, high = now.high < b ? now.high : b - 1;
			unsigned a = best_start(buffers, before, now.low, high, b, &after[b]);

			from[b] = (uint16_t)a;
			if (b < now.last) {
				todo[depth].first = b + 1;
				todo[depth].last = now.last;
				todo[depth].low = a;
				todo[depth++].high = now.high;
			}
			if (b == now.first)
				break;
			now.last = b - 1;
			now.high = a;
		}
		if (!depth)
			return;
		now.first = todo[--depth].first;
		now.last = todo[depth].last;
		now.low = todo[depth].low;
		now.high = todo[depth].high;
	}
}

static void read_back(const struct xfp_optimal_buffers *buffers, unsigned entries, unsigned n, double unit,
		      uint16_t *codebook)
{
	unsigned runs = n < entries ? n : entries;

	for (unsigned m = runs, b = n; m; m--) {
		unsigned a = n <= entries ? b - 1 : m == 1 ? 0 : buffers->from[m - 1][b];

		codebook[m - 1] = xfp_double_to_half((buffers->sum[b] - buffers->sum[a]) /
						     (buffers->count[b] - buffers->count[a]) * unit);
		b = a;
	}
	for (unsigned m = runs; m < entries; m++)
		codebook[m] = codebook[runs - 1];
}

void xfp_optimal_fit(const struct xfp_lloyd_row *row, const unsigned *k, unsigned count,
		     struct xfp_optimal_buffers *buffers, uint16_t *const *codebook)
{
	unsigned n, most = 0;

	if (!row->count) {
		for (unsigned i = 0; i < count; i++)
			memset(codebook[i], 0, sizeof **codebook << k[i]);
		return;
	}
	n = compact(&row->cells, buffers);
	for (unsigned i = 0; i < count; i++)
		most = k[i] > most ? k[i] : most;
	for (unsigned b = 1; b <= n; b++)
		buffers->best[0][b] = buffers->sum[b] * buffers->sum[b] / buffers->count[b];
	/* Layer m needs at least m cells. The last layer is needed for all the cells alone. */
	for (unsigned m = 2; m <= 1u << most && m < n; m++)
		layer(buffers, buffers->best[m & 1], buffers->best[~m & 1], buffers->from[m - 1], m,
		      m == 1u << most ? n : m, n);
	for (unsigned i = 0; i < count; i++)
		read_back(buffers, 1u << k[i], n, row->unit, codebook[i]);
}
