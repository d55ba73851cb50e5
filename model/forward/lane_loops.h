/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane_loops.h - the loops of lane_set.h, on the lanes of the kernels/lanes/ header included before it. The including
 * file defines XFP_LANE_SET, the name of the set.
 */
#include <stdbool.h>
#include <string.h>

#include "model/forward/lane_set.h"
#include "model/forward/product.h"

/* ---- XFP_REPRODUCIBLE ------------------------------------------------------------------------------ */

/* `count` numbers, sixteen at most, padded with zeros. */
LANES_INLINE vf load_first(const float *from, size_t count)
{
	if (count >= XFP_LANES)
		return vf_load(from);
	return vf_from_bits(vi_load_first(from, (unsigned)count));
}

LANES_INLINE void store_first(float *to, vf a, size_t count)
{
	float lanes[XFP_LANES];

	if (count >= XFP_LANES) {
		vf_store(to, a);
		return;
	}
	vf_store(lanes, a);
	memcpy(to, lanes, count * sizeof *to);
}

/* Rows of a matrix are lanes. Sums of some vectors are in registers, for some columns at a time. */
#if LANES_WIDTH == 16
#define VECTORS 8
#else
#define VECTORS 2
#endif
#define EACH_VECTOR _Pragma("GCC unroll 8") for (unsigned i = 0; i < count; i++)

/* Convert some columns of up to sixteen rows: [cols][16]. Missing rows count as zeros. */
static void interleave(const float *w, size_t rows, size_t stride, size_t cols, double *to)
{
	float block[XFP_LANES * XFP_LANES] = { 0 };

	for (size_t c = 0; c < cols; c += XFP_LANES) {
		const size_t some = cols - c < XFP_LANES ? cols - c : XFP_LANES;

		for (size_t r = 0; r < rows; r++)
			if (some == XFP_LANES)
				vf_store(block + r * XFP_LANES, vf_load(w + r * stride + c));
			else
				memcpy(block + r * XFP_LANES, w + r * stride + c, some * sizeof *block);
		for (size_t i = 0; i < some; i++, to += XFP_LANES)
			for (size_t r = 0; r < XFP_LANES; r++)
				to[r] = block[r * XFP_LANES + i];
	}
}

/* Add the products of sixteen rows, [cols][16], and `count` vectors of a panel, [cols][XFP_PANEL]. */
LANES_INLINE void add_products(size_t cols, const double *w, const double *x, unsigned count, double *sum)
{
	vd s[VECTORS];

	EACH_VECTOR s[i] = vd_load(sum + i * XFP_LANES);
	for (; cols; cols--, w += XFP_LANES, x += XFP_PANEL) {
		const vd rows = vd_load(w);

		EACH_VECTOR s[i] = vd_add_exact(s[i], vd_all(x[i]), rows);
	}
	EACH_VECTOR vd_store(sum + i * XFP_LANES, s[i]);
}

static void add_panel(size_t cols, const double *w, const double *x, size_t count, double *sum)
{
	size_t t = 0;

	for (; t + VECTORS <= count; t += VECTORS)
		add_products(cols, w, x + t, VECTORS, sum + t * XFP_LANES);
	if (VECTORS > 4 && t + 4 <= count) {
		add_products(cols, w, x + t, VECTORS > 4 ? 4 : 1, sum + t * XFP_LANES);
		t += 4;
	}
	if (VECTORS > 2 && t + 2 <= count) {
		add_products(cols, w, x + t, 2, sum + t * XFP_LANES);
		t += 2;
	}
	if (t < count)
		add_products(cols, w, x + t, 1, sum + t * XFP_LANES);
}

/* Convert `count` numbers, and prefetch those that are `next` elements after them. */
static void widen(const float *from, size_t count, double *to, size_t next)
{
	size_t i = 0;

	for (; i + XFP_LANES <= count; i += XFP_LANES) {
		__builtin_prefetch(from + i + next, 0, 2);
		vd_store(to + i, vd_from_f(vf_load(from + i)));
	}
	for (; i < count; i++)
		to[i] = from[i];
}

