/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/feedback/pace.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/system/memory.h"
#include "kernels/feedback/feedback.h"
#include "stages/feedback/second_moments.h"
#include "stages/feedback/training.h"

#define COLS 1024    /* where products dominate */
#define FEW_COLS 128 /* where the search dominates */
#define ROWS 256     /* of a batch, as in a fit */
#define INPUTS 64

#define SECONDS_PER_INPUT 4e-9  /* to read an element of an input */
#define SECONDS_PER_WEIGHT 2e-8 /* to read, scale and measure a weight */
#define OUTPUT_TILES 4          /* sixteen rows each */

static float next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)(int32_t)*state * 0x1p-31f;
}

struct pace_trial {
	unsigned group;
	struct xfp_feedback f;
	struct xfp_feedback_batch batch;
	uint16_t *x; /* [INPUTS][cols] */
	double *sum, *factoring;
	float *own, *scratch, *row;
	void *buffer;
	double moments, factor; /* seconds */
};

static bool init(struct pace_trial *m, size_t cols, unsigned group)
{
	struct xfp_feedback *f = &m->f;
	size_t values;

	*m = (struct pace_trial){ .group = group };
	*f = (struct xfp_feedback){ .cols = cols, .group = group };
	f->padded = xfp_compact_groups_of(cols, group) * group;
	values = xfp_triangle_values(f->padded);
	f->column = malloc(f->padded * sizeof *f->column);
	f->h = xfp_aligned_new(values * sizeof *f->h);
	f->factor = xfp_aligned_new(values * sizeof *f->factor);
	f->diagonal = xfp_aligned_new(f->padded * sizeof *f->diagonal);
	f->pivot = xfp_aligned_new(f->padded * sizeof *f->pivot);
	m->x = malloc(INPUTS * cols * sizeof *m->x);
	m->sum = xfp_aligned_new(values * sizeof *m->sum);
	m->factoring = xfp_aligned_new(xfp_feedback_scratch(f->padded) * sizeof *m->factoring);
	m->own = xfp_aligned_new(values * sizeof *m->own);
	m->scratch = xfp_aligned_new(xfp_feedback_moments_scratch(cols) * sizeof *m->scratch);
	m->row = xfp_aligned_new(f->padded * sizeof *m->row);
	m->buffer = xfp_aligned_new(xfp_feedback_batch_bytes(f, ROWS));
	return f->column && f->h && f->factor && f->diagonal && f->pivot && m->x && m->sum && m->factoring && m->own &&
	       m->scratch && m->row && m->buffer;
}

static void destroy(struct pace_trial *m)
{
	free(m->f.column);
	free(m->f.h);
	free(m->f.factor);
	free(m->f.diagonal);
	free(m->f.pivot);
	free(m->x);
	free(m->sum);
	free(m->factoring);
	free(m->own);
	free(m->scratch);
	free(m->row);
	free(m->buffer);
}

/* Compute H and R of random inputs, and load random rows. */
static void prepare(struct pace_trial *m)
{
	const size_t cols = m->f.cols, values = xfp_triangle_values(cols);
	struct xfp_feedback_source source = { .own = m->own, .inputs = INPUTS, .cols = cols };
	uint32_t state = 1;
	size_t column;

	for (size_t i = 0; i < INPUTS * cols; i++)
		m->x[i] = (uint16_t)((next(&state) < 0 ? 0xbf00 : 0x3f00) + (state >> 20 & 0x7f)); /* bf16 */
	memset(m->sum, 0, values * sizeof *m->sum);
	m->moments = xfp_thread_seconds();
	xfp_feedback_moments_add(m->sum, m->x, cols, INPUTS, cols, 0, (cols + XFP_LANES - 1) / XFP_LANES, m->scratch);
	m->moments = xfp_thread_seconds() - m->moments;
	xfp_feedback_moments_mean(m->sum, values, INPUTS, m->own);
	xfp_feedback_prepare(&m->f, &source, 1);
	m->factor = xfp_thread_seconds();
	xfp_feedback_factor(&m->f, m->factoring, &column);
	m->factor = xfp_thread_seconds() - m->factor;
	xfp_feedback_divide(&m->f);
	xfp_feedback_batch_init(&m->batch, &m->f, m->buffer, ROWS);
	for (size_t r = 0; r < ROWS; r++) {
		for (size_t c = 0; c < m->f.padded; c++)
			m->row[c] = next(&state) + next(&state) + next(&state);
		xfp_feedback_load(&m->batch, r, m->row, NULL, 1);
	}
}

