/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit_rows.h - fit rows: a codebook for each row, or groups that choose from a library; and measure fp8, which needs no
 * fit, with either.
 *
 * There are two callers: the stages that fit all rows of a unit (fit_unit.h) and the survey of a few of them
 * (survey.h). They provide the rows and store the results; the methods below do neither.
 */
#ifndef XFP_FIT_ROWS_H
#define XFP_FIT_ROWS_H

#include "schemas/parameters.h"
#include "stages/feedback/outputs.h"
#include "stages/feedback/second_moments.h"
#include "stages/quantize/marks.h"
#include "stages/quantize/measure.h"
#include "stages/quantize/rows.h"

/* One row as fits use it: scaled, padded, zero at marked columns; the marked columns, ascending. */
struct xfp_training_row {
	const float *x;
	const uint32_t *marked;
	uint64_t marks;
	uint32_t matrix; /* the row's matrix: its place in `matrix` of struct xfp_training */
};

/* Rows to train a library on: `walk` passes rows number i * rows / n, i = 0 ... n - 1, to `visit`. */
struct xfp_training {
	uint64_t rows;               /* available rows */
	struct xfp_watcher *watcher; /* receives the progress of training (xfp_library_work); NULL: none */
	void *context;
	enum xfp_status (*walk)(void *context, uint64_t n,
				void (*visit)(void *own, const struct xfp_training_row *row, uint64_t i), void *own,
				struct xfp_error *err);
	/* With error feedback: the moments of the unit's inputs; the matrices whose rows `walk` passes, and the blocks
	 * of their columns to train on. NULL: without, and rows are those of all matrices. */
	struct xfp_second_moments *moments;
	uint32_t matrix[XFP_TRAINED_MATRICES], matrices;
	size_t blocks;
};

struct xfp_fit_methods;

/* State shared by all rows. */
struct xfp_fitting {
	const struct xfp_parameters *parameters;
	struct xfp_outliers known; /* the unit's statistics; its positions are not used */
	struct xfp_training training;
	struct xfp_measure measure; /* the candidates must be set before `begin` */
	float *down;                /* [padded cols] 2^(-d/4); zeros in the padding */
	struct xfp_scaling scaling;
	struct xfp_measure_unit unit; /* unit of the current matrix */
	int exponent;
	int threads;
	/* A survey fits the same rows for several thresholds: `before` are the marks of the last walk over the block at
	 * hand, whose results are still held. False and NULL: rows are fitted once. */
	bool again;
	const struct xfp_marks *before;
	struct xfp_outputs *outputs;           /* measured if the unit has inputs (training.moments); otherwise NULL */
	const struct xfp_fit_methods *methods; /* methods and their state, set by xfp_fitting_begin */
	void *own, *own_fp8;
};
/* `known` must be set. The caller frees the struct even after a failure. */
enum xfp_status xfp_fitting_init(struct xfp_fitting *fitting, struct xfp_error *err);
void xfp_fitting_free(struct xfp_fitting *fitting); /* also frees `known` and `measure` */
/* The work of fitting this many rows, in the unit of struct xfp_watcher (schemas/ledger.h): libraries are trained once,
 * then all rows are read `walks` times. fp8 is measured in the first walk only. */
uint64_t xfp_fitting_work(const struct xfp_parameters *parameters, const struct xfp_candidate *candidates,
			  uint32_t count, uint32_t walks, uint64_t rows, uint64_t cols);
/* Report that this many rows of a walk are fitted. */
void xfp_fitting_done(const struct xfp_fitting *fitting, uint64_t rows);
/* Call once, before the rows and after xfp_measure_begin. */
enum xfp_status xfp_fitting_begin(struct xfp_fitting *fitting, const struct xfp_fit_methods *methods,
				  struct xfp_artifact *artifact, struct xfp_error *err);
/* Switch to matrix m. */
void xfp_fitting_matrix(struct xfp_fitting *fitting, uint32_t m);
/* Fit and measure every candidate of row r of a block, on one of the threads. */
void xfp_fitting_row(const struct xfp_fitting *fitting, int thread, const struct xfp_rows *rows,
		     const struct xfp_marks *marks, uint64_t r);

/* Predict the memory that error feedback takes: for a unit, `candidates` candidates and blocks of `block` rows, in a
 * conversion that is calibrated with `tokens` tokens. */
uint64_t xfp_fitting_feedback_bytes(const struct xfp_ledger_unit *unit, uint32_t candidates, uint64_t block,
				    uint64_t tokens, int threads);

struct xfp_fit_methods {
	/* Called once, before the rows; libraries are written to `artifact` unless it is NULL. *own, initially NULL, is
	 * passed to the other functions and to `end`, even if this fails. */
	enum xfp_status (*begin)(struct xfp_fitting *fitting, struct xfp_artifact *artifact, void **own,
				 struct xfp_error *err);
	/* Process row r of a block on one of the threads; results go into fitting->measure, at held + r. */
	void (*row)(const struct xfp_fitting *fitting, void *own, int thread, const struct xfp_rows *rows,
		    const struct xfp_marks *marks, uint64_t r);
	/* With inputs, in place of its rows: process matrix m, whose results are held afterwards, and store its codes.
	 * NULL: there is no such method. */
	enum xfp_status (*matrix)(struct xfp_fitting *fitting, void *own, uint32_t m,
				  const struct xfp_matrix_source *source, const struct xfp_marks *marks,
				  struct xfp_artifact *artifact, struct xfp_error *err);
	void (*end)(void *own);
};
extern const struct xfp_fit_methods xfp_fit_codebooks; /* v2 */
extern const struct xfp_fit_methods xfp_fit_libraries; /* v2a, v2c */
extern const struct xfp_fit_methods xfp_fit_fp8;

/* Decode a padded row as fp8 stores it; returns its scale. The weights must be finite. */
float xfp_fp8_row(const float *w, size_t cols, float *decoded);

#endif