static void product_rows(const float *w, size_t rows, size_t cols, const float *panels, size_t count, double *scratch,
			 float *y, size_t stride)
{
	double *x = scratch + XFP_PRODUCT_ROWS * XFP_PRODUCT_COLS, *sum = x + XFP_PANEL * XFP_PRODUCT_COLS;

	memset(sum, 0, XFP_PRODUCT_ROWS * count * sizeof *sum);
	for (size_t some, c = 0; c < cols; c += some) {
		some = cols - c < XFP_PRODUCT_COLS ? cols - c : XFP_PRODUCT_COLS;
		for (size_t r = 0; r < rows; r += XFP_LANES)
			interleave(w + r * cols + c, rows - r < XFP_LANES ? rows - r : XFP_LANES, cols, some,
				   scratch + r * XFP_PRODUCT_COLS);
		for (size_t t = 0; t < count; t += XFP_PANEL) {
			widen(panels + t * cols + c * XFP_PANEL, some * XFP_PANEL, x,
			      t + XFP_PANEL < count ? XFP_PANEL * cols : 0);
			for (size_t r = 0; r < rows; r += XFP_LANES)
				add_panel(some, scratch + r * XFP_PRODUCT_COLS, x,
					  count - t < XFP_PANEL ? count - t : XFP_PANEL,
					  sum + r * count + t * XFP_LANES);
		}
	}
	for (size_t r = 0; r < rows; r += XFP_LANES)
		for (size_t t = 0; t < count; t++, sum += XFP_LANES)
			store_first(y + t * stride + r, vf_from_d(vd_load(sum)), rows - r);
}

/* ---- XFP_FAST -------------------------------------------------------------------------------------- */

/* a + b c */
LANES_INLINE vf add_product(vf a, vf b, vf c)
{
	return vf_add(a, vf_mul(b, c));
}

/* e^x within a relative error of 2^-21; 2^-126 below -87, and 2^127 above 88. NaN stays NaN. */
LANES_INLINE vf exponential(vf x)
{
	static const float coefficient[] = { 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f };
	const vf min = vf_all(-87), max = vf_all(88);
	vf r, whole, sum = vf_all(1.0f / 5040);
	vi power;

	x = vf_where(vf_above(min, x), min, x);
	x = vf_where(vf_above(x, max), max, x);
	power = vf_round_small(vf_mul(x, vf_all(1.44269504f)));
	whole = vf_from_i(power);
	r = vf_sub(x, vf_mul(whole, vf_all(0.693359375f)));
	r = add_product(r, whole, vf_all(2.12194440e-4f));
	for (unsigned i = 0; i < sizeof coefficient / sizeof *coefficient; i++)
		sum = add_product(vf_all(coefficient[i]), sum, r);
	sum = vf_add(add_product(r, vf_mul(sum, r), r), vf_all(1));
	return vf_mul(sum, vf_from_bits(vi_left(vi_add(power, vi_all(127)), 23)));
}

#define EACH_QUERY _Pragma("GCC unroll 4") for (unsigned q = 0; q < queries; q++)
#define KEYS_AHEAD 16 /* weights have replaced the keys and values of earlier tokens in the caches */

/* Prefetch the vector some vectors after this one. */
LANES_INLINE void prefetch_vector(const float *vector, size_t stride, size_t size)
{
	for (size_t i = 0; i < size; i += XFP_LANES)
		__builtin_prefetch(vector + KEYS_AHEAD * stride + i);
}

