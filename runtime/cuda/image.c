/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cuda/image.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "kernels/common/lane_index.h"
#include "kernels/common/number.h"
#include "kernels/common/scale.h"
#include "runtime/cuda/integers.h"
#include "runtime/cuda/outliers.h"
#include "schemas/layout/bundle_layout.h"

#define PIECE 1024 /* numbers converted per step */

/* The state of writing one image, expert by expert. */
struct writing {
	const struct xfp_cuda_plan *plan;
	struct xfp_cuda_sink *sink;
	struct xfp_error *err;
	uint32_t expert;
	struct xfp_matrix_info matrix;
	struct xfp_cuda_weights w; /* layout for the expert's k */
	uint8_t *row;              /* buffer: indices of a row */
	uint8_t *tile;             /* buffer: packed parts of a tile */
};

/* ---- bytes ------------------------------------------------------------------------------------- */

/* Write bytes; zeros if `from` is NULL. */
static enum xfp_status put(struct writing *w, const void *from, uint64_t bytes)
{
	struct xfp_cuda_sink *sink = w->sink;
	enum xfp_status status;

	while (bytes) {
		size_t some = bytes < sink->left ? (size_t)bytes : sink->left;

		if (!some) {
			if ((status = sink->next(sink, w->err)))
				return status;
			continue;
		}
		if (from) {
			memcpy(sink->at, from, some);
			from = (const uint8_t *)from + some;
		} else {
			memset(sink->at, 0, some);
		}
		sink->at += some;
		sink->left -= some;
		sink->done += some;
		bytes -= some;
	}
	return XFP_OK;
}

/* Write zeros up to the offset `place`, or to the next multiple of the part alignment if it is 0. */
static enum xfp_status put_up_to(struct writing *w, uint64_t place)
{
	if (!place)
		place = xfp_align(w->sink->done, XFP_CUDA_PART_ALIGN);
	return put(w, NULL, place - w->sink->done);
}

/* ---- data shared by all experts ---------------------------------------------------------------- */

/* Write codebooks one after the other, unchanged or as planes of bytes. */
static enum xfp_status put_codebooks(struct writing *w, const uint8_t *code, uint64_t count, unsigned k)
{
	size_t entries = (size_t)1 << k;
	enum xfp_status status = XFP_OK;

	if (k > 4)
		return put(w, code, count * 2 * entries);
	for (uint64_t i = 0; !status && i < count; i++, code += 2 * entries) {
		uint8_t planes[32];

		for (size_t j = 0; j < entries; j++) {
			planes[j] = code[2 * j + 1];
			planes[entries + j] = code[2 * j];
		}
		status = put(w, planes, 2 * entries);
	}
	return status;
}

/* v2c: compute the products of entries and ratios for every value of a group byte. */
static void products(const struct writing *w, float *product)
{
	const struct xfp_cuda_plan *plan = w->plan;
	const uint8_t *code = w->matrix.code;
	size_t entries = (size_t)1 << plan->k, ratios = 256 / plan->codebooks;

	for (size_t i = 0; i < 256 * entries; i++) {
		size_t byte = i / entries, entry = byte / ratios * entries + i % entries;
		size_t ratio = plan->codebooks * entries + byte % ratios;

		product[i] = xfp_half_to_float(xfp_load16(code + 2 * entry)) *
			     xfp_half_to_float(xfp_load16(code + 2 * ratio));
	}
}

static enum xfp_status put_library(struct writing *w)
{
	const struct xfp_cuda_plan *plan = w->plan;
	const uint8_t *code = w->matrix.code;
	uint64_t ratios = 256 / plan->codebooks;
	float ratio[256];
	enum xfp_status status;

	if ((status = put_up_to(w, plan->library)) || (status = put_codebooks(w, code, plan->codebooks, plan->k)) ||
	    !plan->ratio)
		return status;
	code += (uint64_t)plan->codebooks * 2 << plan->k;
	for (uint64_t i = 0; i < ratios; i++)
		ratio[i] = xfp_half_to_float(xfp_load16(code + 2 * i));
	if ((status = put_up_to(w, plan->ratio)))
		return status;
	return put(w, ratio, ratios * sizeof *ratio);
}

