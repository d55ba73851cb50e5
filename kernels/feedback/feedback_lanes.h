/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feedback_lanes.h - the loops of feedback_set.h, on the lanes of the kernels/lanes/ header included before it. The
 * including file defines XFP_FEEDBACK_SET, the name of the set.
 *
 * Lanes are rows, or columns of a product, never terms of a sum.
 */
#include <string.h>

#include "kernels/feedback/feedback_set.h"

/* Columns of a product whose sums fit in registers. */
#if LANES_WIDTH == 16
#define TILE 8
#else
#define TILE 2
#endif
#define EACH_OF_TILE _Pragma("GCC unroll 8") for (int i = 0; i < TILE; i++)

LANES_INLINE void multiply_tile(size_t steps, const double *a, const double *b, ptrdiff_t step, double *sum,
				const float *next)
{
	vd s[TILE];

	EACH_OF_TILE s[i] = vd_load(sum + i * XFP_LANES);
	for (; steps; steps--) {
		const vd x = vd_load(b);

		if (next) {
			__builtin_prefetch(next);
			next += XFP_LANES;
		}
		EACH_OF_TILE s[i] = vd_add_exact(s[i], vd_all(a[i]), x);
		a += step;
		b += step;
	}
	EACH_OF_TILE vd_store(sum + i * XFP_LANES, s[i]);
}

static void multiply(size_t steps, const double *a, const double *b, ptrdiff_t step, double *sum, const float *next)
{
	multiply_tile(steps, a, b, step, sum, next);
	for (size_t c = TILE; c < XFP_LANES; c += TILE)
		multiply_tile(steps, a + c, b, step, sum + c * XFP_LANES, NULL);
}

static void widen(const float *from, size_t count, double *to)
{
	for (size_t i = 0; i < count; i += XFP_LANES)
		vd_store(to + i, vd_from_f(vf_load(from + i)));
}

static void transpose(const float *from, double *to, const float *next)
{
	int32_t step[XFP_LANES];

	for (int i = 0; i < XFP_LANES; i++)
		step[i] = i * XFP_LANES;
	for (size_t c = 0; c < XFP_LANES; c++) {
		__builtin_prefetch(next + c * XFP_LANES);
		vd_store(to + c * XFP_LANES, vd_from_f(vf_gather(from + c, vi_load(step))));
	}
}

static void solve(const double *sum, const float *factor, const float *pivot, float *to)
{
	for (int c = XFP_LANES - 1; c >= 0; c--) {
		vd s = vd_load(sum + c * XFP_LANES);

		for (int m = XFP_LANES - 1; m > c; m--)
			s = vd_add_exact(s, vd_all(-(double)factor[m * XFP_LANES + c]),
					 vd_from_f(vf_load(to + m * XFP_LANES)));
		vf_store(to + c * XFP_LANES, vf_from_d(vd_div(s, vd_all(pivot[c]))));
	}
}

/* Sixteen groups' bytes, prepared for decoding. */
struct decoding {
	const struct xfp_compact_book *book;
	vf ratio, inverse;
	vi entry; /* 64 times the number of the entry */
	vm live;  /* the ratio's number is not 0 */
};

LANES_INLINE struct decoding decoding_of(const struct xfp_compact_book *book, const uint8_t *bytes)
{
	const vi byte = vi_load_bytes(bytes), r = vi_and(byte, vi_all((int32_t)book->library.ratios - 1));

	return (struct decoding){
		.book = book,
		.ratio = vf_gather(book->library.ratio, r),
		.inverse = vf_gather(book->inverse, r),
		.entry = vi_left(vi_right(byte, (int)book->library.ratio_bits), 6),
		.live = vi_above(r, vi_all(0)),
	};
}

