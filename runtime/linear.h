/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear.h - a unit's matrices, or a kept tensor, as kernels take them. Private to runtime/ and to the kernel verifier.
 */
#ifndef XFP_LINEAR_H
#define XFP_LINEAR_H

#include "kernels/common/decode.h"
#include "kernels/multiply/matvec.h"
#include "runtime/bundle_map.h"

struct xfp_linear {
	const struct xfp_bundle *bundle;
	const char *name, *role; /* of the unit; or of the tensor, and "" */
	unsigned dtype;          /* of what is kept */
	uint32_t experts, first_matrix;
	const uint8_t *tensor; /* its bytes; NULL: a unit */
	uint64_t rows, cols;   /* of a whole matrix */
	struct xfp_slice slice;

	float *down;                /* xfp_balance_down of every column; NULL: not balanced */
	float *values;              /* of the library */
	struct xfp_library library; /* v2a, v2c: to decode with */
	void *tables;               /* to multiply with; see matvec.h */
};

/* Open the matrices of a unit with all rows and columns; `multiply`: with tables to multiply by. The caller releases
 * it. */
enum xfp_status xfp_linear_init(struct xfp_linear *linear, const struct xfp_bundle *bundle, uint32_t unit,
				bool multiply, struct xfp_error *err);
void xfp_linear_release(struct xfp_linear *linear);

/* A matrix of it with the slice's columns, and as many more at either side as kernels need: its columns begin at
 * w->first_column. All rows. f64 has rows of its own, that only decoding can read: then false. */
bool xfp_linear_matrix(const struct xfp_linear *linear, uint32_t expert, struct xfp_matvec *w);

/* Rows [first, first + rows) of such a matrix as scaled weights x', outliers added, `stride` apart; of what is stored
 * without codebooks, the weights. XFP_BAD_INPUT names what is wrong. */
enum xfp_status xfp_linear_decode(const struct xfp_linear *linear, uint32_t expert, const struct xfp_matvec *w,
				  uint64_t first, uint64_t rows, float *x, size_t stride, struct xfp_error *err);

#endif
