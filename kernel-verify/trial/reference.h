/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference.h - what a row times a vector is, by the words of schemas/layout/bundle_layout.h and in double: what the
 * kernels are held against.
 */
#ifndef XFP_REFERENCE_H
#define XFP_REFERENCE_H

#include "kernels/multiply/matvec.h"

/* A row as it is stored, decoded. */
void xfp_matvec_reference_row(const struct xfp_matvec *w, size_t row, float *x);

/* One row against one vector in double, and the sum of magnitudes of what was added up. */
bool xfp_matvec_reference(const struct xfp_matvec *w, size_t row, const float *natural, double *y, double *magnitude);

#endif
