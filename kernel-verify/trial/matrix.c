/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel-verify/trial/matrix.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "kernels/common/lane_index.h"
#include "kernels/common/number.h"

static void fill_numbers(struct xfp_trial *trial, struct xfp_matvec *w, uint8_t *index)
{
	uint8_t *scales;

	for (size_t i = 0; i < w->rows * w->cols; i++) {
		float value = xfp_trial_gaussian(trial);
		uint16_t half = w->mode == XFP_MATVEC_F16 ? xfp_float_to_half(value) : xfp_float_to_bf16(value);

		if (w->mode == XFP_MATVEC_F32)
			memcpy(index + 4 * i, &value, 4);
		else if (w->mode == XFP_MATVEC_FP8)
			index[i] = xfp_float_to_e4m3(value * 60);
		else
			memcpy(index + 2 * i, &half, 2);
	}
	if (w->mode != XFP_MATVEC_FP8)
		return;
	scales = xfp_trial_buffer(trial, "scales", w->rows * 4, 1);
	for (size_t r = 0; r < w->rows; r++) {
		float scale = (float)(1 + xfp_trial_random_below(trial, 100)) / 64;

		memcpy(scales + 4 * r, &scale, 4);
	}
	w->code = scales;
}

static void fill_indices(struct xfp_trial *trial, const struct xfp_matvec *w, uint8_t *packed)
{
	uint8_t *index = malloc(w->cols + 1);

	for (size_t r = 0; index && r < w->rows; r++) {
		for (size_t c = 0; c < w->cols; c++)
			index[c] = (uint8_t)xfp_trial_random_below(trial, (size_t)1 << w->k);
		xfp_lane_index_pack(w->k, index, w->cols, packed + r * w->row_bytes);
	}
	free(index);
}

static void fill_codebooks(struct xfp_trial *trial, struct xfp_matvec *w, bool infinite)
{
	size_t entries = w->rows << w->k;
	uint8_t *code = xfp_trial_buffer(trial, "code", entries * 2, 1);

	for (size_t i = 0; i < entries; i++) {
		uint16_t half = xfp_float_to_half(xfp_trial_gaussian(trial) * 1000);

		if (infinite && i == entries / 2)
			half = 0x7c00;
		memcpy(code + 2 * i, &half, 2);
	}
	w->code = code;
}

/* A library with as many codebooks as the mode allows; bundles have at most 16 in v2c. */
static void make_library(struct xfp_trial *trial, struct xfp_trial_matrix *matrix)
{
	bool compact = matrix->w.mode == XFP_MATVEC_V2C;
	unsigned codebooks = compact ? 4u << xfp_trial_random_below(trial, 4) : 1u << xfp_trial_random_below(trial, 9);
	uint16_t *entry;

	if (compact && codebooks > 16 && trial->set == XFP_SET_CUDA)
		codebooks = 16;
	entry = xfp_trial_buffer(trial, "entries", (size_t)codebooks * 2 << matrix->w.k, 2);
	xfp_trial_halves(trial, entry, (size_t)codebooks << matrix->w.k, 1);
	/* Products, with one and with two vectors: libraries that 8 bits do not suit, of one sign, and of zeros. */
	for (size_t i = 0; !trial->op->exact && i < (size_t)codebooks << matrix->w.k; i++)
		switch (trial->number / 8 % 6) {
		case 2:
			entry[i] = i ? entry[i] : xfp_float_to_half(1000);
			break;
		case 3:
			entry[i] &= 0x7fff;
			break;
		case 4:
			entry[i] = 0;
			break;
		default:
			break;
		}
	memset(matrix->ratio, 0, sizeof matrix->ratio);
	for (unsigned i = 1; compact && i < 256 / codebooks; i++)
		matrix->ratio[i] = xfp_float_to_half((float)i / 31);
	matrix->codebooks = codebooks;
	matrix->entry = entry;
}

