/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of columns, H, and the order of columns. */
#include <string.h>

#include "kernels/common/scale.h"
#include "kernels/feedback/feedback.h"

size_t xfp_feedback_first(size_t cols, unsigned group, size_t blocks, size_t block)
{
	const size_t first = xfp_compact_groups_of(cols, group) * block / blocks * group;

	return first < cols ? first : cols;
}

/* ---- H ----------------------------------------------------------------------------------------------------- */

/* The weights of own and of stack. */
struct blend {
	float own, stack;
};

static struct blend blend_of(const struct xfp_feedback_source *source)
{
	const double k = (double)source->cols, n = (double)source->inputs;
	struct blend blend = { 1, 0 };

	if (source->stack) {
		blend.stack = source->own ? (float)(k / (k + n)) : 1;
		blend.own = 1 - blend.stack;
	}
	return blend;
}

static float balance_of(const struct xfp_feedback_source *source, size_t c)
{
	return source->balance ? xfp_balance_down(source->balance[c]) : 1;
}

/* Compute an element of G from its moments, own[at] and stack[at], and 2^(-d/4) of its row and column. */
static float element(const struct xfp_feedback_source *source, const struct blend *blend, size_t at, float d_row,
		     float d_col)
{
	const float own = source->own ? source->own[at] : 0, stack = source->stack ? source->stack[at] : 0;
	const float p = (float)((double)blend->own * own + (double)blend->stack * stack);

	return (float)((double)p * d_row * d_col);
}

float xfp_feedback_scale(const struct xfp_feedback_source *source)
{
	const struct blend blend = blend_of(source);
	double trace = 0;

	for (size_t c = 0; c < source->cols; c++) {
		const float d = balance_of(source, c);

		trace += element(source, &blend, c, d, d);
	}
	return trace > 0 ? (float)((double)source->cols / trace) : 0;
}

static float scaled(float g, float scale, bool diagonal)
{
	return (float)((double)g * scale + (diagonal ? XFP_FEEDBACK_DAMPING : 0));
}

/* ---- order ------------------------------------------------------------------------------------------------- */

/* Sort numbers by descending value, ties by number. */
static void sort(uint32_t *number, size_t count, const double *value)
{
	for (size_t i = 1; i < count; i++) {
		const uint32_t own = number[i];
		size_t at = i;

		for (; at && value[number[at - 1]] < value[own]; at--)
			number[at] = number[at - 1];
		number[at] = own;
	}
}

static void order_columns(struct xfp_feedback *f, const float *diagonal)
{
	double sum[XFP_FEEDBACK_COLS / 16] = { 0 }, value[XFP_COMPACT_GROUP];
	uint32_t groups[XFP_FEEDBACK_COLS / 16], local[XFP_COMPACT_GROUP];
	const size_t count = f->padded / f->group;

	for (size_t g = 0; g < count; g++) {
		sum[g] = 0;
		for (size_t c = g * f->group; c < (g + 1) * f->group && c < f->cols; c++)
			sum[g] += diagonal[c];
		groups[g] = (uint32_t)g;
	}
	sort(groups, count, sum);
	for (size_t g = 0; g < count; g++) {
		const uint32_t first = groups[g] * f->group;

		for (unsigned c = 0; c < f->group; c++) {
			value[c] = diagonal[first + c];
			local[c] = c;
		}
		sort(local, f->group, value);
		for (unsigned c = 0; c < f->group; c++)
			f->column[g * f->group + c] = first + local[c];
	}
}

/* ---- both -------------------------------------------------------------------------------------------------- */

static size_t source_at(size_t cols, size_t a, size_t b)
{
	return a > b ? xfp_triangle_at(cols, a, b) : xfp_triangle_at(cols, b, a);
}

void xfp_feedback_prepare(struct xfp_feedback *f, const struct xfp_feedback_source *source, float scale)
{
	const struct blend blend = blend_of(source);
	const size_t size = f->group;

	f->padded = xfp_compact_groups_of(f->cols, f->group) * size;
	/* The diagonal in storage order, in `pivot`. */
	for (size_t c = 0; c < f->padded; c++) {
		const float d = c < f->cols ? balance_of(source, c) : 0;

		f->pivot[c] = c >= f->cols
				      ? XFP_FEEDBACK_DAMPING
				      : scaled(element(source, &blend, source_at(f->cols, c, c), d, d), scale, true);
	}
	order_columns(f, f->pivot);
	memset(f->h, 0, xfp_triangle_values(f->padded) * sizeof *f->h);
	for (size_t i = 0; i < f->padded; i++) {
		const size_t a = f->column[i], end = (i / XFP_LANES + 1) * XFP_LANES;

		f->diagonal[i] = f->pivot[a];
		for (size_t j = 0; j < end; j++) {
			const size_t b = f->column[j];
			float g = 0;

			if (a < f->cols && b < f->cols)
				g = element(source, &blend, source_at(f->cols, a, b), balance_of(source, a),
					    balance_of(source, b));
			f->h[xfp_triangle_at(f->padded, i, j)] = i == j ? f->diagonal[i] : scaled(g, scale, false);
		}
	}
}
