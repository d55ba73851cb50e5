/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/number.h"
#include "kernels/encode/moments.h"
#include "stages/quantize/candidates.h"
#include "stages/quantize/fit_rows.h"
#include "stages/quantize/rows.h"
#include "stages/quantize/threads.h"

#define MIN_ROWS 16 /* minimum for rows of any length */

uint64_t xfp_survey_rows(const struct xfp_ledger_unit *unit)
{
	uint64_t all = unit->experts * unit->rows, bytes = unit->cols * (xfp_dtype_bits(unit->dtype) / 8);
	uint64_t count = XFP_SURVEY_WEIGHTS / unit->cols, max = XFP_SURVEY_BYTES / bytes;

	count = count < XFP_SURVEY_ROWS ? XFP_SURVEY_ROWS : count;
	max = max < MIN_ROWS ? MIN_ROWS : max;
	count = count < max ? count : max;
	return count < all ? count : all;
}

/* ---- the sample -------------------------------------------------------------------------------- */

/* Load `count` rows of matrix m, given by their numbers in it, as the next block. `print`: their fingerprints from the
 * first pass, or NULL. */
static enum xfp_status load_block(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit, uint32_t m,
				  const uint64_t *row, const uint64_t *print, uint64_t count, struct xfp_survey *survey,
				  struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(ledger, unit->first_matrix + m);
	struct xfp_survey_block *block = &survey->blocks[survey->block_count++];
	struct xfp_rows rows = { 0 };
	enum xfp_status status = xfp_rows_open(&source, &rows, err);
	size_t bytes = unit->cols * rows.element;
	uint8_t *raw = malloc(count * bytes);
	uint64_t *number = malloc(count * sizeof *number);

	*block = (struct xfp_survey_block){ m, number, survey->rows + survey->picked, rows };
	block->rows.reader = NULL;
	block->rows.raw = raw;
	block->rows.count = block->rows.rows = count;
	if (!status && (!raw || !number))
		status = xfp_no_memory(err);
	if (!status)
		memcpy(number, row, count * sizeof *number);
	for (uint64_t i = 0; !status && i < count; i++) {
		status = xfp_rows_one(&rows, row[i], err);
		if (!status && print && xfp_rows_print(&rows, 0) != print[i])
			status = xfp_rows_changed(&rows, err);
		if (!status)
			memcpy(raw + i * bytes, rows.raw, bytes);
	}
	xfp_rows_close(&rows);
	return status;
}

static enum xfp_status load_sample(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit, uint64_t wanted,
				   const uint64_t *print, struct xfp_survey *survey, struct xfp_error *err)
{
	uint64_t all = unit->experts * unit->rows, *row = malloc(wanted * sizeof *row), i = 0;
	enum xfp_status status = row ? XFP_OK : xfp_no_memory(err);

	for (uint32_t m = 0; !status && m < unit->experts; m++) {
		uint64_t first = m * unit->rows, count = 0;

		for (; i < wanted && xfp_sampled_row(i, all, wanted) < first + unit->rows; i++)
			row[count++] = xfp_sampled_row(i, all, wanted) - first;
		if (count)
			status = load_block(ledger, unit, m, row, print ? print + i - count : NULL, count, survey, err);
		survey->rows += count;
	}
	free(row);
	return status;
}

static enum xfp_status load_picked(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit,
				   const struct xfp_peaks *peaks, struct xfp_survey *survey, struct xfp_error *err)
{
	uint64_t all = unit->experts * unit->rows;
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < peaks->count; i++) {
		uint64_t row = peaks->row[i], within = row % unit->rows;
		/* The first row of the sample that is not before it. */
		uint64_t number = (row * survey->rows + all - 1) / all;

		if (number < survey->rows && xfp_sampled_row(number, all, survey->rows) == row)
			continue;
		status = load_block(ledger, unit, (uint32_t)(row / unit->rows), &within, &peaks->print[i], 1, survey,
				    err);
		survey->picked++;
	}
	return status;
}

/* Whether block b is the first, or of another matrix than the one before it. */
static bool is_other_matrix(const struct xfp_survey *survey, uint32_t b)
{
	return !b || survey->blocks[b].matrix != survey->blocks[b - 1].matrix;
}

