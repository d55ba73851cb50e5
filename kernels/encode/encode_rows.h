/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_rows.h - the loops that every method needs (struct xfp_row_encoder of encode.h), written once on the lanes of
 * the kernels/lanes/ header included before it. Each encode_*.c includes this, those of the methods after it, and names
 * the tables that they define.
 */
#include <string.h>

#include "kernels/common/number.h"
#include "kernels/encode/encode.h"

#define TILE 512 /* columns whose sums stay in the L1 cache */

/* dtype numbers of base/dtype.h, which kernels/ does not include. */
enum { F64, F32, F16, BF16 };

static inline size_t element_of(int dtype)
{
	return dtype == F64 ? 8 : dtype == F32 ? 4 : 2;
}

static void load(int dtype, const void *source, size_t cols, float *w)
{
	const unsigned char *bytes = source;
	size_t c = 0;

	if (dtype == BF16)
		for (const uint16_t *from = source; c + XFP_LANES <= cols; c += XFP_LANES)
			vf_store(w + c, vf_from_bf16(from + c));
	if (c < cols)
		xfp_to_float(dtype, bytes + c * element_of(dtype), cols - c, w + c);
	memset(w + cols, 0, (xfp_padded(cols) - cols) * sizeof *w);
}

static size_t column_scan(int dtype, const void *source, size_t rows, size_t cols, double *square, float *largest)
{
	const size_t element = element_of(dtype);
	const vi magnitude = vi_all(0x7fffffff), finite = vi_all(0x7f7fffff);
	const unsigned char *bytes = source;
	float w[TILE];
	double squares[TILE];
	int32_t top[TILE];
	size_t nonfinite = 0;

	for (size_t first = 0; first < cols; first += TILE) {
		size_t count = cols - first < TILE ? cols - first : TILE, padded = xfp_padded(count);
		vi bad = vi_all(0);

		memset(squares, 0, padded * sizeof *squares);
		memcpy(top, largest + first, count * sizeof *top);
		memset(top + count, 0, (padded - count) * sizeof *top);
		for (size_t r = 0; r < rows; r++) {
			load(dtype, bytes + (r * cols + first) * element, count, w);
			for (size_t c = 0; c < padded; c += XFP_LANES) {
				vf value = vf_load(w + c);
				vi bits = vi_and(vf_bits(value), magnitude);
				vd wide = vd_from_f(value);

				/* Magnitudes compare like their bits, infinities and NaNs above all. */
				vi_store(top + c, vi_max(vi_load(top + c), bits));
				vd_store(squares + c, vd_add_exact(vd_load(squares + c), wide, wide));
				bad = vi_add_where(bad, vi_above(bits, finite), vi_all(1));
			}
		}
		memcpy(largest + first, top, count * sizeof *top);
		memcpy(square + first, squares, count * sizeof *squares);
		vi_store(top, bad);
		for (int i = 0; i < XFP_LANES; i++)
			nonfinite += (size_t)top[i];
	}
	return nonfinite;
}

static void scale(const float *w, const float *factor, size_t cols, float *x)
{
	for (size_t c = 0; c < cols; c += XFP_LANES)
		vf_store(x + c, vf_mul(vf_load(w + c), vf_load(factor + c)));
}

/* Convert to units of 2^-10, moments.h; the product is exact. */
static inline vi integers(const float *x)
{
	return vf_round(vf_mul(vf_load(x), vf_all(1024)));
}

static size_t survey(const float *x, size_t cols, int32_t low, int32_t high, uint32_t *column, int64_t *sum,
		     int64_t *square)
{
	const vi least = vi_all(low), most = vi_all(high);
	size_t found = 0;
	vsum sums;

	vsum_clear(&sums);
	for (size_t c = 0; c < cols; c += XFP_LANES) {
		vi q = integers(x + c);
		uint32_t bits = vm_bits(vm_or(vi_above(least, q), vi_above(q, most)));

		vsum_add(&sums, q);
		for (; bits; bits &= bits - 1) {
			column[found] = (uint32_t)c + (uint32_t)__builtin_ctz(bits);
			found++;
		}
	}
	vsum_total(&sums, sum, square);
	while (found && column[found - 1] >= cols)
		found--;
	return found;
}

static float largest(const float *x, size_t cols)
{
	const vi magnitude = vi_all(0x7fffffff);
	vi top = vi_all(0);
	int32_t lane[XFP_LANES], most = 0;
	float value;

	for (size_t c = 0; c < cols; c += XFP_LANES)
		top = vi_max(top, vi_and(vf_bits(vf_load(x + c)), magnitude));
	vi_store(lane, top);
	for (int i = 0; i < XFP_LANES; i++)
		most = lane[i] > most ? lane[i] : most;
	memcpy(&value, &most, sizeof value);
	return value;
}

/* Load fewer than sixteen elements; the zeros change no sum. */
static inline vf last_lanes(const float *from, size_t count)
{
	float lane[XFP_LANES];

	if (count == XFP_LANES)
		return vf_load(from);
	vf_store(lane, vf_all(0));
	memcpy(lane, from, count * sizeof *lane);
	return vf_load(lane);
}

