/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.h - a matrix's outliers in row order, as the fit and the packing walk through them.
 */
#ifndef XFP_MARKS_H
#define XFP_MARKS_H

#include "outliers.h"

struct xfp_marks {
	uint64_t *position; /* ascending flat positions */
	uint64_t count;
	uint64_t cols;
};

/* The outliers of one matrix, out of an open outliers artifact. */
enum xfp_status xfp_marks_load(struct xfp_artifact *artifact, const struct xfp_outliers *outliers, uint32_t matrix,
			       struct xfp_marks *marks, struct xfp_error *err);
void xfp_marks_free(struct xfp_marks *marks);

/* Index of the first mark of a row (or of a later one): marks of row r are [find(r), find(r + 1)). */
uint64_t xfp_marks_find(const struct xfp_marks *marks, uint64_t row);

#endif
