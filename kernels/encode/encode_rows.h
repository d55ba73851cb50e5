/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_rows.h - the loops of encode.h, written once on the sixteen lanes of the lanes_*.h included before it.
 * Each encode_*.c includes it and names the table of its functions.
 */
#include <string.h>

#include "kernels/common/number.h"

#define TILE 512 /* columns whose sums stay in the first-level cache */

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

				/* Magnitudes order as their bits do, infinities and NaNs above all. */
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

/* In units of 2^-10, moments.h; the product is exact. */
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

static void count(struct xfp_cells *cells, const float *x, size_t cols)
{
	const int shift = 23 - XFP_CELL_BITS;
	const vi magnitude = vi_all(0x7fffffff), half = vi_all(1 << (shift - 1)), base = vi_all(cells->base);
	const vi centre = vi_all(XFP_CELL_CENTRE), zero = vi_all(0), within = vi_all(255);
	int32_t *restrict counts = cells->count;

	memset(counts, 0, sizeof cells->count);
	/* In two steps: what is stored in vectors is slow to load in parts before it has left the store buffer. */
	for (size_t first = 0; first < cols; first += TILE) {
		size_t lanes = cols - first < TILE ? xfp_padded(cols - first) : TILE;
		int32_t slot[TILE];

		for (size_t c = 0; c < lanes; c += XFP_LANES) {
			vi bits = vf_bits(vf_load(x + first + c)), sign = vi_sign(bits);
			vi key = vi_right(vi_add(vi_and(bits, magnitude), half), shift);
			vi cell = vi_max(vi_sub(key, base), zero);

			cell = vi_add(centre, vi_sub(vi_xor(cell, sign), sign));
			vi_store(slot + c, vi_or(vi_left(vi_and(cell, within), 4), vi_right(cell, 8)));
		}
		for (size_t c = 0; c < lanes; c += 8) {
			counts[slot[c]]++;
			counts[slot[c + 1]]++;
			counts[slot[c + 2]]++;
			counts[slot[c + 3]]++;
			counts[slot[c + 4]]++;
			counts[slot[c + 5]]++;
			counts[slot[c + 6]]++;
			counts[slot[c + 7]]++;
		}
	}
}

static void accumulate(struct xfp_cells *cells)
{
	int32_t last[XFP_LANES];
	double last_sum[XFP_LANES];
	vi counted = vi_all(0);
	vd sum = vd_zero();

	for (size_t i = 0; i < XFP_CELLS; i += XFP_LANES) {
		vi here = vi_load(cells->count + i);

		counted = vi_add(counted, here);
		sum = vd_add_exact(sum, vd_from_i(here), vd_from_f(vf_load(cells->value + i)));
		vi_store(cells->count + i, counted);
		vd_store(cells->sum + i, sum);
	}
	vi_store(last, counted);
	vd_store(last_sum, sum);
	cells->before[0] = 0;
	cells->sum_before[0] = 0;
	for (int i = 0; i < XFP_LANES; i++) {
		cells->before[i + 1] = cells->before[i] + last[i];
		cells->sum_before[i + 1] = cells->sum_before[i] + last_sum[i];
	}
}

static void start(const struct xfp_cells *cells, struct xfp_fit_lanes *fit)
{
	for (unsigned i = 0; i < fit->lanes; i += XFP_LANES) {
		vi rank = vi_load(fit->rank + i), lane = vi_all(0), low = vi_all(0);

		for (int l = 1; l < XFP_LANES; l++)
			lane = vi_add_where(lane, vi_above(vi_add(rank, vi_all(1)), vi_all(cells->before[l])),
					    vi_all(1));
		rank = vi_sub(rank, vi_lookup16(cells->before, lane));
		for (int step = 128; step; step /= 2) {
			vi cell = vi_add(low, vi_all(step - 1));
			vi upto = vi_lookup(cells->count, vi_or(vi_left(cell, 4), lane));

			low = vi_add_where(low, vi_above(vi_add(rank, vi_all(1)), upto), vi_all(step));
		}
		vd_store(fit->c + XFP_LANES + i, vd_from_f(vf_gather(cells->value, vi_or(vi_left(low, 4), lane))));
	}
}

/* How many cells hold numbers <= bound: a double's leading bits number the octaves and their parts. Below zero they
 * count down from the least magnitude that is >= |bound|. */