/* The seconds of encoding all rows, and of a pass. */
static enum xfp_status encode(struct pace_trial *m, const struct xfp_candidate *candidate, double *encoding,
			      double *passing, struct xfp_error *err)
{
	static const uint64_t peaks[XFP_COMPACT_PEAKS] = { [XFP_COMPACT_PEAKS / 2] = 1 };
	struct xfp_compact_book *book = xfp_aligned_new(sizeof *book);
	double before, between;

	if (!book)
		return xfp_no_memory(err);
	xfp_compact_seed(book, candidate->k, candidate->group, candidate->library, peaks);
	xfp_compact_prepare(book);
	before = xfp_thread_seconds();
	if (encoding)
		xfp_feedback_encode(&m->batch, book, XFP_COMPACT_TRIED);
	between = xfp_thread_seconds();
	xfp_feedback_pass(&m->batch, book);
	*passing = xfp_thread_seconds() - between;
	if (encoding)
		*encoding = between - before;
	free(book);
	return XFP_OK;
}

/* Multiply rows by inputs. */
static enum xfp_status measure_outputs(const struct pace_trial *m, struct xfp_feedback_pace *pace,
				       struct xfp_error *err)
{
	const size_t cols = m->f.cols, panels = xfp_feedback_panels_values(cols, INPUTS);
	double *panel = xfp_aligned_new(panels * sizeof *panel),
	       *out = xfp_aligned_new(INPUTS * XFP_LANES * sizeof *out);
	double before;

	if (panel && out) {
		xfp_feedback_panels_load(m->x, INPUTS, cols, panel);
		before = xfp_thread_seconds();
		for (int i = 0; i < OUTPUT_TILES; i++)
			xfp_feedback_outputs(panel, INPUTS, m->batch.y, cols, out);
		pace->output = (xfp_thread_seconds() - before) / (double)(OUTPUT_TILES * XFP_LANES * cols * INPUTS);
	}
	free(panel);
	free(out);
	return panel && out ? XFP_OK : xfp_no_memory(err);
}

static enum xfp_status measure_many(const struct xfp_candidate *candidate, struct xfp_feedback_pace *pace,
				    double *passing, struct xfp_error *err)
{
	struct pace_trial m;
	enum xfp_status status = init(&m, COLS, candidate->group) ? XFP_OK : xfp_no_memory(err);

	if (!status) {
		prepare(&m);
		pace->moment = m.moments / (INPUTS * (double)COLS * COLS / 2);
		pace->factor = m.factor / ((double)COLS * COLS * COLS / 6);
		status = measure_outputs(&m, pace, err);
	}
	if (!status)
		status = encode(&m, candidate, NULL, passing, err);
	destroy(&m);
	return status;
}

static double above_zero(double value)
{
	return value > 0 ? value : 0;
}

enum xfp_status xfp_feedback_pace_measure(const struct xfp_candidate *candidates, uint32_t count,
					  struct xfp_feedback_pace *pace, struct xfp_error *err)
{
	const double many = (double)ROWS * COLS, few = (double)ROWS * FEW_COLS;
	double passing = 0, encoding, pass;
	enum xfp_status status = XFP_OK;