/* The number of rows of the unit that each row of a block represents. */
static double weight_of(const struct xfp_survey *survey, const struct xfp_survey_block *block)
{
	return block->first < survey->rows ? survey->each : 1;
}

/* Compute mean and standard deviation of the balanced weights, with the matrices' exponents undone. */
static enum xfp_status add_moments(struct xfp_survey *survey, struct xfp_error *err)
{
	const struct xfp_outliers *known = survey->known;
	struct xfp_scaling scaling = { 0 };
	float *x = xfp_row_new(known->cols);
	double sum = 0, square = 0, n = (double)known->matrices * (double)known->rows * (double)known->cols;
	enum xfp_status status = x ? xfp_scaling_init(&scaling, known->cols, err) : xfp_no_memory(err);

	for (uint32_t b = 0; !status && b < survey->block_count; b++) {
		const struct xfp_survey_block *block = &survey->blocks[b];
		double unit = ldexp(1 / XFP_Q_PER_X, -known->exponent[block->matrix]);
		double each = weight_of(survey, block);
		struct xfp_moments moments = { 0 };

		if (is_other_matrix(survey, b))
			xfp_scaling_set(&scaling, known->balance, known->exponent[block->matrix]);
		for (uint64_t r = 0; r < block->rows.count; r++) {
			xfp_rows_scaled(&block->rows, &scaling, r, 1, NULL, x);
			xfp_moments_add(&moments, x, known->cols);
		}
		sum += (double)moments.sum * unit * each;
		square += (double)moments.square * unit * unit * each;
	}
	survey->mean = sum / n;
	square = square / n - survey->mean * survey->mean;
	survey->sigma = square > 0 ? sqrt(square) : 0;
	xfp_scaling_free(&scaling);
	free(x);
	return status;
}

enum xfp_status xfp_survey_load(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit,
				const struct xfp_outliers *known, const struct xfp_peaks *peaks, uint64_t rows,
				struct xfp_survey *survey, struct xfp_error *err)
{
	uint64_t all = unit->experts * unit->rows, wanted = rows < all ? rows : all;
	const uint64_t *print = peaks && peaks->samples == wanted ? peaks->sample : NULL;
	enum xfp_status status;

	*survey = (struct xfp_survey){ .known = known, .watcher = ledger->watcher };
	survey->blocks = calloc(unit->experts + (size_t)XFP_PEAKS, sizeof *survey->blocks);
	if (!survey->blocks)
		return xfp_no_memory(err);
	status = load_sample(ledger, unit, wanted, print, survey, err);
	if (!status && peaks)
		status = load_picked(ledger, unit, peaks, survey, err);
	if (status)
		return status;
	survey->each = (double)(all - survey->picked) / (double)survey->rows;
	return add_moments(survey, err);
}

void xfp_survey_free(struct xfp_survey *survey)
{
	for (uint32_t b = 0; b < survey->block_count; b++) {
		free(survey->blocks[b].row);
		free(survey->blocks[b].rows.raw);
	}
	free(survey->blocks);
	*survey = (struct xfp_survey){ 0 };
}

/* ---- outliers of the sample -------------------------------------------------------------------- */

static int32_t clamped(double q)
{
	return q <= INT32_MIN ? INT32_MIN : q >= INT32_MAX ? INT32_MAX : (int32_t)q;
}

/* The rule for weights further from the mean than `reach`. The mean of a stack may be far from all weights of one of
 * its matrices, which are then all below, or all above it. */
static struct xfp_outlier_rule rule_of(const struct xfp_survey *survey, const struct xfp_survey_block *block,
				       double reach)
{
	double unit = ldexp(XFP_Q_PER_X, survey->known->exponent[block->matrix]);

	return (struct xfp_outlier_rule){ .low = clamped(ceil((survey->mean - reach) * unit)),
					  .high = clamped(floor((survey->mean + reach) * unit)) };
}

struct sample_marks {
	struct xfp_marks *block; /* marks of each block */
	uint64_t count;
	double *distance; /* from the mean */
	double all;       /* number of outliers of the unit */
};

static void marks_free(const struct xfp_survey *survey, struct sample_marks *marks)
{
	for (uint32_t b = 0; marks->block && b < survey->block_count; b++)
		xfp_marks_free(&marks->block[b]);
	free(marks->block);
	free(marks->distance);
	*marks = (struct sample_marks){ 0 };
}