/* Write all products of entries and ratios as integers, and their scale pair. */
static enum xfp_status put_tables(struct writing *w)
{
	const struct xfp_cuda_plan *plan = w->plan;
	size_t entries = (size_t)1 << plan->k, wide = plan->k == 4 ? 256 * entries : entries;
	uint8_t tables[256 * 32], *to = tables;
	struct xfp_cuda_pair pair = { 0, 0 };
	float product[256 * 16];
	enum xfp_status status = put_up_to(w, plan->tables);

	products(w, product);
	if (!xfp_cuda_pair_of(plan->k, product, 256 * entries, &pair))
		memset(product, 0, sizeof product); /* not read: see xfp_cuda_expert */
	for (size_t done = 0; done < 256 * entries; done += wide, to += 2 * wide)
		xfp_cuda_integers(plan->k, &pair, product + done, wide, to, to + wide);
	if (!status)
		status = put(w, tables, 512 * entries);
	return status ? status : put(w, &pair, sizeof pair);
}

static enum xfp_status put_balance(struct writing *w)
{
	const struct xfp_cuda_plan *plan = w->plan;
	enum xfp_status status = put_up_to(w, plan->down);
	float down[PIECE];

	for (uint64_t c = 0, some; !status && c < plan->slice.cols; c += some) {
		some = plan->slice.cols - c < PIECE ? plan->slice.cols - c : PIECE;
		for (uint64_t i = 0; i < some; i++)
			down[i] = xfp_balance_down(plan->balance[c + i]);
		status = put(w, down, some * sizeof *down);
	}
	return status;
}

static enum xfp_status put_shared(struct writing *w, uint64_t base)
{
	const struct xfp_cuda_plan *plan = w->plan;
	enum xfp_status status = XFP_OK;

	for (uint32_t e = 0; !status && e < plan->experts; e++) {
		struct xfp_cuda_matrix m = xfp_cuda_plan_matrix(plan, e, base);

		status = put(w, &m, sizeof m);
	}
	if (!status && plan->library)
		status = put_library(w);
	if (!status && plan->tables)
		status = put_tables(w);
	if (!status && plan->down)
		status = put_balance(w);
	return status;
}

/* ---- rows of indices, codes and numbers -------------------------------------------------------- */

/* Pack columns [first, end) of a row in chunks of sixteen lanes. `from` points to column `from_column`, the first of a
 * chunk. */
static void pack_columns(struct writing *w, const uint8_t *from, uint64_t from_column, uint64_t first, uint64_t end,
			 uint8_t *to)
{
	unsigned k = w->matrix.k;
	uint64_t chunk = xfp_chunk_columns(k), stop = from_column + (end - from_column + chunk - 1) / chunk * chunk;
	uint64_t count = (end - first + chunk - 1) / chunk * chunk,
		 last = stop < w->matrix.cols ? stop : w->matrix.cols;
	uint8_t *index = w->row + (first - from_column);

	xfp_lane_index_unpack(k, from, last - from_column, w->row);
	memset(w->row + (end - from_column), 0, count - (end - first));
	for (uint64_t c = 0; c < count; c += chunk, to += chunk / 8 * k)
		xfp_lane_index_pack(k, index + c, chunk, to);
}

/* Write a tile of rows, chunk after chunk. The first `direct` bytes of row r are at from[r], if that is not NULL; the
 * others are in w->tile, rows `rest` bytes apart. */
static enum xfp_status put_tile(struct writing *w, const uint8_t *const *from, uint64_t direct, uint64_t rest)
{
	uint64_t bytes = xfp_chunk_columns(w->matrix.k) / 8 * w->matrix.k;
	enum xfp_status status = XFP_OK;