static inline vi cells_up_to(vd bound)
{
	const int32_t first = (1023 + XFP_CELL_BITS) << XFP_CELL_BITS; /* of the least number above zero */
	vi above;

	bound = vd_add(bound, vd_zero()); /* -0 becomes 0 */
	above = vi_max(vi_sub(vd_key(bound, 52 - XFP_CELL_BITS), vi_all(first - 1)), vi_all(0));

	return vi_add(vi_all(XFP_CELL_CENTRE + 1), vi_xor(above, vd_sign(bound)));
}

static void rounds(const struct xfp_cells *cells, struct xfp_fit_lanes *fit, unsigned most)
{
	/* Of the numbers up to an entry's upper bound: how many, and their sum. */
	int32_t counts[XFP_LANES + XFP_FIT_LANES], cell[XFP_FIT_LANES], *count = counts + XFP_LANES;
	double sums[XFP_LANES + XFP_FIT_LANES], *sum = sums + XFP_LANES, *c = fit->c + XFP_LANES;
	const vi one = vi_all(1), none = vi_all(0);
	uint32_t changed = 1;

	memset(cell, 0, sizeof cell);
	count[-1] = 0;
	sum[-1] = 0;
	for (unsigned round = 0; round < most && changed; round++) {
		changed = 0;
		for (unsigned i = 0; i < fit->lanes; i += XFP_LANES) {
			vi upto = cells_up_to(vd_mul(vd_add(vd_load(c + i), vd_load(c + i + 1)), vd_all(0.5)));
			vi last = vi_sub(upto, one), lane = vi_right(last, 8);
			vi slot = vi_or(vi_left(vi_and(last, vi_all(255)), 4), lane), kind = vi_load(fit->kind + i);
			vm is_last = vi_above(kind, none), is_none = vi_above(kind, one);
			vi n = vi_add(vi_lookup(cells->count, slot), vi_lookup16(cells->before, lane));
			vd s = vd_add(vd_lookup(cells->sum, slot), vd_lookup16(cells->sum_before, lane));

			changed |= vm_bits(vi_above(vi_xor(upto, vi_load(cell + i)), none));
			vi_store(cell + i, upto);
			n = vi_where(is_last, vi_all(cells->before[XFP_LANES]), n);
			s = vd_where(is_last, vd_all(cells->sum_before[XFP_LANES]), s);
			vi_store(count + i, vi_where(is_none, none, n));
			vd_store(sum + i, vd_where(is_none, vd_zero(), s));
		}
		for (unsigned i = 0; i < fit->lanes; i += XFP_LANES) {
			vi n = vi_sub(vi_load(count + i), vi_load(count + i - 1));
			vd s = vd_sub(vd_load(sum + i), vd_load(sum + i - 1));

			vd_store(c + i, vd_where(vi_above(n, none), vd_div(s, vd_from_i(n)), vd_load(c + i)));
		}
	}
}

/* By bisection: x is compared with the middle edge, then with that of the half where it is. */
LANES_BY_K vi find_cell(unsigned entries, const float *edge, vf x)
{
	unsigned half = entries / 2, quarter = entries / 4;
	vm upper = vf_above(x, vf_all(edge[half - 1]));
	vi at = vi_add_where(vi_all(0), upper, vi_all((int32_t)half));
	vf bound = vf_where(upper, vf_all(edge[half + quarter - 1]), vf_all(edge[quarter - 1]));

	at = vi_add_where(at, vf_above(x, bound), vi_all((int32_t)quarter));
	for (unsigned step = entries / 8; step; step /= 2) {
		bound = vf_lookup(edge, entries, vi_add(at, vi_all((int32_t)step - 1)));
		at = vi_add_where(at, vf_above(x, bound), vi_all((int32_t)step));
	}
	return at;
}

LANES_BY_K void assign_k(unsigned entries, const float *entry, const float *edge, const float *x, size_t cols,
			 float *value)
{
	for (size_t c = 0; c < cols; c += XFP_LANES)
		vf_store(value + c, vf_lookup(entry, entries, find_cell(entries, edge, vf_load(x + c))));
}