static bool reserve(struct sample_marks *marks, struct xfp_marks *block, uint64_t more)
{
	uint32_t *column = realloc(block->column, (block->count + more + 1) * sizeof *column);
	double *distance;

	if (!column)
		return false;
	block->column = column;
	distance = realloc(marks->distance, (marks->count + more + 1) * sizeof *distance);
	if (!distance)
		return false;
	marks->distance = distance;
	return true;
}

static bool mark_block(const struct xfp_survey *survey, uint32_t b, double reach, const struct xfp_scaling *scaling,
		       float *x, uint32_t *column, struct sample_marks *marks)
{
	const struct xfp_survey_block *block = &survey->blocks[b];
	struct xfp_outlier_rule rule = rule_of(survey, block, reach);
	double unit = ldexp(1, -survey->known->exponent[block->matrix]);
	struct xfp_marks *own = &marks->block[b];

	own->first = calloc(block->rows.count + 1, sizeof *own->first);
	own->column = calloc(1, sizeof *own->column);
	if (!own->first || !own->column)
		return false;
	for (uint64_t r = 0; r < block->rows.count; r++) {
		size_t count;

		xfp_rows_scaled(&block->rows, scaling, r, 1, NULL, x);
		count = xfp_outliers_find(&rule, x, survey->known->cols, column);
		if (!reserve(marks, own, count))
			return false;
		for (size_t i = 0; i < count; i++) {
			own->column[own->count++] = column[i];
			marks->distance[marks->count++] = fabs((double)x[column[i]] * unit - survey->mean);
		}
		own->first[r + 1] = own->count;
	}
	marks->all += (double)own->count * weight_of(survey, block);
	return true;
}

static enum xfp_status mark(const struct xfp_survey *survey, double reach, struct sample_marks *marks,
			    struct xfp_error *err)
{
	const struct xfp_outliers *known = survey->known;
	uint32_t *column = malloc((known->cols + XFP_LANES) * sizeof *column);
	struct xfp_scaling scaling = { 0 };
	float *x = xfp_row_new(known->cols);
	enum xfp_status status = xfp_scaling_init(&scaling, known->cols, err);

	marks->block = calloc(survey->block_count + 1, sizeof *marks->block);
	if (!status && (!column || !x || !marks->block))
		status = xfp_no_memory(err);
	for (uint32_t b = 0; !status && b < survey->block_count; b++) {
		if (is_other_matrix(survey, b))
			xfp_scaling_set(&scaling, known->balance, known->exponent[survey->blocks[b].matrix]);
		if (!mark_block(survey, b, reach, &scaling, x, column, marks))
			status = xfp_no_memory(err);
	}
	xfp_scaling_free(&scaling);
	free(column);
	free(x);
	return status;
}

static int by_falling_distance(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x < y) - (x > y);
}

/* Mark outliers, but no more than the cap allows. */
static enum xfp_status mark_capped(const struct xfp_survey *survey, uint32_t sigma_milli, uint32_t cap_nano,
				   struct sample_marks *marks, struct xfp_error *err)
{
	double share = (double)cap_nano / XFP_NANO;
	uint64_t cap = (uint64_t)(share * (double)(survey->rows + survey->picked) * (double)survey->known->cols);
	double reach = sigma_milli && survey->sigma > 0 ? survey->sigma * sigma_milli / 1000 : INFINITY;
	enum xfp_status status = mark(survey, reach, marks, err);

	if (status || marks->count <= cap)
		return status;
	qsort(marks->distance, marks->count, sizeof *marks->distance, by_falling_distance);
	reach = cap ? marks->distance[cap - 1] : INFINITY;
	marks_free(survey, marks);
	return mark(survey, reach, marks, err);
}

/* ---- measuring --------------------------------------------------------------------------------- */

/* The state of one measuring pass over a sample. */
struct survey_run {
	const struct xfp_survey *survey;
	const struct sample_marks *marks;
	struct xfp_fitting fitting;
};

