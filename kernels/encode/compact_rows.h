/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact_rows.h - the loops of compact.h, written once on the lanes of the kernels/lanes/ header included before it.
 * Include it after encode_rows.h.
 *
 * Costly steps are shared among many weights: divisions, and the search for ratios, are done for sixteen groups at
 * once. The search for pairs adds a row of all pairs' table numbers for each code: sixty-four sums in words of two, for
 * which AVX-512 needs three instructions, however many cells there are.
 */
#include "kernels/encode/compact.h"

#define TINY 0x1p-40f /* groups with a smaller largest |y| are stored as zeros */

LANES_BY_K vf unmarked(uint16_t mark, vf a)
{
	return vf_where(vm_from_bits(mark), vf_all(0), a);
}

/* ---- one result per group, from sixteen lanes each ---------------------------------------------- */

/* The lanes of sixteen groups, in 32 bits. */
struct group_lanes {
	_Alignas(64) int32_t of[XFP_LANES][XFP_LANES];
};

/* Fill in the lanes of missing groups, after `count`. */
LANES_INLINE void lanes_end(struct group_lanes *lanes, size_t count)
{
	for (size_t g = count; g < XFP_LANES; g++)
		vi_store(lanes->of[g], vi_all(0));
}

/* Combine the lanes of every group, those that are 8 apart first, then 4, 2 and 1: the result of group g in lane g. */
#define COMBINE_FOUR(two, load, of) two(1, two(0, load(of[0]), load(of[4])), two(0, load(of[8]), load(of[12])))
#define COMBINE(two, load, of)                                                             \
	two(3, two(2, COMBINE_FOUR(two, load, (of)), COMBINE_FOUR(two, load, ((of) + 1))), \
	    two(2, COMBINE_FOUR(two, load, ((of) + 2)), COMBINE_FOUR(two, load, ((of) + 3))))

LANES_INLINE vf sum_halves(int level, vf a, vf b)
{
	vi low, high;

	vi_halves(level, vf_bits(a), vf_bits(b), &low, &high);
	return vf_add(vf_from_bits(low), vf_from_bits(high));
}

LANES_INLINE vf load_f(const int32_t *lanes)
{
	return vf_from_bits(vi_load(lanes));
}

/* The sums of the lanes, in the order of vf_fold. */
static __attribute__((noinline)) vf group_sums(const struct group_lanes *lanes)
{
	return COMBINE(sum_halves, load_f, lanes->of);
}

/* The least lane of a group, and the least lane of another class: lanes that are as many apart as there are entries
 * form a class. No two lanes are equal, except INT32_MAX. */
struct two_least {
	vi first, second;
};

LANES_INLINE struct two_least two_of(const int32_t *lanes)
{
	return (struct two_least){ vi_load(lanes), vi_all(INT32_MAX) };
}

#define LEAST_HALVES(level, a, b) least_halves(level, entries, a, b)
LANES_INLINE struct two_least least_halves(int level, unsigned entries, struct two_least a, struct two_least b)
{
	const vi same = vi_all(8u >> level >= entries ? INT32_MAX : 0);
	vi first, again, second, other;

	vi_halves(level, a.first, b.first, &first, &again);
	vi_halves(level, a.second, b.second, &second, &other);
	second = vi_min(vi_or(vi_max(first, again), same), vi_min(second, other));
	return (struct two_least){ vi_min(first, again), second };
}

static __attribute__((noinline)) struct two_least group_two_least(const struct group_lanes *lanes, unsigned entries)
{
	return COMBINE(LEAST_HALVES, two_of, lanes->of);
}

/* ---- groups ------------------------------------------------------------------------------------ */