static void assign(unsigned k, const float *entry, const float *edge, const float *x, size_t cols, float *value)
{
	switch (k) {
	case 2:
		assign_k(4, entry, edge, x, cols, value);
		break;
	case 3:
		assign_k(8, entry, edge, x, cols, value);
		break;
	case 4:
		assign_k(16, entry, edge, x, cols, value);
		break;
	case 5:
		assign_k(32, entry, edge, x, cols, value);
		break;
	default:
		assign_k(64, entry, edge, x, cols, value);
	}
}

LANES_BY_K void index_k(unsigned entries, const float *edge, const float *x, size_t cols, uint8_t *index)
{
	for (size_t c = 0; c < cols; c += XFP_LANES)
		vi_store_bytes(index + c, find_cell(entries, edge, vf_load(x + c)));
}

static void index_row(unsigned k, const float *edge, const float *x, size_t cols, uint8_t *index)
{
	switch (k) {
	case 2:
		index_k(4, edge, x, cols, index);
		break;
	case 3:
		index_k(8, edge, x, cols, index);
		break;
	case 4:
		index_k(16, edge, x, cols, index);
		break;
	case 5:
		index_k(32, edge, x, cols, index);
		break;
	default:
		index_k(64, edge, x, cols, index);
	}
}

/* Fewer than sixteen elements, and zeros, which change no sum. */
static inline vf last_lanes(const float *from, size_t count)
{
	float lane[XFP_LANES] = { 0 };

	memcpy(lane, from, count * sizeof *lane);
	return vf_load(lane);
}

static double fold(vd sum)
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

/* Squares of differences and of r, as cosine.h adds them up. */
struct squares {
	vf error, square;
	vd errors, all;
};

static inline void squares_begin(struct squares *s)
{
	s->errors = s->all = vd_zero();
	s->error = s->square = vf_all(0);
}

static inline void squares_add(struct squares *s, vf w, vf r)
{
	vf d = vf_sub(w, r);

	s->error = vf_add(s->error, vf_mul(d, d));
	s->square = vf_add(s->square, vf_mul(r, r));
}

static inline void squares_flush(struct squares *s)
{
	s->errors = vd_add(s->errors, vd_from_f(s->error));
	s->all = vd_add(s->all, vd_from_f(s->square));
	s->error = s->square = vf_all(0);
}

static inline struct xfp_row_sums squares_total(const struct squares *s)
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

		/* The last few belong to a group that has not ended. */
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

LANES_BY_K struct xfp_row_sums measure_k(unsigned entries, const float *entry, const float *edge, const float *x,
					 const float *down, const float *w, size_t cols)
{
	struct squares s;

	squares_begin(&s);
	for (size_t c = 0; c < cols;) {
		size_t end = cols - c < XFP_SQUARES * XFP_LANES ? cols : c + XFP_SQUARES * XFP_LANES;

		for (; c < end; c += XFP_LANES) {
			vf value = vf_lookup(entry, entries, find_cell(entries, edge, vf_load(x + c)));

			squares_add(&s, vf_load(w + c), vf_mul(value, vf_load(down + c)));
		}
		squares_flush(&s);
	}
	return squares_total(&s);
}

static struct xfp_row_sums measure(unsigned k, const float *entry, const float *edge, const float *x, const float *down,
				   const float *w, size_t cols)
{
	switch (k) {
	case 2:
		return measure_k(4, entry, edge, x, down, w, cols);
	case 3:
		return measure_k(8, entry, edge, x, down, w, cols);
	case 4:
		return measure_k(16, entry, edge, x, down, w, cols);
	case 5:
		return measure_k(32, entry, edge, x, down, w, cols);
	default:
		return measure_k(64, entry, edge, x, down, w, cols);
	}
}

/* Sixteen weights into both rows. */
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
		/* By way of x. */
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

#define XFP_ENCODER(set)                                                                                           \
	{                                                                                                          \
		.name = set, .column_scan = column_scan, .load = load, .scale = scale, .load_scaled = load_scaled, \
		.survey = survey, .largest = largest, .count = count, .accumulate = accumulate, .start = start,    \
		.rounds = rounds, .assign = assign, .index = index_row, .norm = norm, .compare = compare,          \
		.measure = measure, .compact_load = compact_load, .compact_assign = compact_assign,                \
		.compact_decode = compact_decode, XFP_SCALED_ENCODER                                               \
	}
