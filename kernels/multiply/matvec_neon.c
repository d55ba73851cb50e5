/* SPDX-License-Identifier: Apache-2.0 */
#ifndef __clang__
/* With scheduling before register allocation, the look-ups of a chunk would need ten times as many registers. */
#pragma GCC optimize("no-schedule-insns")
#endif
#include "kernels/multiply/matvec_table_neon.h"

#include "kernels/multiply/matvec_outlier_lanes.h"
#include "kernels/multiply/matvec_rows.h"
#include "kernels/multiply/panel_rows.h"

bool xfp_matvec_outliers_neon(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows,
			      float *y, size_t stride)
{
	return add_outliers(w, x, first, rows, y, stride);
}

void xfp_panel_neon(PANEL_ARGUMENTS)
{
	multiply_panel(PANEL_PASSED);
}

const struct xfp_matvec_set xfp_matvec_neon = { multiply_rows, xfp_matvec_outliers_neon, NULL, xfp_panel_neon,
						PANEL_WIDTH };
