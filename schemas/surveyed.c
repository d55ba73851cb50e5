/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/surveyed.h"

#include <float.h>
#include <string.h>

#include "schemas/h5.h"

void xfp_surveyed_free(struct xfp_surveyed *surveyed)
{
	xfp_outliers_free(&surveyed->known);
}

enum xfp_status xfp_surveyed_write(struct xfp_artifact *a, struct xfp_surveyed *surveyed, struct xfp_error *err)
{
	enum xfp_status status = xfp_outliers_begin(a, err);

	for (uint32_t m = 0; !status && m < surveyed->known.matrices; m++)
		status = xfp_outliers_append(a, &surveyed->known, m, NULL, 0, err);
	if (!status)
		status = xfp_outliers_end(a, &surveyed->known, err);
	return status ? status : xfp_candidates_write(a, surveyed->list, surveyed->count, err);
}

enum xfp_status xfp_surveyed_read(struct xfp_artifact *a, struct xfp_surveyed *surveyed, struct xfp_error *err)
{
	enum xfp_status status = xfp_candidates_read(a, XFP_MAX_SURVEYED, surveyed->list, &surveyed->count, err);

	if (status)
		return status;
	if ((status = xfp_outliers_read(a, &surveyed->known, err)))
		return status;
	if (surveyed->known.first[surveyed->known.matrices]) {
		xfp_surveyed_free(surveyed);
		return xfp_h5_damaged(a, err, "a survey has no outliers");
	}
	return XFP_OK;
}

bool xfp_surveyed_equal(const struct xfp_surveyed *a, const struct xfp_surveyed *b)
{
	const struct xfp_outliers *x = &a->known, *y = &b->known;

	_Static_assert(sizeof *a->list == 56, "candidates are compared without padding");
	return x->matrices == y->matrices && x->rows == y->rows && x->cols == y->cols &&
	       x->sigma_milli == y->sigma_milli && a->count == b->count &&
	       !memcmp(x->source, y->source, x->matrices * sizeof *x->source) &&
	       !memcmp(x->balance, y->balance, x->cols * sizeof *x->balance) &&
	       !memcmp(x->exponent, y->exponent, x->matrices * sizeof *x->exponent) &&
	       !memcmp(x->mean, y->mean, x->matrices * sizeof *x->mean) &&
	       !memcmp(x->sigma, y->sigma, x->matrices * sizeof *x->sigma) &&
	       !memcmp(a->list, b->list, a->count * sizeof *a->list);
}

/* ---- scales ------------------------------------------------------------------------------------ */

const struct xfp_output_scale xfp_output_scale_none = { 0, 0, 1, 1, 1, 1, 1 };

enum xfp_status xfp_scales_write(struct xfp_artifact *a, const struct xfp_output_scale *scale, struct xfp_error *err)
{
	enum xfp_status status;

	(void)((status = xfp_h5_write_u64(a, "matrices", scale->matrices, err)) ||
	       (status = xfp_h5_write_u64(a, "rows", scale->rows, err)) ||
	       (status = xfp_h5_write_f64(a, "growth", scale->growth, err)) ||
	       (status = xfp_h5_write_f64(a, "feedback", scale->feedback, err)) ||
	       (status = xfp_h5_write_f64(a, "feedback_median", scale->feedback_median, err)) ||
	       (status = xfp_h5_write_f64(a, "rounding", scale->rounding, err)) ||
	       (status = xfp_h5_write_f64(a, "rounding_median", scale->rounding_median, err)));
	return status;
}

/* False for NaN. */
static bool is_possible(double ratio)
{
	return ratio >= 0 && ratio <= DBL_MAX;
}

enum xfp_status xfp_scales_read(struct xfp_artifact *a, struct xfp_output_scale *scale, struct xfp_error *err)
{
	struct xfp_output_scale read = { 0 };
	enum xfp_status status;

	if ((status = xfp_h5_read_u64(a, "matrices", &read.matrices, err)) ||
	    (status = xfp_h5_read_u64(a, "rows", &read.rows, err)) ||
	    (status = xfp_h5_read_f64(a, "growth", &read.growth, err)) ||
	    (status = xfp_h5_read_f64(a, "feedback", &read.feedback, err)) ||
	    (status = xfp_h5_read_f64(a, "feedback_median", &read.feedback_median, err)) ||
	    (status = xfp_h5_read_f64(a, "rounding", &read.rounding, err)) ||
	    (status = xfp_h5_read_f64(a, "rounding_median", &read.rounding_median, err)))
		return status;
	if (!is_possible(read.growth) || !is_possible(read.feedback) || !is_possible(read.feedback_median) ||
	    !is_possible(read.rounding) || !is_possible(read.rounding_median))
		return xfp_h5_damaged(a, err, "impossible scales");
	*scale = read;
	return XFP_OK;
}
