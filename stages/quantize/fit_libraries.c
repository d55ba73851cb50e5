/* SPDX-License-Identifier: Apache-2.0 */
/* Groups that choose from a library of the unit: v2a and v2c, see libfit.c. */
#include <stdlib.h>

#include "kernels/common/number.h"
#include "kernels/common/scale.h"
#include "kernels/encode/assign.h"
#include "kernels/encode/cosine.h"
#include "kernels/encode/encode.h"
#include "stages/quantize/library_fit.h"
#include "stages/quantize/library_train.h"

/* Candidates with the same groups share the rows cut into groups. */
static void list_groupings(struct xfp_library_fit *fit, const struct xfp_fitting *fitting)
{
	fit->count = fitting->measure.fitted;
	for (uint32_t i = 0; i < fit->count; i++) {
		struct xfp_grouping grouping = xfp_grouping_of(&fitting->measure.candidates[i], fitting->known.cols);
		uint32_t g = 0;

		while (g < fit->grouping_count && !xfp_grouping_same(&fit->groupings[g], &grouping))
			g++;
		fit->grouping_of[i] = g;
		fit->groupings[g] = grouping;
		fit->grouping_count += g == fit->grouping_count;
	}
}

/* ---- libraries --------------------------------------------------------------------------------- */

static enum xfp_status train(const struct xfp_fitting *fitting, struct xfp_library_fit *fit, uint32_t g,
			     struct xfp_error *err)
{
	bool scaled = fit->groupings[g].mode == XFP_MODE_V2A;
	const struct xfp_candidate *candidates[XFP_MAX_CANDIDATES];
	struct xfp_library_code *code[XFP_MAX_CANDIDATES];
	uint32_t count = 0;

	for (uint32_t i = 0; i < fit->count; i++) {
		if (fit->grouping_of[i] != g)
			continue;
		if (!xfp_library_code_init(&fit->code[i], &fitting->measure.candidates[i]))
			return xfp_no_memory(err);
		candidates[count] = &fitting->measure.candidates[i];
		code[count++] = &fit->code[i];
	}
	return xfp_library_train(&fitting->training, scaled ? xfp_library_published(fitting->parameters) : 0,
				 &fit->groupings[g], candidates, count, code, err);
}

static enum xfp_status make_libraries(const struct xfp_fitting *fitting, struct xfp_library_fit *fit,
				      struct xfp_artifact *artifact, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t g = 0; !status && g < fit->grouping_count; g++)
		status = train(fitting, fit, g, err);
	for (uint32_t i = 0; !status && i < fit->count; i++) {
		if (!xfp_library_init(&fit->libraries[i], &fitting->measure.candidates[i],
				      xfp_library_published(fitting->parameters)))
			return xfp_no_memory(err);
		xfp_library_open(&fit->libraries[i], &fit->code[i]);
		if (artifact)
			status = xfp_fit_write_library(artifact, &fitting->measure.candidates[i], fit->code[i].code,
						       fit->code[i].hints, err);
	}
	return status;
}

/* ---- rows -------------------------------------------------------------------------------------- */

struct xfp_row_error xfp_library_measure(const struct xfp_fitting *fitting, const float *w, double norm, float *value)
{
	const struct xfp_row_encoder *encoder = xfp_encoder()->rows;
	uint64_t cols = fitting->known.cols;
	struct xfp_row_sums sums;

	if (!(fitting->unit.back > 0)) {
		xfp_unscale_row(value, fitting->down, fitting->exponent, cols, value);
		return xfp_row_compare(w, value, cols);
	}
	encoder->scale(value, fitting->down, cols, value);
	sums = encoder->compare(w, value, 1, cols);
	sums.error *= fitting->unit.back;
	sums.square *= fitting->unit.back;
	return xfp_row_result(norm, sums);
}

/* Find the groups of a row whose marks, a sorted list of columns, were others in the last walk, and copy them. */
static void find_changed(const struct xfp_group_row *row, const struct xfp_marks *before, uint64_t number,
			 struct xfp_changed_groups *changed)
{
	const uint32_t *now = row->marked, *end = now + row->marks;
	const uint32_t *old = before->column + before->first[number],
		       *old_end = before->column + before->first[number + 1];

	changed->count = 0;
	while (now < end || old < old_end) {
		bool same = now < end && old < old_end && *now == *old;
		bool is_new = old == old_end || (now < end && *now < *old);
		uint32_t group = (same || is_new ? *now : *old) / row->grouping.group;

		now += same || is_new;
		old += same || !is_new;
		if (same || (changed->count && changed->number[changed->count - 1] == group))
			continue;
		changed->number[changed->count] = group;
		xfp_compact_copy(&changed->copy.compact, changed->count++, &row->compact, group);
	}
}

/* Search the groups of a row for candidate i; returns their bytes. Groups without a change since the last walk keep
 * their bytes. */
static const uint8_t *search(const struct xfp_fitting *fitting, const struct xfp_library_fit *fit,
			     struct xfp_library_buffers *buffers, uint32_t i, uint64_t at, bool known)
{
	const struct xfp_compact_book *book = fit->libraries[i].compact;
	uint32_t g = fit->grouping_of[i];
	uint64_t groups = fit->groupings[g].groups;
	uint8_t *held = fitting->measure.byte[i], *byte = held ? held + at * groups : buffers->codes[g].entry;
	struct xfp_changed_groups *changed = &buffers->changed[g];