static enum xfp_status walk_sample(void *context, uint64_t n,
				   void (*visit)(void *own, const struct xfp_training_row *row, uint64_t i), void *own,
				   struct xfp_error *err)
{
	struct survey_run *survey_run = context;
	const struct xfp_survey *survey = survey_run->survey;
	float *x = xfp_row_new(survey->known->cols);
	uint32_t b = 0;

	if (!x)
		return xfp_no_memory(err);
	xfp_fitting_matrix(&survey_run->fitting, survey->blocks[0].matrix);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t number = i * survey->rows / n, row;
		const struct xfp_marks *marks;
		struct xfp_training_row taken = { .x = x };

		while (number >= survey->blocks[b].first + survey->blocks[b].rows.count)
			xfp_fitting_matrix(&survey_run->fitting, survey->blocks[++b].matrix);
		marks = &survey_run->marks->block[b];
		row = number - survey->blocks[b].first;
		xfp_rows_scaled(&survey->blocks[b].rows, &survey_run->fitting.scaling, row, 1, NULL, x);
		taken.marked = marks->column + marks->first[row];
		taken.marks = marks->first[row + 1] - marks->first[row];
		for (uint64_t j = 0; j < taken.marks; j++)
			x[taken.marked[j]] = 0;
		visit(own, &taken, i);
	}
	free(x);
	return XFP_OK;
}

/* Convert the results of all sampled rows into candidates in the form of an artifact. fp8, which has no outliers, is
 * listed with the first threshold only. */
static void sum_up(const struct survey_run *survey_run, uint32_t sigma_milli, struct xfp_candidate *list,
		   double *cosine)
{
	const struct xfp_measure *measure = &survey_run->fitting.measure;

	for (uint32_t i = 0; i < measure->count; i++) {
		struct xfp_candidate *candidate = &list[i];
		const struct xfp_survey *survey = survey_run->survey;
		double error = 0, norm = 0;

		*candidate = measure->candidates[i];
		for (uint64_t r = 0; r < survey->rows + survey->picked; r++) {
			double each = r < survey->rows ? survey->each : 1;

			if (r < survey->rows)
				cosine[r] = measure->row[i][r].cosine;
			error += measure->row[i][r].error * each;
			norm += measure->row[i][r].norm * each;
		}
		if (candidate->mode != XFP_MODE_FP8) {
			candidate->sigma_milli = sigma_milli;
			candidate->outliers = survey_run->fitting.known.first[survey_run->fitting.known.matrices];
		}
		candidate->bytes = xfp_candidate_bytes(candidate, &survey_run->fitting.known);
		candidate->error = norm > 0 ? error / norm : 0;
		xfp_cosine_summary(cosine, survey_run->survey->rows, &candidate->cos_median, &candidate->cos_p5);
		if (!isfinite(candidate->error)) {
			candidate->cos_median = candidate->cos_p5 = -1;
			candidate->error = 1;
		}
	}
}

static bool same_marks(const struct xfp_marks *a, const struct xfp_marks *b, uint64_t row)
{
	uint64_t count = a->first[row + 1] - a->first[row];

	return b->first[row + 1] - b->first[row] == count &&
	       !memcmp(a->column + a->first[row], b->column + b->first[row], count * sizeof *a->column);
}

/* Measure all rows. The results of rows whose marks are those of the last walk, `before`, stay. */
static void measure_blocks(struct survey_run *survey_run, const struct sample_marks *before)
{
	const struct xfp_survey *survey = survey_run->survey;
	struct xfp_fitting *fitting = &survey_run->fitting;

	for (uint32_t b = 0; b < survey->block_count; b++) {
		const struct xfp_survey_block *block = &survey->blocks[b];

		if (is_other_matrix(survey, b))
			xfp_fitting_matrix(fitting, block->matrix);
		fitting->measure.held = block->first;
		fitting->before = before ? &before->block[b] : NULL;
#pragma omp parallel for schedule(dynamic, 4)
		for (uint64_t r = 0; r < block->rows.count; r++) {
			if (!before || !same_marks(&survey_run->marks->block[b], fitting->before, r))
				xfp_fitting_row(fitting, xfp_thread(), &block->rows, &survey_run->marks->block[b], r);
			xfp_fitting_done(fitting, 1);
		}
	}
}

