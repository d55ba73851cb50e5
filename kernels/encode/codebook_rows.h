/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codebook_rows.h - the loops of struct xfp_codebook_encoder (encode.h): count rows in cells, fit and assign. Include
 * after encode_rows.h.
 */
static void count(struct xfp_cells *cells, const float *x, size_t cols)
{
	const int shift = 23 - XFP_CELL_BITS;
	const vi magnitude = vi_all(0x7fffffff), half = vi_all(1 << (shift - 1)), base = vi_all(cells->base);
	const vi centre = vi_all(XFP_CELL_CENTRE), zero = vi_all(0), within = vi_all(255);
	int32_t *restrict counts = cells->count;

	memset(counts, 0, sizeof cells->count);
	/* In two passes: reading part of a vector that is still in the store buffer is slow. */
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

/* Return how many cells contain numbers <= bound. The leading bits of a double number the octaves and their parts;
 * below zero they count down from the smallest magnitude that is >= |bound|. */
static inline vi cells_up_to(vd bound)
{
	const int32_t first = (1023 + XFP_CELL_BITS) << XFP_CELL_BITS; /* index of the smallest positive number */
	vi above;

	bound = vd_add(bound, vd_zero()); /* -0 becomes 0 */
	above = vi_max(vi_sub(vd_key(bound, 52 - XFP_CELL_BITS), vi_all(first - 1)), vi_all(0));

	return vi_add(vi_all(XFP_CELL_CENTRE + 1), vi_xor(above, vd_sign(bound)));
}

static void rounds(const struct xfp_cells *cells, struct xfp_fit_lanes *fit, unsigned most)
{
	/* Count and sum of the numbers up to each entry's upper bound. */
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

/* Execute `call` in a copy for each k from 2 to 6, with the constant BITS. */
#define BY_BITS(k, call)           \
	switch (k) {               \
	case 2: {                  \
		enum { BITS = 2 }; \
		call;              \
		break;             \
	}                          \
	case 3: {                  \
		enum { BITS = 3 }; \
		call;              \
		break;             \
	}                          \
	case 4: {                  \
		enum { BITS = 4 }; \
		call;              \
		break;             \
	}                          \
	case 5: {                  \
		enum { BITS = 5 }; \
		call;              \
		break;             \
	}                          \
	default: {                 \
		enum { BITS = 6 }; \
		call;              \
	}                          \
	}

/* Bisect: compare x with the middle edge, then with the middle of the half that contains it. */
LANES_BY_K vi find_cell(unsigned entries, const float *edge, vf x)
{
	unsigned half = entries / 2, quarter = entries / 4;
	vm upper = vf_above(x, vf_all(edge[half - 1]));
	vi at = vi_add_where(vi_all(0), upper, vi_all((int32_t)half));
	vf bound = vf_where(upper, vf_all(edge[half + quarter - 1]), vf_all(edge[quarter - 1]));

	at = vi_add_where(at, vf_above(x, bound), vi_all((int32_t)quarter));
#pragma GCC unroll 4
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

static void assign(unsigned k, const float *entry, const float *edge, const float *x, size_t cols,
		   float *value){ BY_BITS(k, assign_k(1u << BITS, entry, edge, x, cols, value)) }

LANES_BY_K void index_k(unsigned entries, const float *edge, const float *x, size_t cols, uint8_t *index)
{
	for (size_t c = 0; c < cols; c += XFP_LANES)
		vi_store_bytes(index + c, find_cell(entries, edge, vf_load(x + c)));
}

static void index_row(unsigned k, const float *edge, const float *x, size_t cols,
		      uint8_t *index){ BY_BITS(k, index_k(1u << BITS, edge, x, cols, index)) }

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
	BY_BITS(k, return measure_k(1u << BITS, entry, edge, x, down, w, cols))
}

static const struct xfp_codebook_encoder codebook_encoder = {
	count, accumulate, start, rounds, assign, index_row, measure,
};
