/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.h - a matrix's outliers in row order, as the fit and the packing walk through them.
 */
#ifndef XFP_MARKS_H
#define XFP_MARKS_H

#include "schemas/outliers.h"

struct xfp_marks {
	uint32_t *column; /* row after row, ascending in each */
	uint64_t *first;  /* [rows + 1] where a row's columns begin */
	uint64_t count;
};

/* The outliers of one matrix, out of an open outliers artifact. */
enum xfp_status xfp_marks_load(struct xfp_artifact *artifact, const struct xfp_outliers *outliers, uint32_t matrix,
			       struct xfp_marks *marks, struct xfp_error *err);
void xfp_marks_free(struct xfp_marks *marks);

#endif
