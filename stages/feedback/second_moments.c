/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/feedback/second_moments.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/memory.h"

#define PORTION_BYTES ((uint64_t)16 << 20)

uint64_t xfp_second_moments_portion(const struct xfp_second_moments *m)
{
	const uint64_t rows = PORTION_BYTES / (m->cols * sizeof *m->x);

	return rows < XFP_FEEDBACK_INPUTS ? XFP_FEEDBACK_INPUTS : rows;
}

/* ---- the unit's inputs ------------------------------------------------------------------------- */

static enum xfp_status find_inputs(struct xfp_second_moments *m, const struct xfp_ledger *ledger, bool *found,
				   struct xfp_error *err)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < m->matrices; i++) {
		const char *name = ledger->tensors[ledger->matrices[i].tensor].name;

		if (!xfp_inputs_find(m->inputs, name, i, &m->of[i]))
			continue;
		count++;
		if (m->inputs->input[m->of[i].input].cols != m->cols)
			return xfp_fail(err, XFP_BAD_INPUT,
					"its matrices have %" PRIu64 " columns, but their inputs %" PRIu64
					"; remove %s and run xfp convert again",
					m->cols, m->inputs->input[m->of[i].input].cols, m->artifact->path);
		m->training_rows[i] = xfp_inputs_list(m->inputs, &m->of[i], false, NULL);
		m->unreached += !m->training_rows[i];
		m->stacked |= m->of[i].expert != XFP_NO_EXPERT;
	}
	*found = count;
	if (count && (count < m->matrices || m->of[0].input != m->of[m->matrices - 1].input))
		return xfp_fail(err, XFP_BAD_INPUT,
				"the inputs of some of its matrices are missing; remove %s and run xfp convert again",
				m->artifact->path);
	return XFP_OK;
}

/* Whether some training row, or held-out row, of the unit's input has a value other than 0. */
static enum xfp_status find_values(struct xfp_second_moments *m, bool held_out, bool *found, struct xfp_error *err)
{
	const struct xfp_input_rows all = { m->of[0].input, XFP_NO_EXPERT };
	const uint64_t rows = xfp_inputs_list(m->inputs, &all, held_out, NULL), portion = xfp_second_moments_portion(m);
	uint64_t *row = malloc((rows + 1) * sizeof *row);
	enum xfp_status status = row ? XFP_OK : xfp_no_memory(err);

	*found = false;
	if (!status)
		xfp_inputs_list(m->inputs, &all, held_out, row);
	for (uint64_t first = 0; !status && !*found && first < rows; first += portion) {
		const uint64_t count = rows - first < portion ? rows - first : portion;

		status = xfp_inputs_values(m->artifact, m->inputs, all.input, row + first, count, m->x, err);
		for (uint64_t i = 0; !status && !*found && i < count * m->cols; i++)
			*found = m->x[i] & 0x7fff;
	}
	free(row);
	return status;
}

enum xfp_status xfp_second_moments_init(struct xfp_second_moments *m, const struct xfp_artifact *artifact,
					const struct xfp_inputs *inputs, const struct xfp_ledger *ledger,
					const uint8_t *balance, int threads, bool *found, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = &ledger->units[0];
	enum xfp_status status;

	*m = (struct xfp_second_moments){ .ledger = ledger,
					  .artifact = artifact,
					  .inputs = inputs,
					  .matrices = unit->experts,
					  .cols = unit->cols,
					  .balance = balance,
					  .threads = threads };
	m->of = calloc(m->matrices, sizeof *m->of);
	m->training_rows = calloc(m->matrices, sizeof *m->training_rows);
	m->zero = calloc(m->matrices, sizeof *m->zero);
	if (!m->of || !m->training_rows || !m->zero)
		return xfp_no_memory(err);
	if ((status = find_inputs(m, ledger, found, err)) || !*found)
		return status;
	m->all = xfp_inputs_list(inputs, &(struct xfp_input_rows){ m->of[0].input, XFP_NO_EXPERT }, false, NULL);
	m->row = malloc((m->all + 1) * sizeof *m->row);
	m->x = malloc(xfp_second_moments_portion(m) * m->cols * sizeof *m->x);
	m->scratch = xfp_aligned_new((size_t)m->threads * xfp_feedback_moments_scratch(m->cols) * sizeof *m->scratch);
	m->squares = malloc(m->cols * sizeof *m->squares);
	m->own_diagonal = malloc(m->cols * sizeof *m->own_diagonal);
	m->stack_diagonal = malloc(m->cols * sizeof *m->stack_diagonal);
	if (!m->row || !m->x || !m->scratch || !m->squares || !m->own_diagonal || !m->stack_diagonal)
		return xfp_no_memory(err);
	if (!(status = find_values(m, false, found, err)) && *found)
		status = find_values(m, true, found, err);
	for (uint32_t i = 0; i < m->matrices; i++)
		m->zero[i] = !*found;
	return status;
}

