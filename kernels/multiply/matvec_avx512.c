/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/multiply/matvec_table_avx512.h"

#include "kernels/multiply/matvec_rows.h"

/* Outliers of many rows are processed together, since most rows have few: first all products, sixteen at a time
 * regardless of rows, then the sum of each row. */
#define OUTLIERS_AT_ONCE 512
#define OUTLIERS_AHEAD 512 /* bytes */

INLINE __m512i outlier_columns(const struct xfp_outlier_rows *o, size_t number, __mmask16 some)
{
	return o->wide ? _mm512_maskz_loadu_epi32(some, o->column + number * 4)
		       : _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, o->column + number * 2));
}

/* Columns outside `w` contribute 0. Returns false if one is outside the whole matrix. */
static bool outlier_products(const struct xfp_matvec *w, const float *vector, size_t from, size_t end, float *product)
{
	const struct xfp_outlier_rows *o = &w->outliers;
	const __m512i all = _mm512_set1_epi32((int)(o->cols < UINT32_MAX ? o->cols : UINT32_MAX));
	const __m512i here = _mm512_set1_epi32((int)w->cols), first = _mm512_set1_epi32((int)w->first_column);
	__mmask16 wrong = 0;

	for (size_t i = from; i < end; i += 16) {
		__mmask16 some = end - i < 16 ? (__mmask16)((1u << (end - i)) - 1) : 0xffff;
		__m512i column = outlier_columns(o, i, some);
		__m512 residual = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(some, o->residual + i * 2)), x;

		_mm_prefetch((const char *)o->column + i * (o->wide ? 4 : 2) + OUTLIERS_AHEAD, _MM_HINT_T0);
		_mm_prefetch((const char *)o->residual + i * 2 + OUTLIERS_AHEAD, _MM_HINT_T0);
		wrong |= _mm512_mask_cmpge_epu32_mask(some, column, all);
		column = _mm512_sub_epi32(column, first);
		some = _mm512_mask_cmplt_epu32_mask(some, column, here);
		x = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), some, column, vector, 4);
		_mm512_storeu_ps(product + (i - from), _mm512_maskz_mul_ps(some, residual, x));
	}
	return !wrong;
}

INLINE double outlier_sum(const float *product, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i += 16) {
		__mmask16 some = count - i < 16 ? (__mmask16)((1u << (count - i)) - 1) : 0xffff;

		sum += (double)_mm512_reduce_add_ps(_mm512_maskz_loadu_ps(some, product + i));
	}
	return sum;
}

/* Process a row with any number of outliers. */
static bool long_row(const struct xfp_matvec *w, const struct xfp_matvec_x *x, const struct xfp_outlier_row *at,
		     float *y, size_t stride)
{
	float product[OUTLIERS_AT_ONCE + 16];

	for (unsigned m = 0; m < x->count; m++) {
		double sum = 0;

		for (size_t i = at->first, end; i < at->end; i = end) {
			end = at->end - i < OUTLIERS_AT_ONCE ? at->end : i + OUTLIERS_AT_ONCE;
			if (!outlier_products(w, x->natural + m * w->cols, i, end, product))
				return false;
			sum += outlier_sum(product, end - i);
		}
		y[m * stride] += (float)(sum * w->unit);
	}
	return true;
}

/* Process rows [first, end), whose outliers fit in one batch. */
static bool short_rows(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t end,
		       const struct xfp_outlier_row *all, float *y, size_t stride)
{
	float product[OUTLIERS_AT_ONCE + 16];

	for (unsigned m = 0; m < x->count; m++) {
		if (!outlier_products(w, x->natural + m * w->cols, all->first, all->end, product))
			return false;
		for (size_t r = first; r < end; r++) {
			struct xfp_outlier_row at;

			xfp_outlier_rows_of(&w->outliers, r, &at);
			y[m * stride + r - first] +=
				(float)(outlier_sum(product + (at.first - all->first), at.end - at.first) * w->unit);
		}
	}
	return true;
}

bool xfp_matvec_outliers_avx512(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows,
				float *y, size_t stride)
{
	const struct xfp_outlier_rows *o = &w->outliers;
	struct xfp_outlier_row at;

	if (o->listed || w->cols > INT32_MAX) /* gathers use signed indices */
		return xfp_matvec_outliers(w, x, first, rows, y, stride);
	for (size_t r = first, next; r < first + rows; r = next) {
		struct xfp_outlier_row all;

		if (!xfp_outlier_rows_of(o, r, &all))
			return false;
		if (all.end - all.first > OUTLIERS_AT_ONCE) {
			next = r + 1;
			if (!long_row(w, x, &all, y + (r - first), stride))
				return false;
			continue;
		}
		for (next = r + 1; next < first + rows; next++) {
			if (!xfp_outlier_rows_of(o, next, &at))
				return false;
			if (at.end - all.first > OUTLIERS_AT_ONCE)
				break;
			all.end = at.end;
		}
		if (!short_rows(w, x, r, next, &all, y + (r - first), stride))
			return false;
	}
	return true;
}

const struct xfp_matvec_set xfp_matvec_avx512 = { multiply_rows, xfp_matvec_outliers_avx512, NULL };
