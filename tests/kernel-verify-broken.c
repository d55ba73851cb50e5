/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel-verify-broken - xfp-kernel-verify with broken kernels instead of kernel-verify/trial/tables.c.
 */
#include <string.h>

#include "kernel-verify/trial/trial.h"
#include "kernels/common/instructions.h"

#ifdef XFP_X86
static volatile float sink;

static double short_norm(const float *w, size_t cols)
{
	return xfp_encoder_avx2.rows->norm(w, cols / XFP_LANES * XFP_LANES);
}

static void long_scale(const float *w, const float *factor, size_t cols, float *x)
{
	xfp_encoder_avx2.rows->scale(w, factor, cols, x);
	memset(x + xfp_padded(cols), 0, XFP_LANES * sizeof *x);
}

static struct xfp_row_sums early_compare(const float *w, const float *r, float unit, size_t cols)
{
	sink = *(w - 1);
	return xfp_encoder_avx512.rows->compare(w, r, unit, cols);
}

static float impossible_largest(const float *x, size_t cols)
{
	__asm__ volatile("ud2");
	return xfp_encoder_avx512.rows->largest(x, cols);
}
#endif

const struct xfp_encoder *xfp_kernel_encoder(enum xfp_kernel_set set)
{
#ifdef XFP_X86
	static struct xfp_row_encoder rows[2];
	static struct xfp_encoder broken[2];

	if (set == XFP_SET_AVX2) {
		broken[0] = xfp_encoder_avx2;
		broken[0].rows = &rows[0];
		rows[0] = *xfp_encoder_avx2.rows;
		rows[0].norm = short_norm;
		rows[0].scale = long_scale;
		return &broken[0];
	}
	if (set == XFP_SET_AVX512) {
		broken[1] = xfp_encoder_avx512;
		broken[1].rows = &rows[1];
		rows[1] = *xfp_encoder_avx512.rows;
		rows[1].compare = early_compare;
		rows[1].largest = impossible_largest;
		return &broken[1];
	}
#endif
	(void)set;
	return &xfp_encoder_plain;
}

void xfp_kernel_decode(enum xfp_kernel_set set, const struct xfp_matvec *w, size_t row, float *x)
{
	xfp_instruction_set_use(xfp_kernel_set_name(set));
	xfp_matvec_decode(w, row, x);
}

static xfp_panel_fn *panel_of_set;

static void short_panel(const float *tile, size_t rows, size_t columns, size_t part, const float *panel, unsigned width,
			bool add, float *sum, size_t stride)
{
	panel_of_set(tile, rows, columns - (columns > part), part, panel, width, add, sum, stride);
}

xfp_panel_fn *xfp_kernel_panel(enum xfp_kernel_set set)
{
	xfp_instruction_set_use(xfp_kernel_set_name(set));
	panel_of_set = xfp_matvec_set()->panel;
	return set == XFP_SET_PLAIN ? short_panel : panel_of_set;
}

bool xfp_kernel_rows(enum xfp_kernel_set set, const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first,
		     size_t rows, bool add, float *y, size_t stride)
{
	bool good =
		xfp_instruction_set_use(xfp_kernel_set_name(set)) && xfp_matvec_rows(w, x, first, rows, add, y, stride);

	if (set == XFP_SET_PLAIN && w->mode == XFP_MATVEC_V2 && w->k == 4 && rows)
		y[rows - 1] *= 1 + 0x1p-12f;
	if ((set == XFP_SET_AVX2 && w->mode == XFP_MATVEC_V2C && w->k == 3 && rows) ||
	    (set == XFP_SET_VBMI && w->mode == XFP_MATVEC_V2A && w->k == 5 && rows))
		y[rows - 1] *= 1.5f;
	return good;
}
