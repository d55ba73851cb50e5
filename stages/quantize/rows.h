/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - a matrix in blocks of rows: how every stage walks through weights.
 *
 *     status = xfp_rows_open(&source, &rows, err);
 *     while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count)
 *         for (r = 0; r < rows.count; r++)
 *             xfp_rows_load(&rows, r, w);   // row rows.first + r as f32
 *     xfp_rows_close(&rows);
 *
 * A block is about half a MiB of source whatever the matrix, so that memory does not grow with it and a
 * block that is walked through twice is still in the cache.
 *
 * A unit's first walk digests its weights, and the keys of all artifacts follow from that. Every later walk, however
 * long after, reads them anew, and a page of a file can change without its times telling. So each of them digests what
 * it reads, too, and fails at its end where that is not what was read first: those of xfp-outlier-extract for moments
 * and outliers, of xfp-lloyd-fit and xfp-libfit over all rows, and of xfp-pack, in every mode. The single rows that
 * xfp-survey samples are compared one by one (struct xfp_peaks). Those that xfp-libfit trains on are not: the walk over
 * all rows, which the same process begins after it has read them, finds a change that has come before it.
 */
#ifndef XFP_ROWS_H
#define XFP_ROWS_H

#include "checkpoints/checkpoint.h"
#include "kernels/encode/encode.h"
#include "schemas/ledger.h"

struct xfp_rows {
	uint64_t first, count; /* of the current block; count 0 after the last */
	uint64_t rows, cols;
	uint64_t block; /* rows in a full block: a multiple of 64, or all */
	void *raw;      /* the block in the source dtype */
	size_t element; /* bytes of a source element */
	enum xfp_dtype dtype;
	struct xfp_matrix_reader *reader;
	struct xfp_digest *digest;   /* of the blocks so far; NULL: not wanted, or told */
	uint8_t *told;               /* where it is to go, or NULL: */
	const uint8_t *known;        /* what it is to be */
	const char *path, *tensor;   /* for messages */
	struct xfp_watcher *watcher; /* is told of each block; NULL: nobody */
};

/* From source rows to the scaled ones that are fitted (kernels/common/scale.h). */
struct xfp_scaling {
	float *narrow; /* [padded cols] factors */
	double *wide;  /* [cols] the same where one f32 does not do */
	bool fits;
	uint64_t cols;
};

enum xfp_status xfp_rows_open(const struct xfp_matrix_source *source, struct xfp_rows *rows, struct xfp_error *err);
/* The same for a walk over all rows that tells their digest (cache/key.h): in `digest`, once xfp_rows_next has found
 * that there are no more. */
enum xfp_status xfp_rows_open_first(const struct xfp_matrix_source *source, uint8_t digest[16], struct xfp_rows *rows,
				    struct xfp_error *err);
/* For one over rows whose digest is `known`, which is borrowed: where they have another, xfp_rows_next, at the end, is
 * XFP_CHANGED. */
enum xfp_status xfp_rows_open_again(const struct xfp_matrix_source *source, const uint8_t known[16],
				    struct xfp_rows *rows, struct xfp_error *err);
enum xfp_status xfp_rows_next(struct xfp_rows *rows, struct xfp_error *err);
/* One row by its number, as a block of its own. */
enum xfp_status xfp_rows_one(struct xfp_rows *rows, uint64_t row, struct xfp_error *err);
/* Row r of the block, r < count, padded (kernels/encode/encode.h). */
void xfp_rows_load(const struct xfp_rows *rows, uint64_t r, float *w);
/* The same as scaled weights x and, unless NULL, as w * unit: a power of two, and 1 where one f32 factor does not
 * do. */
struct xfp_row_start xfp_rows_scaled(const struct xfp_rows *rows, const struct xfp_scaling *scaling, uint64_t r,
				     float unit, float *w, float *x);
/* Of the bytes of row r of the block: what tells it from one that has changed. */
uint64_t xfp_rows_print(const struct xfp_rows *rows, uint64_t r);
/* The message for weights that have changed; returns XFP_CHANGED. */
enum xfp_status xfp_rows_changed(const struct xfp_rows *rows, struct xfp_error *err);
/* The most rows that a block of this matrix has. */
uint64_t xfp_rows_block(const struct xfp_matrix_source *source);
void xfp_rows_close(struct xfp_rows *rows); /* safe twice, and on a zeroed struct */

/* A buffer for a padded row, zeroed; released by free. NULL when out of memory. */
float *xfp_row_new(uint64_t cols);

enum xfp_status xfp_scaling_init(struct xfp_scaling *scaling, uint64_t cols, struct xfp_error *err);
/* For the matrix with this exponent. */
void xfp_scaling_set(struct xfp_scaling *scaling, const uint8_t *balance, int exponent);
/* A padded row of w -> a padded row of x. In place is fine. */
void xfp_scaling_row(const struct xfp_scaling *scaling, const float *w, float *x);
void xfp_scaling_free(struct xfp_scaling *scaling);

/* Where matrix `index` of the ledger is, in the very files that were inspected; all is borrowed from the ledger. */
struct xfp_matrix_source xfp_ledger_source(const struct xfp_ledger *ledger, uint32_t index);
/* The same of a whole tensor; its view is nothing. */
struct xfp_matrix_source xfp_ledger_tensor_source(const struct xfp_ledger *ledger, uint32_t number);

#endif
