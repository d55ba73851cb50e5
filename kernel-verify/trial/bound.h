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

/* Whether a product uses the library's 8-bit entries (matvec_tables.h). The bound then compares with the reference for
 * entries as xfp_matvec_round_entries rounds those of a copy of the tables: to the nearest multiples of 1/127 of the
 * largest. */
bool xfp_matvec_is_narrow(enum xfp_kernel_set set, const struct xfp_matvec *w, const struct xfp_matvec_x *x);
void xfp_matvec_round_entries(const struct xfp_matvec_bound *bound, unsigned k, void *tables);
/* The difference that rounding can make: half a step for each column. */
double xfp_matvec_bound_of_rounding(const struct xfp_matvec_bound *bound, const struct xfp_matvec *w, size_t row,
				    const float *natural);

/* Whether the bound applies to a row: not if a codebook entry is not finite, even if no column uses it. */
bool xfp_matvec_bound_holds(const struct xfp_matvec *w, size_t row);

#endif