static void fill_groups(struct xfp_trial *trial, const struct xfp_trial_matrix *matrix, struct xfp_matvec *w)
{
	bool compact = w->mode == XFP_MATVEC_V2C;
	size_t groups = w->rows * w->row_groups;
	uint8_t *tables = xfp_trial_buffer(trial, "tables", xfp_matvec_tables_bytes(w->k), 64), *byte, *pair, *row;

	xfp_matvec_tables(w->k, matrix->codebooks, matrix->entry, compact ? matrix->ratio : NULL, tables);
	byte = xfp_trial_buffer(trial, "byte", groups, 1);
	for (size_t g = 0; g < groups; g++)
		byte[g] = (uint8_t)xfp_trial_random_below(trial, compact ? 256 : matrix->codebooks);
	if (compact) {
		row = xfp_trial_buffer(trial, "row", w->rows, 1);
		for (size_t r = 0; r < w->rows; r++)
			row[r] = (uint8_t)(40 + xfp_trial_random_below(trial, 20));
		w->row = row;
	} else {
		pair = xfp_trial_buffer(trial, "pair", groups * 4, 1);
		for (size_t g = 0; g < groups; g++) {
			uint16_t two[2] = { xfp_float_to_half(xfp_trial_gaussian(trial)),
					    xfp_float_to_half(xfp_trial_gaussian(trial) / 8) };

			memcpy(pair + 4 * g, two, 4);
		}
		w->pair = pair;
	}
	w->tables = tables;
	w->byte = byte;
}

static void fill_outliers(struct xfp_trial *trial, struct xfp_matvec *w)
{
	bool listed = trial->number % 8 >= 4;
	size_t size = trial->number % 4 == 1 ? 4 : 2;
	uint32_t *found = malloc((w->rows * w->cols + 1) * sizeof *found), count = 0;
	uint32_t *pointer = malloc((w->rows + 1) * sizeof *pointer);
	uint8_t *row, *column, *residual;

	if (!found || !pointer)
		abort();
	for (size_t r = 0; r < w->rows; r++) {
		pointer[r] = count;
		for (size_t c = xfp_trial_random_below(trial, 40); c < w->cols;
		     c += 1 + xfp_trial_random_below(trial, 40))
			found[count++] = (uint32_t)c;
	}
	pointer[w->rows] = count;
	row = xfp_trial_buffer(trial, "rows of outliers", 4 * (listed ? count : w->rows + 1), 1);
	column = xfp_trial_buffer(trial, "column", count * size, 1);
	residual = xfp_trial_buffer(trial, "residual", (size_t)count * 2, 1);
	if (!listed)
		memcpy(row, pointer, 4 * (w->rows + 1));
	for (uint32_t r = 0; listed && r < w->rows; r++)
		for (uint32_t i = pointer[r]; i < pointer[r + 1]; i++)
			memcpy(row + 4 * i, &r, 4);
	for (uint32_t i = 0; i < count; i++) {
		uint16_t half = xfp_float_to_half(xfp_trial_gaussian(trial) * 4);

		memcpy(column + i * size, &found[i], size);
		memcpy(residual + 2 * i, &half, 2);
	}
	free(found);
	free(pointer);
	w->outliers = (struct xfp_outlier_rows){ .row = row,
						 .column = column,
						 .residual = residual,
						 .rows = w->rows,
						 .cols = w->cols,
						 .count = count,
						 .listed = listed,
						 .wide = size == 4 };
}

/* Select columns, beginning with a chunk and a group. */
static void choose_columns(struct xfp_trial *trial, struct xfp_matvec *w)
{
	bool codebooks = w->mode >= XFP_MATVEC_V2;
	size_t chunk = codebooks ? xfp_chunk_columns(w->k) : 1, group = (size_t)1 << w->group;
	size_t step = chunk > group ? chunk : group, first = xfp_trial_random_below(trial, w->cols / step + 1) * step,
	       last;

	if (first == w->cols)
		first -= step;
	last = first + (1 + xfp_trial_random_below(trial, (w->cols - first) / chunk + 1)) * chunk;
	w->index += codebooks ? first / 32 * 4 * w->k : xfp_matvec_row_bytes(w->mode, 0, first);
	if (w->byte)
		w->byte += first >> w->group;
	if (w->pair)
		w->pair = (const uint8_t *)w->pair + (first >> w->group) * 4;
	w->first_column = first;
	w->cols = (last < w->cols ? last : w->cols) - first;
}

