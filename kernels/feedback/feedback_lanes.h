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

LANES_INLINE void multiply_tile(size_t steps, const double *a, ptrdiff_t a_step, const float *b, ptrdiff_t b_step,
				double *sum)
{
	vd s[TILE];

	EACH_OF_TILE s[i] = vd_load(sum + i * XFP_LANES);
	for (; steps; steps--) {
		const vd x = vd_from_f(vf_load(b));

		EACH_OF_TILE s[i] = vd_add_exact(s[i], vd_all(a[i]), x);
		a += a_step;
		b += b_step;
	}
	EACH_OF_TILE vd_store(sum + i * XFP_LANES, s[i]);
}

static void multiply(size_t steps, const double *a, ptrdiff_t a_step, const float *b, ptrdiff_t b_step, unsigned count,
		     double *sum)
{
	for (unsigned c = 0; c < count; c += TILE)
		multiply_tile(steps, a + c, a_step, b, b_step, sum + (size_t)c * XFP_LANES);
}

static void widen(const float *from, size_t count, double *to)
{
	for (size_t i = 0; i < count; i += XFP_LANES)
		vd_store(to + i, vd_from_f(vf_load(from + i)));
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

LANES_INLINE vd feedback(const struct xfp_feedback_group *g, unsigned c, unsigned end, const float *error)
{
	vd s = vd_load(g->sum + (size_t)c * XFP_LANES);

	for (unsigned j = 0; j < end; j++)
		s = vd_add_exact(s, vd_all(g->own[(size_t)j * g->size + c]), vd_from_f(vf_load(error + j * XFP_LANES)));
	return s;
}

/* The results of one byte for each row of a group. */
struct trial {
	float error[XFP_COMPACT_GROUP * XFP_LANES], target[XFP_COMPACT_GROUP * XFP_LANES];
	uint8_t index[XFP_COMPACT_GROUP * XFP_LANES];
	double loss[XFP_LANES];
};

static void encode_with(const struct xfp_feedback_group *g, const uint8_t *byte, struct trial *trial)
{
	const struct decoding d = decoding_of(g->book, byte);
	vd loss = vd_zero();

	for (unsigned c = 0; c < g->cols; c++) {
		const vf t = vf_from_d(feedback(g, c, c, trial->error));
		const vf q = quantize(g, &d, g->mark[c], t, trial->index + c * XFP_LANES);
		const vf own = vf_mul(vf_sub(t, q), vf_all(g->diagonal[c]));
		const vd wide = vd_from_f(own);

		vf_store(trial->target + c * XFP_LANES, t);
		vf_store(trial->error + c * XFP_LANES, vf_sub(vf_load(g->y + c * XFP_LANES), q));
		loss = vd_add_exact(loss, wide, wide);
	}
	vd_store(trial->loss, loss);
}

/* Use the results of the rows whose bits are set. */
static void keep(const struct xfp_feedback_group *g, uint32_t rows, const uint8_t *byte, const struct trial *trial)
{
	const vm these = vm_from_bits(rows);

	for (unsigned c = 0; c < g->cols * XFP_LANES; c += XFP_LANES) {
		vf_store(g->error + c, vf_where(these, vf_load(trial->error + c), vf_load(g->error + c)));
		vf_store(g->target + c, vf_where(these, vf_load(trial->target + c), vf_load(g->target + c)));
		vi_store_bytes(g->index + c,
			       vi_where(these, vi_load_bytes(trial->index + c), vi_load_bytes(g->index + c)));
	}
	vi_store_bytes(g->byte, vi_where(these, vi_load_bytes(byte), vi_load_bytes(g->byte)));
}

static void encode(const struct xfp_feedback_group *g, const uint8_t (*byte)[XFP_LANES], unsigned tried)
{
	double min_loss[XFP_LANES];
	struct trial trial;

	for (unsigned i = 0; i < tried; i++) {
		uint32_t better = 0;

		if (i && !memcmp(byte[i], byte[i - 1], sizeof byte[i]))
			continue;
		encode_with(g, byte[i], &trial);
		for (int lane = 0; lane < XFP_LANES; lane++) {
			if (i && !(trial.loss[lane] < min_loss[lane]))
				continue;
			min_loss[lane] = trial.loss[lane];
			better |= 1u << lane;
		}
		if (better)
			keep(g, better, byte[i], &trial);
	}
}

static void pass(const struct xfp_feedback_group *g)
{
	const struct decoding d = decoding_of(g->book, g->byte);

	for (unsigned c = 0; c < g->cols; c++) {
		float *error = g->error + c * XFP_LANES, *target = g->target + c * XFP_LANES;
		const vd v = vd_from_f(vf_from_d(feedback(g, c, g->cols, g->error)));
		vf q = decoded(&d, vi_load_bytes(g->index + c * XFP_LANES)), t;

		if (g->mark[c])
			q = with_residuals(g, g->mark[c], vf_load(target), q);
		t = vf_from_d(vd_add(vd_from_f(q), vd_div(v, vd_all(g->diagonal[c]))));
		q = quantize(g, &d, g->mark[c], t, g->index + c * XFP_LANES);
		vf_store(target, t);
		vf_store(error, vf_sub(vf_load(g->y + c * XFP_LANES), q));
	}
}

const struct xfp_feedback_set XFP_FEEDBACK_SET = { multiply, widen, solve, encode, pass };
