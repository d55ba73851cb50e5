/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.h - a matrix's outliers in row order, for fitting and packing.
 */
#ifndef XFP_MARKS_H
#define XFP_MARKS_H

#include "schemas/outliers.h"

struct xfp_marks {
	uint32_t *column; /* row by row, ascending within a row */
	uint64_t *first;  /* [rows + 1] index of a row's first column */
	uint64_t count;
};

/* Load the outliers of one matrix from an open outliers artifact. */
enum xfp_status xfp_marks_load(struct xfp_artifact *artifact, const struct xfp_outliers *outliers, uint32_t matrix,
			       struct xfp_marks *marks, struct xfp_error *err);
void xfp_marks_free(struct xfp_marks *marks);

#endif
