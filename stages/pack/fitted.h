/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fitted.h - the parts of a unit that was fitted: what all modes with an index have in common.
 *
 * Rows are read and scaled, indices are packed block by block, and residuals of outliers are collected and written
 * matrix by matrix. What a row's indices are, and what is stored beside them, is for the methods of each mode.
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
	uint64_t block, row_bytes; /* most rows of a block; bytes of a row's packed indices */
	uint8_t *index;            /* packed, of a block */
	uint16_t *residual;        /* of the matrix, by mark */
	struct xfp_scaling scaling;
	int threads;
};

/* `own` is the methods'. */
struct xfp_packing_methods {
	/* Parts that the whole unit shares, before any matrix; the code is then no matrix's own. May be NULL. */
	enum xfp_status (*begin)(void *own, struct xfp_error *err);
	/* What the rows of a block of matrix m need. May be NULL. */
	enum xfp_status (*block)(void *own, uint32_t m, const struct xfp_rows *rows, struct xfp_error *err);
	/* Row `at` of the block: its packed indices and its residuals. Of several rows at once, each in its thread. */
	void (*row)(void *own, int thread, const struct xfp_rows *rows, const struct xfp_marks *marks, uint64_t at);
	/* What is stored of a matrix beside its indices and outliers, after its rows. May be NULL. */
	enum xfp_status (*end)(void *own, struct xfp_error *err);
};

/* Open what was chosen and allocate the buffers; to be closed after a failure, too. */
enum xfp_status xfp_packing_open(struct xfp_packing *packing, struct xfp_job *job, const struct xfp_choice *choice,
				 struct xfp_packed *packed, struct xfp_error *err);
void xfp_packing_close(struct xfp_packing *packing);

/* Write all parts; `packed` ends complete. */
enum xfp_status xfp_packing_write(struct xfp_packing *packing, const struct xfp_choice *choice,
				  const struct xfp_packing_methods *methods, void *own, struct xfp_artifact *artifact,
				  struct xfp_error *err);

#endif
