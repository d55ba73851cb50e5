/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - read a matrix in blocks of rows; used by every stage that reads weights.
 *
 *     status = xfp_rows_open(&source, &rows, err);
 *     while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count)
 *         for (r = 0; r < rows.count; r++)
 *             xfp_rows_load(&rows, r, w);   // row rows.first + r as f32
 *     xfp_rows_close(&rows);
 *
 * A block is about half a MiB of source for any matrix, so that memory use does not grow with the matrix, and a block
 * that is processed twice is still in the cache.
 *
 * The first pass over a unit computes the digests of its weights, which determine the keys of all artifacts. Every
 * later pass reads the weights again, and a page of a file can change without a change of its times. Each of these
 * passes therefore computes the digest, too, and fails at the end if it differs from the first: those of
 * xfp-outlier-extract for moments and outliers, of xfp-lloyd-fit and xfp-libfit over all rows, and of xfp-pack, in
 * every mode, unless it copies codes that xfp-libfit stored. The single rows that xfp-survey samples are compared one
 * by one (struct xfp_peaks). The rows that xfp-libfit trains on are not checked: the pass over all rows, which the same
 * process makes afterwards, detects any earlier change.
 */
#ifndef XFP_ROWS_H
#define XFP_ROWS_H

#include "checkpoints/checkpoint.h"
#include "kernels/encode/encode.h"
#include "schemas/ledger.h"

struct xfp_rows {
	uint64_t first, count; /* rows of the current block; count 0 after the last */
	uint64_t rows, cols;
	uint64_t block; /* rows in a full block: a multiple of 64, or all */
	void *raw;      /* the block in the source dtype */
	size_t element; /* bytes of a source element */
	enum xfp_dtype dtype;
	struct xfp_matrix_reader *reader;
	struct xfp_digest *digest;   /* digest of the blocks so far; NULL: not needed, or finished */
	uint8_t *digest_out;         /* destination of the digest, or NULL: */
	const uint8_t *known;        /* the expected digest */
	const char *path, *tensor;   /* names for messages */
	struct xfp_watcher *watcher; /* receives progress after each block; NULL: none */
};

/* Converts source rows to the scaled rows that are fitted (kernels/common/scale.h). */
struct xfp_scaling {
	float *narrow; /* [padded cols] factors */
	double *wide;  /* [cols] the factors if one f32 is not sufficient */
	bool fits;
	uint64_t cols;
};

enum xfp_status xfp_rows_open(const struct xfp_matrix_source *source, struct xfp_rows *rows, struct xfp_error *err);
/* Open rows for a pass over all of them that computes their digest (cache/key.h): it is stored in `digest` when
 * xfp_rows_next has returned the last block. */
enum xfp_status xfp_rows_open_first(const struct xfp_matrix_source *source, uint8_t digest[16], struct xfp_rows *rows,
				    struct xfp_error *err);
/* Open rows for a pass over all of them whose digest must be `known`, which is borrowed; otherwise xfp_rows_next
 * returns XFP_CHANGED at the end. */
enum xfp_status xfp_rows_open_again(const struct xfp_matrix_source *source, const uint8_t known[16],
				    struct xfp_rows *rows, struct xfp_error *err);
enum xfp_status xfp_rows_next(struct xfp_rows *rows, struct xfp_error *err);
/* Read one row by its number, as a block of its own. */
enum xfp_status xfp_rows_one(struct xfp_rows *rows, uint64_t row, struct xfp_error *err);
/* Load row r of the block, r < count, padded (kernels/encode/encode.h). */
void xfp_rows_load(const struct xfp_rows *rows, uint64_t r, float *w);
/* Load a row as scaled weights x and, unless NULL, as w * unit, which is a power of two, and 1 if one f32 factor is not
 * sufficient. */
struct xfp_row_start xfp_rows_scaled(const struct xfp_rows *rows, const struct xfp_scaling *scaling, uint64_t r,
				     float unit, float *w, float *x);
/* A fingerprint of the bytes of row r of the block, to detect changes. */
uint64_t xfp_rows_print(const struct xfp_rows *rows, uint64_t r);
/* Report weights that have changed, by path and tensor; returns XFP_CHANGED. */
enum xfp_status xfp_rows_changed(const struct xfp_rows *rows, struct xfp_error *err);
/* The maximum number of rows of a block of this matrix. */
uint64_t xfp_rows_block(const struct xfp_matrix_source *source);
void xfp_rows_close(struct xfp_rows *rows); /* may be called twice, and on a zeroed struct */

/* A zeroed buffer for a padded row; the caller frees it. NULL if memory runs out. */
float *xfp_row_new(uint64_t cols);

enum xfp_status xfp_scaling_init(struct xfp_scaling *scaling, uint64_t cols, struct xfp_error *err);
/* Set up for the matrix with this exponent. */
void xfp_scaling_set(struct xfp_scaling *scaling, const uint8_t *balance, int exponent);
/* Scale a padded row w into a padded row x; may be in place. */
void xfp_scaling_row(const struct xfp_scaling *scaling, const float *w, float *x);
void xfp_scaling_free(struct xfp_scaling *scaling);

/* The source of matrix `index` of the ledger, in the files that were inspected; borrowed from the ledger. */
struct xfp_matrix_source xfp_ledger_source(const struct xfp_ledger *ledger, uint32_t index);
/* The source of a whole tensor; its view is unused. */
struct xfp_matrix_source xfp_ledger_tensor_source(const struct xfp_ledger *ledger, uint32_t number);

#endif
