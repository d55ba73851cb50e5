/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output_scale.c - predict the errors of outputs that error feedback results in from errors of weights.
 *
 * A quantizer makes an error t - q in every column, which is nearly white and has the same mean square for all columns
 * of a row: e |y|^2 / K, if a survey has measured the error e. With feedback (kernels/feedback/feedback.h), y - q has
 * the squared error
 *
 *     of outputs   e |y|^2 / K * (sum of R[c][c]^2 - 0.06 g K)    without the damping, which no output has
 *     of weights   e |y|^2 / K * g K                              g > 1: the growth
 *
 * and the squared norm of outputs is y (H - 0.06 I) y^T. The scale is the quotient of the sums over some rows. Targets
 * are larger than y by the errors that they compensate, so e itself grows to e / (1 - (g - 1) e). Without feedback, the
 * squared error of outputs is e |y|^2, since H has the trace K.
 *
 * Candidates that are tried within groups, and passes over columns, reduce the error of outputs by some 10 %; inputs
 * that are held out increase it by about as much. H must be that of the row's own matrix: with that of the whole stack,
 * errors of experts would be predicted up to three times too large.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/memory.h"
#include "kernels/encode/cosine.h"
#include "stages/feedback/second_moments.h"
#include "stages/quantize/rows.h"
#include "stages/quantize/survey.h"

#define MAX_SPREAD 0.5 /* of (g - 1) e: the prediction is meant for small errors */

/* A row, in the unit of the balanced weights. */
struct scaled_row {
	double square;           /* |y|^2 */
	double outputs, weights; /* of errors, for a quantizer's error of |y|^2 */
	double norm;             /* y (H - 0.06 I) y^T */
};

struct scaling_rows {
	const struct xfp_survey *survey;
	struct xfp_second_moments *moments;
	struct xfp_scaling scaling;
	float *x;             /* a row */
	float *tile, *growth; /* [padded][16] */
	struct scaled_row *row;
	uint64_t rows;
};

/* ---- matrices ---------------------------------------------------------------------------------- */

/* Whether a block of the sample is before another in the order of training rows, then of numbers. */
static bool is_before(const struct scaling_rows *s, uint32_t a, uint32_t b)
{
	const uint64_t *rows = s->moments->training_rows;
	const uint32_t x = s->survey->blocks[a].matrix, y = s->survey->blocks[b].matrix;

	return rows[x] > rows[y] || (rows[x] == rows[y] && a < b);
}

static bool is_of_sample(const struct xfp_survey *survey, uint32_t b)
{
	return b < survey->block_count && survey->blocks[b].first < survey->rows;
}

/* Whether a block's matrix has most training rows. Each matrix has one block of the sample at most. */
static bool is_used(const struct scaling_rows *s, uint32_t b)
{
	uint32_t before = 0;

	for (uint32_t other = 0; is_of_sample(s->survey, other); other++)
		before += is_before(s, other, b);
	return before < XFP_TRAINED_MATRICES;
}

/* ---- rows -------------------------------------------------------------------------------------- */

/* Load up to sixteen rows in the order of the columns. Returns their number. */
static uint64_t load_tile(struct scaling_rows *s, const struct xfp_survey_block *block, uint64_t first,
			  const struct xfp_feedback *f, double square[XFP_LANES])
{
	const uint64_t left = block->rows.count - first, count = left < XFP_LANES ? left : XFP_LANES;

	memset(s->tile, 0, f->padded * XFP_LANES * sizeof *s->tile);
	for (uint64_t r = 0; r < count; r++) {
		xfp_rows_scaled(&block->rows, &s->scaling, first + r, 1, NULL, s->x);
		square[r] = 0;
		for (uint64_t c = 0; c < s->survey->known->cols; c++)
			square[r] += (double)s->x[c] * s->x[c];
		for (size_t c = 0; c < f->padded; c++)
			if (f->column[c] < f->cols)
				s->tile[c * XFP_LANES + r] = s->x[f->first + f->column[c]];
	}
	return count;
}

/* Add the columns of a block of H to the rows of a matrix. */
static void add_columns(struct scaling_rows *s, const struct xfp_survey_block *block, const struct xfp_feedback *f,
			double unit)
{
	const double cols = (double)s->survey->known->cols;
	const struct xfp_feedback_growth growth = xfp_feedback_growth(f, s->growth);

	for (uint64_t first = 0; first < block->rows.count; first += XFP_LANES) {
		double norm[XFP_LANES], square[XFP_LANES];
		const uint64_t count = load_tile(s, block, first, f, square);

		xfp_feedback_norms(f, s->tile, norm);
		for (uint64_t r = 0; r < count; r++) {
			struct scaled_row *row = &s->row[s->rows + first + r];

			row->square = square[r] * unit;
			row->outputs += row->square * growth.outputs / cols;
			row->weights += row->square * growth.weights / cols;
			row->norm += norm[r] * unit;
		}
	}
}

