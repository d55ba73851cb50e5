/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/multiply/matvec_table_avx2.h"

#include "kernels/multiply/matvec_outlier_lanes.h"
#include "kernels/multiply/matvec_rows.h"
#include "kernels/multiply/matvec_words_avx2.h"
#include "kernels/multiply/panel_rows.h"

void xfp_matvec_floats_avx2(ARGUMENTS)
{
	multiply_rows(PASSED);
}

bool xfp_matvec_outliers_avx2(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows,
			      float *y, size_t stride)
{
	return add_outliers(w, x, first, rows, y, stride);
}

void xfp_panel_avx2(PANEL_ARGUMENTS)
{
	multiply_panel(PANEL_PASSED);
}
