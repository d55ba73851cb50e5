/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference.h - the reference for kernels: a row times a vector in double, following schemas/layout/bundle_layout.h.
 */
#ifndef XFP_REFERENCE_H
#define XFP_REFERENCE_H

#include "kernels/multiply/matvec.h"

/* Decode a stored row. */
void xfp_matvec_reference_row(const struct xfp_matvec *w, size_t row, float *x);

/* Multiply one row by one vector in double; `magnitude` receives the sum of the magnitudes of the terms. */
bool xfp_matvec_reference(const struct xfp_matvec *w, size_t row, const float *natural, double *y, double *magnitude);

#endif
