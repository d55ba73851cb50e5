/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/multiply/matvec_lanes_avx512.h"

#include "kernels/multiply/matvec_rows.h"

/* Sixteen outliers at a time, of which most rows have few. */
bool xfp_outlier_dot_avx512(const struct xfp_outlier_rows *o, const struct xfp_outlier_row *at, const float *vectors,
			    unsigned count, size_t first, size_t cols, double *sum)
{
	const __m512i all = _mm512_set1_epi32((int)(o->cols < UINT32_MAX ? o->cols : UINT32_MAX));
	const __m512i here = _mm512_set1_epi32((int)(cols < UINT32_MAX ? cols : UINT32_MAX));

	if (cols > INT32_MAX) /* gathers take signed numbers */
		return xfp_outlier_rows_dot(o, at, vectors, count, first, cols, sum);
	for (size_t i = at->first; i < at->end; i += 16) {
		__mmask16 some = at->end - i < 16 ? (__mmask16)((1u << (at->end - i)) - 1) : 0xffff;
		__m512 residual = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(some, o->residual + i * 2));
		__m512i column = o->wide ? _mm512_maskz_loadu_epi32(some, o->column + i * 4)
					 : _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, o->column + i * 2));

		if (_mm512_mask_cmpge_epu32_mask(some, column, all))
			return false;
		column = _mm512_sub_epi32(column, _mm512_set1_epi32((int)first));
		some = _mm512_mask_cmplt_epu32_mask(some, column, here);
		for (unsigned m = 0; m < count; m++) {
			__m512 x = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), some, column, vectors + m * cols, 4);

			sum[m] += (double)_mm512_reduce_add_ps(_mm512_maskz_mul_ps(some, residual, x));
		}
	}
	return true;
}

void xfp_matvec_decode_avx512(const struct xfp_matvec *w, size_t row, float *x)
{
	decode_row(w, row, x);
}

const struct xfp_matvec_set xfp_matvec_avx512 = { "avx512", multiply_rows, xfp_outlier_dot_avx512, decode_row, NULL };