/* The index of the nearest value, as the search of compact.h finds it. */
LANES_INLINE vi nearest(const struct decoding *d, vf y)
{
	const vf x = vf_mul(y, d->inverse);
	vi at = vi_all(0);

	for (int step = 1 << (d->book->library.k - 1); step; step /= 2) {
		vi edge = vi_add(vi_add(d->entry, at), vi_all(step - 1));

		at = vi_add_where(at, vf_above(x, vf_gather(d->book->edge[0], edge)), vi_all(step));
	}
	return vi_where(d->live, at, vi_all(0));
}

LANES_INLINE vf decoded(const struct decoding *d, vi index)
{
	return vf_mul(vf_gather(d->book->library.entry[0], vi_add(d->entry, index)), d->ratio);
}

/* Values of marked lanes include the residual. */
static __attribute__((noinline)) vf with_residuals(const struct xfp_feedback_group *g, uint32_t mark, vf target, vf q)
{
	float t[XFP_LANES], value[XFP_LANES];
	uint16_t residual;

	vf_store(t, target);
	vf_store(value, q);
	for (; mark; mark &= mark - 1) {
		int i = __builtin_ctz(mark);

		value[i] = xfp_feedback_marked(t[i], value[i], g->row[i], g->inverse[i], &residual);
	}
	return vf_load(value);
}

/* Quantize the targets of a column: returns q, and stores indices. The index of a marked weight is that of 0. */
LANES_INLINE vf quantize(const struct xfp_feedback_group *g, const struct decoding *d, uint16_t mark, vf target,
			 uint8_t *index)
{
	const vm marked = vm_from_bits(mark);
	vi at = nearest(d, vf_where(marked, vf_all(0), target));
	vf q = decoded(d, at);

	vi_store_bytes(index, at);
	return mark ? with_residuals(g, mark, target, q) : q;
}

/* Groups or bytes whose columns are computed in turns, since each sum waits for its last term. */
#if LANES_WIDTH == 16
#define TOGETHER 4
#else
#define TOGETHER 2
#endif
#define EACH_TOGETHER _Pragma("GCC unroll 4") for (unsigned i = 0; i < count; i++)

/* Element (j, c) of the group's columns. */
LANES_INLINE const double *own_at(const struct xfp_feedback_group *g, unsigned j, unsigned c)
{
	return g->own + ((size_t)(c / XFP_LANES * g->size) + j) * XFP_LANES + c % XFP_LANES;
}

/* The results of one byte for each row of a group. */
struct trial {
	double error[XFP_COMPACT_GROUP * XFP_LANES];
	float target[XFP_COMPACT_GROUP * XFP_LANES];
	uint8_t index[XFP_COMPACT_GROUP * XFP_LANES];
	double loss[XFP_LANES];
};

LANES_INLINE void try_bytes(const struct xfp_feedback_group *g, const uint8_t (*byte)[XFP_LANES], unsigned count,
			    struct trial *trial)
{
	struct decoding d[TOGETHER];
	vd loss[TOGETHER];

	EACH_TOGETHER
	{
		d[i] = decoding_of(g->book, byte[i]);
		loss[i] = vd_zero();
	}
	for (unsigned c = 0; c < g->cols; c++) {
		const vd start = vd_load(g->sum + (size_t)c * XFP_LANES);
		vd s[TOGETHER];

		EACH_TOGETHER s[i] = start;
		for (unsigned j = 0; j < c; j++) {
			const vd own = vd_all(*own_at(g, j, c));

			EACH_TOGETHER s[i] = vd_add_exact(s[i], own, vd_load(trial[i].error + j * XFP_LANES));
		}
		EACH_TOGETHER
		{
			const vf t = vf_from_d(s[i]);
			const vf q = quantize(g, &d[i], g->mark[c], t, trial[i].index + c * XFP_LANES);
			const vd own = vd_from_f(vf_mul(vf_sub(t, q), vf_all(g->diagonal[c])));

			vf_store(trial[i].target + c * XFP_LANES, t);
			vd_store(trial[i].error + c * XFP_LANES, vd_from_f(vf_sub(vf_load(g->y + c * XFP_LANES), q)));
			loss[i] = vd_add_exact(loss[i], own, own);
		}
	}
	EACH_TOGETHER vd_store(trial[i].loss, loss[i]);
}

