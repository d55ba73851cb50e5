/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane_loops.h - the loops of lane_set.h. The including file defines XFP_LANE_SET, the name of the set.
 */
#include <string.h>

#include "model/forward/lane_set.h"
#include "model/forward/lanes.h"
#include "model/forward/product.h"

/* ---- XFP_REPRODUCIBLE ------------------------------------------------------------------------------ */

typedef double panel_lanes __attribute__((vector_size(XFP_PANEL * sizeof(double))));
typedef float panel_floats __attribute__((vector_size(XFP_PANEL * sizeof(float))));

/* Missing rows count as zeros. */
static void interleave(const float *w, size_t rows, size_t cols, double *quad)
{
	for (size_t c = 0; c < cols; c++) {
		for (size_t r = 0; r < XFP_QUAD; r++)
			*quad++ = r < rows ? w[r * cols + c] : 0;
	}
}

static void product_rows(const float *w, size_t rows, size_t cols, const float *panels, size_t count, double *quad,
			 float *y, size_t stride)
{
	interleave(w, rows, cols, quad);
	for (size_t first = 0; first < count; first += XFP_PANEL) {
		panel_lanes sum[XFP_QUAD] = { { 0 } };

		for (size_t c = 0; c < cols; c++) {
			panel_floats x;
			panel_lanes wide;

			memcpy(&x, panels, sizeof x);
			panels += XFP_PANEL;
			wide = __builtin_convertvector(x, panel_lanes);
			for (size_t r = 0; r < XFP_QUAD; r++)
				sum[r] += wide * quad[c * XFP_QUAD + r];
		}
		for (size_t r = 0; r < rows; r++) {
			for (size_t i = 0; i < XFP_PANEL && first + i < count; i++)
				y[(first + i) * stride + r] = (float)sum[r][i];
		}
	}
}

/* ---- XFP_FAST -------------------------------------------------------------------------------------- */

static void scores(const float *query, const float *keys, size_t stride, size_t count, size_t size, float *score)
{
	size_t whole = size / XFP_LANES * XFP_LANES;

	for (size_t j = 0; j < count; j++, keys += stride) {
		xfp_lanes sum = { 0 };

		for (size_t i = 0; i < whole; i += XFP_LANES)
			sum += xfp_lanes_load(query + i) * xfp_lanes_load(keys + i);
		if (whole < size)
			sum += xfp_lanes_some(query + whole, size - whole) * xfp_lanes_some(keys + whole, size - whole);
		score[j] = xfp_lanes_sum(sum);
	}
}

static float softmax(float *score, size_t count)
{
	float most = score[0];
	xfp_lanes sum = { 0 };

	for (size_t j = 1; j < count; j++)
		most = score[j] > most || score[j] != score[j] ? score[j] : most;
	for (size_t j = count; j % XFP_LANES; j++)
		score[j] = most - 200; /* padding, which adds about e^-87 */
	for (size_t j = 0; j < count; j += XFP_LANES) {
		xfp_lanes e = xfp_lanes_exp(xfp_lanes_load(score + j) - most);

		xfp_lanes_put(e, XFP_LANES, score + j);
		sum += e;
	}
	return xfp_lanes_sum(sum);
}

static void mix(const float *score, const float *values, size_t stride, size_t count, size_t size, float *sum)
{
	size_t i = 0;

	for (; i + 2 * XFP_LANES <= size; i += 2 * XFP_LANES) {
		xfp_lanes a = xfp_lanes_load(sum + i), b = xfp_lanes_load(sum + i + XFP_LANES);
		const float *value = values + i;

		for (size_t j = 0; j < count; j++, value += stride) {
			a += score[j] * xfp_lanes_load(value);
			b += score[j] * xfp_lanes_load(value + XFP_LANES);
		}
		xfp_lanes_put(a, XFP_LANES, sum + i);
		xfp_lanes_put(b, XFP_LANES, sum + i + XFP_LANES);
	}
	for (; i < size; i += XFP_LANES) {
		xfp_lanes a = xfp_lanes_some(sum + i, size - i);
		const float *value = values + i;

		for (size_t j = 0; j < count; j++, value += stride)
			a += score[j] * xfp_lanes_some(value, size - i);
		xfp_lanes_put(a, size - i, sum + i);
	}
}

static void silu(float *gate, const float *up, size_t count)
{
	for (size_t i = 0; i < count; i += XFP_LANES) {
		xfp_lanes x = xfp_lanes_some(gate + i, count - i);

		xfp_lanes_put(x / (1 + xfp_lanes_exp(-x)) * xfp_lanes_some(up + i, count - i), count - i, gate + i);
	}
}

const struct xfp_lane_set XFP_LANE_SET = { product_rows, scores, softmax, mix, silu };