	for (uint64_t done = 0; done < direct + rest; done += bytes)
		for (uint32_t r = 0; !status && r < XFP_CUDA_TILE_ROWS; r++) {
			const uint8_t *piece = done >= direct ? w->tile + r * rest + (done - direct)
					       : from[r]      ? from[r] + done
							      : NULL;

			status = put(w, piece, bytes);
		}
	return status;
}

static enum xfp_status put_indices(struct writing *w)
{
	const struct xfp_cuda_plan *plan = w->plan;
	unsigned k = w->matrix.k;
	uint64_t chunk = xfp_chunk_columns(k), from_bytes = xfp_index_row_bytes(w->matrix.cols, k);
	uint64_t first = plan->first_col, end = first + plan->cols, begin = first - first % chunk;
	uint64_t whole = begin == first ? plan->cols - plan->cols % chunk : 0;
	uint64_t direct = whole / 8 * k, rest = w->w.row_bytes - direct;
	const uint8_t *row = (const uint8_t *)w->matrix.index + plan->slice.first_row * from_bytes + begin / 8 * k;
	enum xfp_status status = XFP_OK;

	if (rest && !(w->tile = malloc(XFP_CUDA_TILE_ROWS * rest)))
		return xfp_no_memory(w->err);
	for (uint32_t t = 0; !status && t < plan->rows; t += XFP_CUDA_TILE_ROWS) {
		const uint8_t *from[XFP_CUDA_TILE_ROWS] = { NULL };

		if (rest)
			memset(w->tile, 0, XFP_CUDA_TILE_ROWS * rest);
		for (uint32_t r = 0; r < XFP_CUDA_TILE_ROWS && t + r < plan->rows; r++, row += from_bytes) {
			from[r] = row;
			if (first + whole < end)
				pack_columns(w, row + direct, begin + whole, first + whole, end, w->tile + r * rest);
		}
		status = put_tile(w, from, direct, rest);
	}
	free(w->tile);
	w->tile = NULL;
	return status;
}

/* Write rows, each padded with zeros. */
static enum xfp_status put_rows(struct writing *w, const uint8_t *from, uint64_t from_bytes, uint64_t used,
				uint64_t row_bytes)
{
	enum xfp_status status = XFP_OK;

	if (used == from_bytes && used == row_bytes)
		return put(w, from, w->plan->rows * used);
	for (uint32_t r = 0; !status && r < w->plan->rows; r++, from += from_bytes)
		if (!(status = put(w, from, used)))
			status = put(w, NULL, row_bytes - used);
	return status;
}

static enum xfp_status put_doubles(struct writing *w, const uint8_t *from, uint64_t from_bytes)
{
	const struct xfp_cuda_plan *plan = w->plan;
	enum xfp_status status = XFP_OK;
	float value[PIECE];

	for (uint32_t r = 0; !status && r < plan->rows; r++, from += from_bytes) {
		for (uint64_t c = 0, some; !status && c < plan->cols; c += some) {
			some = plan->cols - c < PIECE ? plan->cols - c : PIECE;
			xfp_to_float(XFP_F64, from + c * 8, some, value);
			status = put(w, value, some * sizeof *value);
		}
		if (!status)
			status = put(w, NULL, w->w.row_bytes - (uint64_t)plan->cols * 4);
	}
	return status;
}

static enum xfp_status put_kept(struct writing *w)
{
	const struct xfp_cuda_plan *plan = w->plan;
	uint64_t element = plan->method == XFP_CUDA_FP8 ? 1 : xfp_dtype_bits(plan->dtype) / 8;
	uint64_t from_bytes = plan->full_cols * element;
	const uint8_t *from = plan->tensor ? plan->tensor : w->matrix.index;

	from += plan->slice.first_row * from_bytes + plan->first_col * element;
	if (element == 8)
		return put_doubles(w, from, from_bytes);
	return put_rows(w, from, from_bytes, plan->cols * element, w->w.row_bytes);
}

/* ---- codebooks, scales and groups -------------------------------------------------------------- */

