/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expected.h - what a product on a device should be, in double, and how far xfp_cuda.h says that it may be from that.
 */
#ifndef XFP_KERNEL_VERIFY_EXPECTED_H
#define XFP_KERNEL_VERIFY_EXPECTED_H

#include "kernel-verify/trial/matrix.h"
#include "runtime/xfp.h"

/* A row of a matrix, decoded for some of its columns. */
struct xfp_expected_row {
	double *weight; /* of each column, */
	double *size;   /* and of what it is the sum of */
	double largest; /* of both */
	double entry;   /* the largest that its codebooks have */
	size_t cols;
	double unit;
	bool holds; /* the bound: it has no entries that are not finite */
};

/* Columns [first, first + cols) of a whole matrix; room for that many is in `row` already. */
void xfp_expected_row(const struct xfp_matvec *w, size_t number, size_t first, struct xfp_expected_row *row);

/* Times a vector of as many columns, as it is balanced, of `count` that it is multiplied by at a time; how far off it
 * may be. */
double xfp_expected_product(const struct xfp_expected_row *row, const struct xfp_matvec *w, const float *natural,
			    size_t count, double *off);

/* What it costs to have a number of this size as one of that type. */
double xfp_expected_rounding(enum xfp_float type, double size);

#endif