/* ---- whole matrices ------------------------------------------------------------------------------------- */

static void fill(struct xfp_trial *trial, struct xfp_trial_matrix *matrix, bool outliers, bool infinite)
{
	struct xfp_matvec *w = &matrix->w;
	bool library = w->mode >= XFP_MATVEC_V2A;
	uint8_t *index = xfp_trial_buffer(trial, "index", w->rows * w->row_bytes, 1);

	w->index = index;
	if (w->mode < XFP_MATVEC_V2)
		fill_numbers(trial, w, index);
	else
		fill_indices(trial, w, index);
	if (w->mode == XFP_MATVEC_V2)
		fill_codebooks(trial, w, infinite);
	if (library && !matrix->codebooks)
		make_library(trial, matrix);
	if (library)
		fill_groups(trial, matrix, w);
	if (outliers)
		fill_outliers(trial, w);
	matrix->whole = *w;
}

void xfp_make_matrix(struct xfp_trial *trial, struct xfp_trial_matrix *matrix, bool outliers, bool infinite)
{
	enum xfp_matvec_mode mode = (enum xfp_matvec_mode)trial->op->kind;
	bool library = mode >= XFP_MATVEC_V2A, some = trial->number % 5 == 3, device = trial->set == XFP_SET_CUDA;
	size_t cols = xfp_trial_columns(trial, trial->number % 8 == 7 ? 9000 : 2500), rows;
	/* rows and columns: more blocks than a device runs at a time; more columns than 16 bits can count */
	static const size_t large[XFP_LARGE_TRIALS][2] = { { 4200, 14336 }, { 16, 70000 } };
	struct xfp_matvec *w = &matrix->w;
	unsigned group;

	/* include widths that are multiples of a group; for products, of the chunks of every k */
	if (trial->number % 3 == 0)
		cols = trial->op->exact ? (cols + 127) / 128 * 128 : (cols + 511) / 512 * 512;
	group = !library ? 0 : trial->number % 2 ? 7 : 4 + (unsigned)xfp_trial_random_below(trial, 7);
	if (mode == XFP_MATVEC_V2A && !trial->op->exact && trial->number % 8 == 0)
		group = 7;
	rows = 1 + xfp_trial_random_below(trial, 20);
	*matrix = (struct xfp_trial_matrix){ .w = { .mode = mode,
						    .k = trial->op->k,
						    .group = group,
						    .rows = rows,
						    .cols = cols,
						    .unit = mode >= XFP_MATVEC_V2 ? 0x1p-9 : 1 } };
	if (mode == XFP_MATVEC_V2C && trial->number % 2)
		w->group = 5;
	if (mode == XFP_MATVEC_V2C && w->group > 6 && device)
		w->group = 4 + (w->group - 4) % 3;
	if (device && trial->number % 4 == 2) /* of several tiles and blocks of tiles */
		w->rows += xfp_trial_random_below(trial, 120);
	if (device && trial->number >= XFP_LARGE_FIRST) {
		const size_t *size = large[(trial->number - XFP_LARGE_FIRST) / XFP_LARGE_STEP];

		w->rows = rows = size[0];
		w->cols = cols = size[1];
	}
	xfp_matvec_set_row_layout(w);
	fill(trial, matrix, outliers, infinite);
	if (some)
		choose_columns(trial, w);
	snprintf(matrix->text, sizeof matrix->text, "%zu rows of %zu%s%.0u%s", w->rows, cols,
		 library ? ", groups of " : "", library ? 1u << w->group : 0, some ? ", some columns" : "");
}

void xfp_make_expert(struct xfp_trial *trial, const struct xfp_trial_matrix *first, struct xfp_trial_matrix *matrix,
		     bool outliers)
{
	const struct xfp_matvec *like = &first->whole;

	*matrix = *first;
	matrix->w = (struct xfp_matvec){ .mode = like->mode,
					 .k = like->k,
					 .group = like->group,
					 .rows = like->rows,
					 .cols = like->cols,
					 .unit = like->mode >= XFP_MATVEC_V2 ? like->unit / 2 : 1 };
	xfp_matvec_set_row_layout(&matrix->w);
	fill(trial, matrix, outliers, false);
}
