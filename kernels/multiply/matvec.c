/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec.c - code that the instruction sets share: the table of sets, and outliers.
 */
#include "kernels/multiply/matvec.h"
#include "kernels/common/instructions.h"
#include "kernels/multiply/matvec_tables.h"

static const struct xfp_matvec_set *const sets[XFP_INSTRUCTION_SETS] = {
	[XFP_PLAIN] = &xfp_matvec_plain,
#ifdef XFP_X86
	[XFP_AVX2] = &xfp_matvec_avx2,   [XFP_AVX512] = &xfp_matvec_avx512,   [XFP_VBMI] = &xfp_matvec_vbmi,
#endif
#ifdef XFP_AARCH64
	[XFP_NEON] = &xfp_matvec_neon,   [XFP_DOTPROD] = &xfp_matvec_dotprod,
#endif
};

const struct xfp_matvec_set *xfp_matvec_set(void)
{
	return sets[xfp_instruction_set()];
}

bool xfp_matvec_outliers(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows, float *y,
			 size_t stride)
{
	struct xfp_outlier_row at;

	xfp_outlier_rows_begin(&w->outliers, first, &at);
	for (size_t r = first; r < first + rows; r++) {
		double sum[XFP_MAX_BATCH] = { 0 };

		if (!xfp_outlier_rows_next(&w->outliers, r, &at))
			return false;
		if (at.first == at.end)
			continue;
		if (!xfp_outlier_rows_dot(&w->outliers, &at, x->natural, x->count, w->first_column, w->cols, sum))
			return false;
		for (unsigned m = 0; m < x->count; m++)
			y[m * stride + r - first] += (float)(sum[m] * w->unit);
	}
	return xfp_outlier_rows_end(&w->outliers, first + rows, &at);
}

bool xfp_matvec_rows(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows, bool add,
		     float *y, size_t stride)
{
	const struct xfp_matvec_set *set = xfp_matvec_set();
	struct xfp_matvec_x floats;

	if (x->set != set) { /* integers of another set */
		floats = *x;
		floats.bytes_fit = false;
		x = &floats;
	}
	if (w->mode == XFP_MATVEC_V2A &&
	    !xfp_matvec_codebooks_exist(w, xfp_tables_head(w->tables)->codebooks, first, rows))
		return false;
	set->rows(w, x, first, rows, add, y, stride);
	return !w->outliers.count || !rows || set->outliers(w, x, first, rows, y, stride);
}