void xfp_second_moments_free(struct xfp_second_moments *m)
{
	free(m->of);
	free(m->training_rows);
	free(m->zero);
	free(m->sum);
	free(m->stack);
	free(m->squares);
	free(m->own_diagonal);
	free(m->stack_diagonal);
	free(m->row);
	free(m->x);
	free(m->scratch);
	free(m->factoring);
	*m = (struct xfp_second_moments){ 0 };
}

static size_t block_cols(const struct xfp_second_moments *m, unsigned group, size_t block, size_t *first)
{
	const size_t blocks = xfp_feedback_blocks(m->cols);

	*first = xfp_feedback_first(m->cols, group, blocks, block);
	return xfp_feedback_first(m->cols, group, blocks, block + 1) - *first;
}

static size_t padded_cols(size_t cols, unsigned group)
{
	return xfp_compact_groups_of(cols, group) * group;
}

/* Values of the largest triangle, which is one of the largest groups. */
static size_t most_values(uint64_t cols)
{
	const size_t groups = xfp_compact_groups_of(cols, XFP_COMPACT_GROUP), blocks = xfp_feedback_blocks(cols);

	return xfp_triangle_values((groups + blocks - 1) / blocks * XFP_COMPACT_GROUP);
}

/* The number of matrices, and of the blocks of each, whose factors are in memory together. */
static uint32_t factors_in_memory(uint64_t cols, uint32_t matrices, size_t *blocks)
{
	const size_t all = xfp_feedback_blocks(cols), fit = XFP_TRAINED_VALUES / most_values(cols);
	uint32_t max = fit / all < XFP_TRAINED_MATRICES ? (uint32_t)(fit / all) : XFP_TRAINED_MATRICES;

	*blocks = all < fit ? all : fit;
	max = max ? max : 1;
	return max < matrices ? max : matrices;
}

uint64_t xfp_second_moments_bytes(uint32_t matrices, uint64_t cols, uint64_t tokens, int threads, uint64_t *training)
{
	const size_t values = most_values(cols), columns = cols < XFP_FEEDBACK_COLS ? cols : XFP_FEEDBACK_COLS;
	const struct xfp_second_moments shape = { .cols = cols };
	const uint64_t portion = xfp_second_moments_portion(&shape), rows = tokens < portion ? tokens : portion;
	size_t blocks;

	*training = factors_in_memory(cols, matrices, &blocks) * blocks * values * sizeof(float);
	return values * (sizeof(double) + (matrices > 1 ? sizeof(float) : 0)) +
	       xfp_feedback_scratch(columns) * sizeof(double) +
	       (uint64_t)threads * xfp_feedback_moments_scratch(cols) * sizeof(float) + rows * cols * sizeof(uint16_t) +
	       values * sizeof(float);
}

uint32_t xfp_second_moments_largest(const struct xfp_second_moments *m, uint32_t list[XFP_TRAINED_MATRICES],
				    size_t *blocks)
{
	const uint32_t max = factors_in_memory(m->cols, m->matrices, blocks);
	uint32_t count = 0;

	/* A matrix is listed if fewer than `max` are before it in the order of rows, then of numbers. */
	for (uint32_t i = 0; i < m->matrices; i++) {
		uint32_t before = 0;

		for (uint32_t j = 0; j < m->matrices; j++)
			before += m->training_rows[j] > m->training_rows[i] ||
				  (j < i && m->training_rows[j] == m->training_rows[i]);
		if (before < max)
			list[count++] = i;
	}
	return count;
}

