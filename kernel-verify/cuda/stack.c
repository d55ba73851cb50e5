/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel-verify/cuda/stack.h"

#include <math.h> /* frexp, which is exact */
#include <string.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "kernel-verify/cuda/unit_file.h"
#include "schemas/layout/classes.h"

void xfp_stack_make(struct xfp_trial *trial, struct xfp_stack *stack, uint32_t experts, bool outliers, bool infinite)
{
	bool codebooks = trial->op->kind >= XFP_MATVEC_V2, balanced = codebooks && xfp_trial_random_below(trial, 2);
	uint8_t *balance;

	*stack = (struct xfp_stack){ .experts = experts };
	stack->tensor = trial->op->kind < XFP_MATVEC_FP8 && experts == 1 && trial->number % 2;
	xfp_make_matrix(trial, &stack->matrix[0], outliers && codebooks, infinite);
	for (uint32_t e = 1; e < experts; e++)
		xfp_make_expert(trial, &stack->matrix[0], &stack->matrix[e], outliers && codebooks && e % 2);
	if (!balanced)
		return;
	balance = xfp_trial_buffer(trial, "balance", stack->matrix[0].whole.cols, 1);
	for (size_t c = 0; c < stack->matrix[0].whole.cols; c++)
		balance[c] = (uint8_t)(1 + xfp_trial_random_below(trial, 9));
	stack->balance = balance;
}

/* ---- parts ---------------------------------------------------------------------------------------- */

static void put_outliers(const struct xfp_matvec *w, uint8_t *to)
{
	const struct xfp_outlier_rows *o = &w->outliers;
	bool listed = xfp_outliers_listed(w->rows, o->count), wide = w->cols > 65536;
	uint8_t *column = to + xfp_outlier_row_bytes(w->rows, o->count);
	struct xfp_outlier_row at;

	xfp_outlier_rows_begin(o, 0, &at);
	for (uint32_t r = 0; r < w->rows && xfp_outlier_rows_next(o, r, &at); r++) {
		for (uint32_t i = at.first; i < at.end; i++) {
			uint32_t c = xfp_outlier_column(o, i);

			memcpy(column + (size_t)i * (wide ? 4 : 2), &c, wide ? 4 : 2);
			if (listed)
				memcpy(to + 4 * (size_t)i, &r, 4);
		}
		if (!listed)
			memcpy(to + 4 * ((size_t)r + 1), &at.end, 4);
	}
	memcpy(column + xfp_align((uint64_t)o->count * (wide ? 4 : 2), 4), o->residual, (size_t)o->count * 2);
}

static uint8_t *place_of(const struct xfp_unit_file *unit, enum xfp_part part, uint32_t e)
{
	return unit->part[part] ? unit->part[part] + xfp_unit_file_offset(unit, part, e) : NULL;
}

static void put_matrix(const struct xfp_unit_file *unit, const struct xfp_matvec *w, uint32_t e)
{
	size_t groups = w->rows * w->row_groups;
	uint8_t *group = place_of(unit, XFP_PART_GROUP, e), *code = place_of(unit, XFP_PART_CODE, e);

	memcpy(place_of(unit, XFP_PART_INDEX, e), w->index, w->rows * w->row_bytes);
	if (w->mode == XFP_MATVEC_V2)
		memcpy(code, w->code, w->rows * 2 << w->k);
	if (w->mode == XFP_MATVEC_FP8)
		memcpy(code, w->code, w->rows * 4);
	if (w->mode == XFP_MATVEC_V2A) {
		memcpy(group, w->pair, groups * 4);
		group += groups * 4;
	}
	if (w->mode >= XFP_MATVEC_V2A)
		memcpy(group, w->byte, groups);
	if (w->mode == XFP_MATVEC_V2C)
		memcpy(group + groups, w->row, w->rows);
	if (w->outliers.count)
		put_outliers(w, place_of(unit, XFP_PART_OUTLIER, e));
}

static void put_library(const struct xfp_unit_file *unit, const struct xfp_trial_matrix *matrix)
{
	size_t entries = (size_t)matrix->codebooks << matrix->w.k;

	memcpy(unit->part[XFP_PART_CODE], matrix->entry, 2 * entries);
	if (matrix->w.mode == XFP_MATVEC_V2C)
		memcpy(unit->part[XFP_PART_CODE] + 2 * entries, matrix->ratio, 2 * 256 / matrix->codebooks);
}

static int exponent_of(double unit)
{
	int exponent;

	frexp(unit, &exponent);
	return 1 - exponent;
}

enum xfp_status xfp_stack_write(const struct xfp_stack *stack, int file, struct xfp_error *err)
{
	static const uint8_t modes[] = { XFP_MODE_KEEP, XFP_MODE_KEEP, XFP_MODE_KEEP, XFP_MODE_FP8,
					 XFP_MODE_V2,   XFP_MODE_V2A,  XFP_MODE_V2C };
	const struct xfp_matvec *w = &stack->matrix[0].whole;
	struct xfp_unit_file unit = { .mode = modes[w->mode],
				      .dtype = w->mode < XFP_MATVEC_FP8 ? XFP_F32 + (unsigned)w->mode : XFP_BF16,
				      .k = w->mode >= XFP_MATVEC_V2 ? w->k : 0,
				      .group = w->group,
				      .rows = w->rows,
				      .cols = w->cols,
				      .experts = stack->experts,
				      .tensor = stack->tensor };
	enum xfp_status status;

	while (1u << unit.library < stack->matrix[0].codebooks)
		unit.library++;
	if ((status = xfp_unit_file_experts(&unit, err)))
		return status;
	for (uint32_t e = 0; e < stack->experts; e++) {
		unit.exponent[e] = exponent_of(stack->matrix[e].whole.unit);
		unit.outliers[e] = stack->matrix[e].whole.outliers.count;
	}
	if ((status = xfp_unit_file_parts(&unit, stack->balance != NULL, err)))
		return status;
	for (uint32_t e = 0; e < stack->experts; e++)
		put_matrix(&unit, &stack->matrix[e].whole, e);
	if (stack->matrix[0].codebooks)
		put_library(&unit, &stack->matrix[0]);
	if (stack->balance)
		memcpy(unit.part[XFP_PART_BALANCE], stack->balance, w->cols);
	status = xfp_unit_file_write(&unit, file, err);
	xfp_unit_file_free(&unit);
	return status;
}