LANES_INLINE void scores_of(const float *query, unsigned queries, const float *keys, size_t stride, size_t count,
			    size_t size, float *score, size_t score_stride)
{
	size_t whole = size / XFP_LANES * XFP_LANES;

	for (size_t j = 0; j < count; j++, keys += stride) {
		vf sum[XFP_QUERIES];

		EACH_QUERY sum[q] = vf_all(0);
		prefetch_vector(keys, stride, size);
		for (size_t i = 0; i < whole; i += XFP_LANES) {
			const vf key = vf_load(keys + i);

			EACH_QUERY sum[q] = add_product(sum[q], vf_load(query + q * size + i), key);
		}
		if (whole < size) {
			const vf key = load_first(keys + whole, size - whole);

			EACH_QUERY sum[q] =
				add_product(sum[q], load_first(query + q * size + whole, size - whole), key);
		}
		EACH_QUERY score[q * score_stride + j] = vf_total(sum[q]);
	}
}

static void scores(const float *query, size_t queries, const float *keys, size_t stride, size_t count, size_t size,
		   float *score, size_t score_stride)
{
	if (queries == XFP_QUERIES) {
		scores_of(query, XFP_QUERIES, keys, stride, count, size, score, score_stride);
		return;
	}
	for (; queries; queries--, query += size, score += score_stride)
		scores_of(query, 1, keys, stride, count, size, score, score_stride);
}

static float softmax(float *score, size_t count)
{
	float max = score[0];
	vf sum = vf_all(0);

	for (size_t j = 1; j < count; j++)
		max = score[j] > max || score[j] != score[j] ? score[j] : max;
	for (size_t j = count; j % XFP_LANES; j++)
		score[j] = max - 200; /* padding, which adds about e^-87 */
	for (size_t j = 0; j < count; j += XFP_LANES) {
		vf e = exponential(vf_sub(vf_load(score + j), vf_all(max)));

		vf_store(score + j, e);
		sum = vf_add(sum, e);
	}
	return vf_total(sum);
}

/* Sixteen elements of sums, or the last `left` ones. */
LANES_INLINE void mix_lanes(const float *score, size_t score_stride, unsigned queries, const float *values,
			    size_t stride, size_t count, size_t size, size_t left, bool prefetch, float *sum)
{
	vf s[XFP_QUERIES];

	EACH_QUERY s[q] = load_first(sum + q * size, left);
	for (size_t j = 0; j < count; j++, values += stride) {
		const vf value = load_first(values, left);

		if (prefetch)
			prefetch_vector(values, stride, size);
		EACH_QUERY s[q] = add_product(s[q], vf_all(score[q * score_stride + j]), value);
	}
	EACH_QUERY store_first(sum + q * size, s[q], left);
}

LANES_INLINE void mix_of(const float *score, size_t score_stride, unsigned queries, const float *values, size_t stride,
			 size_t count, size_t size, float *sum)
{
	size_t i = 0;

	for (; i + XFP_LANES <= size; i += XFP_LANES)
		mix_lanes(score, score_stride, queries, values + i, stride, count, size, XFP_LANES, !i, sum + i);
	if (i < size)
		mix_lanes(score, score_stride, queries, values + i, stride, count, size, size - i, false, sum + i);
}

static void mix(const float *score, size_t score_stride, size_t queries, const float *values, size_t stride,
		size_t count, size_t size, float *sum)
{
	if (queries == XFP_QUERIES) {
		mix_of(score, score_stride, XFP_QUERIES, values, stride, count, size, sum);
		return;
	}
	for (; queries; queries--, score += score_stride, sum += size)
		mix_of(score, score_stride, 1, values, stride, count, size, sum);
}

static void silu(float *gate, const float *up, size_t count)
{
	const vf one = vf_all(1);

	for (size_t i = 0; i < count; i += XFP_LANES) {
		vf x = load_first(gate + i, count - i);
		vf y = vf_div(x, vf_add(one, exponential(vf_mul(x, vf_all(-1)))));

		store_first(gate + i, vf_mul(y, load_first(up + i, count - i)), count - i);
	}
}

const struct xfp_lane_set XFP_LANE_SET = { product_rows, scores, softmax, mix, silu };