LANES_INLINE double fold(vd sum)
{
	double lane[XFP_LANES];

	vd_store(lane, sum);
	for (int width = XFP_LANES / 2; width; width /= 2)
		for (int i = 0; i < width; i++)
			lane[i] = lane[i] + lane[i + width];
	return lane[0];
}

static double norm(const float *w, size_t cols)
{
	size_t whole = cols / XFP_LANES * XFP_LANES;
	vd sum = vd_zero();

	for (size_t c = 0; c < whole; c += XFP_LANES) {
		vd a = vd_from_f(vf_load(w + c));

		sum = vd_add_exact(sum, a, a);
	}
	if (whole < cols) {
		vd a = vd_from_f(last_lanes(w + whole, cols - whole));

		sum = vd_add_exact(sum, a, a);
	}
	return fold(sum);
}

/* Squares of differences and of r, summed as cosine.h specifies. */
struct squares {
	vf error, square;
	vd errors, all;
};

static inline void squares_begin(struct squares *s)
{
	s->errors = s->all = vd_zero();
	s->error = s->square = vf_all(0);
}

LANES_INLINE void squares_add(struct squares *s, vf w, vf r)
{
	vf d = vf_sub(w, r);

	s->error = vf_add(s->error, vf_mul(d, d));
	s->square = vf_add(s->square, vf_mul(r, r));
}

LANES_INLINE void squares_flush(struct squares *s)
{
	s->errors = vd_add(s->errors, vd_from_f(s->error));
	s->all = vd_add(s->all, vd_from_f(s->square));
	s->error = s->square = vf_all(0);
}

LANES_INLINE struct xfp_row_sums squares_total(const struct squares *s)
{
	return (struct xfp_row_sums){ fold(s->errors), fold(s->all) };
}

static struct xfp_row_sums compare(const float *w, const float *r, float unit, size_t cols)
{
	const vf units = vf_all(unit);
	size_t whole = cols / XFP_LANES * XFP_LANES, rest = cols - whole;
	struct squares s;

	squares_begin(&s);
	for (size_t c = 0; c < whole;) {
		size_t end = whole - c < XFP_SQUARES * XFP_LANES ? whole : c + XFP_SQUARES * XFP_LANES;

		/* The last few belong to an incomplete group. */
		for (; c < end; c += XFP_LANES)
			squares_add(&s, vf_mul(vf_load(w + c), units), vf_mul(vf_load(r + c), units));
		if (c % (XFP_SQUARES * XFP_LANES) == 0)
			squares_flush(&s);
	}
	if (rest)
		squares_add(&s, vf_mul(last_lanes(w + whole, rest), units), vf_mul(last_lanes(r + whole, rest), units));
	squares_flush(&s);
	return squares_total(&s);
}

/* Load sixteen weights into both rows. */
struct loading {
	vd norm;
	vi top;
};

LANES_BY_K void load_lanes(struct loading *l, vf weights, const float *factor, float unit, float *w, float *x)
{
	vf scaled = vf_mul(weights, vf_load(factor));

	vf_store(x, scaled);
	l->top = vi_max(l->top, vi_and(vf_bits(scaled), vi_all(0x7fffffff)));
	if (w) {
		vd wide = vd_from_f(weights);

		vf_store(w, vf_mul(weights, vf_all(unit)));
		l->norm = vd_add_exact(l->norm, wide, wide);
	}
}

LANES_BY_K struct xfp_row_start load_with(int dtype, const void *source, size_t cols, const float *factor, float unit,
					  float *w, float *x)
{
	struct loading l = { vd_zero(), vi_all(0) };
	int32_t lane[XFP_LANES], most = 0;
	struct xfp_row_start start;
	size_t c = 0;

	if (dtype == BF16)
		for (const uint16_t *from = source; c + XFP_LANES <= cols; c += XFP_LANES)
			load_lanes(&l, vf_from_bf16(from + c), factor + c, unit, w ? w + c : NULL, x + c);
	if (c < cols) {
		/* x is the intermediate buffer. */
		load(dtype, (const unsigned char *)source + c * element_of(dtype), cols - c, x + c);
		for (; c < cols; c += XFP_LANES)
			load_lanes(&l, vf_load(x + c), factor + c, unit, w ? w + c : NULL, x + c);
	}
	vi_store(lane, l.top);
	for (int i = 0; i < XFP_LANES; i++)
		most = lane[i] > most ? lane[i] : most;
	memcpy(&start.largest, &most, sizeof start.largest);
	start.norm = w ? fold(l.norm) : 0;
	return start;
}

static struct xfp_row_start load_scaled(int dtype, const void *source, size_t cols, const float *factor, float unit,
					float *w, float *x)
{
	return w ? load_with(dtype, source, cols, factor, unit, w, x)
		 : load_with(dtype, source, cols, factor, unit, NULL, x);
}

static const struct xfp_row_encoder row_encoder = {
	column_scan, load, scale, load_scaled, survey, largest, norm, compare,
};
