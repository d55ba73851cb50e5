/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_instances.h - the parameters of the copies of a kernel, one for each k and number of vectors (xfp_matvec_fn).
 */
#ifndef XFP_MATVEC_INSTANCES_H
#define XFP_MATVEC_INSTANCES_H

#include "kernels/multiply/matvec.h"

#define ARGUMENTS                                                                                                \
	const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows, bool add, float *y, \
		size_t stride
#define PASSED w, x, first, rows, add, y, stride

#endif