/* Check that the groups of a row have valid codebook numbers. */
static enum xfp_status check_numbers(const struct writing *w, const uint8_t *number, uint64_t from_groups,
				     uint64_t used)
{
	for (uint32_t r = 0; r < w->plan->rows; r++, number += from_groups)
		for (uint64_t g = 0; g < used; g++)
			if (number[g] >= w->plan->codebooks)
				return xfp_cuda_damaged(w->plan, w->expert, w->plan->slice.first_row + r,
							"a group has an invalid codebook number", w->err);
	return XFP_OK;
}

/* Write one byte per 32 columns for groups of 32 columns or more, in the tile order of indices. `row` is the first of
 * the rows, which have `used` groups. */
static enum xfp_status put_names(struct writing *w, const uint8_t *row, uint64_t from_groups, uint64_t used)
{
	const struct xfp_cuda_plan *plan = w->plan;
	uint64_t some = xfp_chunk_columns(w->matrix.k) / 32, shift = plan->group - 5;
	enum xfp_status status = XFP_OK;

	for (uint32_t t = 0; !status && t < plan->rows;
	     t += XFP_CUDA_TILE_ROWS, row += XFP_CUDA_TILE_ROWS * from_groups)
		for (uint64_t first = 0; !status && first < w->w.row_groups; first += some) {
			uint8_t names[XFP_CUDA_TILE_ROWS * 16] = { 0 };

			for (uint32_t r = 0; r < XFP_CUDA_TILE_ROWS && t + r < plan->rows; r++)
				for (uint64_t i = 0; i < some && (first + i) >> shift < used; i++)
					names[r * some + i] = row[r * from_groups + ((first + i) >> shift)];
			status = put(w, names, XFP_CUDA_TILE_ROWS * some);
		}
	return status;
}

static enum xfp_status put_groups(struct writing *w, const struct xfp_cuda_expert *e)
{
	const struct xfp_cuda_plan *plan = w->plan;
	uint64_t from_groups = xfp_row_groups(plan->full_cols, plan->group), all = plan->full_rows * from_groups;
	uint64_t used = xfp_row_groups(plan->cols, plan->group);
	uint64_t first = plan->slice.first_row * from_groups + (plan->first_col >> plan->group);
	const uint8_t *group = w->matrix.group, *row;
	enum xfp_status status;

	if (plan->method == XFP_CUDA_V2A) {
		const uint8_t *number = group + 4 * all + first;

		if ((status = check_numbers(w, number, from_groups, used)) || (status = put_up_to(w, e->group)) ||
		    (status = put_rows(w, group + 4 * first, 4 * from_groups, 4 * used,
				       4 * (uint64_t)w->w.row_groups)) ||
		    (status = put_up_to(w, e->number)))
			return status;
		return put_rows(w, number, from_groups, used, w->w.row_groups);
	}
	if ((status = put_up_to(w, e->group)) ||
	    (status = plan->method == XFP_CUDA_V2C32
			      ? put_names(w, group + first, from_groups, used)
			      : put_rows(w, group + first, from_groups, used, w->w.row_groups)) ||
	    (status = put_up_to(w, e->row)))
		return status;
	row = group + all + plan->slice.first_row;
	for (uint32_t r = 0; !status && r < plan->rows; r++) {
		float factor = 0x1p14f * xfp_balance_down(row[r]);

		status = put(w, &factor, sizeof factor);
	}
	return status;
}

/* Write the codebooks of v2 as integers, preceded by their scale pairs. */
static enum xfp_status put_integers(struct writing *w, const struct xfp_cuda_expert *e)
{
	size_t entries = (size_t)1 << e->k;
	const uint8_t *code = (const uint8_t *)w->matrix.code + (w->plan->slice.first_row * 2 << e->k);
	enum xfp_status status = XFP_OK;