/* Use the results of the rows whose bits are set. */
static void keep(const struct xfp_feedback_group *g, uint32_t rows, const uint8_t *byte, const struct trial *trial)
{
	const vm these = vm_from_bits(rows);

	for (unsigned c = 0; c < g->cols * XFP_LANES; c += XFP_LANES) {
		vf_store(g->error + c, vf_where(these, vf_from_d(vd_load(trial->error + c)), vf_load(g->error + c)));
		vf_store(g->target + c, vf_where(these, vf_load(trial->target + c), vf_load(g->target + c)));
		vi_store_bytes(g->index + c,
			       vi_where(these, vi_load_bytes(trial->index + c), vi_load_bytes(g->index + c)));
	}
	vi_store_bytes(g->byte, vi_where(these, vi_load_bytes(byte), vi_load_bytes(g->byte)));
}

static void encode(const struct xfp_feedback_group *g, const uint8_t (*byte)[XFP_LANES], unsigned tried)
{
	double min_loss[XFP_LANES];
	struct trial trial[TOGETHER];

	for (unsigned i = 0; i < tried; i++) {
		const struct trial *own = &trial[i % TOGETHER];
		uint32_t better = 0;

		if (tried % TOGETHER)
			try_bytes(g, byte + i, 1, trial + i % TOGETHER);
		else if (i % TOGETHER == 0)
			try_bytes(g, byte + i, TOGETHER, trial);
		for (int lane = 0; lane < XFP_LANES; lane++) {
			if (i && !(own->loss[lane] < min_loss[lane]))
				continue;
			min_loss[lane] = own->loss[lane];
			better |= 1u << lane;
		}
		if (better)
			keep(g, better, byte[i], own);
	}
}

LANES_INLINE void pass_over(const struct xfp_feedback_group *g, unsigned count)
{
	double error[TOGETHER][XFP_COMPACT_GROUP * XFP_LANES];
	struct decoding d[TOGETHER];

	EACH_TOGETHER
	{
		d[i] = decoding_of(g[i].book, g[i].byte);
		widen(g[i].error, (size_t)g->cols * XFP_LANES, error[i]);
	}
	for (unsigned c = 0; c < g->cols; c++) {
		const unsigned at = c * XFP_LANES;
		vd s[TOGETHER];

		EACH_TOGETHER s[i] = vd_load(g[i].sum + at);
		for (unsigned j = 0; j < g->cols; j++) {
			const vd own = vd_all(*own_at(g, j, c));

			EACH_TOGETHER s[i] = vd_add_exact(s[i], own, vd_load(error[i] + j * XFP_LANES));
		}
		EACH_TOGETHER
		{
			const vd v = vd_from_f(vf_from_d(s[i]));
			const uint16_t mark = g[i].mark[c];
			vf q = decoded(&d[i], vi_load_bytes(g[i].index + at)), t, rest;

			if (mark)
				q = with_residuals(&g[i], mark, vf_load(g[i].target + at), q);
			t = vf_from_d(vd_add(vd_from_f(q), vd_div(v, vd_all(g->diagonal[c]))));
			q = quantize(&g[i], &d[i], mark, t, g[i].index + at);
			rest = vf_sub(vf_load(g[i].y + at), q);
			vf_store(g[i].target + at, t);
			vf_store(g[i].error + at, rest);
			vd_store(error[i] + at, vd_from_f(rest));
		}
	}
}

static void pass(const struct xfp_feedback_group *groups, size_t count)
{
	for (; count >= TOGETHER; count -= TOGETHER, groups += TOGETHER)
		pass_over(groups, TOGETHER);
	for (; count; count--)
		pass_over(groups++, 1);
}

const struct xfp_feedback_set XFP_FEEDBACK_SET = { multiply, widen, transpose, solve, encode, pass };