	if (!known) {
		xfp_encoder()->compact->assign(book, &buffers->rows[g].compact, 0, groups, byte, NULL, NULL);
		return byte;
	}
	xfp_encoder()->compact->assign(book, &changed->copy.compact, 0, changed->count, changed->byte, NULL, NULL);
	for (uint64_t j = 0; j < changed->count; j++)
		byte[changed->number[j]] = changed->byte[j];
	return byte;
}

static void fit_row(const struct xfp_fitting *fitting, void *own, int thread, const struct xfp_rows *rows,
		    const struct xfp_marks *marks, uint64_t r)
{
	const struct xfp_library_fit *fit = own;
	struct xfp_library_buffers *buffers = &fit->buffers[thread];
	uint64_t number = rows->first + r, at = fitting->measure.held + r;
	const uint32_t *column = marks->column + marks->first[number];
	uint64_t count = marks->first[number + 1] - marks->first[number];
	struct xfp_row_start start =
		xfp_rows_scaled(rows, &fitting->scaling, r, fitting->unit.unit, buffers->w, buffers->x);
	bool known = false;
	uint8_t d = 0;

	for (uint64_t i = 0; i < count; i++) {
		buffers->marked[i] = buffers->x[column[i]];
		buffers->x[column[i]] = 0;
	}
	for (uint32_t g = 0; g < fit->grouping_count; g++) {
		struct xfp_group_row *row = &buffers->rows[g];

		xfp_group_row_load(row, buffers->x, column, count);
		if (fit->groupings[g].mode != XFP_MODE_V2C)
			continue;
		known = fitting->before && fitting->measure.row_byte[at] == row->row;
		if (known)
			find_changed(row, fitting->before, number, &buffers->changed[g]);
		d = row->row;
	}
	fitting->measure.row_byte[at] = d;
	for (uint32_t i = 0; i < fit->count; i++) {
		uint32_t g = fit->grouping_of[i];
		struct xfp_group_row *row = &buffers->rows[g];

		if (fit->groupings[g].mode == XFP_MODE_V2C)
			xfp_encoder()->compact->reconstruct(fit->libraries[i].compact, &row->compact, 0,
							    search(fitting, fit, buffers, i, at, known),
							    xfp_compact_row(d), fitting->known.cols, buffers->value);
		else
			xfp_group_encode(&fit->libraries[i], row, &buffers->codes[g], buffers->value);
		for (uint64_t j = 0; j < count; j++) {
			float *value = &buffers->value[column[j]];

			*value += xfp_half_to_float(xfp_residual(buffers->marked[j], *value));
		}
		fitting->measure.row[i][at] = xfp_library_measure(fitting, buffers->w, start.norm, buffers->value);
	}
}

/* ---- the stage --------------------------------------------------------------------------------- */

static bool changed_init(struct xfp_changed_groups *changed, const struct xfp_grouping *grouping)
{
	changed->number = malloc(grouping->groups * sizeof *changed->number);
	changed->byte = malloc(grouping->groups);
	return xfp_group_row_init(&changed->copy, grouping) && changed->number && changed->byte;
}

static bool buffers_init(struct xfp_library_buffers *buffers, const struct xfp_library_fit *fit, uint64_t cols,
			 bool again)
{
	bool good = true;

	buffers->w = xfp_row_new(cols);
	buffers->x = xfp_row_new(cols);
	buffers->value = xfp_row_new(cols);
	buffers->marked = xfp_row_new(cols);
	for (uint32_t g = 0; g < fit->grouping_count; g++)
		good = xfp_group_row_init(&buffers->rows[g], &fit->groupings[g]) &&
		       xfp_group_codes_init(&buffers->codes[g], &fit->groupings[g]) &&
		       (!again || fit->groupings[g].mode != XFP_MODE_V2C ||
			changed_init(&buffers->changed[g], &fit->groupings[g])) &&
		       good;
	return good && buffers->w && buffers->x && buffers->value && buffers->marked;
}

static enum xfp_status begin(struct xfp_fitting *fitting, struct xfp_artifact *artifact, void **own,
			     struct xfp_error *err)
{
	struct xfp_library_fit *fit = *own = calloc(1, sizeof *fit);
	bool good;

	if (!fit)
		return xfp_no_memory(err);
	list_groupings(fit, fitting);
	fit->threads = fitting->threads;
	good = (fit->buffers = calloc((size_t)fit->threads, sizeof *fit->buffers)) != NULL;
	for (int i = 0; good && i < fit->threads; i++)
		good = buffers_init(&fit->buffers[i], fit, fitting->known.cols, fitting->again);
	return good ? make_libraries(fitting, fit, artifact, err) : xfp_no_memory(err);
}

static void end(void *own)
{
	struct xfp_library_fit *fit = own;

	if (!fit)
		return;
	for (int i = 0; fit->buffers && i < fit->threads; i++) {
		struct xfp_library_buffers *buffers = &fit->buffers[i];

		free(buffers->w);
		free(buffers->x);
		free(buffers->value);
		free(buffers->marked);
		for (uint32_t g = 0; g < fit->grouping_count; g++) {
			xfp_group_row_free(&buffers->rows[g]);
			xfp_group_codes_free(&buffers->codes[g]);
			xfp_group_row_free(&buffers->changed[g].copy);
			free(buffers->changed[g].number);
			free(buffers->changed[g].byte);
		}
	}
	free(fit->buffers);
	for (uint32_t i = 0; i < fit->count; i++) {
		xfp_library_code_free(&fit->code[i]);
		xfp_library_free(&fit->libraries[i]);
	}
	free(fit);
}

const struct xfp_fit_methods xfp_fit_libraries = { begin, fit_row, xfp_fit_with_feedback, end };