/* Compute the remaining fields of up to sixteen groups from y and marks. */
static void describe(const struct xfp_compact_groups *to, size_t first, size_t count)
{
	const unsigned size = to->group;
	const vi magnitude = vi_all(0x7fffffff), zero = vi_all(XFP_COMPACT_ZERO);
	float largest[XFP_LANES] = { 0 }, factor[XFP_LANES], again;
	vf top;

	for (size_t g = 0; g < count; g++) {
		const float *y = to->y + (first + g) * size;
		vf square = vf_all(0);
		vi most = vi_all(0);
		int32_t bits;

		for (unsigned c = 0; c < size; c += XFP_LANES) {
			vf v = vf_load(y + c);

			square = vf_add(square, vf_mul(v, v));
			most = vi_max(most, vi_and(vf_bits(v), magnitude));
		}
		vf_fold(square, square, &to->square[first + g], &again);
		bits = vi_most(most);
		memcpy(&largest[g], &bits, sizeof bits);
	}
	top = vf_load(largest);
	top = vf_where(vf_above(vf_all(TINY), top), vf_all(0), top);
	vf_store(largest, top);
	memcpy(to->largest + first, largest, count * sizeof *largest);
	vf_store(factor, vf_where(vf_above(top, vf_all(0)), vf_div(vf_all(XFP_COMPACT_STEPS), top), vf_all(0)));
	for (size_t g = 0; g < count; g++) {
		const size_t at = (first + g) * size;
		const vf factors = vf_all(factor[g]);

		for (unsigned c = 0; c < size; c += XFP_LANES) {
			vm mark = vm_from_bits(to->mark[(at + c) / XFP_LANES]);
			vi code = vi_add(vf_round(vf_mul(vf_load(to->y + at + c), factors)), zero);

			vi_store_bytes(to->code + at + c, vi_where(mark, vi_all(0), code));
		}
	}
}

static void compact_load(const struct xfp_compact_groups *to, size_t first, const float *x, const uint16_t *marked,
			 size_t cols, float row)
{
	const size_t groups = xfp_compact_groups_of(cols, to->group), all = groups * to->group;
	const vf inverse = vf_all(1 / row);
	float *y = to->y + first * to->group;
	uint16_t *mark = to->mark + first * to->group / XFP_LANES;

	for (size_t c = 0; c < all; c += XFP_LANES) {
		uint16_t bits = marked && c < cols ? marked[c / XFP_LANES] : 0;

		if (c >= cols)
			bits = 0xffff;
		else if (cols - c < XFP_LANES)
			bits |= (uint16_t)(0xffffu << (cols - c));
		mark[c / XFP_LANES] = bits;
		vf_store(y + c, c < cols ? unmarked(bits, vf_mul(vf_load(x + c), inverse)) : vf_all(0));
	}
	for (size_t g = 0; g < groups; g += XFP_LANES)
		describe(to, first + g, groups - g < XFP_LANES ? groups - g : XFP_LANES);
}

/* Find the two pairs to try, of two entries, for each of `count` groups. */
LANES_BY_K void search_pairs(const struct xfp_compact_book *book, unsigned shift, unsigned size, const uint8_t *code,
			     size_t count, int32_t pair[2][XFP_LANES])
{
	struct group_lanes keys;
	struct two_least found;

	for (size_t g = 0; g < count; g++, code += size) {
		vi least = vi_all(INT32_MAX);
		vtally sums;

		vtally_clear(&sums);
		for (unsigned c = 0; c < size; c += 4) {
			vtally_add(&sums, book->table[code[c] >> shift]);
			vtally_add(&sums, book->table[code[c + 1] >> shift]);
			vtally_add(&sums, book->table[code[c + 2] >> shift]);
			vtally_add(&sums, book->table[code[c + 3] >> shift]);
		}
		/* Pairs of an entry are `entries` lanes apart. A missing pair sorts after all others. */
#pragma GCC unroll 4
		for (unsigned part = 0; part < 4; part++) {
			vi key = vi_left(vtally_sums(&sums, part), 8);

			least = vi_min(least, vi_or(key, vi_load(book->order + part * XFP_LANES)));
		}
		vi_store(keys.of[g], least);
	}
	lanes_end(&keys, count);
	found = group_two_least(&keys, book->library.entries);
	vi_store(pair[0], vi_and(found.first, vi_all(255)));
	vi_store(pair[1], vi_and(found.second, vi_all(255)));
}

/* Sum over the unmarked values of a group: y / ratio times the number of its entry, and that number squared; in sixteen
 * lanes each. */
LANES_BY_K void products(const struct xfp_compact_book *book, unsigned n, unsigned size, const float *y,
			 const uint16_t *mark, int32_t e, int32_t r, int32_t *yc, int32_t *cc)
{
	const float *edge = book->edge[e], *entry = book->library.entry[e];
	const vf inverse = vf_all(book->inverse[r]);
	vf sum_yc = vf_all(0), sum_cc = sum_yc;

#pragma GCC unroll 4
	for (unsigned c = 0; c < size; c += XFP_LANES) {
		vf v = vf_mul(vf_load(y + c), inverse);
		vf number = unmarked(mark[c / XFP_LANES], vf_lookup(entry, n, find_cell(n, edge, v)));

		sum_yc = vf_add(sum_yc, vf_mul(v, number));
		sum_cc = vf_add(sum_cc, vf_mul(number, number));
	}
	vi_store(yc, vf_bits(sum_yc));
	vi_store(cc, vf_bits(sum_cc));
}

