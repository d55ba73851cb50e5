/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library_fit.h - the state of fitting a unit's rows with libraries: fit_libraries.c, and fit_feedback.c if the inputs
 * of its matrices are known.
 */
#ifndef XFP_LIBRARY_FIT_H
#define XFP_LIBRARY_FIT_H

#include "stages/quantize/fit_rows.h"
#include "stages/quantize/group_row.h"

#define XFP_MAX_GROUPINGS 6

struct xfp_library_fit {
	struct xfp_grouping groupings[XFP_MAX_GROUPINGS];
	uint32_t grouping_count;
	uint32_t grouping_of[XFP_MAX_CANDIDATES], count; /* index of each candidate's grouping */
	struct xfp_library_code code[XFP_MAX_CANDIDATES];
	struct xfp_group_library libraries[XFP_MAX_CANDIDATES];
	struct xfp_library_buffers *buffers; /* one per thread */
	int threads;
};

/* The groups of a row whose marks differ from those of the last walk, copied one after the other. */
struct xfp_changed_groups {
	struct xfp_group_row copy;
	uint32_t *number; /* [groups] */
	uint8_t *byte;    /* [groups] */
	uint64_t count;
};

/* One thread's buffers for a row, all padded. */
struct xfp_library_buffers {
	float *w, *x, *value;
	float *marked; /* x of the outliers, in their order */
	struct xfp_group_row rows[XFP_MAX_GROUPINGS];
	struct xfp_group_codes codes[XFP_MAX_GROUPINGS];
	struct xfp_changed_groups changed[XFP_MAX_GROUPINGS];
};

/* Compare a reconstructed row, in scaled weights with residuals, with its source w in the fitting's unit, both padded;
 * `norm` is that of the source. Converts `value` to the unit of w. */
struct xfp_row_error xfp_library_measure(const struct xfp_fitting *fitting, const float *w, double norm, float *value);

/* `matrix` of struct xfp_fit_methods; `own` is the struct xfp_library_fit. */
enum xfp_status xfp_fit_with_feedback(struct xfp_fitting *fitting, void *own, uint32_t m,
				      const struct xfp_matrix_source *source, const struct xfp_marks *marks,
				      struct xfp_artifact *artifact, struct xfp_error *err);

#endif
