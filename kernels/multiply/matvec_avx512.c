/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/multiply/matvec_table_avx512.h"

#include "kernels/multiply/matvec_rows.h"
#include "kernels/multiply/panel_rows.h"

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

#include "kernels/multiply/matvec_outliers.h"

bool xfp_matvec_outliers_avx512(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows,
				float *y, size_t stride)
{
	if (w->cols > INT32_MAX) /* gathers use signed indices */
		return xfp_matvec_outliers(w, x, first, rows, y, stride);
	return grouped_outliers(w, x, first, rows, y, stride);
}

void xfp_panel_avx512(PANEL_ARGUMENTS)
{
	multiply_panel(PANEL_PASSED);
}

const struct xfp_matvec_set xfp_matvec_avx512 = { multiply_rows, xfp_matvec_outliers_avx512, NULL, xfp_panel_avx512,
						  PANEL_WIDTH };