static __attribute__((noinline)) vi nearest_ratios(const struct xfp_compact_book *book, vf scale)
{
	const float *edge = book->ratio_edge;
	vi r;

	switch (book->library.ratios) {
	case 16:
		r = find_cell(16, edge, scale);
		break;
	case 32:
		r = find_cell(32, edge, scale);
		break;
	default:
		r = find_cell(64, edge, scale);
	}
	return vi_max(r, vi_all(1));
}

/* The best result so far of sixteen groups. */
struct choice {
	vf error;
	vi e, r;
};

LANES_BY_K void offer(struct choice *best, vm only, vf square, vf ratio, vf yc, vf cc, vi e, vi r)
{
	/* square - 2 s (y c) + s^2 (c c), where yc includes a factor of 1 / s. */
	vf error = vf_add(square, vf_mul(vf_mul(ratio, ratio), vf_sub(cc, vf_add(yc, yc))));
	vm better = vm_and(only, vf_above(best->error, error));

	best->error = vf_where(better, error, best->error);
	best->e = vi_where(better, e, best->e);
	best->r = vi_where(better, r, best->r);
}

/* Evaluate both pairs of up to sixteen groups exactly, step by step for all groups. `tried`, which may be NULL,
 * receives the bytes that were evaluated; one that was not needed equals the byte before it. */
LANES_BY_K void choose(const struct xfp_compact_book *book, unsigned n, unsigned size, const float *y,
		       const uint16_t *mark, size_t count, int32_t pair[2][XFP_LANES], vf square, vf largest,
		       int32_t *e_of, int32_t *r_of, int32_t (*tried)[XFP_LANES])
{
	const int bits = (int)book->library.ratio_bits;
	const vm live = vf_above(largest, vf_all(0));
	const vi numbers = vi_all((int32_t)book->library.entries - 1);
	struct choice best = { square, vi_all(0), vi_all(0) };
	struct group_lanes all_yc, all_cc;

	lanes_end(&all_yc, count);
	lanes_end(&all_cc, count);
	for (int i = 0; i < 2; i++) {
		vi pairs = vi_load(pair[i]), e = vi_and(pairs, numbers), r, again;
		vf ratio, yc, cc;
		vm other;

		r = nearest_ratios(book, vf_mul(vf_gather(book->target, pairs), largest));
		vi_store(e_of, e);
		vi_store(r_of, r);
		for (size_t g = 0; g < count; g++)
			products(book, n, size, y + g * size, mark + g * (size / XFP_LANES), e_of[g], r_of[g],
				 all_yc.of[g], all_cc.of[g]);
		ratio = vf_gather(book->library.ratio, r);
		yc = group_sums(&all_yc);
		cc = group_sums(&all_cc);
		offer(&best, live, square, ratio, yc, cc, e, r);
		/* The least squares scale. If it is 0 / 0, there is nothing to choose. */
		again = nearest_ratios(book, vf_div(vf_mul(ratio, yc), cc));
		other = vm_and(live, vm_or(vi_above(again, r), vi_above(r, again)));
		other = vm_and(other, vf_above(cc, vf_all(0)));
		vi_store(r_of, again);
		for (uint32_t left = vm_bits(other); left; left &= left - 1) {
			unsigned g = (unsigned)__builtin_ctz(left);

			products(book, n, size, y + g * size, mark + g * (size / XFP_LANES), e_of[g], r_of[g],
				 all_yc.of[g], all_cc.of[g]);
		}
		ratio = vf_gather(book->library.ratio, again);
		offer(&best, other, square, ratio, group_sums(&all_yc), group_sums(&all_cc), e, again);
		if (tried) {
			vi entry = vi_left(e, bits), none = vi_all(0);

			again = vi_where(other, again, r);
			vi_store(tried[2 * i], vi_where(live, vi_or(entry, r), none));
			vi_store(tried[2 * i + 1], vi_where(live, vi_or(entry, again), none));
		}
	}
	vi_store(e_of, best.e);
	vi_store(r_of, best.r);
}

