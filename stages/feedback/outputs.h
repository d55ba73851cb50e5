/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outputs.h - measure the candidates of a unit by their outputs: w' x next to w x, for inputs x of the layer that no
 * candidate was fitted to.
 *
 * A matrix is measured with up to 256 held-out rows of its own input, evenly spaced; an expert that has fewer than 32
 * with those of the whole stack. Outputs are sums of exact products in f64, in the order of columns; the sums over
 * inputs are f64, too.
 */
#ifndef XFP_OUTPUTS_H
#define XFP_OUTPUTS_H

#include "kernels/encode/cosine.h"
#include "schemas/fit.h"
#include "schemas/inputs.h"

#define XFP_MAX_HELD_OUT 256
#define XFP_MIN_HELD_OUT 32

struct xfp_outputs {
	uint32_t count; /* candidates */
	uint64_t rows, cols;
	double *panels; /* inputs of the current matrix */
	size_t inputs;
	struct xfp_row_error *row[XFP_MAX_CANDIDATES]; /* results of its rows */
	double *cosine[XFP_MAX_CANDIDATES];            /* of all rows of the unit */
	uint64_t done;                                 /* rows of finished matrices */
	uint32_t unreached;                            /* matrices without training inputs; for the table */
	double error[XFP_MAX_CANDIDATES], norm;
	struct xfp_outputs_thread *thread;
	int threads;
};

/* The bytes that xfp_outputs_init allocates. */
uint64_t xfp_outputs_bytes(uint32_t candidates, uint32_t matrices, uint64_t rows, uint64_t cols, int threads);
/* The caller frees the struct even after a failure. */
enum xfp_status xfp_outputs_init(struct xfp_outputs *outputs, uint32_t candidates, uint32_t matrices, uint64_t rows,
				 uint64_t cols, int threads, struct xfp_error *err);
void xfp_outputs_free(struct xfp_outputs *outputs);

/* Read the inputs of a matrix. */
enum xfp_status xfp_outputs_matrix(struct xfp_outputs *outputs, const struct xfp_artifact *artifact,
				   const struct xfp_inputs *inputs, const struct xfp_input_rows *of,
				   struct xfp_error *err);

/* One thread's sixteen rows: set row `lane` of the source, or of a candidate, in any unit that the two share; then
 * measure `count` rows, from row `first` of the matrix on. `back` undoes the square of the unit. */
void xfp_outputs_set_source(struct xfp_outputs *outputs, int thread, unsigned lane, const float *w);
void xfp_outputs_set_candidate(struct xfp_outputs *outputs, int thread, unsigned lane, const float *w);
void xfp_outputs_source(struct xfp_outputs *outputs, int thread);
void xfp_outputs_candidate(struct xfp_outputs *outputs, int thread, uint32_t candidate, uint64_t first, unsigned count,
			   double back);

/* Finish a matrix; then summarize each candidate of the unit. */
void xfp_outputs_matrix_end(struct xfp_outputs *outputs);
void xfp_outputs_end(const struct xfp_outputs *outputs, struct xfp_output_measure result[XFP_MAX_CANDIDATES]);

#endif
