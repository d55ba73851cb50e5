/* SPDX-License-Identifier: Apache-2.0 */
/*
 * second_moments.h - H and R of a unit's matrices (kernels/feedback/feedback.h), from the inputs of their layer.
 *
 *     xfp_second_moments_init(&moments, ...)
 *     xfp_second_moments_block(&moments, group, block, &f, err)    a block of columns, for groups of this size
 *     xfp_second_moments_compute(&moments, m, &f, err)             H and R of matrix m
 *     ... encode rows ...
 *     xfp_second_moments_release(&f)
 *
 * Sums are computed for one matrix and one block at a time, and kept until another one is needed. With the factor of
 * one block this is 1.6 GB at 16,384 columns, and 2.1 GB for a stack.
 */
#ifndef XFP_SECOND_MOMENTS_H
#define XFP_SECOND_MOMENTS_H

#include "kernels/feedback/feedback.h"
#include "schemas/inputs.h"
#include "schemas/ledger.h"

/* The moments of some columns of some rows of an input. */
struct xfp_moments_of {
	struct xfp_input_rows rows;
	size_t first, cols; /* cols 0: nothing yet */
};

struct xfp_second_moments {
	const struct xfp_ledger *ledger;     /* of the unit; borrowed */
	const struct xfp_artifact *artifact; /* the layer's inputs; borrowed */
	const struct xfp_inputs *inputs;
	uint32_t matrices;
	uint64_t cols;
	const uint8_t *balance;
	int threads;
	struct xfp_input_rows *of; /* [matrices] the rows that multiply each */
	uint64_t *training_rows;   /* [matrices] their number */
	uint64_t all;              /* number of training rows of the stack */
	uint32_t unreached;        /* matrices without training rows */
	bool *zero;   /* [matrices] all its inputs are zero; known once H is computed, or if none is found */
	bool stacked; /* H is blended with that of the stack */

	struct xfp_moments_of own_of, stack_of;
	size_t values; /* of the largest triangle so far */
	double *sum;   /* a triangle in f64; then own and H in f32, in its halves */
	float *stack;  /* a triangle */
	double *squares;
	float *own_diagonal, *stack_diagonal; /* of all columns */
	uint64_t *row;                        /* numbers of rows */
	uint16_t *x;                          /* a portion of rows */
	float *scratch;
	double *factoring;
};

/* Find the inputs of the ledger's only unit. *found is false if the layer does not multiply by its tensors, or if the
 * inputs are always zero, for training or held out, and therefore determine and measure nothing. `artifact`, `inputs`,
 * `ledger` and `balance` are borrowed. The caller frees the struct even after a failure. */
enum xfp_status xfp_second_moments_init(struct xfp_second_moments *moments, const struct xfp_artifact *artifact,
					const struct xfp_inputs *inputs, const struct xfp_ledger *ledger,
					const uint8_t *balance, int threads, bool *found, struct xfp_error *err);
void xfp_second_moments_free(struct xfp_second_moments *moments);

/* The rows that are read at a time. */
uint64_t xfp_second_moments_portion(const struct xfp_second_moments *moments);

/* Predict the memory of a unit of a conversion that is calibrated with `tokens` tokens: the returned bytes, which
 * include a factor, and *training bytes for the factors of the matrices that a library is trained on. */
uint64_t xfp_second_moments_bytes(uint32_t matrices, uint64_t cols, uint64_t tokens, int threads, uint64_t *training);

/* List the matrices that have most training rows, ascending: at most XFP_TRAINED_MATRICES, and fewer if the factors of
 * their blocks would have more than XFP_TRAINED_VALUES values. *blocks is the number of blocks: the first ones if those
 * of one matrix have more. Returns the number of matrices. */
#define XFP_TRAINED_MATRICES 8
#define XFP_TRAINED_VALUES (2 * xfp_triangle_values(XFP_FEEDBACK_COLS))
uint32_t xfp_second_moments_largest(const struct xfp_second_moments *moments, uint32_t list[XFP_TRAINED_MATRICES],
				    size_t *blocks);

/* Describe a block of columns, and allocate everything but h. */
enum xfp_status xfp_second_moments_block(const struct xfp_second_moments *moments, unsigned group, size_t block,
					 struct xfp_feedback *feedback, struct xfp_error *err);
void xfp_second_moments_release(struct xfp_feedback *feedback);

/* Compute H, and R divided by its diagonal. h is valid until the next call. XFP_BAD_INPUT: H is not positive
 * definite, or second moments are not finite. */
enum xfp_status xfp_second_moments_compute(struct xfp_second_moments *moments, uint32_t matrix,
					   struct xfp_feedback *feedback, struct xfp_error *err);

#endif
