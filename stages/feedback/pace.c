/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/feedback/pace.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system/memory.h"
#include "kernels/feedback/feedback.h"
#include "stages/feedback/second_moments.h"

#define COLS 1024    /* where products dominate */
#define FEW_COLS 128 /* where the search dominates */
#define ROWS 256     /* of a batch, as in a fit */
#define INPUTS 64

/* Of a fit: see library_train.c and fit_feedback.c. */
#define ROUNDS 3 /* of training a library, without feedback and with it */
#define SAMPLE_ROWS 256
#define SAMPLE_GROUPS 8192
#define PASSES 2

#define SECONDS_PER_INPUT 4e-9  /* to read an element of an input */
#define SECONDS_PER_WEIGHT 2e-8 /* to read, scale and measure a weight */
#define OUTPUT_TILES 4          /* sixteen rows each */

/* CPU time: other processes do not matter. */
static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

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
	m->moments = seconds();
	xfp_feedback_moments_add(m->sum, m->x, cols, INPUTS, cols, 0, (cols + XFP_LANES - 1) / XFP_LANES, m->scratch);
	m->moments = seconds() - m->moments;
	xfp_feedback_moments_mean(m->sum, values, INPUTS, m->own);
	xfp_feedback_prepare(&m->f, &source, 1);
	m->factor = seconds();
	xfp_feedback_factor(&m->f, m->factoring, &column);
	m->factor = seconds() - m->factor;
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
	before = seconds();
	if (encoding)
		xfp_feedback_encode(&m->batch, book, XFP_COMPACT_TRIED);
	between = seconds();
	xfp_feedback_pass(&m->batch, book);
	*passing = seconds() - between;
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
		before = seconds();
		for (int i = 0; i < OUTPUT_TILES; i++)
			xfp_feedback_outputs(panel, INPUTS, m->batch.y, cols, out);
		pace->output = (seconds() - before) / (double)(OUTPUT_TILES * XFP_LANES * cols * INPUTS);
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

double xfp_feedback_seconds(const struct xfp_feedback_pace *pace, const struct xfp_ledger_unit *unit,
			    const struct xfp_candidate *candidates, uint32_t count, double inputs, double stack,
			    double held_out)
{
	const double cols = (double)unit->cols, rows = (double)unit->rows * unit->experts;
	const double block = cols / (double)xfp_feedback_blocks(unit->cols), pairs = cols * block / 2;
	const double trained = unit->experts < XFP_TRAINED_MATRICES ? unit->experts : XFP_TRAINED_MATRICES;
	const double sampled = rows < SAMPLE_ROWS ? rows : SAMPLE_ROWS;
	double sum = 0, fitted = 0;
	uint32_t groups = 0; /* a bit per size, which is a power of two */

	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_candidate *c = &candidates[i];
		const double sample = (double)SAMPLE_GROUPS * c->group;
		double search;

		fitted++; /* or fp8, whose outputs are measured, too */
		if (c->mode != XFP_MODE_V2C)
			continue;
		search = above_zero(pace->encode[c->k] - pace->sum * FEW_COLS / 2);
		groups |= c->group;
		sum += rows * cols * (search + PASSES * pace->pass + pace->sum * block * (.5 + PASSES));
		sum += ROUNDS * (sample + sampled * cols) * search + ROUNDS * sampled * cols * pace->sum * block / 2;
	}
	sum += rows * cols * held_out * (1 + fitted) * pace->output;
	for (; groups; groups &= groups - 1)
		sum += (trained + unit->experts) * cols * block * block / 6 * pace->factor;
	/* Those of a matrix are computed again after its library's training, but not if it is the only one. */
	sum += rows * cols * SECONDS_PER_WEIGHT;
	return sum + (inputs * (unit->experts > 1 ? trained + unit->experts : 1) + stack) *
			     (pairs * pace->moment + cols * SECONDS_PER_INPUT);
}
