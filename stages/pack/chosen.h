/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chosen.h - the chosen fit of a unit, for xfp-pack in any mode.
 */
#ifndef XFP_CHOSEN_H
#define XFP_CHOSEN_H

#include "stages/pack/pack.h"
#include "stages/quantize/marks.h"

/* The fit that the choice names, and the outliers that it was made from; stamps are not consulted. */
struct xfp_chosen {
	struct xfp_artifact outliers, fit;
	struct xfp_outliers known;
	bool coded; /* the fit contains all codes */
	bool bytes; /* the fit contains the bytes of groups and rows */
};
enum xfp_status xfp_chosen_open(struct xfp_job *job, const struct xfp_choice *choice, struct xfp_chosen *chosen,
				struct xfp_error *err);
/* The key of those outliers. */
enum xfp_status xfp_chosen_outliers(struct xfp_job *job, const struct xfp_choice *choice, char key[33],
				    struct xfp_error *err);
void xfp_chosen_close(struct xfp_chosen *chosen);

/* Fill in everything of `packed` that is known before a part is written: sizes, outliers, measurements, and for each
 * matrix its exponent, outliers and digest. */
void xfp_chosen_describe(const struct xfp_chosen *chosen, const struct xfp_choice *choice, struct xfp_packed *packed);

/* Load the outlier marks of a matrix; fails if there are more than 32 bits can count. */
enum xfp_status xfp_chosen_marks(struct xfp_chosen *chosen, uint32_t m, struct xfp_marks *marks, struct xfp_error *err);
/* Write a matrix's outliers in the layout of bundle_layout.h; `residual` is indexed by mark. */
enum xfp_status xfp_chosen_write_outliers(const struct xfp_chosen *chosen, const struct xfp_marks *marks,
					  const uint16_t *residual, struct xfp_part_writer *part,
					  struct xfp_error *err);

#endif
