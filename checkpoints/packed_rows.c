/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/packed_rows.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "checkpoints/packed/decoder.h"
#include "checkpoints/strided_copy.h"

#define TILE_BYTES ((uint64_t)1 << 20)
#define RUN_BYTES ((uint64_t)4 << 10) /* of a stored row in a tile */

/* A matrix in stored rows: its first element, and the distances of rows and of columns. */
struct stored_place {
	uint64_t row, col;
	uint64_t row_step, col_step;
	bool transposed; /* transposed: rows are columns of stored rows, row_step apart, and columns are stored rows */
};

struct xfp_packed_rows {
	struct xfp_matrix_source source;
	struct xfp_packed_source packed;
	struct stored_place place;
	struct xfp_decoder *decoder;
	unsigned char *tile; /* NULL until needed */
};

/* ---- location of the matrix --------------------------------------------------------------------- */

enum axis { NOWHERE, ALONG_ROWS, ALONG_COLUMNS, ACROSS };

/* Find the axis of `count` elements `stride` apart in the tensor, and their distance in stored rows or columns. */
static enum axis direction(const struct xfp_recipe *recipe, uint64_t base, uint64_t stride, uint64_t count,
			   uint64_t *step)
{
	uint64_t transposed = recipe->transposed, cols = recipe->cols, matrix = cols * transposed,
		 way = (count - 1) * stride;

	*step = 0;
	if (count <= 1)
		return NOWHERE;
	if (!transposed) {
		*step = stride % cols ? stride : stride / cols;
		return !(stride % cols) ? ALONG_ROWS : base % cols + way < cols ? ALONG_COLUMNS : ACROSS;
	}
	if (base % transposed + way < transposed) {
		*step = stride;
		return ALONG_ROWS;
	}
	if (!(stride % matrix)) {
		*step = stride / matrix * transposed;
		return ALONG_ROWS;
	}
	*step = stride / transposed;
	return !(stride % transposed) && base % matrix / transposed + way / transposed < cols ? ALONG_COLUMNS : ACROSS;
}

static bool find(const struct xfp_recipe *recipe, const struct xfp_view *v, struct stored_place *place)
{
	uint64_t matrix = recipe->cols * (recipe->transposed ? recipe->transposed : 1), row_step, col_step;
	enum axis rows = direction(recipe, v->base, v->row_stride, v->rows, &row_step);
	enum axis cols = direction(recipe, v->base, v->col_stride, v->cols, &col_step);

	if (rows == ACROSS || cols == ACROSS || (rows && rows == cols))
		return false;
	place->transposed = rows == ALONG_COLUMNS || cols == ALONG_ROWS;
	place->row_step = row_step;
	place->col_step = rows == NOWHERE && cols == NOWHERE ? 1 : col_step;
	if (recipe->transposed) {
		place->row = v->base / matrix * recipe->transposed + v->base % recipe->transposed;
		place->col = v->base % matrix / recipe->transposed;
	} else {
		place->row = v->base / recipe->cols;
		place->col = v->base % recipe->cols;
	}
	return true;
}

bool xfp_packed_rows_transposed(const struct xfp_matrix_source *source)
{
	struct stored_place place;

	return find(source->recipe, &source->view, &place) && place.transposed;
}

uint64_t xfp_packed_rows_block(const struct xfp_matrix_source *source)
{
	return xfp_decoder_rows(source->recipe);
}

uint64_t xfp_packed_rows_bytes(const struct xfp_matrix_source *source)
{
	struct stored_place place = { 0 };
	bool tiles = !find(source->recipe, &source->view, &place) || place.transposed || place.col_step > 1;

	return xfp_decoder_bytes(source->recipe) + (tiles ? TILE_BYTES : 0);
}

/* ---- reading ------------------------------------------------------------------------------------ */

