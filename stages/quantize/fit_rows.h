/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit_rows.h - what fitting does to a row: a codebook of its own, or groups that choose from a library; and fp8, for
 * which nothing is fitted, beside either.
 *
 * Two users: the stages that fit all rows of a unit (fit_unit.h) and the survey of a few of them (survey.h). They say
 * where rows come from and what becomes of the results; the methods below know of neither.
 */
#ifndef XFP_FIT_ROWS_H
#define XFP_FIT_ROWS_H

#include "schemas/parameters.h"
#include "stages/quantize/marks.h"
#include "stages/quantize/measure.h"
#include "stages/quantize/rows.h"

/* One row as fits see it: scaled, padded, zero where it is marked; the marked columns, ascending. */
struct xfp_training_row {
	const float *x;
	const uint32_t *marked;
	uint64_t marks;
};

/* Rows to train a library on: `walk` hands those with the numbers i * rows / n, i = 0 ... n - 1, to `take`. */
struct xfp_training {
	uint64_t rows;               /* that there are */
	struct xfp_watcher *watcher; /* is told as libraries are trained (xfp_library_work); NULL: nobody */
	void *context;
	enum xfp_status (*walk)(void *context, uint64_t n,
				void (*take)(void *own, const struct xfp_training_row *row, uint64_t i), void *own,
				struct xfp_error *err);
};

struct xfp_fit_methods;

/* What all rows share. */
struct xfp_fitting {
	const struct xfp_parameters *parameters;
	struct xfp_outliers known; /* of the unit; its positions are not used */
	struct xfp_training training;
	struct xfp_measure measure; /* the candidates are set before `begin` */
	float *down;                /* [padded cols] 2^(-d/4); zeros in the padding */
	struct xfp_scaling scaling;
	struct xfp_measure_unit unit; /* of the matrix at hand */
	int exponent;
	int threads;
	const struct xfp_fit_methods *methods; /* of what is fitted; xfp_fitting_begin sets them, and what they own */
	void *own, *own_fp8;
};
/* `known` is set. To be freed either way. */
enum xfp_status xfp_fitting_init(struct xfp_fitting *fitting, struct xfp_error *err);
void xfp_fitting_free(struct xfp_fitting *fitting); /* `known` and `measure` too */
/* What so many rows come to, as those who watch are told of it (schemas/ledger.h): libraries are trained once, and then
 * all rows walked through so often. fp8 is in the first walk only. */
uint64_t xfp_fitting_work(const struct xfp_parameters *parameters, const struct xfp_candidate *candidates,
			  uint32_t count, uint32_t walks, uint64_t rows, uint64_t cols);
/* So many of them are fitted in a walk: who goes through them says so. */
void xfp_fitting_done(const struct xfp_fitting *fitting, uint64_t rows);
/* Once, before the rows, and after xfp_measure_begin. */
enum xfp_status xfp_fitting_begin(struct xfp_fitting *fitting, const struct xfp_fit_methods *methods,
				  struct xfp_artifact *artifact, struct xfp_error *err);
/* Go to matrix m. */
void xfp_fitting_matrix(struct xfp_fitting *fitting, uint32_t m);
/* Every candidate of row r of a block, by one of the threads. */
void xfp_fitting_row(const struct xfp_fitting *fitting, int thread, const struct xfp_rows *rows,
		     const struct xfp_marks *marks, uint64_t r);

struct xfp_fit_methods {
	/* Once, before the rows; libraries go into `artifact` unless it is NULL. *own, NULL before, is for the others
	 * and for `end`, also when this fails. */
	enum xfp_status (*begin)(struct xfp_fitting *fitting, struct xfp_artifact *artifact, void **own,
				 struct xfp_error *err);
	/* Row r of a block, by one of the threads: results into fitting->measure, at held + r. */
	void (*row)(const struct xfp_fitting *fitting, void *own, int thread, const struct xfp_rows *rows,
		    const struct xfp_marks *marks, uint64_t r);
	void (*end)(void *own);
};
extern const struct xfp_fit_methods xfp_fit_codebooks; /* v2 */
extern const struct xfp_fit_methods xfp_fit_libraries; /* v2a, v2c */
extern const struct xfp_fit_methods xfp_fit_fp8;

/* A padded row as fp8 stores it, decoded; returns its scale. Of finite weights. */
float xfp_fp8_row(const float *w, size_t cols, float *decoded);

#endif
