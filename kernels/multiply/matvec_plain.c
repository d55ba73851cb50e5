/* SPDX-License-Identifier: Apache-2.0 */
#define MATVEC_SMALL
#include "kernels/multiply/matvec_table_plain.h"

#include "kernels/multiply/matvec_rows.h"
#include "kernels/multiply/panel_rows.h"

const struct xfp_matvec_set xfp_matvec_plain = { multiply_rows, xfp_matvec_outliers, NULL, multiply_panel,
						 PANEL_WIDTH };
