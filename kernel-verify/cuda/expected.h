/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expected.h - the expected result of a product on a device, in double, and the error bound that xfp_cuda.h states.
 */
#ifndef XFP_KERNEL_VERIFY_EXPECTED_H
#define XFP_KERNEL_VERIFY_EXPECTED_H

#include "kernel-verify/trial/matrix.h"
#include "runtime/xfp.h"

/* Some columns of a row of a matrix, decoded. */
struct xfp_expected_row {
	double *weight; /* per column, */
	double *size;   /* and the sum of magnitudes of its terms */
	double largest; /* of both */
	double entry;   /* largest codebook entry */
	size_t cols;
	double unit;
	bool holds; /* the bound applies: all entries are finite */
};

/* Decode columns [first, first + cols) of a whole matrix into `row`, which has room for them. */
void xfp_expected_row(const struct xfp_matvec *w, size_t number, size_t first, struct xfp_expected_row *row);

/* Multiply the row by a balanced vector of as many columns, one of `count` multiplied at once, and compute the error
 * bound. */
double xfp_expected_product(const struct xfp_expected_row *row, const struct xfp_matvec *w, const float *natural,
			    size_t count, double *off);

/* The rounding error of a number of this size in this type. */
double xfp_expected_rounding(enum xfp_float type, double size);

#endif
