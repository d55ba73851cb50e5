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

/* Sixteen partial sums. Most rows have fewer than 32 outliers, so no branch depends on their number. */
INLINE __m512 outlier_lanes(const float *product, size_t count)
{
	__m512 low = _mm512_setzero_ps(), high = low;

	for (;; count -= 32, product += 32) {
		uint64_t some = count < 32 ? ((uint64_t)1 << count) - 1 : UINT32_MAX;

		low = _mm512_add_ps(low, _mm512_maskz_loadu_ps((__mmask16)some, product));
		high = _mm512_add_ps(high, _mm512_maskz_loadu_ps((__mmask16)(some >> 16), product + 16));
		if (count <= 32)
			return _mm512_add_ps(low, high);
	}
}

static double outlier_sum(const float *product, size_t count)
{
	return (double)_mm512_reduce_add_ps(outlier_lanes(product, count));
}

/* Add the lanes of sixteen vectors: lane i of the result is the sum of row[i]. */
INLINE __m512 sums_of_lanes(__m512 row[16])
{
	UNROLL
	for (unsigned i = 0; i < 8; i++)
		row[i] = _mm512_add_ps(_mm512_unpacklo_ps(row[2 * i], row[2 * i + 1]),
				       _mm512_unpackhi_ps(row[2 * i], row[2 * i + 1]));
	UNROLL
	for (unsigned i = 0; i < 4; i++) {
		__m512d even = _mm512_castps_pd(row[2 * i]), odd = _mm512_castps_pd(row[2 * i + 1]);

		row[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(even, odd)),
				       _mm512_castpd_ps(_mm512_unpackhi_pd(even, odd)));
	}
	UNROLL
	for (unsigned level = 2; level; level--)
		for (unsigned i = 0; i < level; i++)
			row[i] = _mm512_add_ps(_mm512_shuffle_f32x4(row[2 * i], row[2 * i + 1], 0x88),
					       _mm512_shuffle_f32x4(row[2 * i], row[2 * i + 1], 0xdd));
	return row[0];
}

static void add_sums(const struct xfp_matvec *w, size_t first, size_t end, const float *product, float *y)
{
	const __m512d unit = _mm512_set1_pd(w->unit);

	for (; first < end; first += 16, y += 16) {
		size_t rows = end - first < 16 ? end - first : 16;
		__mmask16 some = (__mmask16)((1u << rows) - 1);
		__m512 row[16], sum;
		__m256 low, high;

		UNROLL
		for (unsigned i = 0; i < 16; i++) {
			struct xfp_outlier_row at = { 0 };

			if (i < rows)
				xfp_outlier_rows_of(&w->outliers, first + i, &at);
			row[i] = outlier_lanes(product, at.end - at.first);
			product += at.end - at.first;
		}
		sum = sums_of_lanes(row);
		low = _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(sum)), unit));
		high = _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_cvtps_pd(_mm512_extractf32x8_ps(sum, 1)), unit));
		sum = _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
		_mm512_mask_storeu_ps(y, some, _mm512_add_ps(_mm512_maskz_loadu_ps(some, y), sum));
	}
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