static enum xfp_status add_matrix(struct scaling_rows *s, const struct xfp_survey_block *block, unsigned group,
				  struct xfp_error *err)
{
	const struct xfp_outliers *known = s->survey->known;
	const double unit = ldexp(1, -2 * known->exponent[block->matrix]);
	enum xfp_status status = XFP_OK;

	xfp_scaling_set(&s->scaling, known->balance, known->exponent[block->matrix]);
	for (size_t b = 0; !status && b < xfp_feedback_blocks(known->cols); b++) {
		struct xfp_feedback f;

		status = xfp_second_moments_block(s->moments, group, b, &f, err);
		if (!status)
			status = xfp_second_moments_compute(s->moments, block->matrix, &f, err);
		if (!status)
			add_columns(s, block, &f, unit);
		xfp_second_moments_release(&f);
	}
	s->rows += block->rows.count;
	return status;
}

static double quotient(double a, double b)
{
	return a > 0 && b > 0 ? a / b : 0;
}

/* Weights or inputs that are all zero have no errors. */
static void sum_up(const struct scaling_rows *s, double *list, struct xfp_output_scale *scale)
{
	struct scaled_row sum = { 0 };
	double p5;

	for (uint64_t r = 0; r < s->rows; r++) {
		sum.square += s->row[r].square;
		sum.outputs += s->row[r].outputs;
		sum.weights += s->row[r].weights;
		sum.norm += s->row[r].norm;
	}
	scale->rows = s->rows;
	scale->growth = sum.square > 0 ? sum.weights / sum.square : 1;
	scale->feedback = quotient(sum.outputs, sum.norm);
	scale->rounding = quotient(sum.square, sum.norm);
	for (uint64_t r = 0; r < s->rows; r++)
		list[r] = quotient(s->row[r].outputs, s->row[r].norm);
	xfp_cosine_summary(list, s->rows, &scale->feedback_median, &p5);
	for (uint64_t r = 0; r < s->rows; r++)
		list[r] = quotient(s->row[r].square, s->row[r].norm);
	xfp_cosine_summary(list, s->rows, &scale->rounding_median, &p5);
}

enum xfp_status xfp_survey_scale(const struct xfp_survey *survey, struct xfp_second_moments *moments, unsigned group,
				 struct xfp_output_scale *scale, struct xfp_error *err)
{
	const uint64_t padded = xfp_compact_groups_of(survey->known->cols, group) * group;
	struct scaling_rows s = { .survey = survey, .moments = moments };
	double *list = malloc((survey->rows + 1) * sizeof *list);
	enum xfp_status status = xfp_scaling_init(&s.scaling, survey->known->cols, err);

	*scale = (struct xfp_output_scale){ 0 };
	s.x = xfp_row_new(survey->known->cols);
	s.tile = xfp_aligned_new(padded * XFP_LANES * sizeof *s.tile);
	s.growth = xfp_aligned_new(padded * XFP_LANES * sizeof *s.growth);
	s.row = calloc(survey->rows + 1, sizeof *s.row);
	if (!status && (!list || !s.x || !s.tile || !s.growth || !s.row))
		status = xfp_no_memory(err);
	for (uint32_t b = 0; !status && is_of_sample(survey, b); b++) {
		if (!is_used(&s, b))
			continue;
		scale->matrices++;
		status = add_matrix(&s, &survey->blocks[b], group, err);
	}
	if (!status)
		sum_up(&s, list, scale);
	xfp_scaling_free(&s.scaling);
	free(s.x);
	free(s.tile);
	free(s.growth);
	free(s.row);
	free(list);
	return status;
}

/* ---- predictions ------------------------------------------------------------------------------- */

/* The error of targets, which contain the errors that they compensate. */
static double grown(const struct xfp_output_scale *scale, double error)
{
	const double spread = (scale->growth - 1) * error;

	return spread > 0 ? error / (1 - (spread < MAX_SPREAD ? spread : MAX_SPREAD)) : error;
}

static double error_of(const struct xfp_output_scale *scale, uint32_t mode, double error)
{
	return mode < XFP_MODE_V2 ? error * scale->rounding : grown(scale, error) * scale->feedback;
}

static double cosine_of(double cosine, double ratio)
{
	const double predicted = 1 - (1 - cosine) * ratio;

	return predicted > 0 ? predicted : 0;
}

void xfp_survey_scale_apply(const struct xfp_output_scale *scale, struct xfp_candidate *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct xfp_candidate *c = &list[i];
		double ratio = scale->rounding_median;

		/* Cosines of -1 stand for results that are not finite. */
		if (c->cos_median < 0)
			continue;
		if (c->mode >= XFP_MODE_V2)
			ratio = c->error > 0 ? grown(scale, c->error) / c->error * scale->feedback_median : 1;
		c->cos_median = cosine_of(c->cos_median, ratio);
		c->cos_p5 = cosine_of(c->cos_p5, ratio);
		c->error = error_of(scale, c->mode, c->error);
	}
}
