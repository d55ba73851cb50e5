/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound.h - how far a product may be from the reference, as kernels/multiply/matvec.h states it.
 */
#ifndef XFP_KERNEL_BOUND_H
#define XFP_KERNEL_BOUND_H

#include "kernel-verify/trial/trial.h"

/* What the bound of a matrix's rows in bytes is made of: the largest entry of its library. */
struct xfp_matvec_bound {
	float largest;
};
void xfp_matvec_bound_init(struct xfp_matvec_bound *bound, const struct xfp_matvec *w);

/* Of a row and a vector whose products' magnitudes add up to `magnitude` (times the unit already). */
double xfp_matvec_bound(const struct xfp_matvec_bound *bound, enum xfp_kernel_set set, const struct xfp_matvec *w,
			size_t row, const float *natural, double magnitude);

/* Whether the bound holds for a row: not where an entry of its codebook is not finite, even one that no column has. */
bool xfp_matvec_bound_holds(const struct xfp_matvec *w, size_t row);

#endif
