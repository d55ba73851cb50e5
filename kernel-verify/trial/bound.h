/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound.h - the error bound of a product, as kernels/multiply/matvec.h states it.
 */
#ifndef XFP_KERNEL_BOUND_H
#define XFP_KERNEL_BOUND_H

#include "kernel-verify/trial/trial.h"

/* State for the bound of a matrix's rows in bytes: the largest entry of its library. */
struct xfp_matvec_bound {
	float largest;
};
void xfp_matvec_bound_init(struct xfp_matvec_bound *bound, const struct xfp_matvec *w);

/* The bound for a row and a vector whose products' magnitudes total `magnitude` (already times the unit). */
double xfp_matvec_bound(const struct xfp_matvec_bound *bound, enum xfp_kernel_set set, const struct xfp_matvec *w,
			size_t row, const float *natural, double magnitude);

/* Whether the bound applies to a row: not if a codebook entry is not finite, even if no column uses it. */
bool xfp_matvec_bound_holds(const struct xfp_matvec *w, size_t row);

#endif