	*pace = (struct xfp_feedback_pace){ .moment = 0 };
	for (uint32_t i = 0; !status && i < count; i++) {
		const struct xfp_candidate *candidate = &candidates[i];
		struct pace_trial m;

		if (candidate->mode != XFP_MODE_V2C || pace->encode[candidate->k] > 0)
			continue;
		if (!passing && (status = measure_many(candidate, pace, &passing, err)))
			return status;
		status = init(&m, FEW_COLS, candidate->group) ? XFP_OK : xfp_no_memory(err);
		if (!status) {
			prepare(&m);
			status = encode(&m, candidate, &encoding, &pass, err);
		}
		destroy(&m);
		if (status)
			break;
		pace->sum = above_zero(passing / many - pass / few) / (COLS - FEW_COLS);
		pace->pass = above_zero(pass / few - pace->sum * FEW_COLS);
		pace->encode[candidate->k] = encoding / few;
	}
	return status;
}

/* Columns of a block. */
static double block_of(const struct xfp_ledger_unit *unit)
{
	return (double)unit->cols / (double)xfp_feedback_blocks(unit->cols);
}

/* Matrices that a library, or the scales, are computed from. */
static double trained_of(const struct xfp_ledger_unit *unit)
{
	return unit->experts < XFP_TRAINED_MATRICES ? unit->experts : XFP_TRAINED_MATRICES;
}

/* Seconds of H of some matrices, and of the stack. */
static double moments_seconds(const struct xfp_feedback_pace *pace, const struct xfp_ledger_unit *unit, double matrices,
			      double inputs, double stack)
{
	const double cols = (double)unit->cols, pairs = cols * block_of(unit) / 2;

	return (inputs * matrices + stack) * (pairs * pace->moment + cols * SECONDS_PER_INPUT);
}

/* Seconds of R of some matrices. */
static double factors_seconds(const struct xfp_feedback_pace *pace, const struct xfp_ledger_unit *unit, double matrices)
{
	const double block = block_of(unit);

	return matrices * (double)unit->cols * block * block / 6 * pace->factor;
}

double xfp_feedback_seconds(const struct xfp_feedback_pace *pace, const struct xfp_ledger_unit *unit,
			    const struct xfp_candidate *candidates, uint32_t count, double inputs, double stack,
			    double held_out)
{
	const double cols = (double)unit->cols, rows = (double)unit->rows * unit->experts;
	const double block = block_of(unit), trained = trained_of(unit);
	const double sampled = rows < XFP_SAMPLE_ROWS ? rows : XFP_SAMPLE_ROWS;
	double sum = 0, fitted = 0;
	uint32_t groups = 0; /* a bit per size, which is a power of two */

	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_candidate *c = &candidates[i];
		const double sample = (double)XFP_SAMPLE_COMPACT * c->group;
		double search;

		fitted++; /* or fp8, whose outputs are measured, too */
		if (c->mode != XFP_MODE_V2C)
			continue;
		search = above_zero(pace->encode[c->k] - pace->sum * FEW_COLS / 2);
		groups |= c->group;
		sum += rows * cols *
		       (search + XFP_FEEDBACK_PASSES * pace->pass + pace->sum * block * (.5 + XFP_FEEDBACK_PASSES));
		sum += XFP_COMPACT_ROUNDS * sample * search +
		       XFP_FEEDBACK_ROUNDS * sampled * cols * (search + pace->sum * block / 2);
	}
	sum += rows * cols * held_out * (1 + fitted) * pace->output;
	for (; groups; groups &= groups - 1)
		sum += factors_seconds(pace, unit, trained + unit->experts);
	sum += rows * cols * SECONDS_PER_WEIGHT;
	/* The moments of several matrices are computed for the training and again for the rows. */
	return sum + moments_seconds(pace, unit, unit->experts > 1 ? trained + unit->experts : 1, inputs, stack);
}

double xfp_feedback_scales_seconds(const struct xfp_feedback_pace *pace, const struct xfp_ledger_unit *unit,
				   double rows, double inputs, double stack)
{
	const double matrices = trained_of(unit);

	return moments_seconds(pace, unit, matrices, inputs, stack) + factors_seconds(pace, unit, matrices) +
	       rows * (double)unit->cols * block_of(unit) / 2 * pace->sum;
}