/* ---- sums -------------------------------------------------------------------------------------- */

/* The first panel of a thread: panel i has i + 1 blocks. */
static size_t first_panel(size_t panels, int thread, int threads)
{
	const size_t blocks = panels * (panels + 1) / 2 * (size_t)thread / (size_t)threads;
	size_t first = 0;

	while (first * (first + 1) / 2 < blocks)
		first++;
	return first;
}

static void add_portion(struct xfp_second_moments *m, uint64_t rows, size_t first, size_t cols)
{
	const size_t panels = (cols + XFP_LANES - 1) / XFP_LANES, scratch = xfp_feedback_moments_scratch(m->cols);

#pragma omp parallel for schedule(static, 1)
	for (int t = 0; t < m->threads; t++)
		xfp_feedback_moments_add(m->sum, m->x + first, m->cols, rows, cols, first_panel(panels, t, m->threads),
					 first_panel(panels, t + 1, m->threads), m->scratch + (size_t)t * scratch);
}

/* With a finite diagonal, the other moments are finite, too. */
static enum xfp_status check_diagonal(const struct xfp_second_moments *m, const struct xfp_input_rows *rows,
				      const float *diagonal, struct xfp_error *err)
{
	uint32_t matrix = 0;
	uint64_t c = 0;

	while (c < m->cols && isfinite(diagonal[c]))
		c++;
	if (c == m->cols)
		return XFP_OK;
	while (rows->expert != XFP_NO_EXPERT && m->of[matrix].expert != rows->expert)
		matrix++;
	return xfp_fail(err, XFP_BAD_INPUT,
			"%s, column %" PRIu64 ": the activations are too large for calibration (their mean square is "
			"beyond the range of float32); convert without --calibrate, or calibrate with another text",
			xfp_printable(m->ledger->tensors[m->ledger->matrices[matrix].tensor].name).text, c);
}

/* Compute the triangle of some columns of the training rows of `of`, and their number; with `diagonal`, also that of
 * all columns. The triangle is in the first half of m->sum unless `triangle` is another place. */
static enum xfp_status add_rows(struct xfp_second_moments *m, const struct xfp_moments_of *of, float *triangle,
				float *diagonal, struct xfp_error *err)
{
	const uint64_t rows = xfp_inputs_list(m->inputs, &of->rows, false, m->row);
	const uint64_t portion = xfp_second_moments_portion(m);
	const size_t values = xfp_triangle_values(of->cols);
	enum xfp_status status = XFP_OK;

	memset(m->sum, 0, values * sizeof *m->sum);
	memset(m->squares, 0, m->cols * sizeof *m->squares);
	for (uint64_t first = 0; !status && first < rows; first += portion) {
		const uint64_t count = rows - first < portion ? rows - first : portion;

		status = xfp_inputs_values(m->artifact, m->inputs, of->rows.input, m->row + first, count, m->x, err);
		if (status)
			break;
		if (diagonal)
			xfp_feedback_squares_add(m->squares, m->x, m->cols, count, m->cols);
		add_portion(m, count, of->first, of->cols);
	}
	if (status || !rows)
		return status;
	xfp_feedback_moments_mean(m->sum, values, rows, triangle);
	if (!diagonal)
		return XFP_OK;
	xfp_feedback_moments_mean(m->squares, m->cols, rows, diagonal);
	return check_diagonal(m, &of->rows, diagonal, err);
}

/* Make sure that moments are those of `of`. */
static enum xfp_status update(struct xfp_second_moments *m, struct xfp_moments_of *present,
			      const struct xfp_moments_of *of, float *triangle, float *diagonal, struct xfp_error *err)
{
	const bool same_rows =
		present->cols && present->rows.input == of->rows.input && present->rows.expert == of->rows.expert;
	enum xfp_status status;

	if (same_rows && present->first == of->first && present->cols == of->cols)
		return XFP_OK;
	m->own_of.cols = 0; /* whose memory is used */
	status = add_rows(m, of, triangle, same_rows ? NULL : diagonal, err);
	if (!status)
		*present = *of;
	return status;
}

