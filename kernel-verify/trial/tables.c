/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.c - the kernels under test. tests/kernel-verify-broken.c replaces it with some broken kernels.
 */
#include <string.h>

#include "kernel-verify/trial/trial.h"
#include "kernels/common/instructions.h"

const struct xfp_encoder *xfp_kernel_encoder(enum xfp_kernel_set set)
{
	xfp_encoder_use(xfp_kernel_set_name(set));
	return xfp_encoder();
}

void xfp_kernel_decode(enum xfp_kernel_set set, const struct xfp_matvec *w, size_t row, float *x)
{
	xfp_instruction_set_use(xfp_kernel_set_name(set));
	xfp_matvec_decode(w, row, x);
}

xfp_panel_fn *xfp_kernel_panel(enum xfp_kernel_set set)
{
	xfp_instruction_set_use(xfp_kernel_set_name(set));
	return xfp_matvec_set()->panel;
}

bool xfp_kernel_rows(enum xfp_kernel_set set, const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first,
		     size_t rows, bool add, float *y, size_t stride)
{
	if (strcmp(xfp_instruction_set_name(xfp_instruction_set()), xfp_kernel_set_name(set)))
		xfp_instruction_set_use(xfp_kernel_set_name(set));
	return xfp_matvec_rows(w, x, first, rows, add, y, stride);
}