/* Distribute outliers equally over the matrices: only their total number is known. */
static void spread(double total, struct xfp_outliers *known)
{
	for (uint32_t m = 0; m <= known->matrices; m++)
		known->first[m] = (uint64_t)(total * m / known->matrices + 0.5);
}

/* Measure one kind of fit. Libraries are trained once, with the threshold in the middle, since they hardly depend on
 * it. */
static enum xfp_status measure(const struct xfp_survey *survey, const struct xfp_parameters *parameters, bool library,
			       uint32_t bits, const struct xfp_thresholds *thresholds, const struct sample_marks *marks,
			       struct xfp_candidate *list, uint32_t *count, struct xfp_error *err)
{
	const struct xfp_fit_methods *methods = library ? &xfp_fit_libraries : &xfp_fit_codebooks;
	struct survey_run survey_run = { .survey = survey,
					 .marks = &marks[thresholds->count / 2],
					 .fitting = { .parameters = parameters, .known = *survey->known } };
	struct xfp_fitting *fitting = &survey_run.fitting;
	double *cosine = malloc(survey->rows * sizeof *cosine);
	enum xfp_status status = XFP_OK;
	uint32_t all;

	fitting->again = thresholds->count > 1;
	fitting->known.first = malloc((fitting->known.matrices + (size_t)1) * sizeof *fitting->known.first);
	fitting->training = (struct xfp_training){
		.rows = survey->rows, .watcher = survey->watcher, .context = &survey_run, .walk = walk_sample
	};
	fitting->measure.count = xfp_candidates_with(library, parameters, bits, fitting->measure.candidates);
	if (!cosine || !fitting->known.first)
		status = xfp_no_memory(err);
	if (!status)
		status = xfp_fitting_init(fitting, err);
	if (!status)
		status = xfp_measure_begin(&fitting->measure, survey->rows + survey->picked,
					   fitting->again ? survey->known->cols : 0, err);
	if (!status)
		status = xfp_fitting_begin(fitting, methods, NULL, err);
	all = fitting->measure.count;
	for (uint32_t i = 0; !status && fitting->measure.count && i < thresholds->count; i++) {
		survey_run.marks = &marks[i];
		measure_blocks(&survey_run, i ? &marks[i - 1] : NULL);
		spread(marks[i].all, &fitting->known);
		sum_up(&survey_run, thresholds->sigma_milli[i], list + *count, cosine);
		*count += fitting->measure.count;
		fitting->measure.count = fitting->measure.fitted;
	}
	fitting->measure.count = all;
	free(cosine);
	free(fitting->known.first);
	fitting->known = (struct xfp_outliers){ 0 }; /* the other members are borrowed */
	xfp_fitting_free(fitting);
	return status;
}

uint64_t xfp_survey_work(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters, uint32_t bits,
			 const struct xfp_thresholds *thresholds)
{
	struct xfp_candidate list[XFP_MAX_CANDIDATES];
	uint64_t all = unit->experts * unit->rows, rows = xfp_survey_rows(unit) + XFP_PEAKS, work = 0;

	rows = rows < all ? rows : all;
	for (int library = 0; library < 2; library++) {
		uint32_t count = xfp_candidates_with(library, parameters, bits, list);

		work += xfp_fitting_work(parameters, list, count, thresholds->count, rows, unit->cols);
	}
	return work;
}

enum xfp_status xfp_survey_measure(const struct xfp_survey *survey, const struct xfp_parameters *parameters,
				   uint32_t bits, const struct xfp_thresholds *thresholds, struct xfp_candidate *list,
				   uint32_t *count, struct xfp_error *err)
{
	struct sample_marks *marks = calloc(thresholds->count + (size_t)1, sizeof *marks);
	enum xfp_status status = marks ? XFP_OK : xfp_no_memory(err);

	*count = 0;
	for (uint32_t i = 0; !status && i < thresholds->count; i++)
		status = mark_capped(survey, thresholds->sigma_milli[i], parameters->outlier_cap, &marks[i], err);
	for (int library = 0; !status && library < 2; library++)
		status = measure(survey, parameters, library, bits, thresholds, marks, list, count, err);
	for (uint32_t i = 0; marks && i < thresholds->count; i++)
		marks_free(survey, &marks[i]);
	free(marks);
	return status;
}