enum xfp_status xfp_packed_rows_open(const struct xfp_matrix_source *source, struct xfp_packed_rows **out,
				     struct xfp_error *err)
{
	const struct xfp_recipe *recipe = source->recipe;
	struct xfp_packed_rows *r;
	enum xfp_status status;
	uint64_t elements;

	if (!recipe->part_count || !recipe->rows || !recipe->cols || !xfp_mul(recipe->rows, recipe->cols, &elements) ||
	    elements > source->bytes || elements * (xfp_dtype_bits(source->dtype) / 8) != source->bytes)
		return xfp_fail(err, XFP_BAD_INPUT, "tensor %s: the size of its stored rows does not match",
				xfp_printable(source->tensor).text);
	if (!(r = calloc(1, sizeof *r)))
		return xfp_no_memory_for(err, source->tensor);
	r->source = *source;
	r->packed = (struct xfp_packed_source){
		.recipe = recipe,
		.files = source->files,
		.identified = source->identity != NULL,
		.dtype = source->dtype,
		.tensor = r->source.tensor,
	};
	if (source->view.rows && source->view.cols && !find(recipe, &source->view, &r->place))
		status = xfp_fail(err, XFP_BAD_INPUT, "tensor %s: the matrix in it crosses packed rows",
				  xfp_printable(source->tensor).text);
	else
		status = xfp_decoder_open(&r->packed, &r->decoder, err);
	if (status) {
		xfp_packed_rows_close(r);
		return status;
	}
	*out = r;
	return XFP_OK;
}

void xfp_packed_rows_close(struct xfp_packed_rows *r)
{
	if (!r)
		return;
	xfp_decoder_close(r->decoder);
	free(r->tile);
	free(r);
}

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Read through tiles of `lines` stored rows, and pick elements `step` apart. */
static enum xfp_status read_tiles(struct xfp_packed_rows *r, uint64_t first, uint64_t count, unsigned char *buf,
				  struct xfp_error *err)
{
	const struct stored_place *p = &r->place;
	uint64_t size = xfp_dtype_bits(r->source.dtype) / 8, cols = r->source.view.cols;
	uint64_t length = p->transposed ? count : cols, lines = p->transposed ? cols : count;
	uint64_t step = p->transposed ? p->row_step : p->col_step, apart = p->transposed ? p->col_step : p->row_step;
	uint64_t row = p->row + (p->transposed ? 0 : first * p->row_step);
	uint64_t col = p->col + (p->transposed ? first * p->row_step : 0);
	uint64_t max = step < RUN_BYTES / size ? (RUN_BYTES / size - 1) / (step ? step : 1) + 1 : 1;

	if (!r->tile && !(r->tile = malloc(TILE_BYTES)))
		return xfp_no_memory_for(err, r->source.tensor);
	for (uint64_t i = 0, run; i < length; i += run) {
		uint64_t span, high;

		run = lower(length - i, max);
		span = (run - 1) * step + 1;
		for (uint64_t line = 0; line < lines; line += high) {
			unsigned char *to = buf + (p->transposed ? i * cols + line : line * cols + i) * size;
			enum xfp_status status;

			high = lower(lines - line, TILE_BYTES / (span * size));
			status = xfp_decoder_read(r->decoder, row + line * apart, apart, high, col + i * step, span,
						  r->tile, err);
			if (status)
				return status;
			if (p->transposed)
				xfp_strided_copy(to, cols, r->tile, step, span, run, high, size);
			else
				xfp_strided_copy(to, cols, r->tile, span, step, high, run, size);
		}
	}
	return XFP_OK;
}

enum xfp_status xfp_packed_rows_read(struct xfp_packed_rows *r, uint64_t first, uint64_t count, void *buf,
				     struct xfp_error *err)
{
	const struct stored_place *p = &r->place;

	if (!p->transposed && (p->col_step == 1 || r->source.view.cols == 1))
		return xfp_decoder_read(r->decoder, p->row + first * p->row_step, p->row_step, count, p->col,
					r->source.view.cols, buf, err);
	return read_tiles(r, first, count, buf, err);
}
