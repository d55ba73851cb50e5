/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear.h - a unit's matrices, or a kept tensor, as input to kernels. Private to runtime/ and to the kernel verifier.
 */
#ifndef XFP_LINEAR_H
#define XFP_LINEAR_H

#include "kernels/common/decode.h"
#include "kernels/multiply/matvec.h"
#include "runtime/bundle_map.h"

struct xfp_linear {
	const struct xfp_bundle *bundle;
	const char *name, *role; /* name and role of the unit; for a tensor its name and "" */
	unsigned dtype;          /* dtype of a kept tensor */
	uint32_t experts, first_matrix;
	const uint8_t *tensor; /* bytes of a kept tensor; NULL for a unit */
	uint64_t rows, cols;   /* shape of the whole matrix */
	struct xfp_slice slice;

	float *down;                /* xfp_balance_down of every column; NULL if not balanced */
	float *values;              /* entries and ratios of the library */
	struct xfp_library library; /* v2a, v2c: for decoding */
	void *tables;               /* for multiplying; see matvec.h */
};

/* Open the matrices of a unit with all rows and columns. `multiply` also builds the tables for multiplication. The
 * caller releases the linear. */
enum xfp_status xfp_linear_init(struct xfp_linear *linear, const struct xfp_bundle *bundle, uint32_t unit,
				bool multiply, struct xfp_error *err);
void xfp_linear_release(struct xfp_linear *linear);

/* Get a matrix with all rows and the slice's columns, extended on either side as kernels need; its columns begin at
 * w->first_column. Returns false for f64, whose rows can only be decoded. */
bool xfp_linear_matrix(const struct xfp_linear *linear, uint32_t expert, struct xfp_matvec *w);

/* Restrict such a matrix to columns [first, first + cols), which begin a chunk, and end one or the row; they begin a
 * group, or are within one. */
void xfp_linear_cut(const struct xfp_linear *linear, struct xfp_matvec *w, uint64_t first, uint64_t cols);

/* Report damage of a row: XFP_BAD_INPUT. */
#define XFP_BAD_OUTLIERS "outliers outside the matrix or out of order"
enum xfp_status xfp_linear_damaged(const struct xfp_linear *linear, uint32_t expert, uint64_t row, const char *what,
				   struct xfp_error *err);

/* Decode rows [first, first + rows) of such a matrix to scaled weights x', outliers added, `stride` elements apart;
 * without codebooks, to weights. XFP_BAD_INPUT names the damaged row. */
enum xfp_status xfp_linear_decode(const struct xfp_linear *linear, uint32_t expert, const struct xfp_matvec *w,
				  uint64_t first, uint64_t rows, float *x, size_t stride, struct xfp_error *err);

#endif
