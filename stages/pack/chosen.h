/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chosen.h - the fit that a choice names, as xfp-pack needs it in any mode.
 */
#ifndef XFP_CHOSEN_H
#define XFP_CHOSEN_H

#include "stages/pack/pack.h"
#include "stages/quantize/marks.h"

/* A fit, and the outliers that it was made from: whatever the stamps say. */
struct xfp_chosen {
	struct xfp_artifact outliers, fit;
	struct xfp_outliers known;
};
enum xfp_status xfp_chosen_open(struct xfp_job *job, const struct xfp_choice *choice, struct xfp_chosen *chosen,
				struct xfp_error *err);
/* The key of those outliers alone. */
enum xfp_status xfp_chosen_outliers(struct xfp_job *job, const struct xfp_choice *choice, char key[33],
				    struct xfp_error *err);
void xfp_chosen_close(struct xfp_chosen *chosen);

/* Everything of `packed` that is known before a part is written: sizes, outliers, measurements, and of each matrix its
 * exponent, its outliers and its digest. */
void xfp_chosen_describe(const struct xfp_chosen *chosen, const struct xfp_choice *choice, struct xfp_packed *packed);

/* The marks of a matrix; those that 32 bits cannot count are refused. */
enum xfp_status xfp_chosen_marks(struct xfp_chosen *chosen, uint32_t m, struct xfp_marks *marks, struct xfp_error *err);
/* A matrix's outliers as bundle_layout.h lays them out, from their residuals by mark. */
enum xfp_status xfp_chosen_write_outliers(const struct xfp_chosen *chosen, const struct xfp_marks *marks,
					  const uint16_t *residual, struct xfp_part_writer *part,
					  struct xfp_error *err);

#endif
