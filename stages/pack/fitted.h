/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fitted.h - the parts of a fitted unit: code shared by all modes with an index.
 *
 * Rows are read and scaled, indices are packed block by block, and residuals of outliers are collected and written
 * matrix by matrix. The methods of each mode compute a row's indices and write the other parts.
 */
#ifndef XFP_PACK_FITTED_H
#define XFP_PACK_FITTED_H

#include "stages/pack/chosen.h"
#include "stages/quantize/rows.h"

struct xfp_packing {
	struct xfp_job *job;
	struct xfp_packed *packed;
	struct xfp_chosen chosen;
	struct xfp_part_writer part[XFP_PARTS];
	uint64_t block, row_bytes; /* block: most rows of a block; row_bytes: bytes of a row's packed indices */
	uint8_t *index;            /* packed, of a block */
	uint16_t *residual;        /* residuals of the matrix, by mark */
	struct xfp_scaling scaling;
	int threads;
};

/* `own` is the methods' own state. */
struct xfp_packing_methods {
	/* Write parts shared by the whole unit, before any matrix; CODE is then one for all matrices. May be NULL. */
	enum xfp_status (*begin)(void *own, struct xfp_error *err);
	/* Prepare for the rows of a block of matrix m. May be NULL. */
	enum xfp_status (*block)(void *own, uint32_t m, const struct xfp_rows *rows, struct xfp_error *err);
	/* Append the packed indices of matrix m, and set its residuals, without reading its weights. NULL: by row. */
	enum xfp_status (*copy)(void *own, uint32_t m, const struct xfp_marks *marks, struct xfp_error *err);
	/* Compute the packed indices and the residuals of row `at` of the block. Called for several rows at once, each
	 * in its thread. */
	void (*row)(void *own, int thread, const struct xfp_rows *rows, const struct xfp_marks *marks, uint64_t at);
	/* Write the parts of a matrix other than indices and outliers, after its rows. May be NULL. */
	enum xfp_status (*end)(void *own, struct xfp_error *err);
};

/* Open the chosen fit and allocate the buffers; must be closed even after a failure. */
enum xfp_status xfp_packing_open(struct xfp_packing *packing, struct xfp_job *job, const struct xfp_choice *choice,
				 struct xfp_packed *packed, struct xfp_error *err);
void xfp_packing_close(struct xfp_packing *packing);

/* Write all parts and complete `packed`. */
enum xfp_status xfp_packing_write(struct xfp_packing *packing, const struct xfp_choice *choice,
				  const struct xfp_packing_methods *methods, void *own, struct xfp_artifact *artifact,
				  struct xfp_error *err);

#endif