/* Compute a group's final indices. */
LANES_BY_K void settle(const struct xfp_compact_book *book, unsigned n, unsigned size, const float *y, int32_t e,
		       int32_t r, uint8_t *index)
{
	const vf inverse = vf_all(book->inverse[r]);

#pragma GCC unroll 4
	for (unsigned c = 0; c < size; c += XFP_LANES) {
		vi q = find_cell(n, book->edge[e], vf_mul(vf_load(y + c), inverse));

		vi_store_bytes(index + c, r ? q : vi_all(0));
	}
}

/* Compute a group's error from the decoded values of its indices. */
LANES_BY_K float group_error(const struct xfp_compact_book *book, unsigned n, unsigned size, const float *y,
			     const uint16_t *mark, int32_t e, int32_t r)
{
	const float *entry = book->library.entry[e];
	const vf inverse = vf_all(book->inverse[r]), ratio = vf_all(book->library.ratio[r]);
	vf sum = vf_all(0);
	float error, again;

#pragma GCC unroll 4
	for (unsigned c = 0; c < size; c += XFP_LANES) {
		vf v = vf_load(y + c), d;
		vi q = find_cell(n, book->edge[e], vf_mul(v, inverse));

		if (!r)
			q = vi_all(0);
		d = unmarked(mark[c / XFP_LANES], vf_sub(v, vf_mul(vf_lookup(entry, n, q), ratio)));
		sum = vf_add(sum, vf_mul(d, d));
	}
	vf_fold(sum, sum, &error, &again);
	return error;
}

/* Search up to sixteen groups: the best entry and ratio of each, and the bytes tried if `tried` is not NULL. */
LANES_BY_K void search_groups(const struct xfp_compact_book *book, unsigned k, const struct xfp_compact_groups *groups,
			      size_t at, size_t count, int32_t e[XFP_LANES], int32_t r[XFP_LANES],
			      int32_t (*tried)[XFP_LANES])
{
	const unsigned size = groups->group;
	int32_t pair[2][XFP_LANES];

	search_pairs(book, xfp_compact_shift(k), size, groups->code + at * size, count, pair);
	choose(book, 1u << k, size, groups->y + at * size, groups->mark + at * (size / XFP_LANES), count, pair,
	       last_lanes(groups->square + at, count), last_lanes(groups->largest + at, count), e, r, tried);
}

LANES_BY_K void assign_groups(const struct xfp_compact_book *book, unsigned k, const struct xfp_compact_groups *groups,
			      size_t first, size_t count, uint8_t *byte, uint8_t *index, float *error)
{
	const unsigned size = groups->group;

	for (size_t b = 0; b < count; b += XFP_LANES) {
		const size_t at = first + b, some = count - b < XFP_LANES ? count - b : XFP_LANES;
		const float *y = groups->y + at * size;
		const uint16_t *mark = groups->mark + at * (size / XFP_LANES);
		int32_t e[XFP_LANES], r[XFP_LANES];

		search_groups(book, k, groups, at, some, e, r, NULL);
		for (size_t g = 0; g < some; g++) {
			byte[b + g] = (uint8_t)(e[g] << book->library.ratio_bits | r[g]);
			if (index)
				settle(book, 1u << k, size, y + g * size, e[g], r[g], index + (b + g) * size);
			if (error)
				error[b + g] = group_error(book, 1u << k, size, y + g * size,
							   mark + g * (size / XFP_LANES), e[g], r[g]);
		}
	}
}

static void compact_assign(const struct xfp_compact_book *book, const struct xfp_compact_groups *groups, size_t first,
			   size_t count, uint8_t *byte, uint8_t *index, float *error){
	BY_BITS(book->library.k, assign_groups(book, BITS, groups, first, count, byte, index, error))
}

LANES_BY_K void propose_groups(const struct xfp_compact_book *book, unsigned k, const struct xfp_compact_groups *groups,
			       size_t first, size_t count, uint8_t byte[XFP_COMPACT_TRIED + 1][XFP_LANES])
{
	int32_t e[XFP_LANES], r[XFP_LANES], tried[XFP_COMPACT_TRIED][XFP_LANES];

	describe(groups, first, count);
	search_groups(book, k, groups, first, count, e, r, tried);
	for (int i = 0; i < XFP_LANES; i++) {
		byte[0][i] = (uint8_t)(e[i] << book->library.ratio_bits | r[i]);
		for (int t = 0; t < XFP_COMPACT_TRIED; t++)
			byte[1 + t][i] = (uint8_t)tried[t][i];
	}
}