	for (int planes = 0; !status && planes < 2; planes++) {
		status = put_up_to(w, planes ? e->integer : e->pair);
		for (uint64_t r = 0; !status && r < w->plan->rows; r++) {
			struct xfp_cuda_pair pair = { 0, 0 };
			uint8_t bytes[32];
			float entry[16];

			for (size_t i = 0; i < entries; i++)
				entry[i] = xfp_half_to_float(xfp_load16(code + 2 * (r * entries + i)));
			if (!xfp_cuda_pair_of(e->k, entry, entries, &pair))
				memset(entry, 0, sizeof entry);
			xfp_cuda_integers(e->k, &pair, entry, entries, bytes, bytes + entries);
			status = planes ? put(w, bytes, 2 * entries) : put(w, &pair, sizeof pair);
		}
	}
	return status;
}

static enum xfp_status put_code(struct writing *w, const struct xfp_cuda_expert *e)
{
	const struct xfp_cuda_plan *plan = w->plan;
	const uint8_t *code = w->matrix.code;
	enum xfp_status status = put_up_to(w, e->code);

	if (status)
		return status;
	if (plan->method == XFP_CUDA_FP8)
		return put(w, code + plan->slice.first_row * 4, (uint64_t)plan->rows * 4);
	return put_codebooks(w, code + (plan->slice.first_row * 2 << e->k), plan->rows, e->k);
}

/* ---- outliers ---------------------------------------------------------------------------------- */

static enum xfp_status put_outliers(struct writing *w, const struct xfp_cuda_expert *e)
{
	uint64_t pointers = (uint64_t)w->plan->rows + 1;
	uint32_t *pointer = malloc(pointers * sizeof *pointer), *column = malloc(e->outliers * sizeof *column);
	uint16_t *residual = malloc(e->outliers * sizeof *residual);
	enum xfp_status status;

	if (!pointer || !column || !residual) {
		status = xfp_no_memory(w->err);
		goto done;
	}
	if ((status = xfp_cuda_outliers_gather(w->plan, w->expert, e->outliers, pointer, column, residual, w->err)) ||
	    (status = put_up_to(w, e->pointer)) || (status = put(w, pointer, pointers * sizeof *pointer)) ||
	    (status = put_up_to(w, e->column)) || (status = put(w, column, e->outliers * sizeof *column)) ||
	    (status = put_up_to(w, e->residual)))
		goto done;
	status = put(w, residual, e->outliers * sizeof *residual);
done:
	free(pointer);
	free(column);
	free(residual);
	return status;
}

/* ---- the whole image --------------------------------------------------------------------------- */

static enum xfp_status put_expert(struct writing *w)
{
	const struct xfp_cuda_expert *e = &w->plan->expert[w->expert];
	enum xfp_status status = put_up_to(w, e->index);

	if (!status)
		status = e->k ? put_indices(w) : put_kept(w);
	if (!status && e->integer)
		status = put_integers(w, e);
	if (!status && e->code)
		status = put_code(w, e);
	if (!status && e->group)
		status = put_groups(w, e);
	if (!status && e->outliers)
		status = put_outliers(w, e);
	return status;
}

enum xfp_status xfp_cuda_image_write(const struct xfp_cuda_plan *plan, uint64_t base, struct xfp_cuda_sink *sink,
				     struct xfp_error *err)
{
	struct writing w = { .plan = plan, .sink = sink, .err = err };
	enum xfp_status status;

	/* Whole chunks on either side of the slice. */
	if (plan->k && !(w.row = malloc(plan->cols + (size_t)3 * 32 * XFP_CHUNK_LANES)))
		return xfp_no_memory(err);
	if (!plan->tensor)
		xfp_bundle_matrix(plan->bundle, plan->first_matrix, &w.matrix);
	status = put_shared(&w, base);
	for (; !status && w.expert < plan->experts; w.expert++) {
		if (!plan->tensor)
			xfp_bundle_matrix(plan->bundle, plan->first_matrix + w.expert, &w.matrix);
		w.w = xfp_cuda_plan_weights(plan, plan->expert[w.expert].k, base);
		status = put_expert(&w);
	}
	if (!status)
		status = put_up_to(&w, 0);
	free(w.row);
	return status;
}