/* ---- H and R ----------------------------------------------------------------------------------- */

enum xfp_status xfp_second_moments_block(const struct xfp_second_moments *m, unsigned group, size_t block,
					 struct xfp_feedback *f, struct xfp_error *err)
{
	*f = (struct xfp_feedback){ .group = group };
	f->cols = block_cols(m, group, block, &f->first);
	f->padded = padded_cols(f->cols, group);
	f->column = malloc(f->padded * sizeof *f->column);
	f->factor = xfp_aligned_new(xfp_triangle_values(f->padded) * sizeof *f->factor);
	f->diagonal = xfp_aligned_new(f->padded * sizeof *f->diagonal);
	f->pivot = xfp_aligned_new(f->padded * sizeof *f->pivot);
	return f->column && f->factor && f->diagonal && f->pivot ? XFP_OK : xfp_no_memory(err);
}

void xfp_second_moments_release(struct xfp_feedback *f)
{
	free(f->column);
	free(f->factor);
	free(f->diagonal);
	free(f->pivot);
	*f = (struct xfp_feedback){ 0 };
}

/* Reserve memory for a block: two triangles, as sums or as own and H; one of the stack; scratch. */
static enum xfp_status reserve(struct xfp_second_moments *m, const struct xfp_feedback *f, struct xfp_error *err)
{
	const size_t values = xfp_triangle_values(f->padded);

	if (m->values >= values)
		return XFP_OK;
	free(m->sum);
	free(m->stack);
	free(m->factoring);
	m->own_of.cols = m->stack_of.cols = 0;
	m->values = values;
	m->sum = xfp_aligned_new(values * sizeof *m->sum);
	m->stack = m->stacked ? xfp_aligned_new(values * sizeof *m->stack) : NULL;
	m->factoring = xfp_aligned_new(xfp_feedback_scratch(f->padded) * sizeof *m->factoring);
	if (m->sum && (m->stack || !m->stacked) && m->factoring)
		return XFP_OK;
	m->values = 0;
	return xfp_no_memory(err);
}

static enum xfp_status factor(struct xfp_second_moments *m, uint32_t matrix, struct xfp_feedback *f,
			      struct xfp_error *err)
{
	char expert[32] = "";
	size_t column;

	if (xfp_feedback_factor(f, m->factoring, &column)) {
		xfp_feedback_divide(f);
		return XFP_OK;
	}
	if (m->matrices > 1)
		snprintf(expert, sizeof expert, "expert %" PRIu32 ", ", matrix);
	return xfp_fail(err, XFP_BAD_INPUT,
			"%scolumn %zu: the second moments of the inputs are not positive definite; convert without "
			"--calibrate, or calibrate with another text",
			expert, f->first + column);
}

enum xfp_status xfp_second_moments_compute(struct xfp_second_moments *m, uint32_t matrix, struct xfp_feedback *f,
					   struct xfp_error *err)
{
	const struct xfp_input_rows all = { m->of[matrix].input, XFP_NO_EXPERT };
	struct xfp_feedback_source source = { .inputs = m->training_rows[matrix],
					      .cols = m->cols,
					      .balance = m->balance };
	enum xfp_status status = reserve(m, f, err);
	float *own = (float *)(void *)m->sum, scale;

	if (!status && m->stacked)
		status = update(m, &m->stack_of, &(struct xfp_moments_of){ all, f->first, f->cols }, m->stack,
				m->stack_diagonal, err);
	if (!status && m->training_rows[matrix])
		status = update(m, &m->own_of, &(struct xfp_moments_of){ m->of[matrix], f->first, f->cols }, own,
				m->own_diagonal, err);
	if (status)
		return status;
	source.own = m->training_rows[matrix] ? m->own_diagonal : NULL;
	source.stack = m->stacked ? m->stack_diagonal : NULL;
	scale = xfp_feedback_scale(&source);
	m->zero[matrix] = !(scale > 0);
	source.own = m->training_rows[matrix] ? own : NULL;
	source.stack = m->stack;
	source.balance += f->first;
	f->h = own + m->values;
	xfp_feedback_prepare(f, &source, scale);
	return factor(m, matrix, f, err);
}