static void compact_propose(const struct xfp_compact_book *book, const struct xfp_compact_groups *groups, size_t first,
			    size_t count, uint8_t byte[XFP_COMPACT_TRIED + 1][XFP_LANES]){
	BY_BITS(book->library.k, propose_groups(book, BITS, groups, first, count, byte))
}

LANES_BY_K void decode_groups(const struct xfp_compact_library *library, unsigned n, const uint8_t *byte,
			      const uint8_t *index, float row, size_t cols, float *x)
{
	const vf rows = vf_all(row);

	for (size_t c = 0; c < cols; c += XFP_LANES) {
		const uint8_t own = byte[c / library->group];
		const float *entry = library->entry[own >> library->ratio_bits];
		const vf ratio = vf_all(library->ratio[own & (library->ratios - 1)]);
		uint8_t last[XFP_LANES] = { 0 };
		vf value;

		if (cols - c < XFP_LANES)
			memcpy(last, index + c, cols - c);
		value = vf_lookup(entry, n, vi_load_bytes(cols - c < XFP_LANES ? last : index + c));
		value = vf_mul(vf_mul(value, ratio), rows);
		vf_store(x + c, cols - c < XFP_LANES ? unmarked((uint16_t)(0xffffu << (cols - c)), value) : value);
	}
}

static void compact_decode(const struct xfp_compact_library *library, const uint8_t *byte, const uint8_t *index,
			   float row, size_t cols, float *x){
	BY_BITS(library->k, decode_groups(library, 1u << BITS, byte, index, row, cols, x))
}

LANES_BY_K void reconstruct_groups(const struct xfp_compact_book *book, unsigned n, const float *y, const uint8_t *byte,
				   float row, size_t cols, float *x)
{
	const struct xfp_compact_library *l = &book->library;
	const vf rows = vf_all(row);

	for (size_t group = 0; group < cols; group += l->group, byte++) {
		const unsigned e = *byte >> l->ratio_bits, r = *byte & (l->ratios - 1);
		const size_t end = cols - group < l->group ? cols : group + l->group;
		const vf inverse = vf_all(book->inverse[r]), ratio = vf_all(l->ratio[r]);

		for (size_t c = group; c < end; c += XFP_LANES) {
			vi q = find_cell(n, book->edge[e], vf_mul(vf_load(y + c), inverse));
			vf value = vf_mul(vf_mul(vf_lookup(l->entry[e], n, r ? q : vi_all(0)), ratio), rows);

			vf_store(x + c,
				 cols - c < XFP_LANES ? unmarked((uint16_t)(0xffffu << (cols - c)), value) : value);
		}
	}
}

static void compact_reconstruct(const struct xfp_compact_book *book, const struct xfp_compact_groups *groups,
				size_t first, const uint8_t *byte, float row, size_t cols, float *x)
{
	const float *y = groups->y + first * groups->group;

	BY_BITS(book->library.k, reconstruct_groups(book, 1u << BITS, y, byte, row, cols, x))
}

LANES_BY_K void index_groups(const struct xfp_compact_book *book, unsigned n, const float *x, const uint8_t *byte,
			     float row, size_t cols, uint8_t *index)
{
	const struct xfp_compact_library *l = &book->library;
	const vf inverse = vf_all(1 / row);

	for (size_t group = 0; group < cols; group += l->group, byte++) {
		const unsigned e = *byte >> l->ratio_bits, r = *byte & (l->ratios - 1);
		const size_t end = cols - group < l->group ? cols : group + l->group;
		const vf ratio = vf_all(book->inverse[r]);

		for (size_t c = group; c < end; c += XFP_LANES) {
			vi q = find_cell(n, book->edge[e], vf_mul(vf_mul(vf_load(x + c), inverse), ratio));

			vi_store_bytes(index + c, r ? q : vi_all(0));
		}
	}
}

static void compact_index(const struct xfp_compact_book *book, const float *x, const uint8_t *byte, float row,
			  size_t cols, uint8_t *index)
{
	BY_BITS(book->library.k, index_groups(book, 1u << BITS, x, byte, row, cols, index))
}

static const struct xfp_compact_encoder compact_encoder = {
	compact_load, compact_assign, compact_propose, compact_decode, compact_reconstruct, compact_index,
};
